"""The table of subgradients against the rules, in both engines, and against one-sided differences."""

import itertools
import math

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.op import REGISTRY
from common.core.subgradients import TABLE
from tests.helpers.proofs import each

ENTRIES = [(name, i) for name in sorted(TABLE) for i in range(len(TABLE[name]))]
#: Points at which ops of one scalar have kinks, jumps or borders, if they have any.
POINTS = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
STEP = 1e-7


def _function(engine, name):
    """The op where it is elementwise; else the public function of its name, if there is one."""
    elementwise = name in REGISTRY and REGISTRY[name].kind == "elementwise"
    return REGISTRY[name] if elementwise or not hasattr(engine, name) else getattr(engine, name)


def _gradients(engine, name, entry, where):
    """Per operand the gradient; in the other engine by a compiled program."""

    def gradients(*operands):
        operands = [x.detach().requires_grad_() if n in where else x for n, x in enumerate(operands)]
        y = _function(engine, name)(*operands, **entry.options)
        y = y[0] if isinstance(y, tuple) else y
        inputs = [operands[n] for n in where]
        return engine.autograd.grad(y.sum(), inputs, allow_unused=True, materialize_grads=True)

    return engine.function(gradients)


def _operands(entry):
    return [np.array(x, np.bool_ if isinstance(x[0], bool) else np.float64) for x in entry.operands]


@pytest.mark.parametrize(("name", "i"), ENTRIES)
def test_the_rules_give_what_the_table_says(name, i):
    entry = TABLE[name][i]
    where = [n for n, g in enumerate(entry.gradients) if g is not None]
    for engine in (tw, static):
        found = _gradients(engine, name, entry, where)(*_operands(entry))
        for n, g in zip(where, found, strict=True):
            np.testing.assert_array_equal(np.asarray(g), np.array(entry.gradients[n]), f"{name}, operand {n}")


def test_every_name_is_an_op_or_a_function():
    assert [name for name in TABLE if name not in REGISTRY and not hasattr(tw, name)] == []
    assert REGISTRY["relu"].subgradients is TABLE["relu"]
    assert REGISTRY["exp"].subgradients == ()


def _slopes(op, at, position):
    """The differences to the left and to the right of a point."""

    def value(x):
        return float(op(*(np.float64(x if n == position else a) for n, a in enumerate(at))))

    middle = value(at[position])
    return (middle - value(at[position] - STEP)) / STEP, (value(at[position] + STEP) - middle) / STEP


def _smooth(left, right):
    return abs(left - right) <= 1e-3 * (1 + abs(left)) or (math.isnan(left) and math.isnan(right))


SCALARS = [op for op in REGISTRY.values() if op.kind == "elementwise" and not op.attrs and op.differentiable]


@each("op", [op for op in SCALARS if "condition" not in op.inputs])
def test_no_op_with_such_points_is_missing(op):
    """At every corner of a grid, left and right slopes agree, or the op has an entry."""
    if op.subgradients:
        return
    for at in itertools.product(POINTS, repeat=len(op.inputs)):
        for position, rule in enumerate(op.rules):
            if rule is not None:
                left, right = _slopes(op, at, position)
                assert _smooth(left, right), f"{op.name}{at} has slopes {left} and {right} and no entry in TABLE"


@pytest.mark.parametrize(("name", "i"), [(n, i) for n, i in ENTRIES if n in REGISTRY and REGISTRY[n] in SCALARS])
def test_choices_lie_between_the_slopes_of_continuous_ops(name, i):
    entry, op = TABLE[name][i], REGISTRY[name]
    for element in range(len(entry.operands[0])):
        at = [x[element] for x in entry.operands]
        for position, gradient in enumerate(entry.gradients):
            if gradient is None or isinstance(at[position], bool):
                continue
            left, right = _slopes(op, at, position)
            low, high = sorted((left, right))
            if max(abs(low), abs(high)) < 1e4 and math.isfinite(gradient[element]):
                assert low - 1e-5 <= gradient[element] <= high + 1e-5, (at, position, left, right)
