"""Optimisers against PyTorch's formulas, written in float64 numpy with plain Python state."""

import copy
import inspect
import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import ArgumentError, CompileError, StateError, TwingradError

SHAPES = ((3, 2), (4,), ())


def sgd(p, g, state, t, *, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    g = (-g if maximize else g) + weight_decay * p
    if momentum:
        state["v"] = g if t == 1 else momentum * state["v"] + (1 - dampening) * g
        g = g + momentum * state["v"] if nesterov else state["v"]
    return p - lr * g


def adam(p, g, state, t, *, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, maximize=False):
    g = (-g if maximize else g) + weight_decay * p
    state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
    state["top"] = np.maximum(state.get("top", 0), state["v"])
    m, v = state["m"] / (1 - betas[0] ** t), state["top" if amsgrad else "v"] / (1 - betas[1] ** t)
    return p - lr * m / (np.sqrt(v) + eps)


def adamw(p, g, state, t, *, weight_decay=1e-2, **options):
    return adam(p - options["lr"] * weight_decay * p, g, state, t, **options)


def rmsprop(p, g, state, t, *, lr, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False):
    g = g + weight_decay * p
    state["v"] = alpha * state.get("v", 0) + (1 - alpha) * g * g
    state["a"] = alpha * state.get("a", 0) + (1 - alpha) * g
    d = g / (np.sqrt(state["v"] - (state["a"] ** 2 if centered else 0)) + eps)
    state["b"] = momentum * state.get("b", 0) + d
    return p - lr * state["b"]


def adagrad(p, g, state, t, *, lr, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10):
    g = g + weight_decay * p
    state["s"] = state.get("s", initial_accumulator_value) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(state["s"]) + eps)


def asgd(p, g, state, t, *, lr, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, maximize=False):
    g = (-g if maximize else g) + weight_decay * p
    eta, mu = state.get("eta", lr), state.get("mu", 1.0)
    p = p * (1 - lambd * eta) - eta * g
    state["ax"] = p if mu == 1 else state["ax"] + mu * (p - state["ax"])
    state["eta"], state["mu"] = lr / (1 + lambd * lr * t) ** alpha, 1 / max(1, t - t0)
    return p


def rprop(p, g, state, t, *, lr, etas=(0.5, 1.2), step_sizes=(1e-6, 50), maximize=False):
    g = -g if maximize else g
    agreement = np.sign(g * state.get("before", np.zeros_like(g)))
    factor = np.select([agreement > 0, agreement < 0], [etas[1], etas[0]], 1.0)
    state["size"] = np.clip(state.get("size", np.full_like(g, lr)) * factor, *step_sizes)
    state["before"] = np.where(agreement < 0, 0, g)
    return p - np.sign(state["before"]) * state["size"]


def adafactor(p, g, state, t, *, lr, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0, maximize=False):
    least = 1e-16 if eps[0] is None else eps[0]  # below all moments here
    g, w = -g if maximize else g, t**beta2_decay
    size = max(eps[1], np.sqrt(np.mean(p * p))) * min(lr, 1 / np.sqrt(t))
    p = p * (1 - lr * weight_decay)
    if g.ndim < 2:
        v = state["v"] = state.get("v", 0) + w * (g * g - state.get("v", 0))
    else:
        r = state["r"] = state.get("r", 0) + w * ((g * g).mean(1, keepdims=True) - state.get("r", 0))
        c = state["c"] = state.get("c", 0) + w * ((g * g).mean(0, keepdims=True) - state.get("c", 0))
        v = r @ c / max(r.mean(), least)
    u = g / np.sqrt(np.maximum(v, least**2))
    return p - size / max(1, np.sqrt(np.mean(u * u)) / d) * u


