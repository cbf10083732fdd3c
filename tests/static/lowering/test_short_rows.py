"""Rows of a few elements: written out column by column, in one kernel, with the bits of the sums that they are."""

import numpy as np
import pytest

import dynamic
import static
from static.running import executable
from tests.bits import assert_all_same_bits


def distances(tw):
    def loss(x, y, w):
        d = x[:, None, :] - y[None, :, :]
        near = tw.exp(-(d * d).sum(-1))
        return (near * w).sum() + ((d * near[:, :, None]).sum(1) ** 2).sum()

    def call(x, y, w):
        value, gradients = tw.value_and_grad(loss, (0, 1, 2))(x, y, w)
        return (value, *gradients)

    return tw.function(call)


def rows(tw):
    def call(x, w, g):
        def f(x, w):
            z = x * w
            return (z - z.mean(1, True)) / tw.sqrt((z * z).sum(1, True)), (x + w).sum(0)

        y, pullback = tw.vjp(f, x, w)
        return (*y, *pullback((g, g.sum(0))))

    return tw.function(call)


def arrays(*shapes, dtype=np.float32):
    rng = np.random.default_rng(sum(map(sum, shapes)))
    made = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    made[0][0] = -0.0
    return made


@pytest.mark.parametrize("columns", [2, 3, 5, 8, 9, 16, 21, 32])
def test_columns_have_the_bits_of_the_sum(columns):
    """Compiled for short rows first, then run with one more and many more columns, and with other numbers of rows."""
    pairs, compiled = distances(static), rows(static)
    for m, n, k in ((5, 257, columns), (17, 21, columns), (40, 7, columns), (5, 33, columns + 1), (2, 3, 70)):
        operands = arrays((m, k), (n, k), (m, n))
        assert_all_same_bits(pairs(*operands), distances(dynamic)(*operands), f"distances {m, n, k}")
    for n, k in ((1030, columns), (19, columns), (4, columns), (19, 40)):
        operands = arrays((n, k), (k,), (n, k), dtype=np.float64)
        assert_all_same_bits(compiled(*operands), rows(dynamic)(*operands), f"rows {n, k}")


def test_the_form_for_other_rows_is_compiled_when_they_come(monkeypatch):
    """Once, also in a program that is loaded from the disk."""
    texts, compile_kernel = [], executable.compile_kernel

    def compiled(source, *rest):
        texts.append(source)
        return compile_kernel(source, *rest)

    monkeypatch.setattr(executable, "compile_kernel", compiled)

    def sums(x, w):
        return (x * w).sum(1) / 3

    for function in (static.function(sums), static.function(sums)):
        texts.clear()
        for n, columns, count in ((33, 3, 1), (70, 3, 1), (33, 5, 2), (41, 6, 2), (0, 9, 2), (34, 3, 2)):
            operands = arrays((max(n, 1), columns), (columns,))
            operands[0] = operands[0][:n]
            assert_all_same_bits(function(*operands), sums(*map(dynamic.tensor, operands)), f"{n, columns}")
            assert len(texts) == count, f"{n} rows of {columns}"
        assert ["== 3" in text for text in texts] == [True, False]


@pytest.mark.parametrize("columns", [2, 3, 7, 8, 18])
def test_rows_of_a_part_of_a_larger_array_lie_where_the_part_does(columns):
    """Rows of one part lie behind each other, and those of the next part further on."""
    for tw in (static, dynamic):
        parts = tw.function(lambda x, w, y, tw=tw: (tw.cat([y * 2, x / w, y + 1], 1), x[:, 1:3] * w))
        for n, k in ((33, columns), (3, columns), (5, columns + 1), (130, columns)):
            x, w, y = arrays((n, 4, k), (k,), (n, 2, k))
            expected = np.concatenate([y * 2, x / w, y + 1], 1), x[:, 1:3] * w
            assert_all_same_bits(parts(x, w, y), expected, f"{tw.__name__} {n, k}")


@pytest.mark.parametrize("value", [-0.0, np.nan, np.inf])
@pytest.mark.parametrize("columns", [3, 18])
def test_what_is_special_stays(value, columns):
    x = np.full((330, columns), value, np.float32)
    x[1, 1:], x[2, :2] = 0.0, -np.inf

    def sums(tw):
        return tw.function(lambda x: ((x * 1.5).sum(1), (x * x).sum(0), x * 2 - x.sum(1, True)))

    assert_all_same_bits(sums(static)(x), sums(dynamic)(x), f"sums of {value}")


