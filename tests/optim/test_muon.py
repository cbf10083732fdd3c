"""Muon against its formula, with an iteration rounded to bfloat16 by bits, and against the exact iteration."""

import numpy as np
import pytest

import dynamic as tw
from common.optim.of_matrices import _rounded


def bfloat16(x):
    """The nearest numbers whose last 16 bits as float32 are 0; of two the one whose 17th last is 0, too."""
    n = np.asarray(x, np.float32).view(np.uint32)
    return ((n + 0x7FFF + (n >> 16 & 1)) & 0xFFFF0000).view(np.float32).astype(np.float64)


def stepped(p, g, state, *, lr, weight_decay=0.1, momentum=0.95, nesterov=True, adjust_lr_fn=None):
    m = state["m"] = momentum * state.get("m", 0) + (1 - momentum) * g
    x = bfloat16((1 - momentum) * g + momentum * m if nesterov else m)
    tall = p.shape[0] > p.shape[1]
    x = x.T if tall else x
    x = bfloat16(x / bfloat16(np.sqrt((x * x).sum())))
    for _ in range(5):
        s = bfloat16(x @ x.T)
        x = bfloat16(3.4445 * x + bfloat16(-4.775 * s + 2.0315 * s @ s) @ x)
    ratio = 0.2 * max(p.shape) ** 0.5 if adjust_lr_fn == "match_rms_adamw" else max(1, p.shape[0] / p.shape[1]) ** 0.5
    return p * (1 - lr * weight_decay) - lr * ratio * (x.T if tall else x)


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize(
    "options", [{}, {"nesterov": False, "momentum": 0.5, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.3}]
)
def test_steps_are_those_of_the_formula(options, shape, dtype):
    rng, state = np.random.default_rng(1), {}
    expected = rng.standard_normal(shape).astype(dtype)
    p = tw.nn.Parameter(expected.copy())
    optimizer = tw.optim.Muon([p], lr=0.1, **options)
    expected = expected.astype(np.float64)
    for _ in range(7):
        g = rng.standard_normal(shape).astype(dtype)
        p.grad = tw.tensor(g)
        optimizer.step()
        expected = stepped(expected, g.astype(np.float64), state, lr=0.1, **options)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    assert p.dtype == dtype
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def test_a_step_is_that_of_the_exact_iteration_to_two_digits():
    """The iteration acts on singular values alone."""
    g = np.random.default_rng(3).standard_normal((6, 4)).astype(np.float32)
    p = tw.nn.Parameter(np.zeros((6, 4), np.float32))
    p.grad = tw.tensor(g)
    tw.optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    u, s, v = np.linalg.svd(g, full_matrices=False)
    s /= np.sqrt((s * s).sum())
    for _ in range(5):
        s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
    np.testing.assert_allclose(p.detach().numpy(), -(1.5**0.5) * (u * s) @ v, atol=0.05)


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-30, 1.00390625, 1.01171875, -3.1415927, 3e38, np.inf, -np.inf, np.nan])
def test_numbers_are_rounded_as_to_bfloat16(value):
    found = np.asarray(_rounded(tw.tensor(value)))
    assert found.dtype == np.float32
    if value != value:
        assert np.isnan(found)
    else:  # beyond 2^111, where 2^16 times a number overflows, it stays
        assert found.tobytes() == np.float32(bfloat16(value) if abs(value) < 5e33 else value).tobytes()
