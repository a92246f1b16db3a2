"""Which nodes of a model become Caffe nets and which stay ONNX, and where the model is cut for that."""
