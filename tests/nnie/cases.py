"""For each rule about nets: nets that break it and nets that do not. Rules about the cfg are in test_cfg.py."""

from __future__ import annotations

from tests.nnie.nets import layer, net

CONV = "convolution_param { num_output: 8 kernel_size: 3 pad: 1 }"
THREE = (1, 3, 8, 8)


def one(type: str, parameters: str = "", **options: str) -> str:
    return net(layer(type, parameters, **options))


def many(count: int, type: str = "ReLU") -> list[str]:
    return [layer(type, name=f"r{i}") for i in range(count)]


def chain(count: int) -> str:
    """A net of `count` + 1 segments."""
    layers, last = [layer("ReLU", name="r0")], "r0"
    for i in range(count):
        layers.append(layer("Custom", "custom_param { shape { dim: 1 dim: 4 } }", bottom=last, name=f"c{i}"))
        layers.append(layer("ReLU", bottom=f"c{i}", name=f"r{i + 1}"))
        last = f"r{i + 1}"
    return net(*layers)


def roi(count: int) -> str:
    pools = [
        layer("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 2 }", bottom="data,rois", name=f"p{i}")
        for i in range(count)
    ]
    return net(layer("Input", "input_param { shape { dim: 1 dim: 5 } }", bottom="", name="rois"), *pools)


def pool(parameters: str, shape: tuple[int, ...] = (1, 4, 8, 8)) -> str:
    return net(layer("Pooling", f"pooling_param {{ {parameters} }}"), shape=shape)


def custom(dims: list[int]) -> str:
    shape = " ".join(f"dim: {dim}" for dim in dims)
    return net(
        layer("Custom", f"custom_param {{ shape {{ {shape} }} }}"),
        layer("ReLU", bottom="it", name="r"),
        layer("Pooling", "pooling_param { kernel_size: 2 }", bottom="r", name="p"),
    )


def twin(type: str, top: str, phase: str = "") -> str:
    """One of several layers called c."""
    parameters = {"Convolution": CONV, "InnerProduct": "inner_product_param { num_output: 4 }"}.get(type, "")
    return layer(type, f"{parameters} {phase}", name="c", top=top)


PAIRS = (("Convolution", "InnerProduct"), ("Convolution", "ReLU"), ("Softmax", "PReLU"))
PHASES = [twin("Convolution", "a", f"include {{ phase: {phase} }}") for phase in ("TRAIN", "TEST")]

