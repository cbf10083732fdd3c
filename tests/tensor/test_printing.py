"""Tensors as text, compared with what PyTorch prints."""

import math

import numpy as np
import pytest

import dynamic as tw
from common.core.errors import ArgumentError
from tests.helpers.printed import EXPECTED


@pytest.mark.parametrize("name", EXPECTED)
def test_as_in_pytorch(name):
    assert repr(tw.tensor(np.asarray(eval(name)))) == EXPECTED[name]


def test_what_a_tensor_needs_is_said():
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"
    assert repr(tw.nn.Parameter([1.0])) == "Parameter containing:\ntensor([1.], requires_grad=True)"


def test_what_does_not_fit_into_the_line_begins_the_next_one():
    y = tw.tensor(np.arange(12.0).astype(np.float32) / 7, requires_grad=True)
    assert repr(y) == (
        "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
        "        1.2857, 1.4286, 1.5714], requires_grad=True)"
    )


@pytest.fixture
def _default_options():
    yield
    tw.set_printoptions(profile="default")


@pytest.mark.usefixtures("_default_options")
def test_options():
    before = tw.get_printoptions()
    assert before == {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    x = tw.tensor([1.0, 2.5])
    tw.set_printoptions(precision=2)
    assert repr(x) == "tensor([1.00, 2.50])"
    tw.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([1.00e+00, 2.50e+00])"
    tw.set_printoptions(profile="default", threshold=5, edgeitems=1, linewidth=20)
    assert repr(tw.arange(8)) == "tensor([0,  ..., 7])"
    tw.set_printoptions(profile="full")
    assert "..." not in repr(tw.zeros(2000))
    with pytest.raises(ArgumentError, match="'short'"):
        tw.set_printoptions(profile="long")
    tw.set_printoptions(profile="default")
    assert tw.get_printoptions() == before


UNFIT: list[tuple[str, object]] = [
    ("precision", -1), ("precision", "a"), ("precision", 2.5), ("precision", 2**31), ("threshold", math.nan),
    ("threshold", "all"), ("threshold", -1), ("edgeitems", 0), ("edgeitems", []), ("linewidth", 0), ("linewidth", []),
    ("sci_mode", "no"), ("profile", []), ("profile", 3),
]  # fmt: skip


@pytest.mark.usefixtures("_default_options")
@pytest.mark.parametrize(("name", "value"), UNFIT)
def test_options_that_could_not_be_printed_with_are_refused(name, value):
    before = tw.get_printoptions()
    with pytest.raises(ArgumentError, match=name):
        tw.set_printoptions(**{name: value})
    assert tw.get_printoptions() == before