CASES = [
    (tw.optim.SGD, sgd, {"lr": 0.1}),
    (tw.optim.SGD, sgd, {"lr": 0.1, "weight_decay": 0.3, "maximize": True}),
    (tw.optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9}),
    (tw.optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    (tw.optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    (tw.optim.Adam, adam, {"lr": 0.01}),
    (tw.optim.Adam, adam, {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.2}),
    (tw.optim.Adam, adam, {"lr": 0.1, "betas": (0.5, 0.6), "amsgrad": True, "maximize": True}),
    (tw.optim.AdamW, adamw, {"lr": 0.1}),
    (tw.optim.AdamW, adamw, {"lr": 0.1, "weight_decay": 0.5, "amsgrad": True, "betas": (0.5, 0.6)}),
    (tw.optim.RMSprop, rmsprop, {"lr": 0.1}),
    (tw.optim.RMSprop, rmsprop, {"lr": 0.1, "alpha": 0.7, "eps": 1e-3, "weight_decay": 0.1, "momentum": 0.5}),
    (tw.optim.RMSprop, rmsprop, {"lr": 0.1, "alpha": 0.7, "momentum": 0.5, "centered": True, "eps": 1e-2}),
    (tw.optim.ASGD, asgd, {"lr": 0.1}),
    (tw.optim.ASGD, asgd, {"lr": 0.1, "lambd": 0.5, "alpha": 0.5, "t0": 2, "weight_decay": 0.1, "maximize": True}),
    (tw.optim.Rprop, rprop, {"lr": 0.1}),
    (tw.optim.Rprop, rprop, {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.2), "maximize": True}),
    (tw.optim.Adafactor, adafactor, {"lr": 0.1}),
    (tw.optim.Adafactor, adafactor, {"lr": 0.3, "eps": (1e-3, 0.1), "d": 1.5, "weight_decay": 0.1, "maximize": True}),
    (tw.optim.Adagrad, adagrad, {"lr": 0.1}),
    (tw.optim.Adagrad, adagrad, {"lr": 0.1, "lr_decay": 0.3, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
]  # fmt: skip


def gradients(step, dtype):
    rng = np.random.default_rng(step)
    return [rng.standard_normal(shape).astype(dtype) for shape in SHAPES]


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("kind", "formula", "options"), CASES)
def test_formulas(kind, formula, options, dtype):
    start = gradients(99, dtype)
    parameters = [tw.nn.Parameter(x) for x in start]
    expected, states = [x.astype(np.float64) for x in start], [{} for _ in start]
    optimizer = kind(parameters, **options)
    for t in range(1, 8):
        for i, g in enumerate(gradients(t, dtype)):
            parameters[i].grad = tw.tensor(g)
            expected[i] = formula(expected[i], g.astype(np.float64), states[i], t, **options)
        optimizer.step()
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for p, want in zip(parameters, expected, strict=True):
        assert p.dtype == dtype
        assert np.allclose(p.numpy(), want, rtol=tolerance, atol=tolerance)


def test_a_small_step_count_keeps_its_digits():
    # 1 - 0.999 in float32 would be off by 5e-5
    p = tw.nn.Parameter(np.zeros(1, np.float32))
    optimizer = tw.optim.Adam([p], lr=1.0, eps=0.0)
    p.grad = tw.tensor([1e-3])
    optimizer.step()
    assert abs(p.item() + 1) < 3e-7


def test_parameters_without_gradient_are_left_alone():
    a, b = tw.nn.Parameter([1.0]), tw.nn.Parameter([1.0])
    optimizer = tw.optim.Adam([a, b], lr=0.1)
    a.grad = tw.tensor([1.0])
    optimizer.step()
    assert b.tolist() == [1.0]
    assert [optimizer.state[p]["step"].item() for p in (a, b)] == [1.0, 0.0]


def test_groups_have_their_own_options():
    a, b = tw.nn.Parameter([1.0]), tw.nn.Parameter([1.0])
    optimizer = tw.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.25)
    a.grad = b.grad = tw.tensor([1.0])
    optimizer.step()
    assert (a.tolist(), b.tolist()) == ([0.75], [0.5])


def test_the_learning_rate_can_change_between_steps():
    p = tw.nn.Parameter([1.0])
    optimizer = tw.optim.SGD([p], lr=0.5)
    p.grad = tw.tensor([1.0])

    @tw.function
    def step():
        optimizer.step()

    step()
    optimizer.param_groups[0]["lr"] *= 0.5
    step()
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert p.tolist() == [0.25]
    rate = tw.tensor(0.125)
    q = tw.nn.Parameter([1.0])
    q.grad = tw.tensor([1.0])
    other = tw.optim.SGD([q], lr=rate)
    other.step()
    rate.fill_(0.5)
    other.step()
    assert q.tolist() == [0.375]


