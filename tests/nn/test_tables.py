"""Bags of rows against loops over numpy arrays, and rows that are scaled down under a tangent."""

from itertools import pairwise

import numpy as np
import pytest

import dynamic
import static

engines = pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
COMBINE = {"sum": np.sum, "mean": np.mean, "max": np.max}


@engines
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("offsets", [[0, 3, 6], [0, 3, 9], [0, 4, 4, 7], [0, 9]])
def test_the_last_offset_ends_the_last_bag(tw, mode, offsets):
    table, index = np.random.default_rng(0).normal(size=(6, 2)), np.array([5, 0, 3, 3, 1, 2, 4, 4, 0])
    bags = [table[index[a:b]] for a, b in pairwise(offsets)]
    wanted = [COMBINE[mode](rows, 0) if len(rows) else np.zeros(2) for rows in bags]
    look = tw.function(lambda t, i, o: tw.nn.functional.embedding_bag(i, t, o, mode=mode, include_last_offset=True))
    np.testing.assert_allclose(look(table, index, np.array(offsets)).numpy(), wanted, rtol=1e-15)
    given = tw.tensor(table, requires_grad=True)
    tw.nn.functional.embedding_bag(tw.tensor(index), given, tw.tensor(offsets), mode=mode,
                                   include_last_offset=True).sum().backward()  # fmt: skip
    used = np.unique(index[: offsets[-1]])
    assert not np.delete(given.grad.numpy(), used, 0).any()


@engines
def test_offsets_and_padding_outside_the_input_are_refused(tw):
    look, table = tw.nn.functional.embedding_bag, tw.ones(4, 2)
    for offsets in [[0, 4], [1, 2], [-1, 2], [0, -1]]:
        with pytest.raises(IndexError):
            look(tw.tensor([0, 1, 2]), table, tw.tensor(offsets))
    for padding in (4, -5):
        with pytest.raises(RuntimeError, match="padding_idx must be within the number of embeddings, -4 through 3"):
            look(tw.tensor([[0, 1]]), table, padding_idx=padding)


@engines
@pytest.mark.parametrize("name", ["embedding", "embedding_bag"])
def test_scaling_rows_down_leaves_their_tangents(tw, name):
    table, tangent = tw.arange(8.0).reshape(4, 2), tw.ones(4, 2)
    index = tw.tensor([[1, 3]])
    with tw.autograd.forward_ad.dual_level():
        dual = tw.autograd.forward_ad.make_dual(table, tangent)
        y = getattr(tw.nn.functional, name)(index, dual, max_norm=1.0)
        found = tw.autograd.forward_ad.unpack_dual(y).tangent
        assert found.tolist() == np.ones(found.shape).tolist()
        assert tw.autograd.forward_ad.unpack_dual(dual).tangent.tolist() == tangent.tolist()
    norms = np.array([1.0, 13**0.5, 41**0.5, 85**0.5])
    scaled = np.arange(8.0).reshape(4, 2) / np.array([1, norms[1], 1, norms[3]])[:, None]
    np.testing.assert_allclose(table.numpy(), scaled, rtol=1e-6)


@engines
def test_parameters_of_a_dictionary_go_by_name(tw):
    table = tw.nn.ParameterDict(parameters={"b": tw.nn.Parameter(tw.ones(2)), "a": tw.zeros(1)})
    assert [name for name, _ in table.named_parameters()] == ["a", "b"]
