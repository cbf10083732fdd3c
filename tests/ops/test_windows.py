"""`Tensor.unfold`: windows as views, their gradients, and writes to them; in both engines."""

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import TwingradError
from tests.bits import assert_all_same_bits

X = np.arange(42, dtype=np.float32).reshape(6, 7)
ASKED = [(0, 3, 1), (1, 3, 2), (-1, 2, 3), (1, 7, 1), (0, 1, 4), (0, 2, 2), (0, 0, 2)]


def windows(x, dim, size, step):
    found = [np.take(x, range(i, i + size), dim) for i in range(0, x.shape[dim] - size + 1, step)]
    return np.moveaxis(np.stack(found, dim), dim + 1 if dim >= 0 else dim, -1)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_windows_and_their_gradients(asked):
    expected = windows(X, asked[0] % 2, *asked[1:])
    assert_all_same_bits([tw.tensor(X).unfold(*asked).numpy()], [expected], "windows")
    compiled = static.function(lambda x: x.unfold(*asked) * 2)
    assert_all_same_bits(
        [compiled(X), compiled(X[:5])], [expected * 2, windows(X[:5], asked[0] % 2, *asked[1:]) * 2], "x"
    )
    g = np.random.default_rng(0).normal(size=expected.shape).astype(np.float32)
    slope = np.zeros_like(X)
    np.add.at(slope.reshape(-1), windows(np.arange(42).reshape(6, 7), asked[0] % 2, *asked[1:]).astype(int), g)
    found = [e.grad(lambda x, g, e=e: (x.unfold(*asked) * g).sum())(X, g) for e in (tw, static)]
    assert_all_same_bits([found[0].numpy()], [found[1]], "gradient")
    np.testing.assert_allclose(found[1], slope, rtol=1e-5, atol=1e-6)


def test_windows_share_memory():
    x = tw.zeros(7)
    pairs = x.unfold(0, 2, 3)
    pairs.copy_(tw.tensor([[1.0, 2.0], [3.0, 4.0]]))
    x.unfold(0, 3, 2)[1].add_(10)
    assert x.tolist() == [1, 2, 10, 13, 14, 0, 0]
    assert pairs.tolist() == [[1, 2], [13, 14]]

    def program(x):
        y = x * 1
        y.unfold(0, 2, 3).mul_(3)
        return y

    for engine in (tw, static):
        x = np.arange(7.0)
        y, dx = engine.function(engine.value_and_grad(lambda x: (program(x) * x).sum()))(x)
        factor = np.array([3, 3, 1, 3, 3, 1, 1])
        assert float(y) == (x * x * factor).sum()
        assert np.asarray(dx).tolist() == (2 * x * factor).tolist()


WRITES = {
    "copy": lambda x: x.unfold(0, 3, 1).copy_(tw.zeros(5, 3)),
    "add": lambda x: x.unfold(0, 3, 1).add_(1),
    "setitem": lambda x: x.unfold(0, 3, 1).__setitem__(0, 1.0),
    "setitem of all": lambda x: x.unfold(0, 3, 1).__setitem__(slice(1, 3), tw.ones(2, 3)),
    "fill": lambda x: x.unfold(0, 2, 1).fill_(1),
    "detached": lambda x: x.unfold(0, 2, 1).detach().mul_(2),
}


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("what", [w for w in WRITES if w != "setitem"])
def test_overlapping_windows_are_not_written(what, history):
    x = tw.tensor(np.arange(7.0), requires_grad=history) * 1
    before = x.detach().numpy().copy()
    with pytest.raises(ValueError, match=r"more than one element of the written-to tensor|read-only"):
        WRITES[what](x)
    assert x.detach().numpy().tolist() == before.tolist()
    if what in ("add", "fill"):
        with pytest.raises(ValueError, match="more than one element"):
            static.function(lambda x: WRITES[what](x * 1))(before)


def test_one_window_may_be_written():
    x = tw.zeros(7)
    WRITES["setitem"](x)
    assert x.tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert tw.tensor(3.0).unfold(0, 1, 1).tolist() == [3]


@pytest.mark.parametrize("asked", [(0, 8, 1), (0, -1, 1), (0, 3, 0), (2, 3, 1), (0, 2.5, 1)], ids=str)
def test_refuses(asked):
    with pytest.raises(TwingradError):
        tw.tensor(X).unfold(*asked)
