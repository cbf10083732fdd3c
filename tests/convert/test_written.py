"""Converted code writes to tensors in place as Python does: whoever holds the tensor sees it."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import TraceError
from tests.bits import assert_all_same_bits

ENGINES = (dynamic, static)


def added(x, t):
    if t > 0:
        x += t
    return x * 2


def by_a_function(b, s, t):
    b = b * 1.0
    h = added(b, t)
    return h * b * s


def through_a_view(b, s, t):
    b = b * 1.0
    row = b[0]
    if t > 0:
        row += t
    return b * s


def then_another(b, s, t):
    b = b * 1.0
    c = b
    if t > 0:
        b += 1
        b = b * 2
    return b * s + c


def in_a_loop(b, s, t):
    b, n = b * 1.0, s * 0
    c = b
    while n < 3:
        b[0] += t
        n += 1
    return c * n * s


def by_rows(b, s, t):
    b = b * 1.0
    part = b[1:]
    for e in b.detach().clone() * t:
        part *= e
    return b * s


def nested(b, s, t):
    b = b * 1.0
    c = b[1]
    if t > 0:
        if s > 0:
            b += 1
        else:
            b *= 2.0
    else:
        b -= s
    return b * c


def returned(b, s, t):
    b = b * 1.0
    c = b[1:]
    out = early(b, s, t)
    return out.sum() + c * s


def early(b, s, t):
    if t > 0:
        b += s
        return b * t
    b *= 2
    return b


def leaves(tw, t):
    values = (np.array([0.3, -0.2, 0.5]), np.array(0.7), np.array(t))
    return [tw.tensor(x, requires_grad=True) for x in values]


@pytest.mark.parametrize("t", [1.25, -0.5])
@pytest.mark.parametrize("program", [by_a_function, through_a_view, then_another, in_a_loop, by_rows, nested, returned])
def test_writes_are_seen_by_all_who_hold_the_tensor(program, t):
    expected = leaves(dynamic, t)
    program(*expected).sum().backward()
    runs = []
    for tw in ENGINES:
        given = leaves(tw, t)
        y = tw.function(program, control_flow="convert")(*given)
        np.testing.assert_array_equal(y.detach().numpy(), program(*leaves(dynamic, t)).detach().numpy())
        y.sum().backward()
        for x, like in zip(given, expected, strict=True):
            got, slope = (0.0 if leaf.grad is None else leaf.grad.numpy() for leaf in (x, like))
            np.testing.assert_allclose(got, slope, rtol=1e-14, atol=1e-14)
        runs.append([x.grad.numpy() for x in given if x.grad is not None])
    assert_all_same_bits(*runs, program.__name__)


@pytest.mark.parametrize("tw", ENGINES)
def test_a_test_that_python_decides_leaves_the_tensor_its_memory(tw):
    def double(x, wanted):
        if wanted:
            x *= 2
        for _ in range(2):
            x += 1
        return x

    x = tw.ones(3)
    tw.function(double, control_flow="convert")(x, True)
    np.testing.assert_array_equal(x.numpy(), [4, 4, 4])


@pytest.mark.parametrize("tw", ENGINES)
def test_two_names_of_what_a_block_sets_anew_may_stay(tw):
    def program(x, n):
        x, n = x * 1.0, n * 1.0
        y = x
        if n > 0:
            x = x + y
            x += 1.0
            n -= 1.0
        return x * n

    assert tw.function(program, control_flow="convert")(np.float64(1.5), np.float64(3.0)).item() == 8.0


@pytest.mark.parametrize("tw", ENGINES)
def test_two_names_of_what_is_written_are_refused(tw):
    def twice(x):
        x = x * 1.0
        y = x
        while y < 4.0:
            x += 1.0
            y = y + 1.0
        return x

    with pytest.raises(
        TraceError, match=r"test_written.py:\d+: a tensor decides here, where 'x' is written in place and"
    ):
        tw.function(twice, control_flow="convert")(np.float64(1.0))


def chosen(tw, s, t):
    return tw.cond(t > 0, lambda: s, lambda: s * 2.0)


def carried(tw, s, t):
    return tw.while_loop(lambda i: i[0] < 2, lambda i: (i[0] + 1, s), (0, t))[1]


def stacked(tw, s, t):
    return tw.scan(lambda c, x: (s, s), t, tw.ones(2, dtype=tw.float64))[1].sum()


@pytest.mark.parametrize("construct", [chosen, carried, stacked])
@pytest.mark.parametrize("factor", [3.0, None])
def test_what_a_construct_returns_from_outside_may_be_written_later(construct, factor):
    def program(tw, s, t):
        s = s * 1.0
        r = construct(tw, s, t)
        s *= r if factor is None else factor
        return r * s

    def slope(tw, function):
        s, t = (tw.tensor(np.float64(x), requires_grad=True) for x in (0.7, 1.0))
        y = function(lambda s, t: program(tw, s, t))(s, t)
        y.backward()
        return y.detach().numpy(), s.grad.numpy()

    runs = [slope(tw, f) for tw in ENGINES for f in (lambda f: f, tw.function)]
    for run in runs[1:]:
        assert_all_same_bits(run, runs[0], construct.__name__)
    step = 1e-6
    high, low = (float(program(dynamic, dynamic.tensor(np.float64(0.7 + h)), dynamic.tensor(np.float64(1.0))))
                 for h in (step, -step))  # fmt: skip
    np.testing.assert_allclose(runs[0][1], (high - low) / (2 * step), rtol=1e-8)
