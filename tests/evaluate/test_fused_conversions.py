"""Conversions, ints and truth values are part of one kernel with floats, with the bits of ops one by one."""

from __future__ import annotations

import numpy as np
import pytest

import common.ops.functional as F
from common.core.op import REGISTRY
from common.core.spec import Spec
from common.evaluate import layouts
from common.evaluate.line_terms import Term
from common.evaluate.straight_line import _Trail
from tests.helpers.wrapped import wrap


def to(x, dtype):
    return REGISTRY["to"](x, dtype=np.dtype(dtype), x_dtype=x.dtype)


PROGRAMS = {
    "places": lambda x, i: F.clamp(to(F.floor(x * 3), np.int64) * 5 + i, 0, 40),
    "through ints": lambda x, i: to(to(x * 1e3, np.int16), x.dtype) - x,
    "saturated": lambda x, i: to(x * 1e30, np.int64) - to(x * 3e38 * 10, np.int64),
    "bytes": lambda x, i: to(to(i, np.uint8) + 250, np.int64) * -1,
    "chosen": lambda x, i: F.where(F.logical_and(F.gt(i, 2), F.lt(x, 0)), i * 2, 7),
    "floats by ints": lambda x, i: F.where(F.eq(F.bitwise_and(i, 1), 0), x * 2, -0.0) + to(i, x.dtype),
    "two widths": lambda x, i: to(to(x, np.float64) * 0.1 + 1, np.float32) * 3,
    "truth": lambda x, i: to(F.gt(x, 0), np.float32) * 2 - to(F.gt(i, 3), np.float32),
}


def straight(function, arrays):
    """The lines of a function of arrays of these forms, and it as them."""
    trail = _Trail()
    names = [f"x{i}" for i in range(len(arrays))]
    terms = [Term(name, Spec(x.shape, x.dtype), trail) for name, x in zip(names, arrays, strict=True)]
    last = f"return {function(*terms).text}"
    return trail.lines, trail.function(f"forward({', '.join(names)})", [*trail.lines, last])


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (5, 130), (64, 257)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_ops_one_by_one(name, shape):
    rng = np.random.default_rng(1)
    x = np.array(rng.standard_normal(shape), np.float32)
    x.reshape(-1)[:4] = [np.nan, -np.inf, -0.0, 3e38][: x.size]
    i = np.asarray(rng.integers(-10, 10, shape))
    wanted = PROGRAMS[name](wrap(x), wrap(i)).numpy()
    lines, run = straight(PROGRAMS[name], (x, i))
    assert len(lines) == 2  # a builtin, and what takes over where it declines
    found = run(x, i)
    assert found.dtype == wanted.dtype
    assert found.tobytes() == wanted.tobytes()
    if shape:
        apart = np.repeat(x, 2, -1)[..., ::2], np.asfortranarray(i)
        assert run(*apart).tobytes() == wanted.tobytes()
        assert run(np.broadcast_to(x[..., :1], shape), i).shape == shape


def test_ints_that_several_need_are_stored():
    x = np.arange(100, dtype=np.float32)

    def function(x):
        place = to(x, np.int64) * 3
        first, second = place + 1, place - 1
        return F.cat((first, second), 0)

    lines, run = straight(function, (x,))
    assert len([line for line in lines if line.startswith("v")]) == 4
    assert run(x).tolist() == [*range(1, 300, 3), *range(-1, 299, 3)]


def test_what_lies_apart_is_copied_once():
    x = np.random.default_rng(0).standard_normal((50, 60, 2)).astype(np.float32)

    def function(x):
        a, b = F.select(x, 2, 0), F.select(x, 2, 1)
        return F.cat((F.exp(a * b + 1), F.sin(a - b * 2)), 0)

    lines, run = straight(function, (x,))
    names = {name for name, value in run.__globals__.items() if value is layouts.dense}
    assert sum(line.split("(")[0].split(" = ")[-1] in names for line in lines) == 2
    assert run(x).tobytes() == function(wrap(x)).numpy().tobytes()
