"""`vmap` in chunks: bits and random numbers."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_same_bits


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
@pytest.mark.parametrize("compiled", [False, True])
def test_chunks_draw_the_same_numbers_where_examples_do(tw, compiled):
    """All examples get the same numbers, whatever chunk they are in, and the stream goes on behind one chunk's."""
    found = []
    for chunk_size in (None, 2, 1):
        mapped = tw.func.vmap(lambda r: r + tw.rand(3), randomness="same", chunk_size=chunk_size)
        run = tw.function(mapped) if compiled else mapped
        tw.manual_seed(5)
        found.append((run(tw.zeros(5, 3)).numpy(), tw.rand(2).numpy()))
    rows, after = found[0]
    assert (rows == rows[0]).all()
    for other_rows, other_after in found[1:]:
        np.testing.assert_array_equal(other_rows, rows)
        np.testing.assert_array_equal(other_after, after)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
@pytest.mark.parametrize("chunks", [1, 2, 3, 9])
def test_a_number_of_chunks_changes_no_bit(tw, chunks):
    x = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
    sizes = []

    def f(row, shift):
        sizes.append(1)
        return row.tanh() + shift, row.sum()

    whole = tw.vmap(f, (1, None), (1, 0))(x.T, x[0])
    sizes.clear()
    for got, expected in zip(tw.func.chunk_vmap(f, (1, None), (1, 0), chunks=chunks)(x.T, x[0]), whole, strict=True):
        assert_same_bits(got.numpy(), expected.numpy(), "chunk_vmap")
    assert len(sizes) == min(chunks, 7)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_numbers_of_chunks_are_positive(tw):
    for chunks in (0, -1, 1.5):
        with pytest.raises((ValueError, TypeError), match="chunks"):
            tw.func.chunk_vmap(lambda x: x, chunks=chunks)
