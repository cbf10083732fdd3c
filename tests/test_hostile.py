"""Hostile calls of everything public: each works, or raises an error of the library, or what the user's code raises."""

import re

import numpy as np
import pytest

import dynamic
import static
from common.errors import ArgumentError, TwingradError
from tests.helpers import hostile


def test_calls_are_the_same_on_every_run():
    names = ["dynamic.add", "Tensor.put_", "optim.SGD", "session.gradients"]
    texts = [re.sub("0x[0-9a-f]+", "", str([str(row(2)) for row in hostile.rows(3, names).values()])) for _ in range(2)]
    assert texts[0] == texts[1]


X = dynamic.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: X.masked_fill_(-100, X), "masked_fill_(): argument 'mask' must be Tensor, not int (-100)"),
        (lambda: X.type_as("x"), "type_as(): argument 'other' must be Tensor, not str ('x')"),
        (lambda: dynamic.nn.Linear("a", 2), "Linear(): argument 'in_features' must be int, not str ('a')"),
        (lambda: dynamic.nn.Linear(), "Linear() missing 2 required positional arguments"),
        (lambda: dynamic.nn.Linear(3, 2)("x"), "Linear(): argument 'x' must be Tensor, not str ('x')"),
        (lambda: dynamic.randn_like(X, None, 3), "given generator=3"),
        (lambda: X + "a", "unsupported operand type(s) for +: 'Tensor' and 'str'"),
        (lambda: static.gradients(-100), "gradients() missing 1 required positional argument: 'xs'"),
        (lambda: dynamic.autograd.grad(3, 4), "given outputs=3"),
    ],
)
def test_the_function_the_argument_and_the_line_are_named(call, words):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert words in str(caught.value)
    assert "+: " in words or f"{__file__}:" in str(caught.value)


class Mine(Exception):
    pass


def fail(*_):
    raise Mine


class Fails:
    __array__ = __index__ = __iter__ = __bool__ = fail


@pytest.mark.parametrize(
    "call",
    [
        lambda tw: tw.grad(fail)(np.ones(2, np.float32)),
        lambda tw: tw.function(fail)(np.ones(2, np.float32)),
        lambda tw: tw.vjp(fail, np.ones(2, np.float32)),
        lambda tw: tw.nn.Linear(3, 2).apply(fail),
        lambda tw: tw.optim.lr_scheduler.LambdaLR(tw.optim.SGD(tw.nn.Linear(3, 2).parameters(), lr=1.0), fail),
        lambda tw: tw.autograd.functional.jacobian(fail, dynamic.ones(2)),
        lambda tw: tw.nn.Sequential(*Fails()),
        lambda tw: tw.optim.SGD(Fails(), lr=0.1),
        lambda tw: tw.tensor([Fails()]),
    ],
)
@pytest.mark.parametrize("tw", [dynamic, static])
def test_what_the_users_code_raises_goes_through_as_it_is(call, tw):
    with pytest.raises(Mine):
        call(tw)


def test_a_hook_of_a_user_raises_through_backward():
    x = dynamic.ones(2, requires_grad=True)
    x.register_hook(fail)
    with pytest.raises(Mine):
        (x * 2).sum().backward()


@pytest.mark.parametrize("error", [KeyError("a"), AttributeError("b"), IndexError("c"), StopIteration("d")])
def test_the_fuzzer_sees(error):
    assert hostile.objection(error)
    assert hostile.objection(TwingradError("")) is not None
    assert hostile.objection(ArgumentError("f(): argument 'x' is wrong")) is None
