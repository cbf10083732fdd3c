"""Rows that a loop makes are written, or added, at their indices by that loop."""

from __future__ import annotations

import numpy as np
import pytest

import common.ops.functional as F
import dynamic
import static as tw
from common.core.errors import IndexRangeError
from tests.bits import assert_all_same_bits
from tests.helpers.differences import check_gradient
from tests.static.compare import as_tuple, assert_compiles, program_of
from tests.static.lowering.test_in_place import Both

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def kernels(compiled):
    """The kernels of a function, by name; generated ones are "k"."""
    return ["k" if step.name.startswith("k_") else step.name for step in program_of(compiled).steps]


def normalized(table, weight, bias, i):
    return tw.layer_norm(tw.embedding(i, table), (table.shape[1],), weight, bias)


def test_the_gradient_of_a_normalized_embedding_is_one_kernel():
    def program(table, weight, bias, g, i):
        gradients = tw.grad(lambda *a: (normalized(*a, i) * g).sum(), argnums=(0, 1, 2))
        return gradients(table, weight, bias)

    given = floats(50, 40), floats(40), floats(40), floats(300, 40), RNG.integers(0, 50, 300)
    assert kernels(assert_compiles(program, given)) == ["check", "fill", "k"]


def test_finite_differences_of_rows_that_are_normalized_and_added():
    def program(table, weight, bias, i, j):
        y = F.layer_norm(F.index_select(table, 0, i), 16, weight, bias)
        return F.index_add(F.tanh(table), 0, j, y * y), F.index_copy(table, 0, j, F.sin(y) * weight)

    rng = np.random.default_rng(1)
    given = rng.normal(size=(5, 16)), rng.normal(size=16), rng.normal(size=16)
    check_gradient(program, (*given, np.array([0, 3, 3, 1]), np.array([2, 2, 4, 2])), "rows")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("index", [np.int64, np.int32])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_rows_are_added_in_the_order_of_numpys_add_at(dtype, index, threads):
    """Doubling is exact, so nothing but the additions rounds; they meet in a few rows."""
    x, v = (np.asarray(RNG.normal(size=(n, 48)) * 100, dtype) for n in (7, 4000))
    i = RNG.integers(-7, 7, 4000).astype(index)
    added, placed, zeros = x.copy(), x.copy(), np.zeros((1, 7, 48), dtype)
    np.add.at(added, i, v + v)
    np.add.at(zeros, (0, i % 7), v + v)
    for row, at in zip(v + v, i, strict=True):
        placed[at] = row

    def program(x, v, i):
        v = v + v
        ways = tw.index_put(x, (i,), v, accumulate=True), tw.index_put(x, (i,), v)
        return *ways, tw.index_add(tw.zeros_like(tw.unsqueeze(x, 0)), 1, i % 7, tw.unsqueeze(v, 0))

    tw.set_num_threads(threads)
    try:
        compiled = tw.function(program)
        assert_all_same_bits(compiled(x, v, i), (added, placed, zeros), "numpy")
        assert set(kernels(compiled)) == {"k", "check", "copy", "fill"}
    finally:
        tw.set_num_threads(1)


def one_step(tw, cell, x, i):
    cell.index_add_(0, i, tw.tanh(x) * 2)
    return x.sum()


def two_steps(tw, cell, x, i):
    cell.index_copy_(0, i, x * 2)
    cell[i] += tw.tanh(x)
    return cell.sum(0)


def with_what_is_there(tw, cell, x, i):
    cell.index_add_(0, i, tw.index_select(cell, 0, i) * x)
    return cell[0] * 1


def indices_are_state(tw, cell, x, i):
    cell.index_copy_(0, i, tw.sin(x))
    return tw.embedding(i, cell * 2).sum(0)


@pytest.mark.parametrize("step", [one_step, two_steps, with_what_is_there, indices_are_state])
@pytest.mark.parametrize("threads", [1, 2])
def test_state_is_written_after_all_indices_are_checked(step, threads):
    both = Both(step, floats(1000, 24))
    tw.set_num_threads(threads)
    try:
        for _ in range(2):
            told = both.check(floats(900, 24), RNG.integers(0, 1000, 900))
        if step is one_step:
            assert told.arena_bytes < 1000, "nothing is copied"
        before = np.array(both.results[1][1][0])
        for wrong in (1000, -1, 2**40):
            with pytest.raises(IndexRangeError) as ours:
                both.results[1][2](floats(900, 24), np.append(RNG.integers(0, 1000, 899), wrong))
            line = step.__code__.co_firstlineno + 1
            assert f"test_put.py:{line}" in str(ours.value)
        assert_all_same_bits([np.array(both.results[1][1][0])], [before], "state")
    finally:
        tw.set_num_threads(1)


