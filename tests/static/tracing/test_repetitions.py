"""A part that is recorded once and copied is the part that recording each time gives."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import dynamic
import static
from common.optim.update_rule import UpdateRule
from common.tensor.leaf import Buffer
from static.tracing.trace import Trace
from tests.bits import assert_all_same_bits

F32 = np.float32
SHAPES = [(3, 4), (4,), (3, 4), (4,), (3, 4), ()]


def recorded_each_time(trace, name, given, make):
    for x in given:
        trace.payload(x)
    return make()


def steps(engine, make_optimizer, count=3, groups=False):
    """Losses and parameters of some steps, and the traced program."""
    rng = np.random.default_rng(0)
    parameters = [engine.nn.Parameter(rng.standard_normal(shape).astype(F32)) for shape in SHAPES]
    given = [{"params": parameters[:3]}, {"params": parameters[3:], "lr": 0.3}] if groups else parameters
    optimizer = make_optimizer(engine, given)

    @engine.function
    def step(x):
        optimizer.zero_grad()
        loss = sum(((p * x[0] - 1) ** 2).sum() for p in parameters)
        loss.backward()
        optimizer.step()
        return loss

    losses = [np.asarray(step(np.full(2, 0.5 + i, F32))) for i in range(count)]
    return [*losses, *(p.numpy().copy() for p in parameters)], step


OPTIMIZERS = {
    "sgd": lambda tw, p: tw.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda tw, p: tw.optim.Adam(p, lr=0.1, amsgrad=True),
    "adamw": lambda tw, p: tw.optim.AdamW(p, lr=0.1),
    "rmsprop": lambda tw, p: tw.optim.RMSprop(p, lr=0.1, centered=True, momentum=0.5),
}


@pytest.mark.parametrize("groups", [False, True], ids=["one group", "two groups"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_copied_updates_are_recorded_ones(monkeypatch, name, groups):
    eager, _ = steps(dynamic, OPTIMIZERS[name], groups=groups)
    copied, step = steps(static, OPTIMIZERS[name], groups=groups)
    assert 3 <= len(step.newest.trace.patterns) < len(SHAPES)
    monkeypatch.setattr(Trace, "repeated", recorded_each_time)
    each, again = steps(static, OPTIMIZERS[name], groups=groups)
    assert str(step.newest.raw) == str(again.newest.raw)
    assert [n.scope for n in step.newest.raw.nodes] == [n.scope for n in again.newest.raw.nodes]
    assert_all_same_bits(copied, each, "copied")
    assert_all_same_bits(copied, eager, "eager")


class Counting(UpdateRule):
    """An update that also counts, in state of its own."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})
        self.count = Buffer(np.zeros((), F32))

    def initial_state(self, group, p):
        return {}

    def update(self, options, p, g, state):
        self.count.add_(1)
        return p - options["lr"].to(p.dtype) * g * self.count, {}


def test_what_writes_is_recorded_each_time():
    copied, step = steps(static, lambda tw, parameters: Counting(parameters))
    assert not step.newest.trace.patterns
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(F32) for shape in SHAPES]
    count = F32(0)
    for i in range(3):
        x = F32(0.5 + i)
        for k, p in enumerate(arrays):
            count += F32(1)
            arrays[k] = p - F32(0.1) * (F32(2) * (p * x - F32(1)) * x) * count
    np.testing.assert_allclose(copied[-1], arrays[-1], rtol=1e-4)


def test_a_long_function_is_located_once(monkeypatch):
    """Lines come from a table per code object: 2,000 statements, each an op."""
    lines = "\n".join(["    y = x", *(f"    y = y * {i}.5" for i in range(2000)), "    return y"])
    scope = {}
    exec(compile(f"def long(x):\n{lines}\n", "<long>", "exec"), scope)
    f = static.function(scope["long"], interpret=True)
    frames = sys.modules["common.core.source_lines"]
    before = frames._lines.cache_info().misses
    f(np.ones(2, F32))
    found = [node.source[1] for node in f.newest.raw.nodes if node.name == "mul"]
    assert found == list(range(3, 2003))
    assert frames._lines.cache_info().misses - before < 200


@pytest.mark.parametrize("what", ["gradients", "parameters"])
def test_copies_that_begin_with_other_values_have_another_key(fresh_cache, what):
    """Of three updates of one form the last two are copies; their values come in another order."""
    rng = np.random.default_rng(0)
    starts = [rng.standard_normal(4).astype(F32) for _ in range(4)]
    keys, found = [], []
    for order in ([0, 1, 2, 3], [0, 1, 3, 2], [0, 1, 2, 3]):
        for options in ({}, {"interpret": True}):
            parameters = [static.nn.Parameter(x.copy()) for x in starts]
            turned = [parameters[i] for i in order]
            optimizer = static.optim.Adam(turned if what == "parameters" else parameters, lr=0.1)

            @static.function(**options)
            def step(x, parameters=parameters, turned=turned, optimizer=optimizer):
                gradients = [p.detach() * (i + 1) + x for i, p in enumerate(parameters)]
                for p, g in zip(turned if what == "gradients" else parameters, gradients, strict=True):
                    p.grad = g
                optimizer.step()

            step(np.ones(4, F32))
            found.append([p.numpy().copy() for p in parameters])
            if not options:
                keys.append(step.newest._key)
                assert len(step.newest.trace.copies) == 3
                assert ("disk" in step.newest.seconds) is (len(keys) == 3)
    assert keys[0] == keys[2] != keys[1]
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert_all_same_bits(one, other, what)
