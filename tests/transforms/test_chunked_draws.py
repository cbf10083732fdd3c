"""Random numbers of a `vmap` that runs in chunks."""

import numpy as np
import pytest

import dynamic
import static


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
