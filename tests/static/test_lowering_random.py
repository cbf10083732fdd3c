"""Random programs: fused, unfused and un-jitted kernels against the interpreter, for several sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common import mode
from common.numerics import BLOCK
from static.compile import compile_graph
from static.graph import Effect, Graph
from static.interpreter import interpret
from static.jit import function
from static.trace import Trace
from static.unjitted import run_unjitted
from tests.bits import assert_all_same_bits
from tests.static.compare import as_tuple, assert_compiles
from tests.static.programs import Draw, draw_program, draw_writes


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


@settings(max_examples=30)
@given(st.randoms(use_true_random=False), st.integers(3, 20), st.booleans())
def test_random_writes_leave_the_interpreters_state(random, length, fuse):
    shapes = [(6, 9), (9,), (6, 9), (6, 9), (9,), ()]
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    trace = Trace("program")
    with mode.activate_trace(trace):
        values = [trace.argument(i, x, ("test.py", i, "program")).data for i, x in enumerate(arrays)]
        draw = Draw(random.randrange, values)
        for _ in range(length):
            draw.step()
        states = values[2:]
        new = draw_writes(random.randrange, draw.values, states)
        outputs = [draw.operand() for _ in range(2)]
    writes = [Effect(state, value) for state, value in zip(states, new, strict=True) if state is not value]
    graph = Graph(trace.inputs, trace.nodes, outputs, writes)
    env = {("in", i, axis): n for i, x in enumerate(arrays) for axis, n in enumerate(x.shape)}
    expected = [x.copy() for x in arrays]
    results = interpret(graph, expected, env)
    assert_all_same_bits(compile_graph(graph, fuse=fuse).plan(env)(*arrays), results, "outputs")
    assert_all_same_bits(arrays, expected, "state")


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
