"""Optimisers: the same bits after each of 50 steps, whichever engine and whichever way a step is computed."""

from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import GradientError
from common.optim.fused_step import CHUNK, FusedStep
from tests.bits import assert_same_bits
from tests.helpers.proofs import chosen, rotated, share

STEPS = 50
FLOATS = (np.float32, np.float64)
SHAPES = [(5, 3), (3,), (), (1, 4), (0,), (70,)] + [(2,)] * CHUNK  # more than one native call
OPTIMISERS: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {"lr": 0.1}, {"momentum": 0.9, "weight_decay": 0.1}, {"momentum": 0.9, "dampening": 0.3, "maximize": True},
        {"momentum": 0.9, "nesterov": True},
    ],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.1}, {"maximize": True, "betas": (0.5, 0.9), "eps": 1e-3}],
    "AdamW": [{}, {"amsgrad": True, "weight_decay": 0.5, "lr": 0.1}],
    "RMSprop": [{}, {"centered": True, "momentum": 0.5, "weight_decay": 0.1}],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}],
    "Adamax": [{}, {"weight_decay": 0.1}],
    "NAdam": [{}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{"lr": 0.1}, {"betas": (0.8, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}],
    "ASGD": [{}, {"lambd": 0.1, "t0": 20, "weight_decay": 0.1, "maximize": True}],
    "Rprop": [{}, {"etas": (0.4, 1.5), "step_sizes": (1e-3, 2.0)}],
    "Adafactor": [{}, {"weight_decay": 0.1, "eps": (1e-6, 1e-2), "d": 2.0}],
    "Muon": [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}],
    "Adagrad": [{}, {"lr_decay": 0.3, "weight_decay": 0.1, "initial_accumulator_value": 0.5}],
}  # fmt: skip
CASES = [(name, options) for name, all_options in OPTIMISERS.items() for options in all_options]


def shapes(name):
    return [shape for shape in SHAPES if name != "Muon" or len(shape) == 2]


def start(name, dtype):
    rng = np.random.default_rng(0)
    return [np.asarray(rng.standard_normal(shape), dtype) for shape in shapes(name)]


def special(rng, shape, dtype):
    """Gradients with zeros of both signs, tiny, huge and infinite numbers among them."""
    values = np.asarray(rng.standard_normal(shape), dtype)
    odd = np.array([0.0, -0.0, 1e-42, 1e30, np.inf, np.nan], dtype)
    return np.where(rng.random(shape) < 0.02, rng.choice(odd, shape), values).astype(dtype)


def states(optimizer, parameters):
    return [b.payload.copy() for p in parameters for b in (p, *optimizer.state[p].values())]


def compiled_run(name, options, dtype):
    """All state after every step of a compiled program that gets the gradients."""
    parameters = [static.nn.Parameter(x) for x in start(name, dtype)]
    optimizer = getattr(static.optim, name)(parameters, **options)

    @static.function
    def step(gradients):
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = g
        optimizer.step()

    for gradients in drawn(name, dtype):
        step(gradients)
        yield states(optimizer, parameters)
    assert len(step.traces) == 1


def eager_run(name, options, dtype):
    parameters = [dynamic.nn.Parameter(x) for x in start(name, dtype)]
    optimizer = getattr(dynamic.optim, name)(parameters, **options)
    for gradients in drawn(name, dtype):
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = dynamic.tensor(g)
        optimizer.step()
        yield states(optimizer, parameters)


def drawn(name, dtype):
    for number in range(STEPS):
        rng = np.random.default_rng(number)
        yield [special(rng, shape, dtype) for shape in shapes(name)]


@pytest.mark.parametrize(("case", "dtype"), rotated(CASES, FLOATS))
def test_same_bits_after_every_step(case, dtype, monkeypatch):
    name, options = case
    expected = list(compiled_run(name, options, dtype))
    fused = list(eager_run(name, options, dtype))
    by_ops = fused
    if dtype != chosen(case, FLOATS) or share(str(case), 2):
        monkeypatch.setattr(FusedStep, "run", lambda self, optimizer, group, active: active)
        by_ops = list(eager_run(name, options, dtype))
    for number, (a, b, c) in enumerate(zip(expected, fused, by_ops, strict=True), start=1):
        for i, (x, y, z) in enumerate(zip(a, b, c, strict=True)):
            assert_same_bits(y, x, f"{name} {options}, step {number}, array {i}: one native call")
            assert_same_bits(z, x, f"{name} {options}, step {number}, array {i}: op by op")


def trained(tw, change):
    """Parameters after steps between which the optimiser is changed from outside."""
    a, b = tw.nn.Parameter(np.float32([1, -2])), tw.nn.Parameter(np.float32([[3]]))
    optimizer = tw.optim.Adam([a], lr=0.1, betas=(0.8, 0.9))

    def step(x):
        a.grad = b.grad = None
        loss = ((a * x) ** 2).sum() + (b**2).sum()
        loss.backward()
        optimizer.step()
        return loss

    step = tw.function(step)
    for number in range(6):
        step(np.float32([1, 2]))
        change(optimizer, b, number)
        yield [a.payload.copy(), b.payload.copy()]
    yield getattr(step, "traces", None)


