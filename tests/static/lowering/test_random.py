"""Random programs: fused, unfused and un-jitted kernels against the interpreter, for several sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common.core import mode
from common.core.numerics import BLOCK
from common.ops.math import arithmetic, compare
from common.ops.reduce import product, reductions
from common.ops.shape import view
from static.graph import Effect, Graph
from static.jit.function import function
from static.running.executable import compile_graph
from static.running.interpreter import interpret
from static.tracing.trace import Trace
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import examples
from tests.helpers.python_kernels import run_unjitted
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


@settings(max_examples=examples(40))
@given(st.randoms(use_true_random=False), st.integers(2, 20), st.integers(1, 5))
def test_random_programs_have_the_interpreters_bits(random, length, returned):
    program = draw_program(random.randrange, length, returned)
    assert_compiles(program, inputs(1, 5, 7, 3), inputs(2, 20, 33, 4), inputs(3, 9, BLOCK + 300, 2))


@settings(max_examples=examples(30))
@given(st.randoms(use_true_random=False), st.integers(3, 20), st.booleans())
def test_random_writes_leave_the_interpreters_state(random, length, fuse):
    shapes = [(6, 9), (9,), (6, 9), (6, 9), (9,), ()]
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    trace = Trace("program")
    with mode.activate_trace(trace):
        values = [trace.argument(i, x, ("test.py", i, "program")).payload for i, x in enumerate(arrays)]
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


@settings(max_examples=examples(15))
@given(st.randoms(use_true_random=False), st.sampled_from([(0,), (1,), (2,), (0, 1), (1, 2), (2, 3), (1, 3)]))
def test_reductions_of_light_maps_over_any_dimensions_have_the_interpreters_bits(random, dims):
    """Rows are taken several at a time there: none, whole groups, groups and a rest, some blocks."""
    steps = [(random.choice(["add", "mul", "maximum", "where"]), random.randrange(5)) for _ in range(3)]
    hows = random.sample([reductions.sum, reductions.amax, reductions.amin, product.prod], 2)
    order = random.choice([(0, 1, 2, 3), (0, 1, 2, 3), (1, 0, 2, 3), (0, 2, 1, 3)])
    dtype = random.choice([np.float32, np.float64])

    def program(*arrays):
        x = view.permute(arrays[0], *order)
        for name, i in steps:
            y = arrays[i] if order == (0, 1, 2, 3) or arrays[i].ndim < 4 else x
            condition = [compare.gt(x, 1)] if name == "where" else []
            x = getattr(arithmetic if name in ("add", "mul") else compare, name)(*condition, x, y)
        return tuple(how(x, dims) for how in hows)

    def arrays(a, b, c, d):
        rng = np.random.default_rng(a * b)
        shapes = [(a, b, c, d), (d,), (a, 1, 1, d), (1, b, 1, 1), ()]
        return [rng.normal(1, 0.1, size=shape).astype(dtype) for shape in shapes]

    sizes = [(2, 3, 150, 5), (3, 70, 2, 6), (2, 64, 17, 3), (3, 2, BLOCK + 81, 2), (2, BLOCK + 130, 3, 4)]
    assert_compiles(program, *(arrays(*each) for each in sizes))


@settings(max_examples=examples(15))
@given(st.randoms(use_true_random=False), st.integers(2, 12))
def test_kernels_run_as_plain_python_with_the_same_bits(random, length):
    program = draw_program(random.randrange, length, 3)
    arrays = inputs(4, 4, 5, 3)
    compiled = function(program)
    expected = as_tuple(compiled(*arrays))
    traced = compiled.traces[0]
    actual = run_unjitted(traced.program, traced.env(arrays), arrays)
    assert_all_same_bits(actual, expected, "un-jitted")
