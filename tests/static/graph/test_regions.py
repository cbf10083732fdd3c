"""Control flow in graphs and compiled programs: one trace, regions, room, memory, what is saved."""

from functools import partial

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import CompileError
from common.runtime import python_builtins
from static.graph import serialize
from static.graph.regions import FIRST_ROOM, LoopParts, branches
from static.graph.verify import verify
from static.running import plan as plans
from static.running.interpreter import interpret
from tests.bits import assert_all_same_bits
from tests.helpers.control import CASES

F32 = np.float32
X = np.random.default_rng(0).normal(size=(6, 4)).astype(F32)
W = np.random.default_rng(1).normal(size=(4, 4)).astype(F32)


def scanned(tw):
    def loss(x, w):
        h, ys = tw.scan(lambda h, v: ((h @ w + v).tanh(), h * v), x[0], x)
        return (h * h).sum() + ys.sum()

    return tw.value_and_grad(loss, (0, 1))


def counted(x, n):
    stop = n * 1
    return static.while_loop(lambda s: s[0] < stop, lambda s: (s[0] + 1, (s[1] * x).sin()), (0, x))[1].sum()


def nodes(function, name):
    return [node for node in function.newest.graph.nodes if node.name == name]


def test_a_scan_is_one_node_and_its_gradient_another():
    f = static.function(scanned(static))
    f(X, W)
    first, second = nodes(f, "loop")
    assert second.attrs["of"] == first.id
    assert [name for name, _ in first.regions] == ["body"]
    assert LoopParts(second).backwards
    assert not LoopParts(first).backwards


def test_a_scan_of_other_lengths_compiles_nothing():
    f = static.function(scanned(static))
    for rows in (6, 2, 5, 3):
        value, grads = f(X[:rows], W)
        expected, others = dynamic.function(scanned(dynamic))(X[:rows], W)
        assert_all_same_bits([value, *grads], [expected.payload, *(g.payload for g in others)], f"{rows} rows")
    assert len(f.traces) == 1
    assert f.plans_made == 4


def test_two_hundred_lengths_compile_two_kernels_more_than_one_length_at_most():
    """Training a recurrent network: one trace and no kernel more from 2 on; length 1 has a trace of its own."""
    f, eager = (tw.function(tw.value_and_grad(partial(_loss, tw), (0, 1))) for tw in (static, dynamic))
    kernels = lambda: {s.source for traced in f.traces for s in traced.program.all_steps() if s.source}  # noqa: E731
    x = np.random.default_rng(8).normal(size=(200, 2, 4)).astype(F32)
    f(W, W, x[:100])
    first = kernels()
    for length in range(2, 201):
        f(W, W, x[:length])
    assert kernels() == first
    f(W, W, x[:1])
    assert len(kernels()) <= len(first) + 2
    assert len(f.traces) == 2
    for length in (1, 2, 37, 200):
        (value, grads), (expected, others) = f(W, W, x[:length]), eager(W, W, x[:length])
        assert_all_same_bits([value, *grads], [expected.payload, *(g.payload for g in others)], f"length {length}")


def _loss(tw, w, u, x):
    states = tw.scan(lambda h, v: ((v @ u + h @ w).tanh(),) * 2, x[0] @ u, x)[1]
    return (states * states).mean()


def test_graphs_with_regions_are_saved_and_printed():
    f, (x, w) = static.function(scanned(static)), (np.resize(X, (6, 9)), np.resize(W, (9, 9)))
    expected = f(x, w)
    graph = f.newest.graph
    again = serialize.load(serialize.dump(graph))
    assert str(again) == str(graph)
    assert "body:" in str(graph)
    verify(again, "loading")
    env = {("in", 0, 0): 6, ("in", 0, 1): 9, ("in", 1, 0): 9, ("in", 1, 1): 9}
    assert_all_same_bits(interpret(again, [x, w], env), [expected[0], *expected[1]], "loaded")
    text = str(f.explain())
    assert "loop: loop" in text
    assert "gemm: mm" in text
    assert "regions in kernel calls" in text
    assert "def k_" in f.source
    assert "body:" in f.source


@pytest.mark.parametrize("change", ["operand", "result", "constant"])
def test_verify_knows_what_a_loop_needs(change):
    f = static.function(scanned(static))
    f(X, W)
    graph = f.newest.graph
    loop = nodes(f, "loop")[0]
    if change == "operand":
        loop.operands = loop.operands[1:]
    elif change == "result":
        loop.attrs["body"].outputs.pop()
    else:
        loop.attrs["constants"] += 1
    with pytest.raises(CompileError, match="loop"):
        verify(graph, "a test")


def test_verify_knows_what_branches_need():
    f = static.function(lambda x: static.cond(x.sum() > 0, lambda x: x * 2, lambda x: x, x))
    f(X)
    (switch,) = nodes(f, "switch")
    (region, _), _ = branches(switch)
    region.outputs.append(region.outputs[0])
    with pytest.raises(CompileError, match="switch"):
        verify(f.newest.graph, "a test")


