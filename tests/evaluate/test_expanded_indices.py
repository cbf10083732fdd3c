"""Gather and scatter_add at an expanded index read it where it lies, with NumPy's results."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import dynamic as tw
from common.evaluate import kernels

SHAPES = [(2, 3, 5000), (3, 5, 900), (2, 3, 4, 5), (1, 3, 4), (3, 3, 3), (4, 5), (0, 3, 4), (2, 0, 4), (2, 3, 0), (7,)]


@pytest.mark.parametrize("index_dtype", [np.int64, np.int32])
@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("shape", SHAPES)
def test_gather_and_scatter_add(shape, dtype, index_dtype):
    rng = np.random.default_rng(len(shape))
    x = (100 * rng.standard_normal(shape)).astype(dtype)
    for dim, kept, count in product(range(len(shape)), product((False, True), repeat=len(shape)), (0, 1, 6)):
        if not shape[dim] and count:
            continue
        full = (*shape[:dim], count, *shape[dim + 1 :])
        own = tuple(n if k or d == dim else 1 for d, (n, k) in enumerate(zip(full, kept, strict=True)))
        index = rng.integers(0, max(shape[dim], 1), own).astype(index_dtype)
        places = np.broadcast_to(index, full).astype(np.int64)
        expanded = tw.tensor(index).expand(full)
        found = tw.gather(tw.tensor(x), dim, expanded)
        assert found.numpy().tobytes() == np.take_along_axis(x, places, dim).tobytes()
        g = (100 * rng.standard_normal(full)).astype(dtype)
        added = np.zeros(shape, dtype)
        np.add.at(added, tuple(places if d == dim else i for d, i in enumerate(np.indices(full))), g)
        zeros = tw.tensor(np.zeros(shape, dtype))
        assert zeros.scatter_add(dim, expanded, tw.tensor(g)).numpy().tobytes() == added.tobytes()


def test_a_large_expanded_index_is_not_copied(monkeypatch):
    met, compiled = [], kernels.compiled

    def noting(source, name, *others):
        kernel = compiled(source, name, *others)
        if not name.startswith("shared"):
            return kernel
        return lambda x, index, y, *ints: met.append((index.shape, *ints[:2])) or kernel(x, index, y, *ints)

    monkeypatch.setattr(kernels, "compiled", noting)
    x, index = tw.rand(4, 6, 50, requires_grad=True), tw.randint(0, 50, (4, 1, 4000)).expand(4, 6, 4000)
    y = x.gather(2, index)
    y.sum().backward()
    assert [(shape[0] * shape[-1], *others) for shape, *others in met] == [(16000, 4, 6)] * 2
    dense = x.detach().clone().requires_grad_()
    dense.gather(2, index.contiguous()).sum().backward()
    assert x.grad.numpy().tobytes() == dense.grad.numpy().tobytes()
    met.clear()
    turned = tw.randint(0, 50, (4000, 4)).T[:, None].expand(4, 6, 4000)  # what repeats does not lie in order
    assert x.gather(2, turned).tolist() == x.gather(2, turned.contiguous()).tolist()
    assert not met


@pytest.mark.parametrize("wrong", [-1, 50])
def test_wrong_indices_are_named(wrong):
    index = tw.tensor([[[0, wrong]]] * 4).expand(4, 6, 2)
    large = index.repeat(1, 1, 4000)[:, :1].expand(4, 6, 8000)
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for dimension 2 with size 50"):
        tw.rand(4, 6, 50).gather(2, large)
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for dimension 2 with size 50"):
        tw.rand(4, 6, 50).gather(2, index)
