"""Builtins that make arrays, native and not: views, rows of kernels, addresses."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from common.compiler.compile import compile_kernel
from common.runtime import builtins, python_builtins
from tests.compiler.kernels import ADD, FAIL
from tests.runtime.test_calls import F32, Subclass, misaligned, vectors


@pytest.fixture(params=["native", "fallback"])
def make(request):
    return python_builtins if request.param == "fallback" else builtins


def strided(make, x, part, offset=0):
    """A view builtin for arrays like x that gives what `part` is of it."""
    return make.make_view(x.dtype, x.shape, x.strides, offset, part.shape, part.strides)


@pytest.mark.parametrize(
    "cut", [lambda x: x[1], lambda x: x[2, 3, ...], lambda x: x[1:, ::2], lambda x: x.T, lambda x: x[None, :, 0:0]]
)
def test_views_are_those_of_numpy(cut):
    x, _ = vectors(4, 5)
    part = cut(x)
    offset = part.__array_interface__["data"][0] - x.__array_interface__["data"][0] if part.size else 0
    made = strided(builtins, x, part, offset)(x)
    assert type(made) is np.ndarray
    assert (made.shape, made.strides, made.dtype) == (part.shape, part.strides, part.dtype)
    assert np.asarray(made).tobytes() == np.asarray(part).tobytes()
    assert made.base is part.base
    for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED", "OWNDATA"):
        assert made.flags[flag] == part.flags[flag]
    x.flags.writeable = False
    assert not strided(builtins, x, part, offset)(x).flags.writeable


@pytest.mark.parametrize(
    "other",
    [np.zeros((4, 6), np.float32), np.zeros((4, 5)), np.zeros((5, 4), np.float32).T, np.zeros(20, np.float32),
     np.zeros((4, 5), np.float32).view(Subclass), [[0.0] * 5] * 4, None],
)  # fmt: skip
def test_a_view_declines_other_operands(make, other):
    x, _ = vectors(4, 5)
    view = strided(make, x, x[0])
    assert view(other) is None
    assert view() is None
    assert view(x, x) is None


def test_a_view_keeps_its_operand_and_nothing_else():
    x, _ = vectors(4, 5)
    view = strided(builtins, x, x[0])
    before = sys.getrefcount(x)
    part = view(x)
    assert sys.getrefcount(x) == before + 1
    del part
    for _ in range(1000):
        view(x), view(None)
    assert sys.getrefcount(x) == before


@pytest.fixture
def twice(make):
    """(x, y) -> (x + y) + y, as two kernels that write to the result."""
    address = compile_kernel(ADD, "test_add")
    return make.make_steps(
        [((6,), F32), ((6,), F32)], [((6,), F32)], [(address, (0, 1, 2), (6,)), (address, (2, 1, 2), (6,))]
    )


def test_steps_run_in_order(twice):
    x, y = vectors(6)
    assert np.array_equal(twice(x, y), (x + y) + y)


@pytest.mark.parametrize(
    "other",
    [np.zeros(5, np.float32), np.zeros((6, 1), np.float32), np.zeros(6), np.zeros(6, np.float64)[::2],
     misaligned(6), np.zeros(6, np.float32).view(Subclass), 1.0, None],
)  # fmt: skip
def test_steps_decline_other_operands(twice, other):
    x, _ = vectors(6)
    assert twice(x, other) is None
    assert twice(other, x) is None
    assert twice(x) is None


def test_steps_have_several_results_and_scratch(make):
    """(x, y) -> x + y, and (x + y) + y by way of the scratch; nothing is left of a call that fails."""
    add, fail = compile_kernel(ADD, "test_add"), compile_kernel(FAIL, "test_fail")
    x, y = vectors(2, 3)
    steps = [(add, (0, 1, 2), (6,)), (add, (2, 1, 4), (6,)), (add, (4, 1, 3), (6,))]
    forms = [((2, 3), F32), ((6,), F32)]
    run = make.make_steps([((2, 3), F32)] * 2, forms, steps, 24)
    first, second = run(x, y)
    assert (first.shape, second.shape) == ((2, 3), (6,))
    assert np.array_equal(first, x + y)
    assert np.array_equal(second, (((x + y) + y) + y).ravel())
    assert make.make_steps([((2, 3), F32)] * 2, forms, [*steps, (fail, (0,), (6,))], 24)(x, y) is None
    assert run(x.T, y) is None
    assert np.array_equal(run(x.T.copy().T, y)[0], x + y)  # in another order, of few elements


def test_steps_end_at_the_first_status(make):
    fail, add = compile_kernel(FAIL, "test_fail"), compile_kernel(ADD, "test_add")
    x, y = vectors(6)
    steps = make.make_steps([((6,), F32)] * 2, [((6,), F32)], [(add, (0, 1, 2), (6,)), (fail, (0, 1, 2), (6,))])
    assert steps(x, y) is None
    before = sys.getrefcount(x)
    for _ in range(100):
        steps(x, y)
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize(
    "cut", [lambda x: x, lambda x: x[1:, ::2], lambda x: x[::-1].T, lambda x: x[2, 3, ...], lambda x: x[:0]]
)
def test_extent_is_that_of_numpy(make, cut):
    x, _ = vectors(4, 5)
    part = cut(x)
    low, high = make.make_extent([np.int64, np.float32])(part)
    if part.size:
        assert (low, high) == np.lib.array_utils.byte_bounds(part)
    else:
        assert low == high


def test_extent_declines_what_it_does_not_know(make):
    extent = make.make_extent([np.float32])
    assert extent(np.zeros(3)) is None
    assert extent(3) is None
    assert extent() is None
