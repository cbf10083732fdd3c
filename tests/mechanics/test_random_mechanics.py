"""Random programs about views and writes: both engines give the same bits, and finite differences agree.

``python -m tests.mechanics --random 2000`` compares larger ones with PyTorch, where it is installed.
"""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import TraceError
from tests.helpers.noted import difference
from tests.helpers.proofs import first
from tests.helpers.random_mechanics import Program

SEEDS = range(40)


def _value_and_gradients(engine, seed):
    """The end of a traceable program, and its gradients; the class of the error if it is refused."""
    program = Program(engine, seed, steps=8, traceable=True)
    arrays = [np.asarray(x) for x in program.inputs()]

    def total(*xs):
        y = program.run([x * 1.0 for x in xs])
        return y if hasattr(y, "sum") else xs[0].sum()

    function = engine.function(engine.value_and_grad(total, argnums=(0, 1, 2)))
    try:
        value, gradients = function(*arrays)
    except Exception as error:
        return type(error), str(error)
    return [np.asarray(x) for x in (value, *gradients)], None


@pytest.mark.parametrize("seed", first(20, SEEDS, core=3))
def test_both_engines_give_the_same_bits(seed):
    """A trace refuses writes to a reshape that shows memory by its sizes or that is a function's result; and it has no
    memory, so nothing that is saved is overwritten.
    """
    (ours, text), (traced, why) = (_value_and_gradients(engine, seed) for engine in (dynamic, static))
    if (traced is TraceError and "shares memory" in why) or "modified by an inplace operation" in (text or ""):
        return
    if isinstance(ours, type) or isinstance(traced, type):
        assert ours is traced, (ours, traced)
        return
    assert [np.asarray(x).tobytes() for x in ours] == [np.asarray(x).tobytes() for x in traced]


@pytest.mark.parametrize("seed", first(10, SEEDS))
def test_a_program_is_the_same_every_time(seed):
    """Also while something watches: then all ops take the general way."""
    first = Program(dynamic, seed).differentiate()
    with dynamic.autograd.set_detect_anomaly(True):
        again = Program(dynamic, seed).differentiate()
    assert difference(first, again) is None
