# Everything runs in .venv, which is made of the first Python here that is new enough and can make environments.
# Another one: make PYTHON=/path/to/python3.12 …
SUITABLE := import sys, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(SUITABLE)' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
N ?= 10000

CROSS_TOOLS := gcc-arm-linux-gnueabi g++-arm-linux-gnueabi gcc-arm-linux-gnueabihf g++-arm-linux-gnueabihf \
	gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user-static

.PHONY: demo test lint conformance conformance-tvm safety fuzz arm cross bench docs clean

demo: .venv/.installed
	mkdir -p demo
	$(BIN)/python examples/nanodet_m.py -o demo/nanodet_m.onnx
	$(BIN)/onnx2caffe convert demo/nanodet_m.onnx -o demo/nanodet_m --force
	$(BIN)/onnx2caffe compare demo/nanodet_m.onnx demo/nanodet_m/nanodet_m.prototxt demo/nanodet_m/nanodet_m.caffemodel \
		> demo/compare.txt || { cat demo/compare.txt; exit 1; }
	@tail -n 5 demo/compare.txt
	@echo "every tensor, a line each: demo/compare.txt"

# A test that finds no Caffe or no TVM fails instead of being skipped.
test: lint
	$(BIN)/onnx2caffe setup pycaffe relay relax
	ONNX2CAFFE_REQUIRE_CAFFE=1 ONNX2CAFFE_REQUIRE_TVM=1 $(BIN)/python -m pytest -n 2

lint: .venv/.developing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

conformance: .venv/.developing
	$(BIN)/onnx2caffe setup pycaffe
	$(BIN)/python -m tests.conformance.run

# Hours: stopped and started again, it goes on. `make conformance-tvm ONLY="--suite corpus --dialect relax"` does a part.
conformance-tvm: .venv/.developing
	$(BIN)/onnx2caffe setup relay relax
	$(BIN)/python -m tests.tvm.conformance $(ONLY)

# What eight bits cost nets in the form for the mapper, beside their plain layers.
safety: .venv/.developing
	$(BIN)/python -m tests.nnie.safety

fuzz: .venv/.developing
	$(BIN)/onnx2caffe setup pycaffe
	ONNX2CAFFE_REQUIRE_CAFFE=1 ONNX2CAFFE_FUZZ=$(N) $(BIN)/python -m pytest -s --timeout 0 tests/fuzz

# Whole networks as libraries and as C for boards, run under qemu.
arm: .venv/.developing cross
	$(BIN)/onnx2caffe setup relay
	$(BIN)/python -m tests.tvm.arm.run

# What runs code of other machines; where it is missing and nobody may install it, tests of boards are skipped and say so.
cross:
	@command -v qemu-arm-static aarch64-linux-gnu-g++ > /dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null || \
		{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends $(CROSS_TOOLS); }

bench: .venv/.developing
	$(BIN)/python tools/bench.py
	$(BIN)/python -m tests.corpus.run --lean
	$(BIN)/onnx2caffe setup relay relax
	$(BIN)/python -m tests.tvm.latency

docs: .venv/.developing
	$(BIN)/python -m tools.make_operators
	$(BIN)/python -m tools.make_nnie_rules

clean:
	rm -rf .venv demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 that can make environments (Debian: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml | .venv/bin/python
	$(BIN)/pip install -q -e .
	touch $@

.venv/.developing: pyproject.toml | .venv/bin/python
	$(BIN)/pip install -q -e '.[dev]'
	touch $@ .venv/.installed
