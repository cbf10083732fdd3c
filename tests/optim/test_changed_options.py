"""Options that change between steps, or with a state that is loaded."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import StateError


@pytest.mark.parametrize("engine", [dynamic, static])
def test_an_option_that_decides_the_program_can_be_changed_between_steps(engine):
    """Beside optimisers made with it that begin from what there is: each step from scratch, by its formula."""

    def run(compiled):
        p = engine.nn.Parameter([1.0, -2.0])
        optimizer = engine.optim.SGD([p], lr=0.5, momentum=0.5)

        def train(x):
            optimizer.zero_grad()
            (p * x).sum().backward()
            optimizer.step()

        step = static.function(train) if compiled else train
        seen = []
        for name, value in (("maximize", False), ("nesterov", True), ("maximize", True), ("nesterov", False)):
            optimizer.param_groups[0][name] = value
            step(engine.tensor([1.0, 2.0]))
            seen.append(p.tolist())
        return seen

    value, velocity, expected = np.array([1.0, -2.0]), np.zeros(2), []
    for sign, nesterov in ((1, False), (1, True), (-1, True), (-1, False)):
        g = sign * np.array([1.0, 2.0])
        velocity = 0.5 * velocity + g if expected else g
        value = value - 0.5 * (g + 0.5 * velocity if nesterov else velocity)
        expected.append(value.tolist())
    assert run(False) == expected
    assert engine is dynamic or run(True) == expected


@pytest.mark.parametrize(
    ("kind", "options"),
    [("SGD", {"momentum": 0.9}), ("Adam", {"amsgrad": True}), ("RMSprop", {"centered": True, "momentum": 0.5})],
)
@pytest.mark.parametrize("engine", [dynamic, static])
def test_options_and_state_that_were_saved_count(engine, kind, options):
    """Whatever options the optimiser was made with that loads them; where something does not fit, nothing changes."""
    kind = getattr(engine.optim, kind)

    def train(p, optimizer, steps):
        for t in steps:
            p.grad = engine.tensor([float(t), -float(t)])
            optimizer.step()

    whole, half, loaded = (engine.nn.Parameter([1.0, 2.0]) for _ in range(3))
    train(whole, kind([whole], lr=0.25, **options), range(6))
    first = kind([half], lr=0.25, **options)
    train(half, first, range(3))
    state = first.state_dict()

    loaded.data.copy_(half.detach())
    other = kind([loaded], lr=7.0, maximize=True, weight_decay=0.5)
    before = str(other.state_dict())
    wrong = {"state": {0: {name: np.zeros(5) for name in state["state"][0]}}, "param_groups": state["param_groups"]}
    with pytest.raises(StateError, match="size mismatch for"):
        other.load_state_dict(wrong)
    assert str(other.state_dict()) == before
    other.load_state_dict(state)
    train(loaded, other, range(3, 6))
    assert loaded.tolist() == whole.tolist()


def test_state_that_was_not_saved_is_forgotten():
    """As in PyTorch: LBFGS begins anew."""
    p = dynamic.nn.Parameter([1.0, 2.0])
    optimizer = dynamic.optim.LBFGS([p])
    state = optimizer.state_dict()
    optimizer.step(lambda: (p * p).sum())
    optimizer.load_state_dict(state)
    assert optimizer.state_dict()["state"] == {}