KINDS = [kind for name in tw.optim.__all__ if isinstance(kind := getattr(tw.optim, name), type)
         and issubclass(kind, tw.optim.Optimizer) and kind is not tw.optim.Optimizer]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_every_kind_or_none(kind):
    names = [n for n, p in inspect.signature(kind).parameters.items() if type(p.default) in (int, float)]
    names = [n for n in names if n not in ("max_iter", "max_eval")]  # endless where they are
    for name, value in itertools.product(names, (math.nan, math.inf, 2**64, "5", [1], 1j)):
        p = tw.nn.Parameter(np.ones((2, 2), np.float32))
        try:
            optimizer = kind([p], **{name: value})
            p.grad = tw.ones(2, 2)
            optimizer.step(lambda p=p: p.sum())
        except CompileError:
            raise
        except TwingradError:
            continue
        assert isinstance(value, (int, float)), name


def test_zero_grad():
    p = tw.nn.Parameter([1.0])
    optimizer = tw.optim.SGD([p], lr=0.5)
    optimizer.zero_grad()
    p.grad = tw.tensor([3.0])
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_zeroed_gradients_are_zero_whatever_they_were():
    p = tw.nn.Parameter([1.0, 2.0])
    for zero_grad in (tw.optim.SGD([p]).zero_grad, Holder(p).zero_grad):
        p.grad = tw.tensor([float("nan"), float("-inf")])
        zero_grad(set_to_none=False)
        assert p.grad.tolist() == [0.0, 0.0]


