"""Factors that older programs give first, by position: the operands are those that follow, and it is warned of."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError

T, M, B = np.array([1.0, -2.0]), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[[1.0, 2.0], [0.5, -1.0]]])

#: Name: the first operand, what follows it where the function is a method, and the result.
CALLS = {
    "add": (T, (3, 2 * T), T + 6 * T),
    "sub": (T, (3, 2 * T), T - 6 * T),
    "addcmul": (T, (0.5, T, 3 * T), T + 1.5 * T * T),
    "addcdiv": (T, (0.5, T, 4 * T), T + 0.125),
    "addmm": (M, (2, 3, M, M.T), 2 * M + 3 * M @ M.T),
    "addmv": (T, (2, 3, M, T), 2 * T + 3 * M @ T),
    "addr": (M, (2, 3, T, T), 2 * M + 3 * np.outer(T, T)),
    "addbmm": (M, (2, 3, B, B), 2 * M + 3 * (B @ B).sum(0)),
    "baddbmm": (B, (2, 3, B, B), 2 * B + 3 * B @ B),
}


@pytest.mark.parametrize("tw", [dynamic, static])
@pytest.mark.parametrize("name", CALLS)
def test_factors_come_first(tw, name):
    first, rest, expected = CALLS[name]
    x, *given = (tw.tensor(v) if isinstance(v, np.ndarray) else v for v in (first, *rest))
    two = not isinstance(given[1], tw.Tensor)
    in_order = (given[0], x, *given[1:]) if two else (x, *given)
    for call in (lambda: getattr(tw, name)(*in_order), lambda: getattr(x, name)(*given),
                 lambda: getattr(x.clone(), f"{name}_")(*given)):  # fmt: skip
        with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
            np.testing.assert_allclose(call().numpy(), expected)
    if two:
        with pytest.warns(UserWarning, match="beta by name"):
            only = getattr(x, name)(given[0], *given[2:])
        np.testing.assert_allclose(only.numpy(), expected - 2 * (expected - 2 * first) / 3)
    written = tw.zeros(*expected.shape, dtype=tw.float64)
    with pytest.warns(UserWarning, match="deprecated"):
        getattr(tw, name)(*in_order, out=written)
    np.testing.assert_allclose(written.numpy(), expected)


@pytest.mark.parametrize("tw", [dynamic, static])
def test_other_arguments_are_too_many(tw):
    x = tw.ones(2)
    for call in (lambda: tw.add(x, x, x), lambda: x.add_(x, x), lambda: x.addcmul(1, 2, x, x), lambda: x.mul_(1, x)):
        with pytest.raises((ArgumentError, TypeError), match=r"positional arguments? but"):
            call()


@pytest.mark.parametrize("tw", [dynamic, static])
def test_a_factor_given_twice_is_refused(tw):
    x, m = tw.ones(2), tw.eye(2)
    for call in (lambda: tw.add(x, 2, x, alpha=3), lambda: x.add_(2, x, alpha=3), lambda: x.addcmul_(2, x, x, value=3),
                 lambda: tw.addmm(2, m, m, m, alpha=3)):  # fmt: skip
        with pytest.raises(ArgumentError, match="multiple values for argument"):
            call()
