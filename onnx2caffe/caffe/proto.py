"""Caffe's protobuf messages, from a descriptor pool of our own.

An installed `caffe` registers another caffe.proto in protobuf's default pool, and two of them there are an error
(caffe §14). A private pool works beside it with every protobuf from 4.25 on; its classes are not those of `caffe_pb2`:
only bytes and text may pass between the two.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["Message", "message"]

Message = Any
"""A protobuf message; the library has no types for classes made at run time."""


@cache
def _pool() -> Any:
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet()
    files.ParseFromString(resources.files("onnx2caffe.caffe").joinpath("caffe.fds").read_bytes())
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


@cache
def message(name: str) -> Any:
    """The class of a message of proto/caffe.proto, e.g. `message("NetParameter")`."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"caffe.{name}"))