class Holder(tw.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p


def test_closures():
    p = tw.nn.Parameter([1.0])
    optimizer = tw.optim.SGD([p], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with tw.no_grad():
        assert optimizer.step(closure).item() == 1.0
    assert p.tolist() == [0.0]


@pytest.mark.parametrize(
    ("kind", "options"), [(tw.optim.SGD, {"lr": 0.1, "momentum": 0.9}), (tw.optim.Adam, {"lr": 0.1})]
)
def test_state_can_be_saved_and_restored(kind, options):
    def run(steps, state=None, values=(1.0, 2.0)):
        p = tw.nn.Parameter(list(values))
        optimizer = kind([p], **options)
        if state is not None:
            optimizer.load_state_dict(state)
        for t in steps:
            p.grad = tw.tensor(np.float32([t, -t]))
            optimizer.step()
        return p.tolist(), optimizer.state_dict()

    whole, _ = run(range(6))
    half, state = run(range(3))
    assert run(range(3, 6), state, half)[0] == whole
    with pytest.raises(ArgumentError, match="different number"):
        kind([tw.nn.Parameter([1.0]), tw.nn.Parameter([1.0])], **options).load_state_dict(state)
    with pytest.raises(StateError, match="size mismatch"):
        kind([tw.nn.Parameter([1.0])], **options).load_state_dict(state)


def test_state_is_laid_out_as_in_pytorch():
    a, b = tw.nn.Parameter([1.0]), tw.nn.Parameter([[2.0]])
    optimizer = tw.optim.Adam([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.25)
    a.grad, b.grad = tw.tensor([1.0]), tw.tensor([[2.0]])
    optimizer.step()
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert [group["lr"] for group in state["param_groups"]] == [0.25, 0.5]
    assert state["param_groups"][0]["betas"] == (0.9, 0.999)
    assert {name: x.shape for name, x in state["state"][1].items()} == {
        "step": (), "exp_avg": (1, 1), "exp_avg_sq": (1, 1)
    }  # fmt: skip


# What PyTorch 2.13 saved after SGD(lr=0.5, momentum=0.5, dampening=0.25) had met the gradient [1, 2] once.
SAVED_BY_PYTORCH: dict[str, Any] = {
    "state": {0: {"momentum_buffer": np.array([1, 2], np.float32)}},
    "param_groups": [
        {"lr": 0.5, "momentum": 0.5, "dampening": 0.25, "weight_decay": 0, "nesterov": False, "maximize": False,
         "foreach": None, "differentiable": False, "fused": None, "params": [0]}
    ],
}  # fmt: skip


def test_state_that_pytorch_saved_can_be_loaded():
    p = tw.nn.Parameter([0.0, 0.0])
    optimizer = tw.optim.SGD([p], lr=1.0, momentum=0.9, dampening=0.5)
    optimizer.load_state_dict(SAVED_BY_PYTORCH)
    p.grad = tw.tensor([1.0, 1.0])
    optimizer.step()
    assert p.tolist() == [-0.625, -0.875]  # -0.5 (0.5 [1, 2] + 0.75 [1, 1])
    assert optimizer.state_dict()["param_groups"][0]["foreach"] is None


def test_an_optimiser_can_be_copied_and_pickled():
    p = tw.nn.Parameter([1.0])
    optimizer = tw.optim.Adam([p], lr=0.5)
    for make in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        p.grad = tw.tensor([1.0])
        optimizer.step()
        other = make(optimizer)
        (q,) = other.param_groups[0]["params"]
        q.grad = tw.tensor([1.0])
        other.step()
        assert q is not p
        assert q.item() == pytest.approx(p.item() - 0.5)
        assert other.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda p: tw.optim.SGD([], lr=0.1), "empty parameter list"),
        (lambda p: tw.optim.SGD(p, lr=0.1), "iterable of Tensors"),
        (lambda p: tw.optim.SGD([p * 2], lr=0.1), "non-leaf"),
        (lambda p: tw.optim.SGD([{"params": p}, {"params": p}], lr=0.1), "more than one parameter group"),
        (lambda p: tw.optim.SGD([("p", p), p], lr=0.1), "Some param names are missing"),
        (lambda p: tw.optim.SGD([p], lr=-1), "Invalid learning rate"),
        (lambda p: tw.optim.SGD([p], lr=1, momentum=-1), "Invalid momentum"),
        (lambda p: tw.optim.SGD([p], lr=1, nesterov=True), "Nesterov"),
        (lambda p: tw.optim.Adam([p], betas=(0.9, 1.0)), "Invalid beta parameter at index 1"),
        (lambda p: tw.optim.Adam([p], eps=-1.0), "Invalid epsilon"),
        (lambda p: tw.optim.Adam([p], lr=tw.tensor([0.1, 0.1])), "Tensor lr must be 1-element"),
        (lambda p: tw.optim.Adam([p], betas=(0.9, tw.tensor(0.99))), "either both floats or both Tensors"),
        (lambda p: tw.optim.Adam([p], lr=tw.tensor(0.1), foreach=True), "lr as a Tensor is not supported for cap"),
        (lambda p: tw.optim.SGD([p], fused=True, foreach=True), "cannot be `True` together"),
        (lambda p: tw.optim.SGD([p], fused=True, differentiable=True), "does not support `differentiable`"),
        (lambda p: tw.optim.SGD([p], fuse=True), "unexpected keyword argument 'fuse'"),  # type: ignore[call-arg]
        (lambda p: tw.optim.Rprop([p], etas=(1.5, 2.0)), "Invalid eta values: 1.5, 2.0"),
        (lambda p: tw.optim.Adafactor([p], d=0.5), "Clipping threshold d should be >= 1"),
        (lambda p: tw.optim.Muon([p]), "only supports 2D parameters"),
        (lambda p: tw.optim.LBFGS([{"params": [p]}, {"params": [tw.ones(1)]}]), "per-parameter options"),
        (lambda p: tw.optim.LBFGS([p], line_search_fn="armijo"), "only 'strong_wolfe' is supported"),
        (lambda p: tw.optim.LBFGS([p]).step(), "missing 1 required argument: 'closure'"),
    ],
)
def test_mistakes(make, text):
    with pytest.raises(ValueError, match=text):
        make(tw.nn.Parameter([1.0]))


def test_it_prints_its_options():
    p = tw.nn.Parameter(tw.ones(2))
    groups = [{"params": [p]}, {"params": [tw.nn.Parameter(tw.ones(1))], "lr": 2}]
    shown = repr(tw.optim.SGD(groups, lr=0.5, momentum=0.25))
    first, second = shown.split("\n\n")
    assert first.startswith("SGD (\nParameter Group 0\n    ")
    assert "    lr: 0.5\n    maximize: False\n    momentum: 0.25\n" in first
    assert second.startswith("Parameter Group 1\n    ")
    assert "    lr: 2\n" in second
    assert shown.endswith("\n)")
    assert "params" not in shown


@pytest.mark.parametrize("engine", [tw, static])
def test_saved_state_is_of_tensors_of_its_own(engine):
    p = engine.nn.Parameter(engine.ones(2))
    optimizer = engine.optim.Adam([p])
    p.grad = engine.ones(2)
    optimizer.step()
    saved = optimizer.state_dict()["state"][0]
    before = saved["exp_avg"].abs().tolist()
    optimizer.step()
    assert saved["exp_avg"].tolist() == before != optimizer.state[p]["exp_avg"].tolist()
