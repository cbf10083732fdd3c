"""Functions of real numbers refuse bools and ints, functions of an order refuse bools, as PyTorch 2.13 does.

The tables are PyTorch's answers, from its own database of samples with each tensor converted to each dtype.
"""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, DTypeError

ROWS = np.array([[3, 1, 2, 5], [1, 4, 0, 2]])
IMAGES = np.arange(32).reshape(1, 2, 4, 4)

Calls = dict[str, tuple[Callable[[Any, Any], Any], np.ndarray]]


def functional(names: str, *more: Any, twice: bool = False, home: str = "nn.functional") -> Calls:
    """Calls of functions of one module, of x or of x twice, and more arguments."""

    def of(name: str) -> Callable[[Any, Any], Any]:
        def call(tw: Any, x: Any) -> Any:
            return attrgetter(f"{home}.{name}" if home else name)(tw)(x, *(x,) * twice, *more)

        return call

    return {name: (of(name), ROWS) for name in names.split()}


#: Calls that take floats only: function of an engine and x, and x.
OF_FLOATS: Calls = {
    **functional(
        "celu elu gelu glu hardshrink hardsigmoid hardswish leaky_relu logsigmoid mish rrelu selu silu softplus "
        "softshrink"
    ),
    **functional("huber_loss kl_div mse_loss smooth_l1_loss", twice=True),
    **functional("hypot igamma igammac logaddexp logaddexp2", twice=True, home=""),
    **functional("log_softmax softmax softmin", 1),
    "adaptive_avg_pool2d": (lambda tw, x: tw.nn.functional.adaptive_avg_pool2d(x, 2), IMAGES),
    "batch_norm": (lambda tw, x: tw.nn.functional.batch_norm(x, None, None, training=True), IMAGES),
    "cross_entropy": (lambda tw, x: tw.nn.functional.cross_entropy(x, tw.tensor([0, 3])), ROWS),
    "gelu tanh": (lambda tw, x: tw.nn.functional.gelu(x, approximate="tanh"), ROWS),
    "gaussian_nll_loss": (lambda tw, x: tw.nn.functional.gaussian_nll_loss(x, x, x), ROWS),
    "grid_sample": (lambda tw, x: tw.nn.functional.grid_sample(x, x[..., :2], align_corners=False), IMAGES),
    "group_norm": (lambda tw, x: tw.nn.functional.group_norm(x, 2), IMAGES),
    "interpolate": (lambda tw, x: tw.nn.functional.interpolate(x, 3, mode="linear"), IMAGES[0]),
    "layer_norm": (lambda tw, x: tw.nn.functional.layer_norm(x, 4), ROWS),
    "lerp": (lambda tw, x: tw.lerp(x, x, 0.5), ROWS),
    "logcumsumexp": (lambda tw, x: tw.logcumsumexp(x, 1), ROWS),
    "multi_margin_loss": (lambda tw, x: tw.nn.functional.multi_margin_loss(x, tw.tensor([0, 3])), ROWS),
    "native_layer_norm": (lambda tw, x: tw.native_layer_norm(x, [4], None, None, 1e-5), ROWS),
    "nll_loss": (lambda tw, x: tw.nn.functional.nll_loss(x, tw.tensor([0, 3])), ROWS),
    "prelu": (lambda tw, x: tw.nn.functional.prelu(x, x[0, 0]), ROWS),
    "rms_norm": (lambda tw, x: tw.nn.functional.rms_norm(x, [4]), ROWS),
}

