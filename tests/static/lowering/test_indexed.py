"""Rows of tables are read where they are used, at checked indices."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from common.core.errors import IndexRangeError
from tests.bits import assert_all_same_bits
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def names(compiled):
    """The kernels of a function behind the checks of indices, by name; generated ones are "k"."""
    found = ["k" if step.name.startswith("k_") else step.name for step in program_of(compiled).steps]
    return [name for name in found if name != "check"]


def distance(table, i, j):
    near = tw.embedding(i, table)
    far = tw.embedding(j, table)
    return tw.sqrt(((near - far) ** 2).sum(1))


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("width", [16, 40, 1100])
def test_one_kernel_reads_two_rows_per_index(dtype, width):
    arrays = floats(50, width), RNG.integers(0, 50, 9).astype(dtype), RNG.integers(0, 50, 9).astype(dtype)
    compiled = assert_compiles(distance, arrays, (floats(3, 2), arrays[1] % 3, arrays[2] % 3))
    assert names(compiled) == ["k"]


def block(table, positions, weight, bias, i):
    x = tw.embedding(i, table) + positions
    return x, tw.layer_norm(x, (x.shape[-1],), weight, bias), tw.softmax(x, -1).sum(0), x.sum((0, 1))


def test_an_embedding_is_part_of_the_block_behind_it():
    arrays = floats(30, 32), floats(7, 32), floats(32), floats(32), RNG.integers(0, 30, (5, 7))
    compiled = assert_compiles(block, arrays)
    assert not any("take" in name for name in names(compiled))

    def gradients(*arrays):
        def loss(*a):
            return sum((y * y).sum() for y in block(*a))

        return tw.value_and_grad(loss, argnums=(0, 1, 2, 3))(*arrays)

    assert_compiles(lambda *a: (lambda v, g: (v, *g))(*gradients(*a)), arrays)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_selections_along_any_dimension(dim):
    def program(x, i):
        return tw.tanh(tw.index_select(x[:, 1:], dim, i)) * 2, tw.index_select(tw.transpose(x, 1, 2), dim, i)

    assert_compiles(program, (floats(6, 7, 18), np.array([0, 5, 5, 2])))


def test_few_short_rows_are_gathered_first():
    compiled = assert_compiles(lambda x, i: tw.tanh(tw.embedding(i, x)), (floats(20, 3), np.array([3, 0])))
    assert names(compiled) == ["take", "k"]
    assert "few rows of a table" in compiled.explain().kernels[-1].refused[0]


def attention_of_edges(x, i, j, w):
    """Heads of a few numbers, of which each edge has two."""
    scores = (tw.index_select(x, 0, i) * tw.index_select(x, 0, j)).sum(2) + w
    values = scores[:, :, None] * tw.index_select(x, 0, j)
    return tw.zeros(x.shape, dtype=x.dtype).index_add(0, i, values)


@pytest.mark.parametrize("heads", [(4, 4), (8, 2), (3, 7), (4, 8)])
def test_rows_of_short_rows_are_gathered_and_added_as_a_whole(heads):
    """Heads whose loops would be short; whole numbers are added without rounding, so numpy has the same bits."""
    x, w = (RNG.integers(-4, 5, (n, *heads[:d])).astype(np.float32) for n, d in ((30, 2), (70, 1)))
    i, j = RNG.integers(0, 30, (2, 70))
    compiled = assert_compiles(attention_of_edges, (x, i, j, w), (x, i[:0], j[:0], w[:0]), (x, i[:9], j[:9], w[:9]))
    assert ("take" in names(compiled), "add1" in names(compiled)) == (heads[1] < 8,) * 2
    expected = np.zeros_like(x)
    np.add.at(expected, i, ((x[i] * x[j]).sum(2) + w)[:, :, None] * x[j])
    assert_all_same_bits([compiled(x, i, j, w)], [expected], "numpy")
    gradient = tw.grad(lambda *given: (attention_of_edges(*given) ** 2).sum(), (0, 3))
    assert_compiles(gradient, (x, i, j, w), (x, i[:0], j[:0], w[:0]))
    with pytest.raises(IndexRangeError, match="30"):
        compiled(x, np.where(i == i[5], 30, i), j, w)


def test_elements_at_indices_are_read_by_the_loop_that_uses_them():
    """All elements of vectors, the ones behind the last whole vector, and dtypes that have no vector instruction."""

    def program(t, i, x, j):
        table = tw.reshape(t, (6, 10))
        return x * t[i] + 1, tw.gather(table, 1, j) * 2, (t > 0)[i] | (x > 0), tw.take(table, i) * t[0]

    def given(count, dtype):
        i = RNG.integers(-60, 60, count).astype(dtype)
        return floats(60), i, floats(count), RNG.integers(0, 10, (6, count)).astype(dtype)

    for dtype in (np.int64, np.int32):
        compiled = assert_compiles(program, *(given(n, dtype) for n in (1, 100, 16, 0, 31, 33)))
        assert not {"get1", "gather"} & set(names(compiled))


def test_costly_functions_are_loops_of_their_own():
    compiled = assert_compiles(lambda t, i, x: tw.tanh(t[i] * x), (floats(50), RNG.integers(0, 50, 90), floats(90)))
    assert names(compiled) == ["k", "k"]
    assert "nothing costly" in compiled.explain().kernels[-1].refused[0]


def test_rows_of_what_the_program_computes():
    def program(x, i, j):
        table = tw.exp(x)
        return tw.embedding(i, table) + 1, tw.embedding(j + 1, table) * tw.embedding(tw.argmax(x, 1)[:4], x)

    assert_compiles(program, (floats(20, 20), np.array([3, 3, 0, 19]), np.array([3, 18, -1, 0])))


@pytest.mark.parametrize("computed", [False, True])
def test_tables_of_one_row_that_the_program_computes(computed):
    def program(row, element, i):
        i = tw.neg(i) if computed else i
        across = i.unsqueeze(0).expand(1, i.shape[0])
        return (
            (row * 2)[i] * 3,
            (element * 2)[i] * 3,
            (element.reshape(1, 1) * 2)[i, i] * 3,
            tw.gather(row * 2, 0, across) * 3,
            tw.gather((row * 2).t(), 1, across.t()) * 3,
        )

    assert_compiles(program, (floats(1, 20), floats(1), np.zeros(20, np.int64)))


@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("wrong", [-1, 50, 2**40])
def test_a_wrong_index_names_the_line_that_reads_at_it(which, wrong):
    compiled = tw.function(distance)
    arrays = [floats(50, 16), np.array([0, 3]), np.array([49, 3])]
    compiled(*arrays)
    arrays[which] = np.array([3, wrong])
    with pytest.raises(IndexRangeError) as raised:
        compiled(*arrays)
    line = distance.__code__.co_firstlineno + which
    assert f"test_indexed.py:{line}" in str(raised.value) + "".join(getattr(raised.value, "__notes__", ()))


@pytest.mark.parametrize("dim", [1, 2])
def test_expanded_indices_are_checked_and_read_where_they_lie(dim):
    def weighted(x, i, w):
        rows = tw.gather(x, dim, i[:, None].expand(*x.shape[:2], i.shape[-1]))
        return (rows * w[:, None]).sum(0)

    i, w = RNG.integers(0, 5, (4, 20)), floats(4, 20)
    compiled = assert_compiles(weighted, (floats(4, 5, 20), i, w), (floats(4, 6, 20), i, w))
    assert names(compiled) == ["k", "sum_cols"]
    with pytest.raises(IndexRangeError, match=f"out of bounds for dimension {dim}"):
        compiled(floats(4, 5, 20), i + 41, w)
    assert compiled(floats(4, 0, 20), i + 41, w).shape == (0, 20)  # no index is looked at


def test_a_wrong_index_leaves_state_alone():
    cell = tw.nn.Parameter(tw.tensor(floats(6, 16)), requires_grad=False)

    @tw.function
    def step(i):
        with tw.no_grad():
            rows = tw.embedding(i, cell)
            cell.mul_(2)
            cell[:2] = rows[:2] + 1
            return rows * 2

    step(np.array([0, 1, 5]))
    before = np.array(cell)
    with pytest.raises(IndexRangeError):
        step(np.array([0, 1, 6]))
    assert_all_same_bits([np.array(cell)], [before], "state")


def test_threads_read_the_same_rows():
    arrays = floats(3000, 64), RNG.integers(0, 3000, 20_000), RNG.integers(0, 3000, 20_000)
    expected = tw.function(distance)(*arrays)
    tw.set_num_threads(2)
    try:
        compiled = tw.function(distance)
        assert_all_same_bits([compiled(*arrays)], [expected], "two threads")
        with pytest.raises(IndexRangeError):
            compiled(arrays[0], np.append(arrays[1][:-1], 3000), arrays[2])
    finally:
        tw.set_num_threads(1)


def between(t, x):
    """Neighbours in a table at places that are computed."""
    i = tw.floor(x).to(tw.int64)
    w = x - i
    return t[i] * tw.tanh(1 - w) + t[i + 1] * tw.tanh(w)


def test_indices_that_are_computed_are_checked_by_the_loop_that_uses_them():
    def given(n):
        return floats(50), RNG.uniform(-48, 48, n).astype(np.float32)

    assert_compiles(between, *(given(n) for n in (100, 1, 16, 0, 31, 33)))
    compiled = tw.function(between)
    compiled(*given(100))
    assert names(compiled) == ["k"]
    assert not any(step.name == "check" for step in program_of(compiled).steps)


def warped(image, y, x, shift):
    """Elements at two indices, of which the one varies with rows as it is made."""
    i, j = tw.clamp(y[:, None] + shift, 0, 5).to(tw.int64), tw.clamp(x + shift, -11, 11).to(tw.int32).to(tw.int64)
    return image[i, j] * shift + image[i - 6, j], tw.softmax(image[i, j], 1).sum(0)


def test_elements_at_two_indices_are_read_by_the_loop_that_computes_them():
    def given(n, m):
        uniform = [RNG.uniform(0, 6, size).astype(np.float32) for size in (n, m, (n, m))]
        return floats(6, 12), uniform[0], uniform[1] * 2, uniform[2]

    compiled = assert_compiles(warped, given(9, 20), given(20, 17), given(1, 40), given(3, 16))
    assert "get2" not in names(compiled)
    assert_compiles(lambda t, i, j: t[i, j] * 2, (floats(7, 5), RNG.integers(-7, 7, 40), RNG.integers(-5, 5, 40)))


def test_places_that_depend_on_what_has_been_taken():
    def program(t, k, j):
        return t[k[(j + 1) % 40] * 1 + 0] + t[k[j * 2 - j]], tw.gather(
            tw.reshape(t, (4, 8)), 1, tw.reshape(j // 8, (4, 10))
        )

    j = RNG.permutation(40)
    assert_compiles(program, (floats(32), RNG.integers(0, 32, 40), j))
    compiled = tw.function(program)
    with pytest.raises(IndexRangeError, match="index 32 is out of bounds for dimension 0 with size 32"):
        compiled(floats(32), np.full(40, 32), j)
    with pytest.raises(IndexRangeError, match="index 41 is out of bounds for dimension 0 with size 40"):
        compiled(floats(32), np.zeros(40, np.int64), np.append(j[:-1], 41))


@pytest.mark.parametrize("count", [16, 50])
@pytest.mark.parametrize("at", [0, -1])
def test_the_first_op_with_a_wrong_computed_index_is_named(count, at):
    def program(t, x):
        y = tw.tanh(x)
        i = x.to(tw.int64)
        a = t[i + 1]
        return a * y + t[i]

    x = RNG.uniform(0, 9, count).astype(np.float32)
    compiled = tw.function(program)
    compiled(floats(11), x)
    x[at] = 10.5
    with pytest.raises(IndexRangeError, match="index 11 is out of bounds for dimension 0 with size 11") as raised:
        compiled(floats(11), x)
    line = program.__code__.co_firstlineno + 3
    assert f"test_indexed.py:{line}" in str(raised.value) + "".join(getattr(raised.value, "__notes__", ()))
    for value in (np.nan, np.inf, -np.inf):
        x[at] = value
        if np.isnan(value):
            compiled(floats(11), x)  # converts to 0
        else:
            with pytest.raises(IndexRangeError, match="index beyond"):
                compiled(floats(11), x)


def test_a_wrong_computed_index_leaves_state_alone():
    cell = tw.nn.Parameter(tw.tensor(floats(4, 40)), requires_grad=False)

    @tw.function
    def step(t, x):
        with tw.no_grad():
            cell.mul_(2)
            cell.add_(t[(x * 2).to(tw.int64)])
            return cell * 3

    x = RNG.uniform(0, 5, (4, 40)).astype(np.float32)
    step(floats(10), x)
    before = np.array(cell)
    x[3, 39] = 7
    with pytest.raises(IndexRangeError):
        step(floats(10), x)
    assert_all_same_bits([np.array(cell)], [before], "state")


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "float32", "float64"])
def test_no_element_is_read_at_a_wrong_computed_index(dtype):
    """The loop goes on without it, lane by lane for what is shorter than four bytes; an empty table has no element."""

    def program(t, x):
        i = (x * 3).to(tw.int64)
        return t[i], t[i - 9]

    table = (floats(9) * 5).astype(dtype)
    assert_compiles(program, *((table, RNG.uniform(0, 3, n).astype(np.float32)) for n in (16, 50, 7)))
    compiled = tw.function(program)
    x = RNG.uniform(0, 1, 50).astype(np.float32)
    for wrong, index in ((3.5, 10), (1e30, "beyond"), (-0.5, -1), (-3.5, -10)):
        x[33] = wrong
        for extent in (9, 0):
            found = index
            if extent == 0:
                found = int(x[0] * 3)
            elif index == -1:
                found = -10
            with pytest.raises(IndexRangeError, match=f"index {found}.*size {extent}"):
                compiled(table[:extent], x)


def test_a_wrong_index_is_told_though_results_lie_over_what_it_is_made_of():
    def program(t, x, w):
        z = x @ w
        return t[(tw.abs(z) * 4).to(tw.int64)] * z

    x, w = np.zeros((30, 20), np.float32), np.ones((20, 30), np.float32)
    compiled = assert_compiles(program, (floats(40), x, w))
    x[3, 4] = 12
    with pytest.raises(IndexRangeError, match="index 48 is out of bounds for dimension 0 with size 40"):
        compiled(floats(40), x, w)


def test_indices_of_rows_and_those_behind_sums_of_rows():
    def program(t, y, m):
        w = t[(y * 3).to(tw.int64)]
        rows = tw.softmax(m * w[:, None], 1)
        return rows, t[(rows * 8).to(tw.int64)].sum(0), tw.amax(t[(m * 0 + 2).to(tw.int64)], 1)

    def given(n, m):
        return floats(9), RNG.uniform(0, 3, n).astype(np.float32), floats(n, m)

    assert_compiles(program, given(50, 40), given(3, 1100), given(700, 20), given(1, 16))
    compiled = tw.function(program)
    for wrong in (0, 1):
        t, y, m = given(20, 30)
        compiled(t, y, m)
        if wrong:
            y[7] = 3.1
        with pytest.raises(IndexRangeError, match="out of bounds" if wrong else "size 2"):
            compiled(t if wrong else t[:2], y * wrong, m)
