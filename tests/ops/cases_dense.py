"""Matrix products, Einsum and recurrent layers."""

from __future__ import annotations

import itertools

import numpy as np

from tests.ops.harness import Case, constant

_RIGHT = [
    Case("MatMul", 13, ((2, 6), constant(6, 5))),
    Case("MatMul", 13, ((6,), constant(6, 5))),
    Case("MatMul", 13, ((6,), constant(6))),
    Case("MatMul", 13, ((2, 3, 6), constant(6))),
    Case("MatMul", 13, ((2, 7, 6), constant(6, 5))),
    Case("MatMul", 13, ((2, 3, 4, 6), constant(6, 5))),
    Case("MatMul", 13, ((2, 2, 3, 4, 6), constant(6, 5))),
    Case("MatMul", 13, ((4, 6), constant(1, 1, 6, 5))),
    Case("MatMul", 13, ((2, 3, 4, 6), constant(3, 6, 5))),
    Case("MatMul", 13, ((2, 3, 4, 6), constant(2, 1, 6, 5))),
    Case("MatMul", 13, ((2, 1, 4, 6), constant(3, 6, 5))),
    Case("MatMul", 13, ((4, 6), constant(2, 3, 6, 5))),
    Case("MatMul", 13, ((6,), constant(3, 6, 5))),
]

_LEFT = [
    Case("MatMul", 13, (constant(5, 6), (6, 7))),
    Case("MatMul", 13, (constant(5, 6), (6,))),
    Case("MatMul", 13, (constant(6), (6, 7))),
    Case("MatMul", 13, (constant(6), (2, 6, 7))),
    Case("MatMul", 13, (constant(5, 6), (2, 3, 6, 7))),
    Case("MatMul", 13, (constant(5, 6), (2, 3, 6, 1))),
    Case("MatMul", 13, (constant(3, 5, 6), (2, 3, 6, 7))),
    Case("MatMul", 13, (constant(3, 5, 6), (2, 1, 6, 7))),
    Case("MatMul", 13, (constant(2, 1, 5, 6), (3, 6, 7))),
]

_BOTH = [
    Case("MatMul", 13, ((2, 3, 4), (2, 4, 5))),
    Case("MatMul", 13, ((3, 4), (4, 5))),
    Case("MatMul", 13, ((1, 2, 4, 6), (1, 2, 6, 3))),
    Case("MatMul", 13, ((2, 1, 4, 6), (3, 6, 3))),
    Case("MatMul", 13, ((4, 6), (2, 6, 3))),
    Case("MatMul", 13, ((6,), (6, 3))),
    Case("MatMul", 13, ((2, 4, 6), (6,))),
    Case("MatMul", 13, ((6,), (6,))),
    Case("MatMul", 13, ((2, 4, 1), (2, 1, 3))),
    Case("MatMul", 13, ((2, 1, 4), (2, 4, 1))),
    Case(
        "MatMul",
        13,
        ((1024, 512), (512, 1024)),
        refused={"caffe": "536870912 floats", "bvlc": "536870912 floats"},
    ),
]


def _gemm(a, b, *c, **attributes):
    return Case("Gemm", 13, (a, b, *c), attributes)


_GEMM = [
    _gemm((2, 6), constant(6, 5)),
    _gemm((2, 6), constant(5, 6), constant(5), transB=1),
    _gemm((2, 6), constant(6, 6), constant(6)),
    _gemm((2, 6), constant(5, 6), constant(5), transB=1, alpha=0.5, beta=2.0),
    _gemm((2, 6), constant(5, 6), constant(1, 5), transB=1),
    _gemm((5, 6), constant(5, 6), constant(5, 1), transB=1),
    _gemm((3, 6), constant(5, 6), constant(3, 5), transB=1, beta=-1.5),
    _gemm((3, 6), constant(5, 6), constant(1), transB=1),
    _gemm((3, 6), constant(5, 6), np.array(0.7, np.float32), transB=1),
    _gemm((3, 6), constant(5, 6), constant(5), transB=1, beta=0.0),
    _gemm((6, 3), constant(5, 6), transA=1, transB=1),
    _gemm((3, 6), constant(6, 5), (5,), beta=2.0),
    _gemm((3, 6), constant(6, 5), (3, 1)),
    _gemm((3, 6), constant(6, 5), (3, 5)),
    _gemm((3, 6), (6, 5), constant(5), alpha=2.0),
    _gemm((6, 3), (5, 6), (3, 5), transA=1, transB=1, alpha=0.5, beta=0.5),
    _gemm(constant(3, 6), (6, 5), constant(5)),
    _gemm(constant(6, 3), (5, 6), (1, 5), transA=1, transB=1, alpha=-1.0),
]


def _einsum(equation, *inputs, **rest):
    return Case("Einsum", 12, inputs, {"equation": equation}, **rest)


