"""Tangents against gradients: both are one Jacobian, where it is finite.

A tangent is the derivative of a gradient rule with respect to its cotangent. A rule that chooses 0 where its formula is
infinite has to be 0 there for this derivative too.
"""

import numpy as np
import pytest

import dynamic
import static
from common.core.dispatch import apply
from common.core.op import REGISTRY
from common.tensor.create import lift
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import core, share

#: What is put in the place of all elements of an operand; every second one with "some zeros".
POINTS = {
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "some zeros": lambda x: np.where(np.arange(x.size).reshape(x.shape) % 2, x, 0),
}

#: Ops whose rules choose by elements.
CHOOSING = {"norm", "pow", "std", "std_mean"}
SMOOTH = [
    name
    for name, op in REGISTRY.items()
    if op.inputs and op.differentiable and (op.samples is not None or op.kind == "elementwise")
]


#: Points of an op at which a machine's LAPACK decides by its rounding: a matrix of ones has rank 1.
ROUNDED = {("qr", "ones"), ("svd", "ones")}


def cases_of(op):
    """Operands and attributes of an op."""
    rng = np.random.default_rng(0)
    if op.samples is not None:
        return op.samples(rng, np.dtype(np.float64))
    return [([rng.standard_normal(4) for _ in op.inputs], {})]


def at_points(op):
    """The operands and attributes with one of the operands at a point."""
    for operands, attrs in cases_of(op):
        moving = [i for i, x in enumerate(operands) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
        for name, point in POINTS.items():
            for i in moving:
                yield name, moving, [point(x) if i == k else x for k, x in enumerate(operands)], attrs


def of(op, operands, attrs, moving):
    """The op as a function of its floating operands, with its floating results."""

    def f(*xs):
        full = [lift(np.array(x)) if isinstance(x, np.ndarray) else x for x in operands]
        for i, x in zip(moving, xs, strict=True):
            full[i] = x
        y = apply(op, full, attrs)
        return tuple(part for part in (y if isinstance(y, tuple) else (y,)) if part.dtype.kind == "f")

    return f


@pytest.mark.parametrize(
    "name", core(SMOOTH, CHOOSING.__contains__, lambda name: name not in CHOOSING and share(name, 4) > 0)
)
def test_tangents_are_finite_where_gradients_are(name):
    op = REGISTRY[name]
    for point, moving, operands, attrs in at_points(op):
        f, xs = of(op, operands, attrs, moving), [dynamic.tensor(operands[i]) for i in moving]
        if (name, point) in ROUNDED or not f(*xs):
            continue
        y, pull = dynamic.func.vjp(f, *xs)
        down = pull(tuple(dynamic.ones_like(part) for part in y))
        if not all(np.isfinite(g.numpy()).all() for g in down):
            continue
        _, up = dynamic.func.jvp(f, tuple(xs), tuple(dynamic.ones_like(x) for x in xs))
        expected, found = (sum(float(part.sum()) for part in parts) for parts in (down, up))
        assert np.isclose(found, expected), f"{name} at {point}, {attrs}: {found} by tangents, {expected} by gradients"


#: Functions whose rules choose, at the points where they do: value of the tangent for tangents of 1.
CHOSEN = {
    "pow, exponent": (lambda tw, x: tw.pow(tw.zeros_like(x), x), [0.3, 2.0], [0.0, 0.0]),
    "pow, base": (lambda tw, x: tw.pow(x, tw.zeros_like(x)), [0.0, 3.0], [0.0, 0.0]),
    "std": (lambda tw, x: x.reshape(1, 2).std(0, correction=0), [1.0, 2.0], [0.0, 0.0]),
    "norm": (lambda tw, x: tw.linalg.vector_norm(x, keepdim=True), [0.0, 0.0], [0.0]),
    "norm 3": (lambda tw, x: tw.linalg.vector_norm(x, 3, keepdim=True), [0.0, 0.0], [0.0]),
}


@pytest.mark.parametrize("case", CHOSEN)
def test_rules_that_choose_zero_have_tangents(case):
    """As in PyTorch, whose values these are."""
    function, at, expected = CHOSEN[case]
    found = []
    for tw in (dynamic, static):
        x = tw.tensor(at)
        found.append(tw.func.jvp(lambda x, tw=tw: function(tw, x), (x,), (tw.ones_like(x),))[1].numpy())
    assert found[0].tolist() == expected
    assert_all_same_bits(found[1:], found[:1], case)
