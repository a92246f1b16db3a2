"""Our schema: compiled, complete for every layer, and harmless beside another Caffe's."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys

import numpy as np
import pytest

from onnx2caffe.caffe.layers import LAYERS
from onnx2caffe.caffe.proto import message

UNSTORED = {"blobs", "tops"}


def test_descriptor_set_is_up_to_date(pytestconfig, tmp_path):
    if shutil.which("protoc") is None:
        pytest.skip("protoc is not installed")
    root = pytestconfig.rootpath
    made = tmp_path / "caffe.fds"
    subprocess.run(
        ["protoc", f"--proto_path={root / 'proto'}", f"--descriptor_set_out={made}", "caffe.proto"], check=True
    )
    shipped = root / "onnx2caffe" / "caffe" / "caffe.fds"
    assert shipped.read_bytes() == made.read_bytes(), "run python tools/make_descriptors.py"


@pytest.mark.parametrize("cls", LAYERS.values(), ids=LAYERS)
def test_fields_have_caffes_names_and_defaults(cls):
    if cls.param_field is None:
        return
    known = getattr(message("LayerParameter")(), cls.param_field).DESCRIPTOR.fields_by_name
    for name in [*cls.unread, *cls.fillers, *(n for codec in cls.codecs.values() for n in codec.fields)]:
        assert name in known
    for field in dataclasses.fields(cls):
        if field.name in UNSTORED or field.name in cls.codecs or field.default in {None, dataclasses.MISSING}:
            continue
        proto = known[field.name]
        if proto.enum_type is not None:
            assert field.default == proto.enum_type.values_by_number[proto.default_value].name
        elif proto.has_default_value:
            assert np.float32(field.default) == np.float32(proto.default_value)


BESIDE = """
from google.protobuf import descriptor_pb2, descriptor_pool
file = descriptor_pb2.FileDescriptorProto(name="caffe.proto", package="caffe")
file.message_type.add(name="NetParameter")
descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
from onnx2caffe.caffe.proto import message
assert message("NetParameter")(name="x").name == "x"
"""


def test_beside_another_caffe_proto():
    subprocess.run([sys.executable, "-c", BESIDE], check=True)
