"""The promise of the project: one script, both engines, the same bits after each of 50 steps."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_same_bits

STEPS = 50


def run_script(tw, optimizer, **options):
    """Losses, parameters and gradients after every step."""
    tw.manual_seed(0)
    model = tw.nn.Sequential(tw.nn.Linear(64, 128), tw.nn.Tanh(), tw.nn.Linear(128, 10))
    if optimizer == "sgd":
        optimizer = tw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    else:
        optimizer = tw.optim.Adam(model.parameters(), lr=0.01)

    def step(x, t):
        optimizer.zero_grad()
        loss = tw.nn.functional.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    step = tw.function(step, **options)
    rng = np.random.default_rng(70)
    for number in range(STEPS):
        n = 32 if number % 7 else 17  # a smaller batch now and then
        x, t = rng.normal(size=(n, 64)).astype(np.float32), rng.integers(0, 10, n)
        loss = step(x, t)
        state = {f"parameter {name}": p.payload.copy() for name, p in model.named_parameters()}
        state |= {f"gradient of {name}": p.grad.payload.copy() for name, p in model.named_parameters()}
        yield {"loss": np.array(loss.detach().numpy() if hasattr(loss, "detach") else loss), **state}


@pytest.mark.quick
@pytest.mark.parametrize("options", [{}, {"fuse": False}, {"share_memory": False}], ids=str)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_same_bits_after_every_step(optimizer, options):
    first = run_script(dynamic, optimizer)
    second = run_script(static, optimizer, **options)
    for number, (a, b) in enumerate(zip(first, second, strict=True), start=1):
        for name in a:
            assert_same_bits(b[name], a[name], f"step {number}, {name}")


def test_training_lowers_the_loss():
    losses = [float(state["loss"]) for state in run_script(dynamic, "adam")]
    assert np.isfinite(losses).all()
    assert losses[0] > 2
