"""Equal kernels are compiled once: in a program, in a process, and for all sizes."""

from __future__ import annotations

import numpy as np
import pytest

import static
from common.compiler import compile as compile_module

F32 = np.float32


@pytest.fixture
def compiled(fresh_cache, monkeypatch):
    """The kernels that were compiled since the test began."""
    found = []
    original = compile_module._compile

    def noted(source, *how):
        found.append(source)
        return original(source, *how)

    monkeypatch.setattr(compile_module, "_addresses", {})
    monkeypatch.setattr(compile_module, "_compile", noted)
    return found


def residual(layers):
    """A training step of a residual network."""
    static.manual_seed(0)
    parts = [static.nn.Linear(6, 6) for _ in range(layers)]
    optimizer = static.optim.Adam([p for part in parts for p in part.parameters()], lr=0.01)

    @static.function
    def step(x):
        optimizer.zero_grad()
        for part in parts:
            x = x + static.tanh(part(x))
        loss = (x * x).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_layers_share_kernels(compiled):
    few, many = residual(4), residual(12)
    few(np.ones((5, 6), F32))
    after_few = len(compiled)
    assert len(set(compiled)) == after_few
    many(np.ones((5, 6), F32))
    sources = [{step.source for step in f.newest.program.steps if step.source} for f in (few, many)]
    assert sources[0] == sources[1]
    assert len(compiled) == after_few
    assert len(few.newest.program.steps) < len(many.newest.program.steps) <= 3 * len(few.newest.program.steps)


def test_another_function_and_other_sizes_compile_nothing(compiled):
    first, second = residual(4), residual(4)
    first(np.ones((5, 6), F32))
    count = len(compiled)
    second(np.ones((5, 6), F32))
    for rows in (2, 9, 300):
        first(np.ones((rows, 6), F32))
        second(np.ones((rows, 6), F32))
    assert len(compiled) == count
    assert len(first.traces) == len(second.traces) == 1


def test_the_next_process_compiles_nothing(compiled, monkeypatch):
    residual(4)(np.ones((5, 6), F32))
    count = len(compiled)
    monkeypatch.setattr(compile_module, "_addresses", {})
    residual(4)(np.ones((5, 6), F32))
    assert len(compiled) == count
