"""Python's own control flow on tensors: eager, guarded and converted, the same bits; gradients against differences."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import TraceError
from tests.bits import assert_all_same_bits, assert_same_bits
from tests.helpers.differences import check_gradient
from tests.helpers.flow import inputs, program, source
from tests.helpers.proofs import first
from tests.parity.engines import payload

LEAVES = (0, 1, 2)


def gradients(tw, function, **options):
    """A function that gives the gradients of all operands."""

    def loss(*operands):
        y = function(*operands)
        return (y * y.sin()).sum()

    return tw.function(tw.grad(loss, LEAVES), **options)


@pytest.mark.parametrize("seed", first(3, range(12), core=1))
def test_random_programs_agree_in_all_modes(seed, tmp_path):
    f = program(seed, tmp_path)
    plain = dynamic.function(f)
    guarded = static.function(f, control_flow="guard", max_traces=512, interpret=bool(seed % 2))
    both = [tw.function(f, control_flow="convert") for tw in (static, dynamic)]
    slopes = [gradients(dynamic, f), gradients(static, f, control_flow="guard", max_traces=512, interpret=True)]
    converted = [gradients(tw, g) for tw, g in zip((static, dynamic), both, strict=True)]
    for at in range(4):
        arrays = inputs(at, np.float32)
        what = f"{source(seed)} at {arrays}"
        value = payload(plain(*arrays))
        for call in (guarded, *both):
            assert_same_bits(payload(call(*arrays)), value, what)
        first, second = ([payload(x) for x in g(*arrays)] for g in slopes)
        assert_all_same_bits(second, first, what)
        third, fourth = ([payload(x) for x in g(*arrays)] for g in converted)
        assert_all_same_bits(third, fourth, what)
    assert len(both[0].traces) == 1, "converted once, for all paths"


@pytest.mark.parametrize("seed", first(2, range(100, 106)))
def test_gradients_are_derivatives(seed, tmp_path):
    f = program(seed, tmp_path)
    converted = dynamic.function(f, control_flow="convert")
    for at in range(2):
        for way in (f, converted):  # contributions from inside and outside a construct meet in another order there
            check_gradient(way, inputs(at, np.float64), source(seed))


def example(x):
    """The example of the documentation: a number decides between a loop and something else."""
    if x.item() > 0:
        y = x
        while y.item() < 50:
            y = y * x + 1
    else:
        y = x.exp() - x
    return y


def test_the_example_in_all_modes():
    """Default: an error with the line and the ways out. All others: the same bits, of the gradient too."""
    at = [np.array(v, np.float32) for v in (1.5, -0.75, 3.0, 60.0, -2.0)]
    with pytest.raises(TraceError, match=r"test_python_flow.py:\d+ in example(.|\n)*cond, while_loop(.|\n)*guard"):
        static.function(example)(at[0])
    both = {tw: tw.function(example, control_flow="convert") for tw in (static, dynamic)}
    calls = [static.function(example, control_flow="guard"), *both.values()]
    slopes = [static.function(static.grad(example), control_flow="guard")]
    slopes += [tw.function(tw.grad(f)) for tw, f in both.items()]
    for x in at:
        for call in calls:
            assert_same_bits(payload(call(x)), example(dynamic.tensor(x)).payload, f"value at {x}")
        expected = dynamic.function(dynamic.grad(example))(x).payload
        for slope in slopes:
            assert_same_bits(payload(slope(x)), expected, f"gradient at {x}")
    assert [len(f.traces) for f in (calls[0], calls[1], slopes[0], slopes[1])] == [4, 1, 4, 1]
    check_gradient(example, [np.array(1.25)], "example")