#: Calls that take numbers, but no bools.
OF_NUMBERS: Calls = {
    **functional("argmax argmin kthvalue median nanmedian topk", 1, home=""),
    "adaptive_max_pool2d": (lambda tw, x: tw.nn.functional.adaptive_max_pool2d(x, 2), IMAGES),
    "addcmul": (lambda tw, x: tw.addcmul(x, x, x), ROWS),
    "clamp": (lambda tw, x: tw.clamp(x, x, x), ROWS),
    "gradient": (lambda tw, x: tw.gradient(x), ROWS),
    "isin": (lambda tw, x: tw.isin(x, x), ROWS),
    "masked.cumsum": (lambda tw, x: tw.masked.cumsum(x, 1), ROWS),
    "median of all": (lambda tw, x: tw.median(x), ROWS),
    "mvlgamma": (lambda tw, x: tw.mvlgamma(x, 1), ROWS),
    "relu": (lambda tw, x: tw.relu(x), ROWS),
    "threshold": (lambda tw, x: tw.nn.functional.threshold(x, 0.5, 7.25), ROWS),
}


@pytest.mark.quick
@pytest.mark.parametrize("tw", [dynamic, static])
@pytest.mark.parametrize("name", [*OF_FLOATS, *OF_NUMBERS])
def test_bools_and_ints_are_refused_where_pytorch_refuses_them(name, tw):
    call, numbers = (OF_FLOATS if name in OF_FLOATS else OF_NUMBERS)[name]
    plain = partial(call, tw)
    plain(tw.tensor(numbers, dtype=tw.float64))
    for dtype in (tw.bool, tw.int64, tw.uint8):
        x = tw.tensor(numbers, dtype=dtype)
        if name in OF_FLOATS or dtype == tw.bool:
            for f in (plain, tw.function(plain)):
                with pytest.raises(DTypeError, match=r"not (implemented|supported) for"):
                    f(x)
        elif (name, dtype) != ("gradient", tw.uint8):
            plain(x)


def test_numbers_beside_tensors_of_floats_may_be_ints():
    for tw in (dynamic, static):
        x = tw.tensor([0.5, -2.0])
        assert tw.lerp(x, 1, 0.5).dtype == x.dtype
        assert tw.hypot(x, 3).dtype == x.dtype
        assert tw.logaddexp(x, tw.tensor([1, 2])).dtype == x.dtype


def test_a_threshold_of_ints_keeps_their_dtype():
    x = dynamic.tensor([0, 1, 5], dtype=dynamic.int32)
    y = dynamic.nn.functional.threshold(x, 1.9, -2.5)
    assert (y.dtype, y.tolist()) == (x.dtype, [-2, -2, 5])


def test_a_hinge_of_ints_keeps_their_dtype():
    x, y = dynamic.tensor([1, -2, 3]), dynamic.tensor([1, -1, 1])
    loss = dynamic.nn.functional.hinge_embedding_loss
    assert loss(x, y, 1.5, reduction="none").tolist() == [1, 3, 3]  # of a margin of 1
    assert loss(x, y, reduction="sum").dtype == x.dtype
    with pytest.raises(DTypeError, match="could not infer output dtype"):
        loss(x, y)


@pytest.mark.parametrize("tw", [dynamic, static])
@pytest.mark.parametrize("name", ["clamp_max", "clamp_min", "clamp_max_", "clamp_min_"])
def test_bounds_that_integers_do_not_hold_are_refused(tw, name):
    x = tw.tensor([1, 100], dtype=tw.int8)
    for bound in (300, -300):
        with pytest.raises(ArgumentError, match="without overflow"):
            getattr(x, name)(bound)
        if name[-1] != "_":
            with pytest.raises(ArgumentError, match="without overflow"):
                tw.function(partial(getattr(tw, name), **{name[-3:]: bound}))(x)
    assert x.tolist() == [1, 100]
    assert getattr(x, name)(50).tolist() == ([1, 50] if "max" in name else [50, 100])


@pytest.mark.parametrize("tw", [dynamic, static])
def test_ldexp_of_ints_has_the_dtype_of_a_float_exponent(tw):
    for exponent in (tw.tensor(2.0, dtype=tw.float64), tw.tensor([2.0, 2.0], dtype=tw.float64)):
        found = tw.ldexp(tw.tensor([1, 3]), exponent)
        assert (found.dtype, found.tolist()) == (tw.float64, [4.0, 12.0])
