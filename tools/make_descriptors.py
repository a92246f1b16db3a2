"""Compile proto/caffe.proto into the descriptor set the package ships.

usage: python tools/make_descriptors.py     (needs protoc; run it after every change of proto/caffe.proto)
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "onnx2caffe" / "caffe" / "caffe.fds"


def main() -> None:
    subprocess.run(
        ["protoc", f"--proto_path={ROOT / 'proto'}", f"--descriptor_set_out={OUTPUT}", "caffe.proto"], check=True
    )
    print(f"{OUTPUT.relative_to(ROOT)}: {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
