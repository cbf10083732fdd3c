"""Reshapes that need a copy: elements in order, memory of their own, no view for writes and histories."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as tw
from common.evaluate import layouts
from common.ops.shape.strided import as_strided_

BIG = np.arange(8 * 40 * 30, dtype=np.float32).reshape(8, 40, 30)
LAYOUTS = {
    "transposed": lambda x: x.transpose(1, 2),
    "outer dimensions": lambda x: x.transpose(0, 1),
    "turned about": lambda x: x.permute(2, 0, 1),
    "columns": lambda x: x[:, :, 1:-1],
    "steps": lambda x: x[:, :, ::7],
    "repeated": lambda x: x[:, :, None].expand(-1, -1, 3, -1),
    "each repeated": lambda x: x[..., None].expand(-1, -1, -1, 2),
    "of size 1": lambda x: x[:1].transpose(1, 2),
    "empty": lambda x: x[:0].transpose(1, 2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("part", [1, 8])
def test_elements_are_numpys(name, dtype, part):
    x = LAYOUTS[name](tw.tensor(BIG[:part].astype(dtype)))
    for _ in range(3):
        y = x.reshape(-1)
        assert y.numpy().tobytes() == np.asarray(x.numpy()).tobytes()
        assert y.shape == (x.numel(),)
        if part == 8 and x.numel():
            assert not np.shares_memory(y.numpy(), x.numpy())


def test_no_view_is_made(monkeypatch):
    made = []
    copy = layouts.reshaped
    monkeypatch.setattr(layouts, "reshaped", lambda *form: made.append(form) or copy(*form))
    x = tw.zeros(7, 9)
    y = x.T.reshape(63)
    assert len(made) == 1
    y.fill_(1.0)
    assert not x.any()
    p = tw.ones(7, 11, requires_grad=True)
    z = p * 1
    flat = z.T.reshape(-1)
    flat.mul_(3.0)
    assert (z == 1).all()
    (flat * tw.arange(77.0)).sum().backward()
    assert np.array_equal(p.grad.numpy(), 3 * np.arange(77.0, dtype=np.float32).reshape(11, 7).T)
    with tw.no_grad():
        flat = p.T.reshape(-1)
        flat.zero_()
    assert p.all()


def test_other_layouts_of_the_same_shape_are_told_apart():
    x = tw.tensor(BIG[0])
    for _ in range(2):
        for y in (x.T, x.reshape(30, 40), x.flip(0).T, tw.tensor(BIG[0].T.copy())):
            assert y.reshape(-1).numpy().tobytes() == y.numpy().tobytes()
    with pytest.raises(RuntimeError):
        x.T.reshape(7)
    for shape in ((-1,), (40, 30)):
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            x.T.view(shape)


def test_parts_of_a_copy_are_no_copies_under_another_shape():
    """`as_strided` shows some elements of what lies in order, which may be a copy."""
    big, few = BIG[0], np.arange(12, dtype=np.float32).reshape(3, 4)
    for x in (few, big):
        for size, step, start in (((2, 2, 2), (1, 1, 4), 0), ((2,), (3,), 1), ((x.size // 2,), (2,), 0)):
            for _ in range(2):
                y = as_strided_(tw.tensor(x).T, size=size, step=step, start=start)
                strides = [4 * s for s in step]
                wanted = np.lib.stride_tricks.as_strided(x.T.ravel()[start:], size, strides)
                assert np.array_equal(y.numpy(), wanted)
