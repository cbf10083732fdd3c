"""State, outputs and arguments: what a call may write, and when."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from common.core.errors import ArgumentError, CompileError, IndexRangeError, ShapeError
from common.core.op import DEFAULTS
from common.ops.index import gather
from common.ops.math import arithmetic, transcendental
from common.ops.reduce import reductions
from common.ops.shape import slices, view
from common.tensor import leaf
from common.tensor.base import Tensor
from common.tensor.leaf import Parameter
from static.graph import Effect, Graph, Node
from static.jit.function import function
from static.running import executable
from static.tracing.trace import Trace
from tests.bits import assert_same_bits

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def plan_of(program, arrays, states):
    """A plan of ``program(*values) -> (outputs, new values of the last `states` inputs)`` for the arrays."""
    from common.core import mode

    trace = Trace("program")
    with mode.activate_trace(trace):
        values = [trace.argument(i, x, ("test.py", 7, "program")).payload for i, x in enumerate(arrays)]
        outputs, new = program(*values)
    effects = [Effect(s, v) for s, v in zip(values[len(values) - states :], new, strict=True)]
    env = {("in", i, axis): n for i, x in enumerate(arrays) for axis, n in enumerate(x.shape)}
    return executable.compile_graph(Graph(values, trace.nodes, outputs, effects)).plan(env)


def test_state_is_updated_in_place():
    g, p = floats(40, 30), floats(40, 30)
    expected = p - g * np.float32(0.5)
    plan = plan_of(lambda g, p: ([], [p - g * 0.5]), [g, p], 1)
    assert plan(g, p) == []
    assert_same_bits(p, expected, "state")
    assert len(plan.program.lowered.steps) == 1
    assert plan.arena_bytes == 0


def test_the_old_state_is_read_before_the_new_one_is_stored():
    g, p, step = floats(40), floats(40), np.array(3, np.float32)
    expected = p * 2 + g, g * 3

    def program(g, p, s):
        new_p, new_s = g * 3, arithmetic.add(1.0, 3.0 + 0 * s)
        return [p * 2 + g, s * 5], [new_p, new_s]

    plan = plan_of(program, [g, p, step], 2)
    total, scaled = plan(g, p, step)
    assert_same_bits(total, expected[0], "output")
    assert_same_bits(p, expected[1], "state")
    assert (float(scaled), float(step)) == (15, 4)
    assert len(plan.program.lowered.groups) == 2


def test_state_that_is_read_later_is_written_at_the_end():
    p, q = floats(5), floats(5)
    expected = q.copy(), p.copy()
    plan = plan_of(lambda p, q: ([], [q, p]), [p, q], 2)
    plan(p, q)
    assert_same_bits(p, expected[0], "first")
    assert_same_bits(q, expected[1], "second")


def test_state_that_is_read_in_another_order_is_written_at_the_end():
    p = floats(6, 6)
    expected = p.T + p
    plan_of(lambda p: ([], [view.transpose(p, 0, 1) + p]), [p], 1)(p)
    assert_same_bits(p, np.ascontiguousarray(expected), "state")


def test_state_normalised_by_its_own_sum():
    p = floats(300)
    oracle = function(lambda p: p / reductions.sum(p * p), interpret=True)(p)
    plan_of(lambda p: ([], [p / reductions.sum(p * p)]), [p], 1)(p)
    assert_same_bits(p, oracle, "state")


def test_state_that_a_later_loop_reads_is_written_at_the_end():
    p = floats(30)
    expected = function(lambda p: p / reductions.sum(p), interpret=True)(p), p + p * p

    def program(p):
        new = p + p * p
        return [p / reductions.sum(p)], [new]

    (scaled,) = plan_of(program, [p], 1)(p)
    assert_same_bits(scaled, expected[0], "output")
    assert_same_bits(p, expected[1], "state")


def test_a_kernel_that_may_fail_writes_no_state_in_place():
    x, g, i, p = floats(4, 3), floats(4), np.array([0, 1, 2, 3]), floats(4, 3)
    before = p.copy()
    plan = plan_of(lambda x, g, i, p: ([gather.spread(g, i, extent=x.shape[1]) + x], [p + x]), [x, g, i, p], 1)
    with pytest.raises(IndexRangeError, match="spread"):
        plan(x, g, i, p)
    assert_same_bits(p, before, "state")


def test_an_index_out_of_range_leaves_state_unchanged_and_names_the_line():
    x, i, p = floats(4, 3), np.array([0, 1, 2, 3]), floats(4, 3)
    before = p.copy()

    def program(x, i, p):
        return [gather.pick(x, i)], [p + x]

    plan = plan_of(program, [x, i, p], 1)
    with pytest.raises(
        IndexRangeError,
        match=r"nll_loss.*index 3 is out of bounds for dimension 1 with size 3(?s:.*)test_state",
    ):
        plan(x, i, p)
    assert_same_bits(p, before, "state")
    i[3] = 2
    plan(x, i, p)
    assert_same_bits(p, before + x, "state")


def test_outputs_share_no_memory():
    x = floats(3, 4)

    def program(x):
        y = transcendental.tanh(x)
        return [y, y, view.reshape(y, 12), x, view.transpose(x, 0, 1), slices.select(y, 0, 1)], []

    outputs = plan_of(program, [x], 0)(x)
    for a, first in enumerate([x, *outputs]):
        for second in [x, *outputs][a + 1 :]:
            assert not np.shares_memory(first, second)
    assert all(y.flags.c_contiguous and y.flags.writeable for y in outputs)


def test_large_outputs_are_used_again_only_when_nothing_refers_to_them():
    x = floats(200, 200)
    plan = plan_of(lambda x: ([x * 2], []), [x], 0)
    (first,) = plan(x)
    row = first[3]
    address = first.ctypes.data
    del first
    (second,) = plan(x + 1)
    assert not np.shares_memory(row, second)
    assert_same_bits(row, x[3] * 2, "a view of an earlier result")
    del row
    assert plan(x)[0].ctypes.data == address


def test_arguments_of_any_layout_are_accepted():
    x, p = floats(8, 12)[:, ::2], np.asfortranarray(floats(8, 6))
    expected = p + x
    plan_of(lambda x, p: ([], [p + x]), [x, p], 1)(x, p)
    assert_same_bits(np.ascontiguousarray(p), np.ascontiguousarray(expected), "state")


def test_an_argument_that_overlaps_state_is_read_as_it_was():
    memory = floats(11)
    x, p = memory[:10], memory[1:]
    expected = p + x
    plan_of(lambda x, p: ([], [p + x]), [x, p], 1)(x, p)
    assert_same_bits(p, expected, "state")


def test_what_does_not_fit_the_plan_is_refused():
    x = floats(4, 3)
    plan = plan_of(lambda x, p: ([x * 2], [p + 1]), [x, x.copy()], 1)
    with pytest.raises(ShapeError, match=r"shape \(3,\)"):
        plan(x[0], x.copy())
    with pytest.raises(ArgumentError, match="float64"):
        plan(x.astype(float), x.copy())
    with pytest.raises(ArgumentError, match="2 arrays"):
        plan(x)
    with pytest.raises(ArgumentError, match="shares memory"):
        plan_of(lambda p, q: ([], [p + 1, q + 1]), [x, x.copy()], 2)(x, x)
    x.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        plan(x.copy(), x)


def test_new_sizes_compile_nothing(monkeypatch):
    compiled = function(lambda x, w: reductions.sum(transcendental.exp(x * w), 1))
    compiled(floats(5, 40), floats(40))  # rows of up to 32 elements have a form of their own
    monkeypatch.setattr(executable, "compile_kernel", None)
    for rows, columns in ((7, 9), (0, 3), (2000, 1)):
        if columns > 1:
            assert compiled(floats(rows, columns), floats(columns)).shape == (rows,)
    assert len(compiled.traces) == 1


def test_a_node_without_a_kernel_is_named():
    trace = Trace("program")
    x = trace.argument(0, floats(3), ("here.py", 3, "program")).payload
    mystery = SimpleNamespace(**{**DEFAULTS, "name": "mystery", "kind": "unheard of"})
    node = Node(1, mystery, (x,), {}, (x.spec,), ("here.py", 12, "program"))
    with pytest.raises(CompileError, match=r"mystery at here\.py:12"):
        executable.compile_graph(Graph([x], [x.node, node], [node.outputs[0]], []))


def test_gradients_are_not_copied(monkeypatch):
    w, x = Parameter(floats(3, 2)), floats(5, 3)

    @function
    def step(x):
        loss = reductions.sum(transcendental.tanh(x @ w))
        loss.backward()
        return loss

    step(x)
    expected = w.grad.numpy().copy()
    w.grad = None
    monkeypatch.setattr(leaf, "_memory_of", None)  # what copies
    step(x)
    assert type(w.grad) is Tensor
    assert not w.grad.requires_grad
    assert_same_bits(w.grad.payload, expected, "gradient")
