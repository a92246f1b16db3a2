"""What `make arm` measures: whole networks on boards, under qemu."""
