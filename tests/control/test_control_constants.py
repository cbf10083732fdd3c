"""Constants wherever control flow takes a value: in every form, however it runs, to the second derivative."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, DTypeError
from common.core.tree import flatten
from tests.bits import assert_all_same_bits
from tests.helpers.control_constants import BESIDE, FORMS, PROGRAMS, random_program
from tests.helpers.proofs import first, rotated

XS = {"0-d": np.array(1.25), "1-d": np.array([1.25, -0.5, 2.0])}


def arrays(tree):
    return [np.asarray(x.detach() if hasattr(x, "detach") else x) for x in flatten(tree)[0]]


def ways(tw, program, form):
    """Value, gradient and its gradient, as functions of x."""
    inside = lambda n: FORMS[form](tw, n)  # noqa: E731
    outside: dict[object, object] = {}
    captured = lambda n: outside.setdefault((type(n), n), FORMS[form](tw, n))  # noqa: E731
    of = captured if form == "captured" else inside
    if form == "captured":
        program(tw, tw.tensor(XS["1-d"]), of)  # makes all of them

    def total(x):
        return sum((y.sum() for y in flatten(program(tw, x, of))[0] if y.dtype.kind == "f"), start=0.0 * x.sum())

    first = tw.grad(total)
    return lambda x: program(tw, x, of), first, tw.grad(lambda x: (first(x) * first(x)).sum())


@pytest.mark.parametrize(("name", "form"), rotated(PROGRAMS, list(FORMS)))
def test_constants_of_every_form(name, form):
    for x in XS.values():
        for order, (f, eager) in enumerate(
            zip(ways(static, PROGRAMS[name], form), ways(dynamic, PROGRAMS[name], form))
        ):
            found = arrays(static.function(f, interpret=True)(x))
            assert_all_same_bits(found, arrays(eager(dynamic.tensor(x))), f"{name}, {form}, order {order}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_constants_in_compiled_programs(name):
    compiled, eager = ways(static, PROGRAMS[name], "literal"), ways(dynamic, PROGRAMS[name], "literal")
    for order, key in ((0, "0-d"), (1, "1-d"), (2, "0-d")):
        found, x = static.function(compiled[order]), XS[key]
        expected = arrays(dynamic.function(eager[order])(dynamic.tensor(x)))
        for _ in range(2):
            assert_all_same_bits(arrays(found(x)), expected, f"{name}, order {order}")


@pytest.mark.parametrize("name", BESIDE)
def test_a_python_number_takes_the_dtype_of_what_it_stands_beside(name):
    program, dtype = BESIDE[name]
    x = np.array(0.75)
    compiled = static.function(lambda p, x: program(static, p, x))
    for p in (np.array(True), np.array(False)):
        found = np.asarray(program(dynamic, dynamic.tensor(p), dynamic.tensor(x)))
        assert found.dtype == dtype
        assert_all_same_bits([np.asarray(compiled(p, x))], [found], name)
    slope = lambda tw: lambda p, x: tw.grad(lambda x: program(tw, p, x).sum() * 1.5)(x)  # noqa: E731
    if dtype == "float64":
        expected = np.asarray(slope(dynamic)(dynamic.tensor(p), dynamic.tensor(x)))
        assert_all_same_bits([np.asarray(static.function(slope(static))(p, x))], [expected], name)


def test_a_float_beside_an_integer_is_refused(run):
    with pytest.raises(DTypeError, match=r"(?s)float32.*int64.*same dtypes"):
        run(lambda tw, n: tw.cond(n > 0, lambda: n, lambda: 1.5), np.array(3))


NO_SCALARS = [None, (True,), [True], (), {"a": 1}, "yes"]


@pytest.mark.parametrize("wrong", NO_SCALARS, ids=repr)
def test_what_is_no_scalar_decides_nothing(run, wrong):
    x = np.ones(3)
    for f in (
        lambda tw, x: tw.cond(wrong, double, double, x),
        lambda tw, x: tw.switch(wrong, [double], x),
        lambda tw, x: tw.while_loop(lambda _: wrong, double, x),
        lambda tw, x: tw.fori_loop(0, wrong, lambda _, x: x, x),
        lambda tw, x: tw.fori_loop(wrong, 3, lambda _, x: x, x),
    ):
        with pytest.raises(ArgumentError, match=r"must be (a )?scalar"):
            run(f, x)


def double(x):
    return x * 2


def test_a_float_as_the_condition_of_a_loop_is_refused(run):
    for condition in (lambda x: 10.0 - x.sum(), lambda x: 1.0, lambda x: np.float32(0)):
        with pytest.raises(DTypeError, match=r"boolean scalar; the result of .* is float"):
            run(lambda tw, x, c=condition: tw.while_loop(c, double, x), np.ones(3))
    assert run(lambda tw, n: tw.while_loop(lambda n: n, lambda n: n - 1, n), np.array(3)) == 0


def test_what_is_no_function_is_refused(run):
    for f, name in (
        (lambda tw, x: tw.cond(True, double, 1.0, x), "false_fun"),
        (lambda tw, x: tw.cond(True, x, double, x), "true_fun"),
        (lambda tw, x: tw.switch(0, [double, None], x), r"branches\[1\]"),
        (lambda tw, x: tw.while_loop(True, double, x), "cond_fun"),
        (lambda tw, x: tw.while_loop(lambda x: x.sum() < 3, None, x), "body_fun"),
        (lambda tw, x: tw.fori_loop(0, 3, x, x), "body_fun"),
        (lambda tw, x: tw.scan(None, 0.0, x), "f"),
        (lambda tw, x: tw.map(x, x), "f"),
    ):
        with pytest.raises(ArgumentError, match=f"{name} must be callable, a function, not"):
            run(f, np.ones(3))
    with pytest.raises(ArgumentError, match="branches must be a sequence of functions"):
        run(lambda tw, x: tw.switch(0, double, x), np.ones(3))


SIGNATURES = {
    "cond": "pred true_fun false_fun operands operand",
    "switch": "index branches operands operand",
    "while_loop": "cond_fun body_fun init_val",
    "fori_loop": "lower upper body_fun init_val unroll",
    "scan": "f init xs length reverse unroll _split_transpose",
    "map": "f xs batch_size",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_those_of_jax_lax(name):
    for tw in (dynamic, static):
        found = inspect.signature(getattr(tw, name)).parameters
        assert [x for x in found if x != "checkpoint"] == SIGNATURES[name].split()


def test_keywords_of_jax_lax(run):
    x = np.array([1.0, 2.0, 3.0])
    keep = lambda c, v: (c + v, c)  # noqa: E731
    assert run(lambda tw, x: tw.cond(pred=x.sum() > 0, true_fun=double, false_fun=abs, operand=x), x) == [2, 4, 6]
    assert run(lambda tw, x: tw.cond(True, lambda _: x, lambda _: -x, operand=None), x) == [1, 2, 3]
    assert run(lambda tw, x: tw.switch(index=1, branches=(abs, double), operand=x), x) == [2, 4, 6]
    loop = {"cond_fun": lambda y: y.sum() < 10, "body_fun": double}
    assert run(lambda tw, x: tw.while_loop(**loop, init_val=x), x) == [2, 4, 6]
    loop = {"lower": 0, "upper": 2, "body_fun": lambda _, y: y * 2, "unroll": True}
    assert run(lambda tw, x: tw.fori_loop(**loop, init_val=x), x) == [4, 8, 12]
    scanned = {"f": keep, "init": 0.0, "length": 3, "reverse": True, "unroll": 2, "_split_transpose": True}
    assert run(lambda tw, x: tw.scan(**scanned, xs=x), x) == (6, [5, 3, 0])
    assert run(lambda tw, x: tw.map(f=double, xs=x, batch_size=2), x) == [2, 4, 6]
    with pytest.raises(ArgumentError, match="by position and by the keyword `operand`"):
        run(lambda tw, x: tw.cond(True, double, abs, x, operand=x), x)


def test_lengths_are_ints(run):
    for length in (2.0, "2", (2,)):
        with pytest.raises(ArgumentError, match="`length` argument to `scan` expects a concrete `int`"):
            run(lambda tw, x, n=length: tw.scan(lambda c, v: (c, c), x, None, n), np.ones(2))
    for length in (2, np.int32(2), np.array(2)):
        assert run(lambda tw, x, n=length: tw.scan(lambda c, v: (c, c), x, None, n), np.array(1.5)) == (1.5, [1.5, 1.5])


def derivatives(program):
    """A program and its derivatives, as functions of an engine."""

    def value(tw):
        return lambda v: program(tw, v, v * 0.5)

    def gradient(tw):
        return tw.grad(lambda v: value(tw)(v).sum())

    def second(tw):
        return tw.grad(lambda v: (gradient(tw)(v) * 0.75).sin().sum())

    return value, gradient, second


@pytest.mark.parametrize("seed", first(6, range(12)))
def test_random_programs_with_constants(seed):
    """Interpreted, as compiled programs are; every fourth compiled, too."""
    x = list(XS.values())[seed % 2]
    for order, f in enumerate(derivatives(random_program(np.random.default_rng(seed)))):
        expected = arrays(f(dynamic)(dynamic.tensor(x)))
        assert_all_same_bits(arrays(static.function(f(static), interpret=True)(x)), expected, f"order {order}")
        if seed % 4 == 0 and order != 1:
            assert_all_same_bits(arrays(static.function(f(static))(x)), expected, f"order {order}, compiled")
