"""In-place forms over rows at a distance, and over turned memory: the bits of the general way, and nothing beside."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as tw
from dynamic.eager import row_writes
from dynamic.eager.remembered import OFTEN

#: Per case what it does to a tensor and another one of its shape.
WRITES = {
    "mul, a number": lambda x, y: x.mul_(1.5), "add": lambda x, y: x.add_(y), "+=": lambda x, y: x.__iadd__(y),
    "a row": lambda x, y: x.sub_(y[:1]), "a column": lambda x, y: x.mul_(y[:, :1]),
    "add, scaled": lambda x, y: x.add_(y, alpha=0.25), "sub, scaled": lambda x, y: x.sub_(y, alpha=-2),
    "clamp": lambda x, y: x.clamp_(-1, 1),
    "exp": lambda x, y: x.exp_(), "relu": lambda x, y: x.relu_(), "lerp": lambda x, y: x.lerp_(y, 0.25),
    "addcmul": lambda x, y: x.addcmul_(y, y), "power": lambda x, y: x.pow_(3), "a turned one": lambda x, y: x.div_(y),
}  # fmt: skip
PARTS = {
    "inner": lambda z: z[1:-1, 1:-1], "columns": lambda z: z[:, 3:], "every other row": lambda z: z[::2],
    "turned": lambda z: z.T, "a turned part": lambda z: z[2:, 1:].T, "every other column": lambda z: z[:, ::2],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", WRITES)
def test_bits_are_those_of_the_general_way(name, part, dtype):
    write, shown = WRITES[name], PARTS[part]
    rng = np.random.default_rng(0)
    sizes = rng.integers(90, 120, 2)
    z = rng.standard_normal(sizes).astype(dtype)
    y = rng.standard_normal(shown(z).shape).astype(dtype) + 3
    y = tw.tensor(y.T.copy()).T if name == "a turned one" else tw.tensor(y)
    wanted = z.copy()
    shown(wanted)[...] = write(tw.tensor(shown(z).copy()), y).numpy()
    for _ in range(OFTEN + 2):
        whole = tw.tensor(z)
        x = shown(whole)
        version = x._version
        assert write(x, y) is x
        assert whole._version == version + 1
        assert whole.numpy().tobytes() == wanted.tobytes()


def _learnt(x, write):
    for _ in range(OFTEN + 1):
        write(x)


def test_the_short_way_serves(monkeypatch):
    ran = []
    wrote = row_writes.RowWays.wrote
    monkeypatch.setattr(row_writes.RowWays, "wrote", lambda *given: ran.append(wrote(*given)) or ran[-1])
    for part in ("inner", "columns", "every other row", "turned", "a turned part"):
        x = PARTS[part](tw.zeros(110, 100))
        y = x.clone()
        for write in (lambda x: x.add_(1.0), lambda x, y=y: x.add_(y, alpha=2)):
            _learnt(x, write)
            assert ran[-1] is True, part
    _learnt(tw.zeros(110, 100)[:, ::2], lambda x: x.add_(1.0))  # no elements are next to each other
    assert ran[-1] is False


def test_operands_in_the_same_memory_are_read_first():
    z = tw.tensor(np.random.default_rng(1).standard_normal((120, 110)).astype(np.float32))
    for _ in range(OFTEN + 2):
        wanted = z.numpy().copy()
        wanted[1:, :-1] += wanted[:-1, 1:].copy()
        z[1:, :-1].add_(z[:-1, 1:])
        assert z.numpy().tobytes() == wanted.tobytes()
        z.clamp_(-9, 9)


def test_windows_that_overlap_are_refused_as_before():
    x = tw.zeros(20000).as_strided((100, 100), (50, 1))
    for _ in range(OFTEN + 2):
        with pytest.raises(RuntimeError, match="single memory location"):
            x.add_(1.0)


def test_what_is_recorded_takes_the_general_way():
    for _ in range(OFTEN + 2):
        p = tw.ones(110, 100, requires_grad=True)
        x = p * 1
        x[1:, 1:].mul_(2.0)
        assert tw.autograd.grad(x.sum(), p)[0].sum() == 110 * 100 + 109 * 99
        q, y = tw.ones(109, 99, requires_grad=True), tw.zeros(110, 100)
        y[1:, 1:].add_(q)
        assert y.requires_grad
        with tw.no_grad():
            p[1:, 1:].mul_(3.0)
        assert p.sum() == 11000 + 2 * 109 * 99
