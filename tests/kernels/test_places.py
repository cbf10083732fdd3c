"""Reading and writing at tuples of indices: against loops in Python, by bits, in all dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from common.core.op import REGISTRY
from common.evaluate import specialise as eager
from common.kernels.arrays import coordinates
from common.ops.index.coordinates import family
from tests.bits import assert_same_bits
from tests.helpers.proofs import core, each, no, rotated
from tests.kernels.run import run, special_values

DTYPES = ["float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"]
OPERATIONS = ["index_get", "index_put_zeros", "index_add", "index_set", "index_clear", "index_last"]


@pytest.mark.parametrize(
    ("op", "dtype"),
    rotated([family(k)[name] for name in OPERATIONS for k in (1, 2, 3)], DTYPES, seldom=lambda op: op.name[-1] == "2"),
)
def test_against_loops(op, dtype):
    for operands, attrs in op.samples(np.random.default_rng(1), dtype):
        with np.errstate(all="ignore"):
            expected = op.oracle(*operands, **attrs)
        assert_same_bits(eager.run(op, operands, attrs), expected, f"{op.name} {attrs}")
        if dtype == "float32":
            narrow = [x.astype(np.int32) if x.dtype == np.int64 else x for x in operands]
            assert_same_bits(eager.run(op, narrow, attrs), expected, f"{op.name} {attrs}, int32")


#: Shapes of the indices: rows along which only the last one varies, as `scatter` along the last dimension has them;
#: all vary; none but the first; nothing to write.
_ROWS = {
    "last": [(6, 1), (1, 1), (6, 9)],
    "last, of one row": [(1,), (), (9,)],
    "all": [(6, 9), (6, 9), (6, 9)],
    "first": [(6, 9), (1, 1), (6, 1)],
    "no columns": [(6, 1), (1, 1), (6, 0)],
    "no rows": [(0, 1), (1, 1), (0, 9)],
}


def _layout(rng, shapes, count, low):
    """Sizes of `count` dimensions and their indices from ``low * size`` on: the last of the shapes for the last one."""
    extents, own = (5, 2, 7)[3 - count :], shapes[3 - count :]
    return extents, [rng.integers(low * e, e, s) for e, s in zip(extents, own, strict=True)]


@pytest.mark.parametrize("count", core([1, 2, 3], no, seldom=lambda count: count == 2))
@pytest.mark.parametrize("name", [*OPERATIONS, "index_mul", "index_max", "index_min"])
@each("outer", [(), (3,), (0,)])
@each("rows", _ROWS)
def test_every_way_along_rows(name, rows, count, outer):
    rng = np.random.default_rng(7)
    extents, indices = _layout(rng, _ROWS[rows], count, -1)
    b = np.broadcast_shapes(*(i.shape for i in indices))
    x, v, number = (rng.normal(size=s).astype(np.float32) for s in ((*outer, *extents), (*outer, *b), ()))
    attrs = {"dim": len(outer), "wrap": True}
    given = {"index_get": [[x]], "index_clear": [[x]], "index_put_zeros": [[v]], "index_last": [[]]}
    if name in ("index_put_zeros", "index_last"):
        attrs["extents"] = extents
    op = family(count)[name]
    for operands in given.get(name, [[x, v], [x, number]]):
        expected = op.oracle(*operands, *indices, **attrs)
        assert_same_bits(eager.run(op, [*operands, *indices], attrs), expected, f"{op.name} {rows}")


@pytest.mark.parametrize("operand", [0, 1, 2])
@pytest.mark.parametrize("rows", [r for r in _ROWS if not r.startswith("no")])
def test_each_index_is_checked_to_its_last_element(rows, operand):
    extents, indices = _layout(np.random.default_rng(7), _ROWS[rows], 3, 0)
    if indices[operand].ndim:
        indices[operand].flat[-1] = -1
    else:
        indices[operand] = np.array(-1)
    x, out = np.ones(70, np.float32), np.full(70, 7, np.float32)
    args = coordinates.place_args(extents, 0, [i.shape for i in indices])
    code = run(coordinates.source("set", "float32", ["int64"] * 3, False, True), [x, *indices, out], args)
    assert (out == 7).all()
    told = f"index -1 is out of bounds for dimension {operand} with size {extents[operand]}"
    assert told in coordinates.WrongIndex(extents, 0, False)[code]


def test_indices_of_nothing_are_not_checked():
    """An index that broadcasts to no place names none."""
    args = coordinates.place_args((5, 2), 0, [(3, 1), (3, 0)])
    out = np.full(10, 7, np.float32)
    buffers = [np.zeros(1, np.float32), np.full((3, 1), 99), np.zeros((3, 0), np.int64), out]
    assert run(coordinates.source("set", "float32", ["int64"] * 2, False), buffers, args) == 0
    assert (out == 7).all()


def test_additions_follow_the_order_of_the_indices():
    """Magnitudes so different that every other order gives other bits."""
    rng = np.random.default_rng(0)
    v = (rng.normal(size=(400, 3)) * 10.0 ** rng.integers(-6, 7, (400, 3))).astype(np.float32)
    i, j = rng.integers(0, 2, (2, 400))
    x = rng.normal(size=(2, 2, 3)).astype(np.float32)
    expected, from_zero = x.copy(), np.zeros_like(x)
    for k in range(400):
        expected[i[k], j[k]] += v[k]
        from_zero[i[k], j[k]] += v[k]
    attrs = {"dim": 0, "wrap": True}
    assert_same_bits(eager.run(REGISTRY["index_add2"], (x, v, i, j), attrs), expected, "index_add2")
    attrs["extents"] = (2, 2)
    assert_same_bits(eager.run(REGISTRY["index_put_zeros2"], (v, i, j), attrs), from_zero, "index_put_zeros2")


def test_of_several_values_for_one_place_the_last_stays():
    x, v = np.zeros(3, np.float32), np.arange(1.0, 6, dtype=np.float32)
    index = np.array([0, -1, 0, 2, -3])
    out = eager.run(REGISTRY["index_set1"], (x, v, index), {"dim": 0, "wrap": True})
    assert out.tolist() == [5.0, 0.0, 4.0]
    stays = eager.run(REGISTRY["index_last1"], (index,), {"extents": (3,), "dim": 0, "wrap": True})
    assert stays.tolist() == [False, False, False, True, True]


def test_moved_elements_keep_their_payload():
    x = special_values(np.random.default_rng(1), (50,), "float32").view(np.uint32)
    x[7] = 0x7FC12345
    index = np.arange(50)[::-1].copy()
    out = eager.run(REGISTRY["index_get1"], (x.view(np.float32), index), {"dim": 0, "wrap": True})
    assert (out.view(np.uint32) == x[::-1]).all()


@pytest.mark.parametrize(("wrong", "wrap", "status"), [(5, 1, 5), (-6, 1, -6), (-1, 0, -1), (2**40, 1, None)])
@pytest.mark.parametrize("operation", ["get", "put", "add", "set", "clear", "last"])
def test_a_wrong_index_is_told_before_anything_is_written(operation, wrong, wrap, status):
    i, j = np.zeros((40, 1), np.int64), np.zeros(2, np.int32)
    i[33] = wrong
    x, out, scratch = np.ones(200, np.float32), np.full(200, 7, np.float32), np.zeros(1000, np.int64)
    args = coordinates.place_args((5, 2, 3), 0, [i.shape, j.shape])
    if operation == "last":
        out = out.view(np.uint8)
    first = [x] if operation in ("get", "put", "add", "set") else []
    buffers = [*first, i, j, out, *([scratch] if operation == "last" else [])]
    before = out.copy()
    code = run(coordinates.source(operation, "float32", ["int64", "int32"], bool(wrap)), buffers, args)
    assert (out == before).all()
    told = coordinates.WrongIndex((5, 2), 0, bool(wrap))[code]
    assert f"index {status if status is not None else 'beyond 16777216'}" in told
    assert "is out of bounds for dimension 0 with size 5" in told


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("wrap", [False, True])
def test_the_ends_of_what_is_right(dtype, wrap):
    """Integers of all kinds, at any place of a vector, are compared as Python compares them."""
    info = np.iinfo(dtype)
    ends = {info.min, info.min + 1, info.max, info.max - 1, 2**31 - 1, -(2**31)}
    for extent in (0, 1, 5, 2**20, 2**40):
        low = -extent if wrap else 0
        near = {low - 1, low, -1, 0, extent - 1, extent, extent + 1} | ends
        for wrong in (n for n in near if info.min <= n <= info.max):
            for count, place in ((1, 0), (33, 5), (33, 32)):
                index = np.full(count, 0 if extent else wrong, dtype)
                index[place] = wrong
                told = coordinates.WrongIndex((extent,), 0, wrap)
                call = coordinates.check(dtype, count, extent, wrap, 1, told)
                code = run(call.source, [index], call.ints)
                assert (code == 0) is (low <= wrong < extent), (wrong, extent)
                assert code == 0 or "out of bounds" in told[code]
                if extent <= 5:
                    x, out = np.ones(extent, np.float32), np.zeros(count, np.float32)
                    source = coordinates.source("get", "float32", [dtype], wrap)
                    ints = coordinates.place_args((extent,), 0, [index.shape])
                    assert run(source, [x, index, out], ints) == code


def test_statuses_name_the_dimension():
    i, j = np.zeros(3, np.int64), np.array([0, 9, 0])
    x, out = np.ones(30, np.float32), np.zeros(30, np.float32)
    args = coordinates.place_args((5, 2, 3), 0, [i.shape, j.shape])
    code = run(coordinates.source("get", "float32", ["int64", "int64"], True), [x, i, j, out], args)
    errors = coordinates.WrongIndex((5, 2), 1, True)
    assert errors[code] == "index 9 is out of bounds for dimension 2 with size 2"
    assert 1 << 31 not in errors
    assert 0 not in errors
    assert len(errors) == 2


@pytest.mark.parametrize("inner", [*range(1, 10), 15, 16, 17, 31, 32, 33])
@pytest.mark.parametrize("operation", ["get", "add", "set"])
def test_slices_of_a_few_elements(operation, inner):
    rng = np.random.default_rng(inner)
    index, values = rng.integers(-5, 5, 40), rng.normal(size=(40, inner)).astype(np.float32)
    x = rng.normal(size=(5, inner)).astype(np.float32)
    source = coordinates.source(operation, np.float32, [np.int64], wrap=True)
    out = np.zeros_like(values) if operation == "get" else x.copy()
    first = x if operation == "get" else values
    args = coordinates.place_args(x.shape, 0, [index.shape])
    assert run(source, [first, index, out], list(args)) == 0
    expected = x[index] if operation == "get" else x.copy()
    if operation == "add":
        np.add.at(expected, index, values)
    if operation == "set":
        for i, value in zip(index, values, strict=True):
            expected[i] = value
    assert out.tobytes() == expected.tobytes()