CHANGES = {
    "rate": (lambda optimizer, b, number: optimizer.param_groups[0].update(lr=0.1 / (number + 1)), 1),
    "betas": (lambda optimizer, b, number: optimizer.param_groups[0].update(betas=(0.1 * number, 0.5)), 1),
    "group": (lambda optimizer, b, number: optimizer.add_param_group({"params": b}) if number == 2 else None, 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_between_calls_reach_compiled_steps(name):
    change, traces = CHANGES[name]
    *first, _ = trained(dynamic, change)
    *second, made = trained(static, change)
    assert len(made) == traces
    for number, (a, b) in enumerate(zip(first, second, strict=True), start=1):
        for x, y in zip(a, b, strict=True):
            assert_same_bits(y, x, f"{name}, call {number}")
    assert any((x != y).any() for x, y in zip(first[2], first[5], strict=True))


def test_arrays_that_a_plan_refuses_are_left_to_ops():
    def run(layout):
        p = dynamic.nn.Parameter(np.arange(6, dtype=np.float32).reshape(2, 3))
        q = dynamic.nn.Parameter(np.float32([1, 2]))
        optimizer = dynamic.optim.Adam([p, q])
        for number in range(4):
            p.grad = dynamic.Tensor(layout(np.full((2, 3), number, np.float32) + np.arange(3, dtype=np.float32)))
            q.grad = dynamic.tensor(np.float32([number, 1]))
            optimizer.step()
        return states(optimizer, [p, q])

    for a, b in zip(run(np.ascontiguousarray), run(np.asfortranarray), strict=True):
        assert_same_bits(b, a, "gradients in Fortran order")


def test_a_gradient_that_is_the_parameters_own_memory():
    p, q = (dynamic.nn.Parameter(np.float32([1, 2])) for _ in range(2))
    p.grad, q.grad = dynamic.Tensor(p.payload), dynamic.tensor(np.float32([1, 2]))
    for x in (p, q):
        dynamic.optim.SGD([x], lr=0.5, momentum=0.5, nesterov=True).step()
    assert_same_bits(p.payload, q.payload, "p.grad shares memory with p")


def test_a_step_counts_as_a_write():
    p = dynamic.nn.Parameter(np.float32([1, 2]))
    optimizer = dynamic.optim.SGD([p], lr=0.5)
    loss = (p * p).sum()
    p.grad = dynamic.tensor(np.float32([1, 1]))
    optimizer.step()
    with pytest.raises(GradientError, match=r"SGD\.step"):
        loss.backward()


def test_a_gradient_that_a_program_only_reads_stays_the_same_object():
    p = static.nn.Parameter(np.float32([1, 2]))
    optimizer = static.optim.SGD([p], lr=0.5)
    p.grad = g = dynamic.tensor(np.float32([1, 1]))
    static.function(optimizer.step)()
    assert p.grad is g
    assert p.tolist() == [0.5, 1.5]


def clipped(tw, clip):
    tw.manual_seed(1)
    model = tw.nn.Sequential(tw.nn.Linear(4, 8), tw.nn.Tanh(), tw.nn.Linear(8, 2))
    optimizer = tw.optim.AdamW(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        norm = clip(tw.nn.utils, list(model.parameters()))
        optimizer.step()
        vector = tw.nn.utils.parameters_to_vector(model.parameters())
        tw.nn.utils.vector_to_parameters(vector.detach() * 0.5, model.parameters())
        return vector.sum() if norm is None else norm

    step = tw.function(step)
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    for _ in range(5):
        result = step(x)
        result = np.asarray(result.detach() if hasattr(result, "detach") else result)
        yield [
            result,
            *(p.payload.copy() for p in model.parameters()),
            *(p.grad.payload.copy() for p in model.parameters()),
        ]


CLIPS: dict[str, Any] = {
    "norm 2": lambda utils, p: utils.clip_grad_norm_(p, 0.5),
    "norm 1": lambda utils, p: utils.clip_grad_norm_(p, 0.5, 1),
    "norm 0": lambda utils, p: utils.clip_grad_norm_(p, 0.5, 0),
    "norm 3": lambda utils, p: utils.clip_grad_norm_(p, 0.5, 3),
    "largest": lambda utils, p: utils.clip_grad_norm_(p, 0.5, float("inf")),
    "one parameter": lambda utils, p: utils.clip_grad_norm_(p[0], 0.1),
    "value": lambda utils, p: utils.clip_grad_value_(p, 0.25),
}


@pytest.mark.parametrize("name", CLIPS)
def test_clipping_inside_a_step(name):
    pairs = zip(clipped(dynamic, CLIPS[name]), clipped(static, CLIPS[name]), strict=True)
    for number, (a, b) in enumerate(pairs, start=1):
        for x, y in zip(a, b, strict=True):
            assert_same_bits(y, x, f"{name}, call {number}")
