"""Large arrays written to memory that lies in any way have numpy's elements, and leave what lies between them."""

import itertools

import numpy as np
import pytest

import dynamic as tw
from common.evaluate import layouts
from tests.helpers.proofs import each

SHAPE = (19, 23, 27)


def _lying(name, order, dtype):
    """The memory, and an array of `SHAPE` in it."""
    base = np.zeros([SHAPE[d] for d in order], dtype)
    if name == "steps":
        base = np.zeros([2 * n for n in base.shape], dtype)
    elif name == "parts":
        base = np.zeros([n + 3 for n in base.shape], dtype)
    view = {
        "in order": base,
        "steps": base[tuple(slice(None, None, 2) for _ in SHAPE)],
        "parts": base[tuple(slice(2, -1) for _ in SHAPE)],
        "backwards": base[..., ::-1],
        "rows backwards": base[::-1],
    }[name]
    return base, view.transpose(np.argsort(order))


PLACES = [(name, order) for name in ("in order", "steps", "parts", "backwards", "rows backwards")
          for order in itertools.permutations(range(3))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@each("place", PLACES)
def test_what_is_written(place, dtype):
    rng = np.random.default_rng(0)
    for name, order in PLACES:
        _, source = _lying(name, order, dtype)
        source[...] = rng.integers(1, 100, SHAPE)
        base, target = _lying(*place, dtype)
        wanted_base, wanted = _lying(*place, dtype)
        wanted[...] = source
        layouts.overwrite(target, source)
        assert np.array_equal(base, wanted_base), (place, name, order)


def test_repeated_rows_and_numbers_are_written():
    base = np.zeros((300, 70), np.float32)
    for source in (np.arange(70, dtype="f"), np.arange(300, dtype="f")[:, None]):
        spread = np.broadcast_to(source, base.shape)
        layouts.overwrite(base[:, ::-1].T, spread[:, ::-1].T)
        assert np.array_equal(base, spread)


def test_memory_that_is_read_is_written_as_by_numpy():
    """A part of the same array, where a kernel would read what it has written."""
    x = np.arange(100.0 * 100).reshape(100, 100)
    y = x.copy()
    y[1:] = y[:-1].copy()
    layouts.overwrite(x[1:], x[:-1])
    assert np.array_equal(x, y)


def test_what_may_not_be_written_is_refused():
    x = np.zeros((100, 100))
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        layouts.overwrite(x.T, np.ones((100, 100)))


@each("order", itertools.permutations(range(3)))
def test_in_place_forms_of_what_lies_in_another_order(order, monkeypatch):
    """They write by the loops that copy."""
    calls = []
    write = layouts.write
    monkeypatch.setattr(layouts, "write", lambda *given: calls.append(given) or write(*given))
    x = np.random.default_rng(1).standard_normal([SHAPE[d] for d in order]).astype(np.float32)
    y = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)
    back = np.argsort(order)
    for form in (tw.Tensor.add_, tw.Tensor.copy_, lambda a, b: a.__setitem__(slice(None), b)):
        a, wanted = tw.tensor(x), x.copy()
        form(a.permute(*back.tolist()), tw.tensor(y))
        if form is tw.Tensor.add_:
            wanted.transpose(back)[...] += y
        else:
            wanted.transpose(back)[...] = y
        assert np.array_equal(a.numpy(), wanted)
    assert len(calls) >= 2
