"""Random programs: fused, unfused and un-jitted kernels against the interpreter, for several sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common.numerics import BLOCK
from static.jit import function
from static.unjitted import run_unjitted
from tests.bits import assert_all_same_bits
from tests.static.compare import as_tuple, assert_compiles
from tests.static.programs import draw_program


def inputs(seed, a, b, c):
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(a, b)).astype(np.float32),
        rng.normal(size=b).astype(np.float32),
        rng.normal(size=(a, 1)).astype(np.float32),
        rng.integers(-5, 9, (a, b)).astype(np.int32),
        rng.normal(size=(a, b, c)),
        np.array(0.5, np.float32),
    ]


@settings(max_examples=40)
@given(st.randoms(use_true_random=False), st.integers(2, 20), st.integers(1, 5))
def test_random_programs_have_the_interpreters_bits(random, length, returned):
    program = draw_program(random.randrange, length, returned)
    assert_compiles(program, inputs(1, 5, 7, 3), inputs(2, 20, 33, 4), inputs(3, 9, BLOCK + 300, 2))


@settings(max_examples=15)
@given(st.randoms(use_true_random=False), st.integers(2, 12))
def test_kernels_run_as_plain_python_with_the_same_bits(random, length):
    program = draw_program(random.randrange, length, 3)
    arrays = inputs(4, 4, 5, 3)
    compiled = function(program)
    expected = as_tuple(compiled(*arrays))
    traced = compiled.traces[0]
    actual = run_unjitted(traced.program, traced.env(arrays), arrays)
    assert_all_same_bits(actual, expected, "un-jitted")
