"""`python -m onnx2caffe`."""

from __future__ import annotations

import sys

from onnx2caffe.cli import main

sys.exit(main())