BROKEN: list[tuple[str, str]] = [
    ("E01", one("Permute", "permute_param { order: 0 order: 3 order: 1 order: 2 }")),
    ("E01", one("Permute", "permute_param { order: 0 order: 1 }")),
    ("E01", net(layer("Permute", "permute_param { order: 0 order: 2 order: 1 }"), shape=(1, 4, 8))),
    ("E02", one("Reshape", "reshape_param { shape { dim: 1 dim: -1 } }")),
    ("E02", one("Reshape", "reshape_param { shape { dim: -1 dim: 4 } }")),
    ("E02", one("Reshape", "reshape_param { shape { dim: 0 dim: -1 } axis: 1 }")),
    ("E03", one("Reshape", "reshape_param { shape { dim: 0 dim: 2 dim: 2 dim: 8 dim: 8 } }")),
    ("E04", net(layer("ReLU"), shape=(2, 4, 8, 8))),
    ("E04", 'input: "data" input_dim: 4 input_dim: 3 input_dim: 8 input_dim: 8\n' + layer("ReLU")),
    ("E04", net(layer("ReLU"), shape=(4,))),
    ("E04", one("Concat", "concat_param { axis: 0 }", bottom="data,data")),
    ("E04", one("Slice", "slice_param { axis: -4 }", top="a")),
    ("E04", one("Softmax", "softmax_param { axis: 0 }")),
    ("E04", one("InnerProduct", "inner_product_param { num_output: 2 axis: 0 }")),
    ("E04", one("Flatten", "flatten_param { axis: 0 }")),
    ("E05", one("Interp", "interp_param { height: 4 width: 4 }")),
    ("E05", one("NeverHeardOf")),
    ("E05", 'layers { name: "it" type: ARGMAX bottom: "data" top: "it" }\n' + net()),
    (
        "E06",
        net(pool("kernel_size: 2 stride: 2"), layer("Eltwise", bottom="data,it", name="sum")).replace("\n\n", "\n"),
    ),
    ("E08", net(layer("Convolution", CONV, bottom="data_cpu"), name="data_cpu")),
    ("E08", one("ReLU", name="it_cpu")),
    ("E08", net(layer("Convolution", CONV, name="c"), layer("ReLU", bottom="c", top="c", name="r_cpu"))),
    (
        "E08",
        net(
            layer("Convolution", CONV, name="c"),
            layer("Softmax", bottom="c", name="s_cpu"),
            layer("Upsample", bottom="s_cpu", name="u"),
        ),
    ),
    ("E09", net(*many(17))),
    ("E09", chain(8)),
    ("E09", roi(3)),
    ("E12", one("Power", "power_param { power: 4 }")),
    ("E12", one("Power", "power_param { power: 0 }")),
    ("E13", one("Convolution", "convolution_param { num_output: 6 kernel_size: 1 group: 4 }")),
    ("E13", one("Deconvolution", "convolution_param { num_output: 6 kernel_size: 1 group: 3 }")),
    (
        "E13",
        net(
            layer("Convolution", "convolution_param { num_output: 4096 kernel_size: 1 group: 4096 }"),
            shape=(1, 4096, 2, 2),
        ),
    ),
    ("E14", one("PassThrough", "pass_through_param { num_output: 36 block_height: 3 block_width: 3 }")),
    ("E14", one("PassThrough", "pass_through_param { num_output: 8 block_height: 2 block_width: 2 }")),
    ("E14", one("PassThrough", "pass_through_param { num_output: 0 block_height: 0 block_width: 2 }")),
    ("E15", one("Custom", "custom_param { shape { dim: 1 } } relu_param { }")),
    ("E15", one("Custom", "custom_param { shape { dim: 1 } }", top="a,b")),
    ("E15", one("Proposal", top="a,b")),
    *(("E15", custom(dims)) for dims in ([1, 0], [1, -4], [1, 65536, 65536], [1] * 33, [2**62, 2**62])),
    ("E17", one("SoftmaxWithLoss", bottom="data,data")),
    ("E17", net(layer("ReLU", "include { phase: TRAIN }"))),
    ("E17", one("Reshape", bottom="data,data")),
    ("E18", one("ReLU", bottom="nothing")),
    ("E18", one("Slice", "slice_param { slice_point: 0 slice_point: 2 }", top="a,b")),
    ("E18", one("Convolution", "convolution_param { kernel_size: 1 }")),
    ("E18", one("Pooling", "pooling_param { pool: MEDIAN }")),
    ("E18", 'input: "data" input: "more" input_shape { dim: 1 dim: 4 }\n' + layer("ReLU")),
    ("E18", pool("pool: AVE")),
    ("W01", pool("pool: AVE global_pooling: true", (1, 4, 234, 310))),
    ("W01", pool("pool: AVE kernel_h: 200 kernel_w: 3", (1, 4, 234, 310))),
    ("W02", pool("kernel_size: 3 stride: 2 round_mode: FLOOR")),
    ("W02", pool("kernel_size: 3 stride: 2 ceil_mode: false")),
    ("W03", net(layer("ReLU"), shape=(1, 1, 1, 5000))),
    ("W04", net(layer("Convolution", "convolution_param { num_output: 1 kernel_size: 300 }"), shape=(1, 1, 400, 400))),
    ("W05", net(*(layer("ReLU", name="a" * 31 + end) for end in "bc"))),
    ("W06", one("Convolution", "convolution_param { num_output: 4 kernel_size: 3 group: 4 }")),
    ("W07", one("Convolution", "convolution_param { num_output: 4 kernel_size: 3 group: 2 }")),
    (
        "W08",
        net(
            layer("InnerProduct", "inner_product_param { num_output: 4 }"),
            layer("Reduction", "reduction_param { axis: 1 }", bottom="it", name="r"),
        ),
    ),
    ("W09", net(*many(33), layer("Concat", bottom=",".join(f"r{i}" for i in range(33)), name="c"))),
    ("W09", net(layer("Slice", top=",".join(f"s{i}" for i in range(40))), shape=(1, 40, 8, 8))),
    ("W10", one("Upsample", "upsample_param { scale: 2 }")),
    ("W07", one("Convolution", "convolution_param { num_output: 8 kernel_size: 3 group: 4 }")),
    ("W11", net(layer("Convolution", CONV), layer("Sigmoid", bottom="it", name="s"))),
    ("W11", one("LRN")),
    (
        "W11",
        net(layer("Softmax"), layer("ReLU", bottom="it", top="it", name="r"), layer("Flatten", bottom="it", name="f")),
    ),
    ("W11", net(layer("Convolution", CONV, name="c"), layer("BatchNorm", bottom="c", top="c", name="b"))),
    ("W12", one("Normalize", "norm_param { eps: 1e-6 }")),
    ("W13", one("Power", "power_param { shift: 1 }")),
    ("W14", one("Softmax", "softmax_param { axis: 3 }")),
    ("W15", net(layer("Scale", bottom="data,data"))),
    ("W16", one("ReLU", name="a b")),
    ("W16", one("ReLU", name="größe")),
    ("W18", one("Upsample", "upsample_param { scale: 4 }")),
    ("W19", pool("kernel_size: 2 stride: 2 ceil_mode: true")),
    ("W19", pool("kernel_size: 2 stride: 2 round_mode: FLOOR")),
    ("W20", one("ReLU", "relu_param { negative_slope: 0.1 }")),
    ("W21", one("ReLU", name="a" * 32)),
    ("W22", one("DepthwiseConv", "convolution_param { num_output: 4 kernel_size: 3 }")),
    ("W22", one("Eltwise", "eltwise_param { operation: MAX }", bottom="data,data")),
    ("W22", one("Eltwise", "eltwise_param { coeff: 1 coeff: -1 }", bottom="data,data")),
    ("W22", one("Concat", "concat_param { axis: 2 }", bottom="data,data")),
    ("W22", pool("pool: AVE kernel_size: 3 pad: 1")),
    ("W22", one("Deconvolution", "convolution_param { num_output: 4 kernel_size: 4 stride: 2 pad: 1 }")),
    ("W23", one("ReLU", "focal_param { gamma: 2 }")),
    ("W23", pool("kernel_size: 2 stride: 2 sharpness: 3")),
    ("W23", "anchors: 3\n" + one("ReLU")),
    ("W24", one("Reshape", "reshape_param { shape { dim: 0 dim: 4 dim: 64 } }")),
    ("W24", one("Reshape", "reshape_param { shape { dim: 0 dim: 4 dim: 64 dim: 1 } }")),
    ("W24", one("Reshape", "reshape_param { shape { dim: 0 dim: 1 dim: 128 dim: 2 } }")),
    ("W24", one("Reshape", "reshape_param { shape { dim: 0 dim: 128 dim: 1 dim: 2 } }")),
    ("W25", net(layer("Convolution", "convolution_param { num_output: 4 kernel_size: 3 }"), shape=(1, 4, 32))),
    ("W26", one("BatchNorm", "batch_norm_param { use_global_stats: false }")),
    *(("W30", net(*(twin(type, top) for type, top in zip(types, "ab", strict=True)))) for types in PAIRS),
    ("W31", net(twin("ReLU", "a"), twin("Softmax", "b"))),
]

