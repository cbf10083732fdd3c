"""Numbers around a part of short rows are no columns by themselves, and counts of short rows are written out."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits


def align(tw, scores, h):
    """Rows of an alignment, each from the one above: the best of a step to the right and of staying."""
    before = tw.nn.functional.pad(h[:, :-1], (1, 0))
    h = tw.relu(tw.maximum(before + scores, h - 0.5))
    return h, tw.amax(h, 1)


def bins(tw, x, edges):
    """Numbers of the edges of each row that lie below x, and the edges that come next."""
    k = (x[:, None] > edges * 2).to(tw.int64).sum(1)
    return k, tw.gather(edges, 1, tw.clamp(k, 0, edges.shape[1] - 1)[:, None])


def made(tw, program):
    def call(*arrays):
        return program(tw, *arrays)

    return tw.function(call)


@pytest.mark.parametrize("columns", [5, 9, 17, 30, 32, 40])
def test_alignments_have_the_bits_of_the_other_engine(columns):
    rng = np.random.default_rng(columns)
    compiled, apart = made(static, align), static.function(lambda *x: align(static, *x), fuse=False)
    slopes = static.function(static.grad(lambda s, h: (align(static, s, h)[0] ** 2).sum(), (0, 1)))
    for rows, n in ((300, columns), (70, columns), (3, columns), (300, columns + 3), (0, columns)):
        s, h = rng.standard_normal((2, rows, n)).astype(np.float32)
        want = made(dynamic, align)(s, h)
        assert_all_same_bits(compiled(s, h), want, f"{rows, n}")
        assert_all_same_bits(apart(s, h), want, f"{rows, n}, not fused")
        wanted = dynamic.grad(lambda s, h: (align(dynamic, s, h)[0] ** 2).sum(), (0, 1))(s, h)
        assert_all_same_bits(slopes(s, h), wanted, f"gradient, {rows, n}")


def test_an_alignment_is_one_loop():
    s, h = np.random.default_rng(0).standard_normal((2, 300, 30)).astype(np.float32)
    compiled = made(static, align)
    compiled(s, h)
    assert compiled.source.count("return 0") == 2  # for 30 columns, and for any


@pytest.mark.parametrize("columns", [3, 9, 16, 20])
def test_counts_of_short_rows_are_written_out(columns):
    rng = np.random.default_rng(columns)
    compiled = made(static, bins)
    for rows, n in ((400, columns), (17, columns), (300, columns + 1), (0, columns), (40, 70)):
        x, edges = rng.standard_normal(rows), np.sort(rng.standard_normal((rows, n)), 1)
        assert_all_same_bits(compiled(x, edges), made(dynamic, bins)(x, edges), f"{rows, n}")
    x, edges = rng.standard_normal(400), rng.standard_normal((400, columns))
    once = made(static, lambda tw, *x: bins(tw, *x)[0])
    once(x, edges)
    assert ("_sum(" in once.source.split("return 0")[0]) == (columns >= 16)