@pytest.mark.parametrize("columns", [2, 3, 7, 8, 11, 20, 32])
@pytest.mark.parametrize("special", [0.0, -0.0, np.nan, -np.inf])
def test_extremes_of_short_rows_have_the_bits_of_the_reduction(columns, special):
    def extremes(tw):
        def loss(x, w):
            z = x * w
            return tw.logsumexp(z, 1).sum() + (z - z.amax(1, True)).exp().sum() * z.amin(1).sum()

        return tw.function(lambda x, w: ((x * w).amax(1), (x * w).amin(1), *tw.value_and_grad(loss, (0, 1))(x, w)))

    x, w = arrays((400, columns), (columns,))
    x[3], x[4, 0], x[5, 1:] = 0.0, -0.0, special  # zeros of both signs, and ties
    x[6] = special
    compiled = extremes(static)
    found = [*compiled(x, w)]
    np.testing.assert_array_equal(found[:2], [(x * w).max(1), (x * w).min(1)])
    expected = extremes(dynamic)(x, w)
    assert_all_same_bits([*found[:3], *found[3]], [*expected[:3], *expected[3]], "dynamic's")


def test_rows_that_fill_half_a_vector_are_read_as_they_lie():
    """Without a sum of the row, and in few rows, columns of eight elements would be gathered for nothing."""
    for rows in (8, 64):
        f = static.function(lambda x, w: static.tanh(x * w + w))
        f(*arrays((rows, 8), (8,)))
        assert "c * 8" not in f.source
    f = static.function(lambda x, w: (x * w).sum(1).exp())
    f(*arrays((64, 8), (8,)))
    assert "c * 8" in f.source


def test_rows_of_some_vectors_are_turned_with_their_results():
    """Softmax in tiles of 64 rows, of batches too; what is written in place is read before."""
    for shape in ((350, 20), (2, 270, 12), (256, 32), (255, 16)):
        (x,) = arrays(shape)
        f = static.function(lambda x: static.softmax(x, -1))
        assert_all_same_bits([f(x)], [dynamic.softmax(dynamic.tensor(x), -1)], f"softmax of {shape}")
        assert f.source.count("turn_rows(") == 2 * (shape[-2] >= 256)
        exact = np.exp(x.astype(np.float64))
        np.testing.assert_allclose(f(x), exact / exact.sum(-1, keepdims=True), rtol=1e-5)
        parts = static.function(lambda x: static.softmax(x[..., :-1] * x[..., 1:], -1))
        assert_all_same_bits([parts(x)], [dynamic.softmax(dynamic.tensor(x[..., :-1] * x[..., 1:]), -1)], "of parts")


def test_distances_are_one_kernel_of_vectors():
    """The pairs are a loop without lanes in memory: what is summed over coordinates stays in registers."""

    @static.function
    def f(x, y):
        d = x[:, None, :] - y[None, :, :]
        return static.exp(-(d * d).sum(-1))

    x, y = arrays((50, 3), (40, 3))
    found = np.asarray(f(x, y))
    assert len(f.explain().kernels) == 1
    short, others = f.source.split("return 0", 1)
    assert "== 3:" in short
    assert "fold_lanes(" not in short
    assert "fold_lanes(" in others
    assert "llvm.masked.gather" in f.llvm or ", i64 7\n" in f.llvm  # lanes that are read together, or one by one
    exact = np.exp(-((x[:, None].astype(np.float64) - y) ** 2).sum(-1))
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_gradients_of_distances_do_not_move_the_whole():
    """No judge's code is shared: a loss of differences does not change if all points move, so its gradients cancel."""
    x, y, w = arrays((30, 3), (20, 3), (30, 20))
    _, dx, dy, _ = distances(static)(x, y, w)
    total = np.asarray(dx, np.float64).sum(0) + np.asarray(dy, np.float64).sum(0)
    np.testing.assert_allclose(total, 0, atol=1e-3)
    assert np.abs(np.asarray(dx)).max() > 0.1


def few_classes(tw):
    """The loss of a linear classifier, which reads one element of each row in two ways, and its gradients."""

    def loss(w, b, x, y):
        scores = tw.log_softmax(x @ w + b, 1)
        picked = tw.gather(scores, 1, (y % w.shape[1])[:, None]).sum()
        return -scores[tw.arange(x.shape[0]), y].mean() - 0.1 * picked

    def call(*args):
        value, gradients = tw.value_and_grad(loss, (0, 1, 2))(*args)
        return (value, *gradients)

    return tw.function(call)


