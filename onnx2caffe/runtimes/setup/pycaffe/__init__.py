"""`onnx2caffe setup pycaffe`: builds a CPU-only pycaffe from PyPI sources into an environment of its own."""

from __future__ import annotations

from onnx2caffe.runtimes.setup.pycaffe.recipe import environment_python

__all__ = ["environment_python"]
