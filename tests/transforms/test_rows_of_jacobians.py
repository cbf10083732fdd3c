"""Rows of Jacobians in chunks: of one row, which is no batch."""

import numpy as np
import pytest

import dynamic
import static


def test_one_row_at_a_time_is_no_batch():
    """A pullback may do things that `vmap` refuses, such as a size that depends on the data."""

    class Nonzero(dynamic.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2 * len(g.nonzero())

    x = dynamic.ones(2)
    assert dynamic.func.jacrev(Nonzero.apply, chunk_size=1)(x).tolist() == [[2, 0], [0, 2]]
    with pytest.raises(RuntimeError, match="dynamic shape"):
        dynamic.func.jacrev(Nonzero.apply, chunk_size=2)(x)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
@pytest.mark.parametrize("n", [0, 3])
def test_rows_one_by_one_are_those_of_a_batch(tw, n):
    x = tw.tensor(np.linspace(-1, 1, 2 * n).reshape(n, 2))
    f = lambda x: {"a": x.sin().sum(1), "b": x.exp().prod(1)}  # noqa: E731
    one, all_ = (tw.func.jacrev(f, chunk_size=size)(x) for size in (1, None))
    for name in one:
        assert one[name].shape == (n, n, 2)
        assert one[name].tolist() == all_[name].tolist()
