"""Steps after a parameter, its gradient or the state has got another dtype or shape."""

import numpy as np
import pytest

import dynamic as tw
from common.core.errors import ShapeError

KINDS = {
    "SGD": ({"momentum": 0.9}, "momentum_buffer"),
    "Adam": ({}, "exp_avg"),
    "AdamW": ({"amsgrad": True}, "max_exp_avg_sq"),
    "RMSprop": ({"centered": True}, "grad_avg"),
    "Adagrad": ({}, "sum"),
    "Adadelta": ({}, "acc_delta"),
    "NAdam": ({}, "exp_avg_sq"),
    "RAdam": ({}, "exp_avg"),
    "Adamax": ({}, "exp_inf"),
    "ASGD": ({}, "ax"),
    "Rprop": ({}, "prev"),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def stepped(kind):
    p = tw.nn.Parameter(tw.tensor([1.0, 2.0, 3.0]))
    optimizer = getattr(tw.optim, kind)([p], lr=0.1, **KINDS[kind][0])
    p.grad = tw.tensor([0.5, -1.0, 2.0])
    optimizer.step()
    return p, optimizer


@EACH
def test_a_parameter_becomes_float64(kind):
    p, optimizer = stepped(kind)
    p.data, p.grad = p.data.double(), None
    p.grad = tw.tensor([0.5, -1.0, 2.0], dtype=tw.float64)
    optimizer.step()
    before, always = stepped(kind)
    before.grad = tw.tensor([0.5, -1.0, 2.0])
    always.step()
    assert p.dtype == tw.float64
    np.testing.assert_allclose(p.tolist(), before.tolist(), rtol=1e-5)  # that stayed float32


def test_momentum_goes_on_in_float64():
    p, optimizer = stepped("SGD")
    first = np.float32([1.0, 2.0, 3.0]) - np.float32(0.1) * np.float32([0.5, -1.0, 2.0])
    p.data, p.grad = p.data.double(), None
    p.grad = tw.tensor([0.5, -1.0, 2.0], dtype=tw.float64)
    optimizer.step()
    moved = first.astype(np.float64) - 0.1 * (0.9 * np.float64([0.5, -1.0, 2.0]) + np.float64([0.5, -1.0, 2.0]))
    np.testing.assert_allclose(p.tolist(), moved, rtol=1e-6)


@EACH
@pytest.mark.parametrize("size", [2, 5, 100_000])
def test_a_gradient_of_another_shape_is_refused(kind, size):
    p, optimizer = stepped(kind)
    p.data = tw.ones(size)
    with pytest.raises(ShapeError):
        optimizer.step()


@EACH
@pytest.mark.parametrize("state", [tw.tensor(2.0), tw.ones(2, 3)])
def test_state_of_another_shape_is_refused(kind, state):
    if kind == "ASGD" and state.shape:  # its average begins anew with the parameter, in whatever shape
        return
    p, optimizer = stepped(kind)
    optimizer.state[p][KINDS[kind][1]] = state
    with pytest.raises(ShapeError):
        optimizer.step()


@EACH
def test_state_of_another_dtype_is_taken(kind):
    p, optimizer = stepped(kind)
    name = KINDS[kind][1]
    optimizer.state[p][name] = optimizer.state[p][name].double()
    before = p.tolist()
    optimizer.step()
    assert p.tolist() != before
    assert optimizer.state[p][name].dtype == tw.float64


@pytest.mark.parametrize("kind", ["Adam", "Adagrad", "Rprop", "SGD"])
def test_state_is_in_order_and_its_own_whatever_the_order_of_a_parameter(kind):
    """Parameters whose memory is turned; states that are saved and loaded share none."""
    options = {"lr": 0.1, **({"momentum": 0.9} if kind == "SGD" else {})}
    start = np.arange(6, dtype=np.float32).reshape(3, 2)
    found = []
    for turned in (False, True):
        p = tw.nn.Parameter(start)
        if turned:
            p.data = tw.tensor(start.T.copy()).t()
        optimizer = getattr(tw.optim, kind)([p], **options)
        for x in optimizer.state[p].values():
            assert x.payload.flags.c_contiguous
        for _ in range(3):
            optimizer.zero_grad()
            (p * p * p).sum().backward()
            optimizer.step()
        saved = optimizer.state_dict()
        other = getattr(tw.optim, kind)([q := tw.nn.Parameter(p.detach())], **options)
        other.load_state_dict(saved)
        for name, x in other.state[q].items():
            assert not np.may_share_memory(x.payload, saved["state"][0][name].payload)
            assert not np.may_share_memory(optimizer.state[p][name].payload, saved["state"][0][name].payload)
        (q * q).sum().backward()
        other.step()
        found.append([p.detach().numpy().tobytes(), q.detach().numpy().tobytes()])
    assert found[0] == found[1]
