"""What runs in other Pythons: started by path, importing nothing of onnx2caffe, only each other."""
