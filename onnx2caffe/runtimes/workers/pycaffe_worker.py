"""The process that holds Caffe: loads nets and runs them layer by layer for `onnx2caffe.runtimes.pycaffe`.

Run by path with any Python from 3.6 that has `caffe` and numpy; imports nothing of onnx2caffe but its neighbour here.

Frames (frames.py) come in on standard input and go out on what was standard output; whatever Caffe prints goes to
standard error. Lines `Running layer NAME` and `Copying weights` there say how far the work has come, as Caffe's own
`Creating Layer NAME` does: they outlive an abort.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx2caffe.runtimes.workers.frames import Channel
else:
    from frames import Channel

sys.path.pop(0)  # this folder: nothing in it may shadow the modules of the interpreter


def note(text: str) -> None:
    """Say on standard error how far the work has come."""
    os.write(2, (text + "\n").encode("utf-8", "replace"))


def load(caffe: Any, header: "dict[str, Any]") -> Any:
    """The net of a "load" request, with its weights."""
    net = caffe.Net(header["prototxt"], caffe.TEST)
    note("Copying weights")
    net.copy_from(header["caffemodel"])
    return net


def run(channel: Channel, net: Any, header: "dict[str, Any]", arrays: "list[Any]") -> None:
    """Run the net once; send each tap as {"tap": its number} right after its layer: a later one may overwrite it."""
    for blob, array in zip(header["blobs"], arrays):  # noqa: B905 - Python 3.6 has no strict
        target = net.blobs[blob].data
        target[...] = array.reshape(target.shape)
    wanted = {}  # type: dict[str, list[tuple[int, str]]]
    for number, (blob, layer) in enumerate(header["taps"]):
        wanted.setdefault(layer, []).append((number, blob))
    last_of_name = {name: number for number, name in enumerate(net._layer_names)}
    for number, name in enumerate(net._layer_names):
        note("Running layer " + name)
        net._forward(number, number)
        for tap, blob in wanted.get(name, []) if number == last_of_name[name] else []:
            channel.send({"tap": tap}, [net.blobs[blob].data])
    for tap, blob in wanted.get("", []):
        channel.send({"tap": tap}, [net.blobs[blob].data])


def main() -> None:
    """Answer requests until the stream ends."""
    channel = Channel()
    import caffe

    caffe.set_mode_cpu()
    types = list(caffe.layer_type_list())
    channel.send({"caffe": getattr(caffe, "__version__", "?"), "python": sys.version.split()[0], "types": types})
    net = None
    while True:
        request = channel.receive()
        if request is None:
            return
        header, arrays = request
        try:
            if header["do"] == "load":
                net = None  # the old net's memory goes first
                net = load(caffe, header)
                blobs = {name: list(blob.shape) for name, blob in net.blobs.items()}
                channel.send({"blobs": blobs, "layers": list(net._layer_names), "inputs": list(net.inputs)})
            else:
                run(channel, net, header, arrays)
                channel.send({"done": True})
        except RuntimeError as failed_check:
            channel.send({"refused": str(failed_check)})


if __name__ == "__main__":
    main()