def test_room_grows_and_stays():
    f = static.function(static.value_and_grad(counted))
    made = []
    for n in (FIRST_ROOM, FIRST_ROOM + 1, 1000, 3, 1000):
        f(X, np.array(n))
        made.append(dict(f.newest.rooms))
    (rooms,) = {tuple(r) for r in made}
    assert [r[rooms[0]] for r in made] == [64, 256, 1024, 1024, 1024]
    assert len(f.traces) == 1


def test_state_is_written_once_however_often_room_is_made():
    state = static.nn.Parameter(X)
    calls_of = static.nn.Parameter(np.zeros((), F32))

    @static.function
    def f(n):
        value, g = static.value_and_grad(counted)(state * 1, n)
        with static.no_grad():
            state.sub_(g)
            calls_of.add_(1)
        return value

    f(np.array(5000))
    assert calls_of.payload == 1
    other = dynamic.tensor(X)

    def eager(x):
        return dynamic.fori_loop(0, 5000, lambda _, y: (y * x).sin(), x).sum()

    g = dynamic.grad(eager)(other)
    assert_all_same_bits([state.payload], [(other - g).payload], "state")


def test_nothing_is_saved_when_nothing_is_differentiated():
    f = static.function(counted)
    f(X, np.array(100000))
    (loop,) = nodes(f, "loop")
    assert not list(LoopParts(loop).stacked)
    assert f.newest.rooms == {} or set(f.newest.rooms.values()) == {FIRST_ROOM}


def arena(f):
    return f._by_call[next(reversed(f._by_call))][1].arena_bytes


def test_memory_of_a_scan_grows_by_what_is_saved_only():
    """The stack of h, that of what the gradient reads back, and nothing else that has a row per iteration."""
    f = static.function(
        static.grad(lambda x, w: static.scan(lambda h, v: ((h @ w + v).tanh(), None), x[0], x)[0].sum(), 1)
    )
    sizes = {}
    for rows in (100, 200):
        f(np.ones((rows, 3, 16), F32), np.ones((16, 16), F32))
        sizes[rows] = arena(f)
    per_row = (sizes[200] - sizes[100]) / 100
    assert per_row <= 2 * 3 * 16 * 4 + 64


def test_plans_for_many_lengths_share_their_memory():
    f = static.function(static.grad(lambda x, w: static.scan(cell(w), x[0], x)[0].sum(), 1))
    w = np.ones((16, 16), F32)
    for rows in range(2, 60):
        f(np.ones((rows, 3, 16), F32), w)
    kept = [plan.arena for _, plan in f._by_call.values()]
    memory = {id(arena): len(arena) for arena in kept}
    assert len(f.traces) == 1
    assert sum(memory.values()) <= 4.5 * max(plan.arena_bytes for _, plan in f._by_call.values()) + 4096


def test_memory_of_a_scan_in_segments():
    x, w = np.ones((400, 3, 16), F32), np.ones((16, 16), F32)
    sizes = {}
    for size in (None, 20):
        f = static.function(static.grad(lambda x, w, k=size: static.scan(cell(w), x[0], x, checkpoint=k)[0].sum(), 1))
        f(x, w)
        sizes[size] = arena(f) / (3 * 16 * 4)
    assert sizes[None] > 2 * 400
    assert sizes[20] < 400 / 20 + 2 * 20 + 60  # and gradients of w, which have no row per iteration


def cell(w):
    return lambda h, v: ((h @ w + v).tanh(), None)


def test_only_what_is_used_is_computed():
    f = static.function(
        lambda x, w: static.scan(lambda s, v: ((s[0] @ w, s[1] * v), (s[1], v.exp())), (x, x[0]), x)[0][1]
    )
    f(X, W)
    (loop,) = nodes(f, "loop")
    parts = LoopParts(loop)
    assert (parts.n, len(parts.rows), len(parts.constants), len(parts.stacked)) == (1, 1, 0, 0)
    assert [n.name for n in parts.body.nodes if n.op is not None] == ["mul"]


@pytest.mark.parametrize("name", CASES)
def test_the_builtin_in_python_gives_the_same(name, monkeypatch):
    arrays = CASES[name].arrays(np.random.default_rng(9), F32)
    expected = static.function(CASES[name].run)(*arrays)
    monkeypatch.setattr(plans, "make_run", python_builtins.make_run)
    monkeypatch.setattr(plans, "make_step", python_builtins.make_step)
    actual = static.function(CASES[name].run)(*arrays)
    flat = lambda y: list(y) if isinstance(y, (tuple, list)) else [y]  # noqa: E731
    assert_all_same_bits(flat(actual), flat(expected), name)


def test_a_failing_kernel_inside_a_loop_names_the_line():
    f = static.function(lambda x, i: static.map(lambda j: static.index_select(x, 0, j.reshape(1)).sum(), i))
    f(X, np.array([0, 5]))
    with pytest.raises(IndexError, match=r"test_regions.py:\d+"):
        f(X, np.array([0, 6]))
