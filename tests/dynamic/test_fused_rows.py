"""Gradients that sum over rows: the kernel that reads each row once has the bits of the ops one by one."""

import numpy as np
import pytest

import dynamic  # noqa: F401  the engine whose rules these are
from common import eager, straight
from common.op import REGISTRY

SHAPES = [(3, 5), (4, 1), (1, 1), (2, 3, 40), (5, 1024), (3, 1500), (2, 2500)]


def case(name, shape, dtype):
    """Recipe, saved values and cotangent of an op along the last dimension."""
    rng = np.random.default_rng(len(shape) + shape[-1])
    x, g = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    op, last = REGISTRY[name], len(shape) - 1
    attrs = {"dim": (last,), "eps": 1e-5} if name == "normalize" else {"dim": last}
    y = eager.run(op, (x,), attrs)
    found = eager.recipe(op, ((x.shape, x.dtype),), attrs)
    return found, op.save((x,), y), (g, None, None) if op.nout == 3 else g


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "normalize"])
def test_bits_are_those_of_the_ops(name, shape, dtype):
    found, saved, g = case(name, shape, dtype)
    (expected,) = eager.run_rules(found.op, saved, found.attrs, g, (0,))
    lines = straight.straight_backward(found, None)
    (got,) = lines(saved, found.attrs, g, (0,))
    assert got.dtype == expected.dtype
    assert got.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "normalize"])
def test_it_is_one_kernel(name, monkeypatch):
    (found, saved, g), kernels = case(name, (6, 37), "float32"), []
    for maker in ("fused_rows", "fused", "fused_sum"):
        made = getattr(straight, maker)
        monkeypatch.setattr(straight, maker, lambda *args, made=made: kernels.append(made(*args)) or kernels[-1])
    straight.straight_backward(found, None)(saved, found.attrs, g, (0,))
    assert len(kernels) == 1


def test_other_layouts():
    found, saved, g = case("softmax", (6, 8), "float32")
    lines = straight.straight_backward(found, None)
    (expected,) = lines(saved, found.attrs, g, (0,))
    (got,) = lines(saved, found.attrs, np.asfortranarray(g), (0,))
    assert got.tobytes() == expected.tobytes()
