"""Losses refuse ints where floats are wanted, as in PyTorch."""

import pytest

import dynamic
import static
from common.core.errors import DTypeError


@pytest.mark.parametrize("tw", [dynamic, static])
def test_ints_are_refused_where_floats_are_wanted(tw):
    floats, ints = tw.tensor([[0.3, 0.6]]), tw.tensor([[1, 0]])
    f = tw.nn.functional
    for loss, x, y, text in (
        (f.soft_margin_loss, ints, floats, "can't be cast to the desired output type int64"),
        (f.huber_loss, ints, floats, "can't be cast to the desired output type int64"),
        (f.kl_div, floats, ints, "kl_div"),
        (f.kl_div, ints, floats, "kl_div"),
        (f.binary_cross_entropy, floats, ints, "Found dtype int64 but expected float32"),
    ):
        with pytest.raises(DTypeError, match=text):
            loss(x, y)
    assert f.huber_loss(floats, ints).dtype == f.soft_margin_loss(floats, ints).dtype == tw.float32
