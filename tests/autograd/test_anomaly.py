"""The first op that makes something non-finite of finite operands is named with the user's line."""

import re

import numpy as np
import pytest

import dynamic as tw
from common.core import mode
from common.core.errors import GradientError


def here(offset):
    """Line of the caller, as it stands in messages."""
    import sys

    return rf"test_anomaly\.py:{sys._getframe(1).f_lineno + offset}"


def test_forward():
    x = tw.tensor([1.0, 0.0])
    with tw.autograd.detect_anomaly():
        y = x * 2
        line = here(2)
        with pytest.raises(GradientError, match=rf"log\(\) at .*{line} in test_forward returned inf values"):
            tw.log(y)


def test_what_comes_in_non_finite_is_no_finding():
    with tw.autograd.detect_anomaly():
        y = tw.tensor([np.inf, np.nan]) * 2 + 1
        assert np.isnan((y * float("inf")).sum().item())


def test_backward_names_the_line_of_the_forward_op():
    x = tw.tensor([0.0, 4.0], requires_grad=True)
    line = here(1)
    y = tw.sqrt(x)
    z = (y * 3).sum()
    with tw.autograd.detect_anomaly(), pytest.raises(GradientError, match=rf"'SqrtBackward0' returned inf.*{line}"):
        z.backward()


@pytest.mark.parametrize("dtype", [tw.float32, tw.float64], ids=str)
def test_the_first_node_is_named_also_where_gradients_are_single_numbers(dtype):
    x = tw.tensor([0.0, 0.0], dtype=dtype, requires_grad=True)
    with tw.autograd.detect_anomaly(), pytest.raises(GradientError, match="'SqrtBackward0' returned inf"):
        (x * x).sum().sqrt().backward()


def test_switching_by_call():
    tw.autograd.set_detect_anomaly(True)
    try:
        assert tw.autograd.is_anomaly_enabled()
        with pytest.raises(GradientError, match=re.escape("div() at")):
            tw.tensor([1.0]) / tw.tensor([0.0])
    finally:
        tw.autograd.set_detect_anomaly(False)
    assert not tw.autograd.is_anomaly_enabled()
    with tw.autograd.set_detect_anomaly(True):
        assert tw.autograd.is_anomaly_enabled()
    assert not mode.tracing
    assert (tw.tensor([1.0]) / tw.tensor([0.0])).item() == np.inf


def test_decorated_functions():
    @tw.autograd.detect_anomaly()
    def f(x):
        return tw.log(x)

    with pytest.raises(GradientError, match="log"):
        f(tw.tensor([0.0]))
    assert tw.log(tw.tensor([0.0])).item() == -np.inf


def test_bits_do_not_change():
    x = tw.tensor(np.random.default_rng(0).standard_normal(100).astype(np.float32), requires_grad=True)
    f = lambda: tw.autograd.grad((tw.tanh(x) * x).sum(), x)[0].numpy().tobytes()  # noqa: E731
    plain = f()
    with tw.autograd.detect_anomaly():
        assert f() == plain
