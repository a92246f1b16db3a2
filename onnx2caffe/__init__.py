"""ONNX to Caffe, every export proved by numbers."""
