"""Compiled functions notice hooks that come or go, and layers that are frozen, after their trace: beside `dynamic`."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from common.nn import module_hooks
from tests.bits import assert_all_same_bits

KINDS = {
    "register_forward_pre_hook": lambda module, args: (args[0] * 2,),
    "register_forward_hook": lambda module, args, y: y * 3,
    "register_full_backward_pre_hook": lambda module, grads: (grads[0] * 5,),
    "register_full_backward_hook": lambda module, inner, outer: (inner[0] * 7,),
}


def trained(engine, compiled, changes):
    """Results of a layer and its gradients after each change, of one function of all calls."""
    x, layer = engine.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True), engine.nn.Linear(2, 2)
    with engine.no_grad():
        layer.weight.copy_(engine.tensor([[1.0, -2.0], [0.5, 4.0]]))
        layer.bias.copy_(engine.tensor([0.25, -0.5]))

    def step():
        x.grad = layer.weight.grad = layer.bias.grad = None
        y = layer(x * 1)
        if y.requires_grad:
            (y * y).sum().backward()
        return y

    run = static.function(step) if compiled else step
    seen = []
    for change in [lambda layer: None, *changes]:
        change(layer)
        y = run()
        seen += [y, x.grad, layer.bias.grad]
        seen += [p for p in layer.parameters() if p is not layer.bias]
    return [np.zeros(0) if a is None else a.detach().numpy().copy() for a in seen], run


def compare(changes):
    expected, _ = trained(dynamic, False, changes())
    plain, _ = trained(static, False, changes())
    found, run = trained(static, True, changes())
    assert_all_same_bits(plain, expected, "eager")
    assert_all_same_bits(found, expected, "compiled")
    return run.explain().retraces


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_of_a_module(kind):
    def changes():
        handles = []
        return [
            lambda layer: handles.append(getattr(layer, kind)(KINDS[kind])),
            lambda layer: handles.append(getattr(layer, kind)(KINDS[kind])),
            lambda layer: handles.pop().remove(),
            lambda layer: getattr(layer, kind.replace("register", "").replace("full_", "") + "s").clear(),
        ]

    assert compare(changes)[:1] == ["hooks of Linear have come or gone"]


def test_hooks_of_all_modules():
    def changes():
        handles = []
        return [
            lambda layer: handles.append(module_hooks.register_module_forward_hook(lambda m, a, y: y * 3)),
            lambda layer: handles.pop().remove(),
        ]

    assert compare(changes)[0] == "hooks of all modules have come or gone"


def _tripled(p):
    p.grad = p.grad * 3


@pytest.mark.parametrize(
    ("kind", "hook"), [("register_hook", lambda g: g * 2), ("register_post_accumulate_grad_hook", _tripled)]
)
def test_hooks_of_a_parameter(kind, hook):
    def changes():
        handles = []
        return [
            lambda layer: handles.append(getattr(layer.bias, kind)(hook)),
            lambda layer: handles.pop().remove(),
        ]

    assert compare(changes)[0] == "hooks of bias have come or gone"


def test_hooks_of_a_parameter_do_not_matter_to_a_program_without_a_backward_pass():
    """Such as that of a loss, whose gradient the caller's tape takes, where the hooks run."""
    p, seen = static.nn.Parameter([1.0, 2.0]), []
    loss = static.function(lambda x: (p * x).sum())
    for _ in range(3):
        handle = p.register_hook(lambda g: seen.append(g.tolist()))
        loss(static.tensor([1.0, 3.0])).backward()
        handle.remove()
    assert seen == [[1, 3]] * 3
    assert loss.explain().retraces == []


def test_a_module_that_is_frozen_as_a_whole():
    def changes():
        return [lambda layer: layer.requires_grad_(False), lambda layer: layer.requires_grad_()]

    assert compare(changes)[0].startswith("requires_grad of")


def test_a_parameter_that_is_pruned_again_and_again():
    """Nothing that the trace has made stays behind: the attribute is read outside, too."""

    def changes():
        prune = dynamic.nn.utils.prune
        return [
            lambda layer: prune.l1_unstructured(layer, "weight", 1),
            lambda layer: prune.l1_unstructured(layer, "weight", 1),
            lambda layer: layer.weight.tolist(),
            lambda layer: prune.remove(layer, "weight"),
        ]

    compare(changes)


def test_a_hook_that_the_program_itself_registers_makes_no_new_trace():
    p = static.nn.Parameter([1.0, 2.0])

    @static.function
    def f(x):
        p.register_hook(lambda g: g * 2)
        return p * x

    for _ in range(3):
        f(static.ones(2))
    assert f.explain().retraces == []
