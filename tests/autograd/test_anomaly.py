"""The first node that makes a non-finite gradient of a finite one is named with the line of its op."""

import numpy as np
import pytest

import dynamic as tw
import static
from common.core import mode
from common.core.errors import GradientError


def here(offset):
    """Line of the caller, as it stands in messages."""
    import sys

    return rf"test_anomaly\.py:{sys._getframe(1).f_lineno + offset}"


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("at", [0.0, 2.0])
def test_a_forward_pass_is_not_looked_at_and_its_nan_is_found_in_backward(at, compiled):
    """PyTorch's: "Function 'MulBackward0' returned nan values in its 1th output.", from backward."""
    engine = static if compiled else tw

    def f(a):
        return (a / 0 * a).sum()

    with tw.autograd.detect_anomaly():
        assert not engine.function(f)(tw.tensor([at])).isfinite()
        assert tw.log(tw.tensor([at - 2])).isfinite().item() is False
        gradient = engine.function(engine.grad(f)) if compiled else lambda a: tw.autograd.grad(f(a), a)
        with pytest.raises(GradientError, match=f"Function 'MulBackward0' returned {'inf' if at else 'nan'} values"):
            gradient(tw.tensor([at], requires_grad=True))


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


def root_at_zero():
    x = tw.tensor(0.0, requires_grad=True)
    tw.sqrt(x).backward()
    return x.grad.item()


def test_switching_by_call():
    tw.autograd.set_detect_anomaly(True)
    try:
        assert tw.autograd.is_anomaly_enabled()
        with pytest.raises(GradientError, match="SqrtBackward0"):
            root_at_zero()
    finally:
        tw.autograd.set_detect_anomaly(False)
    assert not tw.autograd.is_anomaly_enabled()
    with tw.autograd.set_detect_anomaly(True):
        assert tw.autograd.is_anomaly_enabled()
    assert not mode.tracing
    assert root_at_zero() == np.inf


def test_decorated_functions():
    with pytest.raises(GradientError, match="SqrtBackward0"):
        tw.autograd.detect_anomaly()(root_at_zero)()
    assert root_at_zero() == np.inf


def test_bits_do_not_change():
    x = tw.tensor(np.random.default_rng(0).standard_normal(100).astype(np.float32), requires_grad=True)
    f = lambda: tw.autograd.grad((tw.tanh(x) * x).sum(), x)[0].numpy().tobytes()  # noqa: E731
    plain = f()
    with tw.autograd.detect_anomaly():
        assert f() == plain
