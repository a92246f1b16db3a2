"""Steps of optimisers, for any number of tensors at once, as ONNX's preview domain for training defines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import upgrades

__all__: list[str] = []

DOMAIN = "ai.onnx.preview.training"

Step = Callable[..., Sequence[ir.Value]]


class _Arithmetic:
    """Sums and products of values and numbers."""

    def __init__(self, build: Builder) -> None:
        self._build = build

    def __call__(self, op_type: str, a: ir.Value, b: ir.Value | float) -> ir.Value:
        other = b if isinstance(b, ir.Value) else self._build.like(b, a, "number")
        return self._build.op(op_type, a, other)

    def root(self, x: ir.Value, epsilon: float) -> ir.Value:
        return self("Add", self._build.op("Sqrt", x), epsilon)

    def regularized(self, gradient: ir.Value, x: ir.Value, coefficient: float) -> ir.Value:
        return self("Add", self("Mul", x, coefficient), gradient)


def _each(node: Reader, group: int, step: Step) -> list[ir.Value]:
    """`step` for each optimized tensor; inputs and outputs stand kind by kind."""
    tensors = node.present[2:]
    if not tensors or len(tensors) % group:
        raise Opaque(f"{len(tensors)} tensors are no groups of {group}")
    count = len(tensors) // group
    results = [step(*tensors[number::count]) for number in range(count)]
    return [value for kind in zip(*results, strict=True) for value in kind]


def _later(node: Reader, build: Builder, value: ir.Value, first: ir.Value) -> ir.Value:
    """`value` where the update count is positive, `first` in the first update."""
    count = node.input(1)
    return build.op("Where", build.op("Greater", count, build.like(0, count, "zero")), value, first)


@upgrades("Momentum", domain=DOMAIN)
def momentum(node: Reader, build: Builder) -> list[ir.Value]:
    """Gradient descent with momentum, standard or Nesterov's."""
    alpha, beta, norm = (node.number(name) for name in ("alpha", "beta", "norm_coefficient"))
    nesterov = node.text("mode") == "nesterov"
    rate, do = node.input(0), _Arithmetic(build)
    scale = _later(node, build, build.like(beta, rate, "beta"), build.like(1, rate, "one"))

    def step(x: ir.Value, gradient: ir.Value, velocity: ir.Value) -> tuple[ir.Value, ir.Value]:
        gradient = do.regularized(gradient, x, norm)
        velocity = do("Add", do("Mul", velocity, alpha), do("Mul", gradient, scale))
        direction = do("Add", gradient, do("Mul", velocity, alpha)) if nesterov else velocity
        return do("Sub", x, do("Mul", direction, rate)), velocity

    return _each(node, 3, step)


@upgrades("Adagrad", domain=DOMAIN)
def adagrad(node: Reader, build: Builder) -> list[ir.Value]:
    """A rate per element that falls with the squares of all gradients so far."""
    decay, epsilon, norm = node.number("decay_factor", 0.0), node.number("epsilon", 1e-6), _norm(node)
    rate, do = node.input(0), _Arithmetic(build)
    count = build.cast(node.input(1), canon.dtype(rate))
    rate = do("Div", rate, do("Add", do("Mul", count, decay), 1.0))

    def step(x: ir.Value, gradient: ir.Value, squares: ir.Value) -> tuple[ir.Value, ir.Value]:
        gradient = do.regularized(gradient, x, norm)
        squares = do("Add", squares, do("Mul", gradient, gradient))
        return do("Sub", x, do("Div", do("Mul", gradient, rate), do.root(squares, epsilon))), squares

    return _each(node, 3, step)


@upgrades("Adam", domain=DOMAIN)
def adam(node: Reader, build: Builder) -> list[ir.Value]:
    """Running means of the gradients and of their squares."""
    alpha, beta = node.number("alpha", 0.9), node.number("beta", 0.999)
    epsilon, norm, after = node.number("epsilon", 1e-6), _norm(node), node.number("norm_coefficient_post", 0.0)
    first, do = node.input(0), _Arithmetic(build)
    count = build.cast(node.input(1), canon.dtype(first))

    def rest(base: float) -> ir.Value:
        return build.op("Sub", build.like(1, count, "one"), build.op("Pow", build.like(base, count, "base"), count))

    later = do("Div", do("Mul", first, build.op("Sqrt", rest(beta))), rest(alpha))
    rate = _later(node, build, later, first)

    def step(x: ir.Value, gradient: ir.Value, mean: ir.Value, squares: ir.Value) -> tuple[ir.Value, ...]:
        gradient = do.regularized(gradient, x, norm)
        mean = do("Add", do("Mul", mean, alpha), do("Mul", gradient, 1 - alpha))
        squares = do("Add", do("Mul", squares, beta), do("Mul", do("Mul", gradient, gradient), 1 - beta))
        x = do("Sub", x, do("Div", do("Mul", mean, rate), do.root(squares, epsilon)))
        return do("Mul", x, 1 - after), mean, squares

    return _each(node, 4, step)


def _norm(node: Reader) -> float:
    return node.number("norm_coefficient", 0.0)
