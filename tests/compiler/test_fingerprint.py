"""A fingerprint changes with everything that a function's result depends on, and with nothing else."""

from __future__ import annotations

import math
import types

import numpy as np

from common.compiler.fingerprint import fingerprint


def make(factor, helper=abs):
    return lambda x: helper(x) * factor


def with_global(value):
    scope = {"C": value}
    exec("def f(x):\n    return x * C\n", scope)
    return scope["f"]


def helper_of(power):
    def helper(x):
        return x**power

    return helper


def test_equal_functions_have_equal_fingerprints():
    assert fingerprint(make(2.5, helper_of(2))) == fingerprint(make(2.5, helper_of(2)))
    assert fingerprint(with_global(2.5)) == fingerprint(with_global(2.5))
    assert fingerprint(lambda x: math.pi * x) == fingerprint(lambda x: math.pi * x)


def test_functions_of_the_package_are_named_by_their_files():
    from common.kernels.math.elementary import tanh

    assert fingerprint(make(2.5, tanh)) == fingerprint(make(2.5, tanh))
    assert fingerprint(make(2.5, tanh)) != fingerprint(make(2.5, abs))


def test_the_position_in_a_file_does_not_matter():
    assert fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)


def test_closures_globals_defaults_and_helpers_matter():
    functions = [
        make(2.5, helper_of(2)),
        make(7.5, helper_of(2)),
        make(2.5, helper_of(3)),
        make(np.float32(2.5), helper_of(2)),
        with_global(2.5),
        with_global(2),
        with_global((2.5, 1)),
        lambda x, y=1: x + y,
        lambda x, y=2: x + y,
        lambda x, *, y=2: x + y,
        lambda x: x + 1,
        lambda x: x + 2,
        lambda x: (lambda y: y + 1)(-x),
        lambda x: (lambda y: y + 2)(-x),
    ]
    assert len({fingerprint(function) for function in functions}) == len(functions)


def test_what_cannot_be_told_is_never_shared():
    unknown = types.SimpleNamespace(value=1)
    assert fingerprint(make(unknown)) != fingerprint(make(unknown))
    assert fingerprint(with_global(np.ones(3))) != fingerprint(with_global(np.ones(3)))


def test_recursion_ends():
    def countdown(x):
        return countdown(x - 1)

    assert fingerprint(countdown) == fingerprint(countdown)
