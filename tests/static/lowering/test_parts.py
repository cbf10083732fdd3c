"""The parts of lowering that can be seen alone: memory, literals, loop IR, spaces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.compiler.literals import literal
from common.compiler.loop_ir import Call, Constant, Kernel, Let, Loop, Place, Store
from common.core.numerics import BLOCK
from common.core.sizes import DimScope
from common.kernels.arrays.sums import sum_cols_scratch
from static.lowering.fusion.common_space import partition
from static.lowering.ir.items import ArrayBuffer, make_access
from static.lowering.ir.kernel_memory import ColumnScratch
from static.lowering.memory.arena import ALIGNMENT, Arena, aligned
from static.running.result_memory import POOLED_BYTES, make_allocator
from tests.bits import assert_same_bits
from tests.helpers.python_kernels import python_kernel

F32 = np.dtype(np.float32)


def placed(intervals):
    """Offsets of (first use, last use, bytes), and the size of the whole."""
    return Arena([(first, last) for first, last, _ in intervals]).place([aligned(size) for *_, size in intervals])


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5), st.integers(0, 500)), max_size=30))
def test_temporaries_that_live_together_lie_apart(drawn):
    intervals = [(first, first + length, size) for first, length, size in drawn]
    offsets, total = placed(intervals)
    for i, (first, last, size) in enumerate(intervals):
        assert offsets[i] % ALIGNMENT == 0
        assert offsets[i] + size <= total
        for j in range(i):
            apart = intervals[j][1] < first or last < intervals[j][0]
            before = offsets[j] + intervals[j][2] <= offsets[i] or offsets[i] + size <= offsets[j]
            assert apart or before or size == 0 or intervals[j][2] == 0


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5), st.integers(1, 500)), max_size=30))
def test_temporaries_take_the_first_place_that_fits(drawn):
    """In the order in which they begin; in another one where that takes less."""
    intervals = [(first, first + length, aligned(size)) for first, length, size in drawn]
    begin = sorted(range(len(intervals)), key=lambda i: intervals[i][0])
    largest = sorted(begin, key=lambda i: -intervals[i][2])
    first = first_places(intervals, begin)
    most = max((sum(size for a, b, size in intervals if a <= t <= b) for t in range(26)), default=0)
    found = placed(intervals)
    assert most <= found[1] <= min(first[1], first_places(intervals, largest)[1])
    assert found == first or found[1] < first[1]


def first_places(intervals, order):
    """Offsets and the size of the whole, when each is put into the first gap in some order."""
    offsets = {}
    for i in order:
        first, last, size = intervals[i]
        living = [j for j in offsets if intervals[j][0] <= last and first <= intervals[j][1]]
        at = 0
        for offset, other in sorted((offsets[j], intervals[j][2]) for j in living):
            if at + size <= offset:
                break
            at = max(at, offset + other)
        offsets[i] = at
    return [offsets[i] for i in range(len(intervals))], max((offsets[i] + intervals[i][2] for i in offsets), default=0)


def test_a_gap_that_the_first_ones_leave_is_none_if_the_largest_come_first():
    assert placed([(0, 0, 64), (0, 2, 64), (1, 2, 128)]) == ([0, 128, 0], 192)
    many = [(i, i + 200, 64 * (1 + i % 7)) for i in range(400)]  # too many at one time: in the order of their begin
    assert placed(many) == first_places(many, range(400))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "value", [0.1, -0.0, 1e-45, 1e39, float("inf"), float("-inf"), float("nan"), 16777217, 2**63 - 1]
)
def test_literals_are_rounded_once(value, dtype):
    dtype = np.dtype(dtype)
    with np.errstate(over="ignore"):
        expected = dtype.type(value)
    assert_same_bits(eval(literal(value, dtype), {dtype.name: dtype.type}), expected, "literal")


def test_literals_of_other_dtypes():
    assert literal(3, np.dtype(np.uint8)) == "uint8(3)"
    assert literal(1, np.dtype(np.bool_)) == "True"


def test_loop_ir_prints_as_python_that_runs():
    total = Call("add", (Place("b0", "", "c"), Constant(1.5, F32)))
    body = [Loop("c", "n0", [Let("t1", total), Store(Place("b1", "", "c", "n1"), "t1")]), Loop("c", "n0")]
    source = Kernel([F32, F32], 2, body).source("k")
    assert "b1[c * n1] = t1" in source
    x, y = np.arange(3, dtype=np.float32), np.zeros(6, np.float32)
    assert python_kernel(source, "k")([x, y], [3, 2]) == 0
    assert y.tolist() == [1.5, 0, 2.5, 0, 3.5, 0]


def test_accesses_know_what_they_cover():
    scope = DimScope(None, None)
    m, n = scope.input(0, 0, 4), scope.input(0, 1, 5)
    x = ArrayBuffer(0, F32, (m, n))
    cases = [((n, 1), 0, 2), ((0, 1), 1, None), ((1, 0), 1, 1), ((0, 0), 0, 0), ((1, m), 1, None), ((n, 2), 1, None)]
    for strides, breaks, prefix in cases:
        access = make_access(x, 0, (m, n), strides)
        assert (access.breaks, access.prefix) == (breaks, prefix), strides
    assert make_access(x, n, (m, n), (n, 1)).prefix is None
    assert not scope.guards


def test_a_space_is_refined_only_by_its_own_factors():
    scope = DimScope(None, None)
    a, b, c = (scope.input(0, axis, n) for axis, n in enumerate((4, 6, 5)))
    assert partition((a * b, c), (a, b, c)) == [2, 1]
    assert partition((a, b * c), (a, b, c)) == [1, 2]
    assert partition((b * c, a), (a, b, c)) is None
    assert not scope.guards


@pytest.mark.parametrize("rows", [0, 1, BLOCK, BLOCK + 1, BLOCK**2 + 1])
@pytest.mark.parametrize("columns", [1, 1023, 5000])
def test_scratch_of_column_sums(rows, columns):
    assert ColumnScratch(0, 0, 4, 1024).nbytes(rows, columns) == 4 * sum_cols_scratch(rows, columns)


def test_pooled_arrays_are_aligned_and_never_two_of_the_same():
    allocate = make_allocator((POOLED_BYTES // 4,), F32)
    arrays = [allocate() for _ in range(5)]
    assert all(x.ctypes.data % ALIGNMENT == 0 and x.flags.c_contiguous for x in arrays)
    assert len({x.ctypes.data for x in arrays}) == 5


def test_the_array_that_was_used_last_is_used_first():
    allocate = make_allocator((POOLED_BYTES // 4,), F32)
    arrays = [allocate() for _ in range(3)]
    places = [x.ctypes.data for x in arrays]
    del arrays[1]
    assert allocate().ctypes.data == places[1]
    arrays.clear()
    assert {allocate().ctypes.data for _ in range(4)} == {places[1]}
