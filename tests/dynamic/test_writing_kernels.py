"""In-place forms that write where they read give the bits of the general way, and leave what it leaves."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as tw
from common.core import mode
from dynamic.eager import writing_kernels
from dynamic.eager.remembered import OFTEN

#: Per call what it comes to, and whether one kernel does it.
CALLS = {
    "add": (lambda x, y: x.add_(y), lambda x, y: x + y, True),
    "alpha": (lambda x, y: x.add_(y, alpha=-0.25), lambda x, y: x - 0.25 * y, True),
    "operator": (lambda x, y: x.__imul__(0.5), lambda x, y: x * 0.5, True),
    "itself": (lambda x, y: x.mul_(x), lambda x, y: x * x, True),
    "a row": (lambda x, y: x.sub_(y[0]), lambda x, y: x - y[0], True),
    "a column": (lambda x, y: x.div_(y[:, :1].contiguous()), lambda x, y: x / y[:, :1], True),
    "clamp": (lambda x, y: x.clamp_(-0.5, 0.5), lambda x, y: x.clamp(-0.5, 0.5), True),
    "addcmul": (lambda x, y: x.addcmul_(y, y, value=0.25), lambda x, y: tw.addcmul(x, y, y, value=0.25), True),
    "lerp": (lambda x, y: x.lerp_(y, 0.25), lambda x, y: tw.lerp(x, y, 0.25), True),
    "power": (lambda x, y: x.pow_(3), lambda x, y: x**3, True),
    "tanh": (lambda x, y: x.tanh_(), lambda x, y: x.tanh(), True),
    "a comparison": (lambda x, y: x.lt_(y), lambda x, y: (x < y).to(x.dtype), False),
    "rows summed": (lambda x, y: x.cumsum_(1), lambda x, y: x.cumsum(1), False),
}


@pytest.mark.parametrize("name", CALLS)
def test_bits_are_those_of_the_function(name, monkeypatch):
    write, function, one_kernel = CALLS[name]
    learn, made = writing_kernels._learnt, []
    monkeypatch.setattr(mode, "inference_seen", False)  # other tests may have entered inference mode
    monkeypatch.setattr(writing_kernels, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    rng, shape = np.random.default_rng(3), (6, len(name) + 3)  # forms that no other test has
    for dtype in ("float32", "float64"):
        for _ in range(OFTEN + 2):
            x, y = (rng.normal(size=shape).astype(dtype) for _ in range(2))
            x[0, :4] = 0.0, -0.0, np.nan, np.inf
            target, other = tw.from_numpy(x), tw.from_numpy(y)
            wanted = function(tw.tensor(x), other).numpy()
            assert write(target, other) is target
            assert target.numpy().tobytes() == wanted.tobytes()
    assert all(made) if one_kernel else not any(made)
    assert made or not one_kernel


def test_what_the_kernel_may_not_do_takes_the_general_way():
    def often(call):
        for _ in range(OFTEN + 1):
            call()

    x = tw.arange(12.0).reshape(3, 4)
    often(lambda: x.add_(0.0 * x))
    x[1:].add_(x[:2])  # parts of the same memory
    assert x.tolist() == [[0, 1, 2, 3], [4, 6, 8, 10], [12, 14, 16, 18]]
    y = tw.zeros(4, 3)
    often(lambda: y.t().add_(x))  # a matrix that lies by columns
    assert y[2].tolist() == [26, 104, 208]
    p = tw.ones(3, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        p.add_(x)
    with tw.no_grad():
        often(lambda: p.add_(x * 0))
    z = tw.ones(3, 4) * 2
    often(lambda: z.add_(0.0 * x))
    loss = (z * p).sum()
    z.add_(x)  # the product has saved it
    with pytest.raises(RuntimeError, match="inplace operation"):
        loss.backward()
    q = p * 1
    q.add_(x)
    assert q.grad_fn.name() == "AddBackward0"