_EINSUM = [
    _einsum("bct,cd->bdt", (2, 3, 4), constant(3, 5)),
    _einsum("bchw,oc->bohw", (2, 3, 4, 2), constant(5, 3)),
    _einsum("bchw,cd->bdhw", (2, 3, 4, 2), constant(3, 5)),
    _einsum("bhwc,cd->bhwd", (2, 4, 2, 3), constant(3, 5)),
    _einsum("nkctv,kvw->nctw", (2, 2, 3, 4, 5), constant(2, 5, 6)),
    _einsum("bhtk,hkm->bhtm", (2, 3, 4, 5), constant(3, 5, 6)),
    _einsum("bthk,hkm->btm", (2, 4, 3, 5), constant(3, 5, 6)),
    _einsum("btd,dhk->bhtk", (2, 4, 6), constant(6, 2, 3)),
    _einsum("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    _einsum("bhqk,bhkd->bqhd", (2, 2, 3, 4), (2, 2, 4, 5)),
    _einsum("ij,jk->ik", (3, 4), (4, 5)),
    _einsum("ij,jk", (3, 4), (4, 5)),
    _einsum("i,j->ij", (3,), (4,)),
    _einsum("i,i->", (3,), (3,)),
    _einsum("bij,bij->b", (2, 3, 4), (2, 3, 4)),
    _einsum("bij,bij->bij", (2, 3, 4), constant(2, 3, 4)),
    _einsum("bcij,c->bcij", (2, 3, 4, 2), constant(3)),
    _einsum("bij->bji", (2, 3, 4)),
    _einsum("bij->b", (2, 3, 4)),
    _einsum("bij->bj", (2, 3, 4)),
    _einsum("bij->", (2, 3, 4)),
    _einsum("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    _einsum("b...c,cd->b...d", (2, 3, 4, 5), constant(5, 6)),
    _einsum("ij,jk,kl->il", (2, 3), (3, 4), constant(4, 5)),
    _einsum("bii->bi", (2, 3, 3)),
    _einsum("bii->b", (2, 3, 3)),
]


def _recurrent(
    op, gates, shape, hidden, *, seed=0, opset=14, bias=True, states=0, computed=False, peep=False, **attributes
):
    """X, W, R, B, sequence_lens, initial states, P; `states` of them given, constant or computed."""
    _, items, width = shape
    two = 2 if attributes.get("direction") == "bidirectional" else 1
    w = constant(two, gates * hidden, width, seed=seed, scale=0.5)
    r = constant(two, gates * hidden, hidden, seed=seed + 1, scale=0.5)
    b = constant(two, 2 * gates * hidden, seed=seed + 2, scale=0.5) if bias else None
    state_shape = (two, items, hidden)
    initial = [state_shape if computed else constant(*state_shape, seed=seed + 3 + i) for i in range(states)]
    p = [constant(two, 3 * hidden, seed=seed + 7)] if peep else []
    missing = [None] * (2 - states) if peep else []
    traits = f"s{states}{'c' * computed}{'p' * peep}{'n' * (not bias)}"
    return Case(
        op,
        opset,
        (shape, w, r, b, None, *initial, *missing, *p),
        {"hidden_size": hidden, **attributes},
        3 if op == "LSTM" else 2,
        id=f"{op}-{shape}-{traits}-{attributes}".replace(" ", ""),
    )


_LSTM = [
    *(
        _recurrent("LSTM", 4, s, 3, direction=d)
        for s in [(5, 1, 4), (1, 2, 4)]
        for d in ("forward", "reverse", "bidirectional")
    ),
    _recurrent("LSTM", 4, (4, 2, 3), 5, bias=False),
    _recurrent("LSTM", 4, (4, 2, 3), 5, states=2),
    _recurrent("LSTM", 4, (4, 2, 3), 5, states=2, computed=True, direction="bidirectional"),
    _recurrent("LSTM", 4, (3, 2, 3), 2, states=2, peep=True),
    _recurrent("LSTM", 4, (3, 2, 3), 2, clip=0.3),
    _recurrent("LSTM", 4, (3, 2, 3), 2, states=2, input_forget=1),
    _recurrent("LSTM", 4, (3, 2, 3), 2, activations=["HardSigmoid", "Softsign", "Relu"]),
]

_GRU = [
    *(
        _recurrent("GRU", 3, (4, 2, 3), 5, linear_before_reset=late, direction=d, states=s, computed=c)
        for late, (d, s, c) in itertools.product(
            (0, 1), [("forward", 0, False), ("reverse", 1, True), ("bidirectional", 1, False)]
        )
    ),
    _recurrent("GRU", 3, (1, 1, 3), 2),
    _recurrent("GRU", 3, (3, 2, 3), 2, clip=0.4, linear_before_reset=1),
    _recurrent("GRU", 3, (3, 2, 3), 2, activations=["Sigmoid", "LeakyRelu"], activation_alpha=[0.2]),
]

_RNN = [
    *(_recurrent("RNN", 1, (4, 2, 3), 5, direction=d) for d in ("forward", "reverse", "bidirectional")),
    _recurrent("RNN", 1, (4, 2, 3), 5, states=1, computed=True, bias=False),
    _recurrent("RNN", 1, (4, 2, 3), 5, activations=["Relu"]),
    _recurrent("RNN", 1, (4, 2, 3), 5, activations=["Affine"], activation_alpha=[0.7], activation_beta=[0.1]),
]

_LENGTHS = [
    Case(
        "RNN",
        14,
        ((4, 2, 3), constant(1, 5, 3), constant(1, 5, 5), None, np.array(lens, np.int32)),
        {"hidden_size": 5},
        2,
        id=f"RNN-lens{lens}",
        refused={} if lens == [4, 4] else dict.fromkeys(("caffe", "bvlc"), "sequence_lens"),
    )
    for lens in ([4, 4], [4, 2])
]

CASES = [*_RIGHT, *_LEFT, *_BOTH, *_GEMM, *_EINSUM, *_LSTM, *_GRU, *_RNN, *_LENGTHS]
