"""Old NetParameters to what Caffe runs: second-generation layers of the TEST phase, inputs as an Input layer.

What upgrade_proto.cpp and Net::FilterNet do.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx2caffe.caffe.proto import Message, message
from onnx2caffe.errors import UnreadableFile

__all__ = ["from_v1", "input_layers", "runs_in_test", "upgraded"]

_V1_TYPES = {
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "DROPOUT": "Dropout",
    "IM2COL": "Im2col",
    "LRN": "LRN",
    "MVN": "MVN",
    "RELU": "ReLU",
    "TANH": "TanH",
}
"""Types whose names are not simply their enum's words capitalised."""

_TEST = 1
"""Phase.TEST."""

_TRAINING_V1 = frozenset({"blobs_lr", "weight_decay", "blob_share_mode"})


def upgraded(net: Message) -> Message:
    """A NetParameter with `layer` alone: no old fields, no layers of other phases, no rules.

    Raises:
        UnreadableFile: layers of both generations, or inputs without a shape each.

    """
    if net.layer and net.layers:
        raise UnreadableFile("the prototxt has both `layer` and `layers` fields")
    layers = [*input_layers(net), *net.layer, *(from_v1(layer) for layer in net.layers)]
    return message("NetParameter")(name=net.name, layer=[layer for layer in layers if runs_in_test(layer)])


def input_layers(net: Message) -> Iterator[Message]:
    """The Input layer that stands for the `input` fields of old files, if there are any.

    Raises:
        UnreadableFile: inputs without a shape each.

    """
    if not net.input:
        return
    shapes = [list(shape.dim) for shape in net.input_shape]
    if not shapes:
        dims = list(net.input_dim)
        shapes = [dims[i : i + 4] for i in range(0, len(dims), 4)]
    if len(shapes) != len(net.input):
        raise UnreadableFile(f"the prototxt has {len(net.input)} inputs and {len(shapes)} input shapes")
    layer = message("LayerParameter")(name="input", type="Input", top=net.input)
    for shape in shapes:
        layer.input_param.shape.add(dim=shape)
    yield layer


def from_v1(old: Message) -> Message:
    """A LayerParameter that says what a V1LayerParameter says."""
    new = message("LayerParameter")()
    for field, value in old.ListFields():
        if field.name == "type":
            new.type = _type_name(field.enum_type.values_by_number[value].name)
        elif field.name == "param":
            for name in value:
                new.param.add(name=name)
        elif field.name in _TRAINING_V1:
            continue
        elif field.message_type is None:
            _assign(new, field, value)
        elif field.has_presence:
            getattr(new, field.name).CopyFrom(value)
        else:
            getattr(new, field.name).extend(value)
    return new


def _assign(message: Message, field: Message, value: object) -> None:
    if field.has_presence:
        setattr(message, field.name, value)
    else:
        getattr(message, field.name).extend(value)


def _type_name(enum: str) -> str:
    return _V1_TYPES.get(enum) or "".join(word.capitalize() for word in enum.split("_"))


def runs_in_test(layer: Message) -> bool:
    """Whether Caffe keeps a layer for inference.

    Raises:
        UnreadableFile: it has both include and exclude rules.

    """
    if layer.include and layer.exclude:
        raise UnreadableFile(f"layer {layer.name!r} has both include and exclude rules")
    if layer.include:
        return any(_met(rule) for rule in layer.include)
    return not any(_met(rule) for rule in layer.exclude)


def _met(rule: Message) -> bool:
    """Whether a rule holds in the state of a net made for inference: phase TEST, level 0, no stages."""
    if rule.HasField("phase") and rule.phase != _TEST:
        return False
    return rule.min_level <= 0 and (not rule.HasField("max_level") or rule.max_level >= 0) and not rule.stage
