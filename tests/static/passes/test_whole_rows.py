"""Indices that are the same for all elements of a row are one index per row."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static as tw
from common.core.errors import IndexRangeError
from tests.bits import assert_same_bits
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)
ROWS, COLUMNS, PLACES = 40, 8, 9


def wide(i, x):
    return i[:, None].expand(x.shape)


def along(m, i, x):
    return x[i[:, None], m.arange(x.shape[-1])]


def table(x, v):
    """Rows of the length that those of v have in every call."""
    return v[:PLACES] + x


def thirds(x, v):
    return table(x, v).reshape(3, 3, v.shape[1])


BY_ROWS = {
    "scatter_add": lambda m, x, v, i: x.scatter_add(0, wide(i, v), v),
    "amax": lambda m, x, v, i: table(x, v).scatter_reduce(0, wide(i, v), v, "amax"),
    "amin of others": lambda m, x, v, i: table(x, v).scatter_reduce(0, wide(i, v), v, "amin", include_self=False),
    "product": lambda m, x, v, i: table(x, v).scatter_reduce(0, wide(i, v), v, "prod"),
    "mean": lambda m, x, v, i: table(x, v).scatter_reduce(0, wide(i, v), v, "mean"),
    "scatter": lambda m, x, v, i: table(x, v).scatter(0, wide(i, v), v),
    "gather": lambda m, x, v, i: x.gather(0, wide(i, v)) * v,
    "an outer index": lambda m, x, v, i: along(m, i, x) * v,
    "three dimensions": lambda m, x, v, i: thirds(x, v)[(i // 3)[:, None], (i % 3)[:, None], m.arange(v.shape[1])] * v,
    "a middle dimension": lambda m, x, v, i: thirds(x, v)[:, (i % 3)[:, None], m.arange(v.shape[1])].sum(0) * v,
}
LEFT = {
    "reversed columns": lambda m, x, v, i: x[i[:, None], m.arange(x.shape[1] - 1, -1, -1)] * v,
    "extremes at elements": lambda m, x, v, i: table(x, v).scatter_reduce(
        0, (wide(i, v) + m.arange(v.shape[1])) % PLACES, v, "amax"
    ),
    "columns in another order": lambda m, x, v, i: x[i[:, None], x.shape[1] - 1 - m.arange(x.shape[1])] * v,
    "every second column": lambda m, x, v, i: x[i[:, None], m.arange(COLUMNS // 2) * 2] * v[:, :4],
    "fewer columns": lambda m, x, v, i: x[i[:, None], m.arange(COLUMNS // 2)] * v[:, :4],
    "indices of elements": lambda m, x, v, i: x.scatter_add(0, (wide(i, v) + m.arange(COLUMNS)) % PLACES, v),
    "indices of some": lambda m, x, v, i: x.gather(1, (i % COLUMNS)[:, None].expand(ROWS, 2)[:PLACES]) * v[:PLACES, :2],
}


def operands(dtype=np.float32):
    x, v = RNG.normal(size=(PLACES, COLUMNS)).astype(dtype), RNG.normal(size=(ROWS, COLUMNS)).astype(dtype)
    v[3], v[4], x[2] = v[5], -0.0, np.nan
    return x, v, RNG.integers(0, PLACES, ROWS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*BY_ROWS, *LEFT])
def test_bits_are_those_of_indices_of_elements(name, dtype):
    f, (x, v, i) = {**BY_ROWS, **LEFT}[name], operands(dtype)
    a, b = dynamic.tensor(x, requires_grad=True), dynamic.tensor(v, requires_grad=True)
    made = f(dynamic, a, b, dynamic.tensor(i))
    made.sin().sum().backward()
    assert_same_bits(np.asarray(tw.function(lambda x, v, i: f(tw, x, v, i))(x, v, i)), made.detach().numpy(), name)
    gradient = tw.grad(lambda x, v, i: f(tw, x, v, i).sin().sum(), (0, 1))
    for found, wanted in zip(tw.function(gradient)(x, v, i), (a.grad, b.grad), strict=True):
        assert_same_bits(np.asarray(found), wanted.numpy(), name)
    assert_compiles(gradient, (x, v, i), operands(dtype))


@pytest.mark.parametrize("name", BY_ROWS)
def test_one_index_per_row_is_left(name):
    f = tw.function(lambda x, v, i: BY_ROWS[name](tw, x, v, i))
    f(*operands())
    names = {n.name for n in program_of(f).graph.nodes}
    wanted = {"index_get2"} if name == "three dimensions" else set()
    assert {n for n in names if n[-1] in "23"} == wanted


@pytest.mark.parametrize("wrong", [-PLACES - 1, PLACES])
@pytest.mark.parametrize("name", ["scatter_add", "gather", "an outer index"])
def test_wrong_indices_are_refused(name, wrong):
    x, v, i = operands()
    i[7] = wrong
    with pytest.raises(IndexRangeError, match=str(wrong)):
        tw.function(lambda x, v, i: BY_ROWS[name](tw, x, v, i))(x, v, i)