WRONG = {
    "index_add": lambda tw, x, v, i: tw.index_add(x, 0, i, v * 2),
    "index_copy": lambda tw, x, v, i: tw.index_copy(x, 0, i, v * 2),
    "index_put": lambda tw, x, v, i: tw.index_put(x, (i,), v * 2),
    "scatter_add": lambda tw, x, v, i: tw.scatter_add(x, 0, tw.expand(tw.unsqueeze(i, 1), v.shape), v * 2),
    "getitem": lambda tw, x, v, i: x[i] * v,
    "gather": lambda tw, x, v, i: tw.gather(x, 0, tw.expand(tw.unsqueeze(i, 1), v.shape)) * v,
    "embedding": lambda tw, x, v, i: tw.embedding(i, x) * v,
}  # fmt: skip


@pytest.mark.parametrize("wrong", [-6, 5, 1 << 40])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_index_is_told_as_eagerly(name, wrong):
    told = []
    for engine in (dynamic, tw):
        run = engine.function(lambda *a, engine=engine: WRONG[name](engine, *a))
        given = [floats(5, 16), floats(3, 16), np.array([0, wrong, 4])]
        with pytest.raises(IndexRangeError) as raised:
            run(*map(dynamic.tensor, given) if engine is dynamic else given)
        told.append(str(raised.value).split("\n")[0])
    assert told[0] == told[1].replace("arg0.shape[0]", "5")


def test_no_index_is_looked_at_where_no_element_needs_it():
    """An index per element is none, if rows have no elements; an index per row is checked."""
    compiled = tw.function(WRONG["scatter_add"])
    for width in (16, 0):
        given = floats(5, width), floats(3, width), np.array([0, 9 if width == 0 else 1, 4])
        expected = dynamic.function(WRONG["scatter_add"])(dynamic, *map(dynamic.tensor, given))
        assert_all_same_bits(as_tuple(compiled(tw, *given)), [np.asarray(expected)], "no columns")


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_rows_along_any_dimension_and_of_any_shape(dim):
    def program(x, v, i):
        v = tw.tanh(v)
        y = tw.index_add(x, dim, i, v) * 2
        grown = tw.grad(lambda x: (tw.index_select(x, dim, i) ** 2).sum())(x)
        return y, v, grown

    shape = [4, 5, 18]
    shape[dim] = 3
    assert_compiles(program, (floats(4, 5, 18), floats(*shape), np.array([3, 0, 3])))


def test_one_row_a_view_and_a_constant():
    def program(x, v, i, j):
        one = tw.index_copy(x, 0, i, tw.exp(v[:1]))
        turned = tw.index_add(x, 0, j, tw.transpose(tw.exp(tw.transpose(v, 0, 1)), 0, 1))
        ones = tw.index_add(tw.zeros_like(x), 0, j, tw.ones_like(v))
        return one, turned, ones, tw.index_add(one * 0, 0, j * 0, v * 2)

    given = floats(5, 16), floats(4, 16), np.array([3]), np.array([1, 1, 0, 4])
    assert_compiles(program, given)


def test_threads_do_not_run_a_loop_before_the_check_of_its_indices():
    def program(a, b, x, v, i, j):
        product = tw.mm(a, b)
        return product, tw.tanh(tw.embedding(i, x)) * 2, tw.index_add(x, 0, j, tw.tanh(v))

    compiled = tw.function(program)
    given = floats(300, 300), floats(300, 300), floats(50, 64), floats(900, 64), *RNG.integers(0, 50, (2, 900))
    compiled(*given)
    steps = program_of(compiled).cut.steps
    assert sum(step.beside > 0 for step in steps) > 2, "something runs beside the product"
    at = {item.id: k for k, step in enumerate(steps) for group in step.groups for item in group.items}
    for k, step in enumerate(steps):
        for item in (item for group in step.groups for item in group.items):
            assert all(at[before.maker.id] < k for before in item.after)