@pytest.mark.parametrize("columns", [2, 8, 10, 20])
def test_elements_at_indices_of_rows_that_are_written_out(columns):
    """Rows of more elements than steps serve are turned, and columns are reduced behind them."""
    compiled = few_classes(static)
    for n in (300, 257, 5):
        operands = arrays((4, columns), (columns,), (n, 4))
        y = np.random.default_rng(n).integers(-columns, columns, n)
        assert_all_same_bits(compiled(*operands, y), few_classes(dynamic)(*operands, y), f"{n} rows")
    assert f" == {columns}:\n" in compiled.traces[0].program.source
    operands = arrays((4, columns), (columns,), (300, 4))
    y = np.zeros(300, np.int64)
    for wrong in (columns, -columns - 1):
        y[299] = wrong
        for tw in (dynamic, static):
            with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for dimension 1 with size {columns}"):
                few_classes(tw)(*operands, y)


def test_mixtures_reduce_rows_and_columns_in_kernels_that_can_be_written_out():
    """A kernel of all of it would be too long to be written out, and ten times as slow."""

    def loss(tw):
        def call(w, m, s, x):
            z = (x[:, None] - m) / tw.exp(s)
            return -tw.logsumexp(tw.log_softmax(w, 0) - s - 2.5 * tw.log(1 + z * z / 4), 1).mean()

        return tw.function(lambda *args: tw.grad(call, (0, 1, 2))(*args))

    for columns in (8, 12):
        operands = [x.ravel() for x in arrays((columns, 1), (columns, 1), (columns, 1), (400, 1))]
        compiled = loss(static)
        assert_all_same_bits(compiled(*operands), loss(dynamic)(*operands), f"{columns} columns")
        reduced = [kernel for kernel in compiled.source.split("def ") if "exp(" in kernel and "400" not in kernel]
        assert any(f" == {columns}:\n" in kernel for kernel in reduced)


def rings(tw):
    """Sides of polygons, of which the last one leads to the first; and of open lines, padded."""

    def loss(p):
        q, gap = tw.roll(p, -1, 1), tw.nn.functional.pad(p[:, 1:] - p[:, :-1], (0, 0, 1, 2))
        sides, steps = tw.sqrt(((p - q) ** 2).sum(-1) + 0.25), tw.sqrt((gap * gap).sum(-1) + 0.5)
        return (sides.sum(1) * steps.sum(1)).sum()

    def call(p):
        return tw.value_and_grad(loss)(p)

    return tw.function(call)


@pytest.mark.parametrize("coordinates", [2, 3, 4])
def test_rows_of_what_is_rolled_or_padded_along_another_dimension(coordinates):
    compiled = rings(static)
    for n, m in ((40, 20), (3, 33), (2, 2), (1, 17)):
        (p,) = arrays((n, m, coordinates))
        assert_all_same_bits(compiled(p), rings(dynamic)(p), f"{n, m, coordinates}")
    assert any(
        "if n0 == " in part and " else b" in part.split("return 0")[0] for part in compiled.source.split("def k_")
    )


@pytest.mark.parametrize("columns", [5, 16])
def test_rolled_rows_are_not_turned(columns):
    """A tile would hold one of the pieces of a roll. Rows of a wider array are turned, if they are whole."""

    def wide(tw):
        def loss(x):
            return (tw.roll(x[:, :columns], 1, 0).sum(1) ** 2).sum() + (tw.roll(x, 1, 0).sum(1) ** 3).sum()

        return tw.function(lambda x: tw.value_and_grad(loss)(x))

    compiled = wide(static)
    for n in (1030, 300, 1):
        for width in (columns, columns + 1, columns + 20):
            (x,) = arrays((n, width))
            assert_all_same_bits(compiled(x), wide(dynamic)(x), f"{n, width}")


def test_rows_from_a_certain_row_on_are_read_where_they_begin():
    """How far a step is and where it begins may both stand in the text, and each column is further on."""

    (x,) = arrays((33, 5))

    def turned(tw):
        held = tw.nn.Parameter(tw.tensor(x))  # of a size that is part of the program
        return tw.function(lambda y: (tw.cat((held[2:], held[:2])) + y, held[3:] * held[:-3], held[2:].sum(1)))

    assert_all_same_bits(turned(static)(np.float32(2)), turned(dynamic)(np.float32(2)), "held")