CLEAN: list[tuple[str, str]] = [
    ("E01", one("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }")),
    ("E02", one("Reshape", "reshape_param { shape { dim: 0 dim: -1 } }")),
    ("E03", one("Reshape", "reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 8 } }")),
    ("E04", one("Concat", bottom="data,data")),
    ("E04", one("Flatten")),
    ("E05", one("RReLU")),
    ("E06", one("Eltwise", bottom="data,data")),
    ("E08", net(layer("Convolution", CONV, name="c"), layer("Softmax", bottom="c", name="s_cpu"))),
    ("E09", net(*many(16))),
    ("E09", chain(7)),
    ("E09", roi(2)),
    ("E12", one("Power", "power_param { power: -0.5 scale: 3 }")),
    ("E13", one("Convolution", "convolution_param { num_output: 8 kernel_size: 1 group: 4 }")),
    ("E14", one("PassThrough", "pass_through_param { num_output: 16 block_height: 2 block_width: 2 }")),
    ("E15", one("Custom", "custom_param { shape { dim: 1 } shape { dim: 2 } }", top="a,b")),
    ("E15", one("Proposal")),
    ("E15", custom([1, 4, 300, 300])),
    ("E17", net(layer("ReLU", "include { phase: TEST }"))),
    ("E18", one("Slice", "slice_param { slice_point: 1 }", top="a,b")),
    ("W01", pool("pool: AVE kernel_h: 13 kernel_w: 31 stride_h: 13 stride_w: 31", (1, 4, 234, 310))),
    ("W02", pool("kernel_size: 2 stride: 2 round_mode: FLOOR")),
    ("W03", net(layer("ReLU"), shape=(1, 1, 5000, 1))),
    ("W04", one("Convolution", CONV)),
    ("W05", net(*(layer("ReLU", name=first + "a" * 31) for first in "bc"))),
    ("W06", one("DepthwiseConv", "convolution_param { num_output: 4 kernel_size: 3 }")),
    ("W06", one("Convolution", "convolution_param { num_output: 8 kernel_size: 3 group: 4 }")),
    ("W07", one("Convolution", "convolution_param { num_output: 4 kernel_size: 3 group: 4 }")),
    (
        "W08",
        net(layer("InnerProduct", "inner_product_param { num_output: 4 }"), layer("Softmax", bottom="it", name="s")),
    ),
    ("W09", net(*many(32), layer("Concat", bottom=",".join(f"r{i}" for i in range(32)), name="c"))),
    ("W10", one("Deconvolution", "convolution_param { num_output: 4 kernel_size: 2 stride: 2 }")),
    ("W11", net(layer("Convolution", CONV, name="c"), layer("ReLU", bottom="c", top="c", name="r"))),
    ("W11", one("Softmax")),
    ("W11", one("Sigmoid")),
    ("W11", net(layer("Concat", bottom="data,data"), layer("Sigmoid", bottom="it", name="s"))),
    ("W11", net(layer("Flatten"), layer("Sigmoid", bottom="it", name="s"))),
    (
        "W11",
        net(
            layer("Convolution", CONV, name="c"),
            layer("Scale", bottom="c", name="s"),
            layer("ReLU", bottom="c", name="r"),
        ),
    ),
    ("W12", one("Normalize", "norm_param { eps: 1e-10 }")),
    ("W13", one("Power", "power_param { power: 2 }")),
    ("W14", one("Softmax", "softmax_param { axis: -3 }")),
    ("W14", net(layer("Softmax", "softmax_param { axis: 2 }"), shape=(1, 4, 8))),
    ("W15", one("Scale")),
    ("W16", one("ReLU", name="/model.24/Reshape_output-0:1")),
    ("W18", one("Upsample", "upsample_param { upsample_h: 16 upsample_w: 16 }")),
    ("W19", pool("kernel_size: 2 stride: 2")),
    ("W20", one("ReLU")),
    ("W21", one("ReLU", name="a" * 31)),
    ("W22", one("Deconvolution", "convolution_param { num_output: 4 kernel_size: 2 stride: 2 }")),
    ("W22", one("Eltwise", "eltwise_param { operation: PROD }", bottom="data,data")),
    ("W23", one("ReLU", "relu_param { engine: CAFFE } param { lr_mult: 0 } loss_weight: 1")),
    ("W24", one("Reshape", "reshape_param { shape { dim: 0 dim: 4 dim: 1 dim: 64 } }")),
    ("W24", one("Reshape", "reshape_param { shape { dim: 0 dim: 1 dim: 64 dim: 4 } }")),
    ("W24", one("Reshape", "reshape_param { shape { dim: 0 dim: 256 dim: 1 dim: 1 } }")),
    ("W24", one("Reshape", "reshape_param { shape { dim: 0 dim: 256 } }")),
    ("W24", net(layer("Sigmoid"), shape=(1, 2))),
    ("W25", one("Convolution", CONV)),
    ("W26", one("BatchNorm")),
    ("W26", one("BatchNorm", "batch_norm_param { use_global_stats: true }")),
    ("W30", net(*PHASES)),
    ("W30", net(twin("ReLU", "a"), twin("Softmax", "b"))),
    ("W31", net(layer("ReLU"), layer("Softmax", name="s"))),
    ("W31", net(twin("Convolution", "a"), twin("ReLU", "b"))),
]
