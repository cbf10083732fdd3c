"""Buffers that require grad: what a module computes and keeps passes gradients on, as in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static

ENGINES = pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])


def leaky(tw):
    """A unit whose potential is a buffer that each call replaces."""

    class Leaky(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("potential", tw.zeros(2))
            self.decay = tw.nn.Parameter(tw.tensor([0.5, 0.75]))

        def forward(self, x):
            self.potential = self.potential * self.decay + x
            return self.potential

    return Leaky()


@ENGINES
def test_gradients_go_back_through_a_buffer_that_calls_replace(tw):
    unit, x = leaky(tw), tw.tensor([3.0, 4.0], requires_grad=True)
    sum((unit(x) ** 2).sum() for _ in range(3)).backward()

    decay, y = np.array([0.5, 0.75]), np.array([3.0, 4.0])

    def loss(decay, y):
        potential, total = np.zeros(2), 0.0
        for _ in range(3):
            potential = potential * decay + y
            total += (potential**2).sum()
        return total

    for found, place in ((unit.decay.grad, 0), (x.grad, 1)):
        for i in range(2):
            ends = []
            for sign in (1, -1):
                at = [decay.copy(), y.copy()]
                at[place][i] += sign * 1e-5
                ends.append(loss(*at))
            assert found[i].item() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


@ENGINES
def test_a_registered_tensor_passes_gradients_and_a_saved_one_has_no_history(tw):
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    module = tw.nn.Module()
    module.register_buffer("twice", x * 2)
    (module.twice * tw.tensor([3.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]
    assert not module.state_dict()["twice"].requires_grad
    assert module.state_dict(keep_vars=True)["twice"] is module.twice
    module.double()
    assert (module.twice.dtype, module.twice.requires_grad) == (np.float64, True)
    module.twice = module.twice.detach()
    assert isinstance(module.twice, tw.nn.Buffer)


@ENGINES
def test_weights_of_losses_pass_gradients(tw):
    weight = tw.tensor([1.0, 3.0], requires_grad=True)
    logits, target = tw.tensor([0.5, -0.5]), tw.tensor([1.0, 0.0])
    tw.nn.BCEWithLogitsLoss(pos_weight=weight, reduction="sum")(logits, target).backward()
    assert weight.grad.tolist() == pytest.approx([np.log1p(np.exp(-0.5)), 0.0], rel=1e-6)


def test_a_compiled_function_reads_them():
    module, w = static.nn.Module(), static.tensor([0.5, 0.25], requires_grad=True)
    compiled = static.function(lambda x: (module.kept * x).sum())
    for factor in (2.0, 3.0):
        module.register_buffer("kept", w * factor)
        w.grad = None
        compiled(static.tensor([1.0, 2.0])).backward()
        assert w.grad.tolist() == [factor, 2 * factor]
