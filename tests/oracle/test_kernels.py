"""Compiled kernels against definitions that involve no compiler: bits."""

import math

import numpy as np
import pytest

from common.compiler.primitives import evaluate
from common.core.dtypes import compute_dtypes
from common.core.errors import DTypeError
from common.core.op import REGISTRY
from common.core.spec import Spec
from common.evaluate import specialise as eager
from tests.bits import assert_all_same_bits, assert_same_bits
from tests.helpers.cases import internal
from tests.helpers.proofs import rotated
from tests.parity.arrays import BIG, SIZES, mixed, pairs

ELEMENTWISE = [op for op in REGISTRY.values() if op.kind == "elementwise" and not op.attrs]
KERNELS = [op for op in REGISTRY.values() if op.kind == "kernel" and op.name != "constant"]
FLOATS = ("float32", "float64")
ALL = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")


def defined(op, dtype):
    """Whether an op takes operands of a dtype."""
    try:
        compute_dtypes(op, [Spec((1,), np.dtype(dtype))] * len(op.inputs))
    except DTypeError:
        return False
    return True


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        pytest.param(op, dtype, id=f"{op.name}-{dtype}", marks=[pytest.mark.quick] if dtype == "float32" else [])
        for op in ELEMENTWISE
        for dtype in ALL
        if defined(op, dtype)
    ],
)
def test_scalar_expressions_run_by_numpy(op, dtype):
    """The same source, run by numpy: with special values in all combinations, and 3,000 ordinary ones."""
    rng = np.random.default_rng(30)
    ordinary = [mixed(rng, (3000,), dtype) for _ in op.inputs]
    operands = [np.concatenate(parts) for parts in zip(pairs(rng, len(op.inputs), dtype), ordinary, strict=True)]
    wanted = compute_dtypes(op, [Spec(x.shape, x.dtype) for x in operands])[0]
    operands = [x.astype(bool if n == "condition" else wanted) for n, x in zip(op.inputs, operands, strict=True)]
    expected = evaluate(op.scalar, *operands)
    assert_same_bits(eager.run(op, operands, {}), np.broadcast_to(expected, operands[0].shape), op.name)


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_casts_run_by_numpy(source, target):
    rng = np.random.default_rng(31)
    x = np.concatenate([mixed(rng, (500,), source, 0.2), pairs(rng, 1, source)[0]])
    op, dtype = REGISTRY["to"], np.dtype(target)
    expected = evaluate(lambda x: op.scalar(x, dtype), x)
    assert_same_bits(eager.run(op, (x,), {"dtype": dtype, "x_dtype": x.dtype}), expected, f"{source} to {target}")


@pytest.mark.parametrize(("op", "dtype"), rotated(KERNELS, FLOATS, core=internal))
def test_kernels_against_their_oracles(op, dtype):
    rng = np.random.default_rng(32)
    for operands, attrs in op.samples(rng, dtype):
        results = eager.run(op, operands, attrs)
        expected = op.oracle(*operands, **attrs)
        pack = (lambda x: x) if op.nout > 1 else (lambda x: (x,))
        assert_all_same_bits(pack(results), pack(expected), f"{op.name} {attrs}")


def ordered_sum(x: np.ndarray) -> np.ndarray:
    """The sum of docs/numerics.md, one addition after the other."""
    if x.size > 1024:
        return ordered_sum(np.array([ordered_sum(x[i : i + 1024]) for i in range(0, x.size, 1024)], x.dtype))
    lanes = np.zeros(16, x.dtype)
    padded = np.concatenate([x, np.zeros(-x.size % 16, x.dtype)])
    with np.errstate(all="ignore"):
        for row in padded.reshape(-1, 16):
            lanes = lanes + row
        half = 8
        while half:
            lanes = lanes[:half] + lanes[half : 2 * half]
            half //= 2
    return lanes[0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("n", [*SIZES[:-1], pytest.param(SIZES[-1], marks=pytest.mark.quick), 5000, BIG])
def test_sum_follows_the_definition(n, dtype):
    rng = np.random.default_rng(33)
    x = mixed(rng, (n,), dtype, 0.0 if n > 31 else 0.05)
    if dtype != "int64":  # many magnitudes: then every other order shows
        x = (x * 10.0 ** rng.integers(-3, 4, n)).astype(dtype)
    for column in (False, True):
        shaped = np.stack([x, x], 1) if column else x
        actual = eager.run(REGISTRY["sum"], (shaped,), {"dim": (0,), "keepdim": False})
        expected = ordered_sum(x)
        assert_same_bits(actual, np.array([expected] * 2) if column else expected, f"sum of {n}, column {column}")


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extrema_propagate_nan_and_order_zeros(name, dtype):
    rng = np.random.default_rng(34)
    better = max if name == "amax" else min
    for n in (1, 2, 31, 33, 1025):
        x = mixed(rng, (n, 4), dtype, 0.01)

        def best(column):
            if any(v != v for v in column):
                return math.nan
            return better(column.tolist(), key=lambda v: (v, math.copysign(1, v)))

        expected = np.array([best(column) for column in x.T]).astype(dtype)
        assert_same_bits(eager.run(REGISTRY[name], (x,), {"dim": (0,), "keepdim": False}), expected, name)
        across = eager.run(REGISTRY[name], (np.ascontiguousarray(x.T),), {"dim": (1,), "keepdim": False})
        assert_same_bits(across, expected, name)
