"""Where results lie: over donated arguments, in given arrays; and arguments and results that are nested."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, DTypeError, GradientError, IndexRangeError, ShapeError
from common.core.tree import flatten, nester, taker, unflatten
from common.tensor.leaf import Parameter
from static.running.plan import Plan
from tests.bits import assert_same_bits

Pair = namedtuple("Pair", "left right")


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# ------------------------------------------------------------------ donated arguments


def heat(u, source):
    inner = u[:-2] + u[2:] - 2 * u[1:-1]
    return static.cat([u[:1], u[1:-1] + 0.1 * inner + source[1:-1], u[-1:]]), (u * u).sum()


def test_a_donated_argument_holds_the_result():
    f, plain = static.function(heat, donate_argnums=0), static.function(heat)
    u, source = floats(50), floats(50, seed=1)
    expected, kept = u.copy(), source.copy()
    for _ in range(5):
        expected, energy = plain(expected, source)
        result, found = f(u, source)
        assert result.payload is u
        assert_same_bits(u, expected, "u")
        assert_same_bits(found, energy, "energy")
    assert_same_bits(source, kept, "source")
    assert f.explain().donations == ["input 0 is overwritten by result 0"]
    assert "donated: input 0 is overwritten" in str(f.explain())


def test_the_second_call_is_one_native_call(monkeypatch):
    f = static.function(lambda u: u * 2 + 1, donate_argnums=(0,))
    u = floats(9)
    f(u)
    monkeypatch.setattr(Plan, "__call__", None)
    expected = u * 2 + 1
    assert f(u).payload is u
    assert_same_bits(u, expected, "u")


def test_several_arguments_and_those_that_nothing_fits():
    f = static.function(lambda p, x: ((p["w"] - x.sum(), p["b"] * 2), x.to(static.float64)), donate_argnums=(0, 1))
    p, x = {"w": floats(3, 2), "b": floats(3, 2, seed=1)}, floats(3, 2, seed=2)
    w, b = p["w"] - static.function(lambda x: x.sum())(x), p["b"] * 2
    for _ in range(2):
        (first, second), third = f({"w": p["w"].copy(), "b": p["b"].copy()}, x)
        assert_same_bits(first, w, "w")
        assert_same_bits(second, b, "b")
        assert third.dtype == np.float64
    assert [text.split(" is ")[1][:4] for text in f.explain().donations] == ["over", "over", "kept"]


def test_old_contents_are_read_before_they_are_overwritten():
    f = static.function(lambda x, y: (y + x.sum(0), x * 2 - y, x.flip(0)), donate_argnums=(0, 1))
    x, y = floats(6, 4), floats(6, 4, seed=1)
    expected = static.function(lambda x, y: (y + x.sum(0), x * 2 - y, x.flip(0)))(x, y)
    for _ in range(3):
        for found, wanted in zip(f(x.copy(), y.copy()), expected, strict=True):
            assert_same_bits(found, wanted, "result")


def test_a_result_twice_and_an_argument_as_it_is():
    f = static.function(lambda x: (lambda y: (x, y, y))(x + 1), donate_argnums=0)
    x = floats(5)
    expected = x + 1, x.copy()
    before, first, second = f(x)
    assert first.payload is x
    assert second is first
    assert_same_bits(first, expected[0], "first")
    assert_same_bits(before, expected[1], "the argument")
    assert not np.may_share_memory(before, x)


def test_overlapping_arguments_are_read_as_they_were():
    f = static.function(lambda x, y: x * 2 + y, donate_argnums=0)
    memory = floats(12)
    x, y = memory[:8], memory[4:]
    expected = x * 2 + y
    for call in range(3):
        memory[:] = floats(12)
        assert f(x, y).payload is x
        assert_same_bits(x, expected, f"call {call}")
        assert_same_bits(memory[8:], floats(12)[8:], "the rest")


def test_the_same_memory_twice_is_refused():
    f = static.function(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))
    x = floats(4)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="shares memory"):
            f(x, x)
        assert_same_bits(x, floats(4), "x")
        f(floats(4), floats(4))


def test_what_is_left_alone():
    f = static.function(lambda x: x * 2, donate_argnums=0)
    readonly, parameter = floats(4), Parameter(floats(4))
    readonly.flags.writeable = False
    with static.no_grad():
        for _ in range(2):
            f(floats(4))
            for x in (readonly, parameter, floats(4).astype(">f4"), floats(8)[::2]):
                before = np.array(x)
                assert_same_bits(f(x), (before * 2).astype(np.float32), "result")
                if x is readonly or x is parameter:
                    assert_same_bits(x, before, "argument")
    wanted = static.tensor(floats(4), requires_grad=True)
    f(wanted).sum().backward()
    assert_same_bits(wanted.detach(), floats(4), "argument")


def test_a_tensor_is_donated_and_the_write_is_noticed():
    f = static.function(lambda x: x * 2, donate_argnums=0)
    w = Parameter(floats(4))
    for _ in range(3):
        x = static.tensor(floats(4))
        y = (w * x).sum()
        memory = x.payload
        assert f(x).payload is memory
        assert_same_bits(x, floats(4) * 2, "argument")
        with pytest.raises(GradientError, match="modified by an inplace operation"):
            y.backward()


def test_a_call_that_fails_leaves_donated_arrays_as_they_were():
    f = static.function(lambda x, i: static.index_select(x * 2, 0, i), donate_argnums=0)
    x = floats(3, 2)
    for _ in range(2):
        with pytest.raises(IndexRangeError):
            f(x, np.array([0, 1, 3]))
        assert_same_bits(x, floats(3, 2), "x")
        f(floats(3, 2), np.array([0, 1, 2]))


def test_options_are_checked():
    for bad in (-1, (0, "x"), 1.5):
        with pytest.raises((ArgumentError, TypeError)):
            static.function(heat, donate_argnums=bad)


# ------------------------------------------------------------------ given arrays


def test_results_are_written_to_given_arrays():
    w = Parameter(floats(4, 2))
    f = static.function(lambda x: (static.tanh(x @ w), {"sum": x.sum(), "big": x.reshape(-1)}))
    out = np.empty((20_000, 2), np.float32), {"sum": np.empty((), np.float32), "big": np.empty(80_000, np.float32)}
    call = f.into(out)
    for seed in range(4):
        x = floats(20_000, 4, seed=seed)
        assert call(x) is out
        with static.no_grad():
            wanted = f(x)
        assert_same_bits(out[0], wanted[0], "first")
        assert_same_bits(out[1]["sum"], wanted[1]["sum"], "sum")
        assert_same_bits(out[1]["big"], wanted[1]["big"], "big")
        assert not np.may_share_memory(wanted[0], out[0])


def test_into_calls_natively_and_leaves_gradients(monkeypatch):
    w = Parameter(floats(3))

    @static.function
    def step(x):
        w.grad = None
        loss = (x * w).sum()
        loss.backward()
        with static.no_grad():
            w.sub_(w.grad * 0.1)
        return loss

    out = np.empty((), np.float32)
    call = step.into(out)
    call(floats(3))
    monkeypatch.setattr(Plan, "__call__", None)
    before = np.array(w)
    call(floats(3, seed=1))
    assert_same_bits(out, np.array(dynamic.tensor(floats(3, seed=1) * before).sum()), "loss")
    assert_same_bits(w.grad.numpy(), floats(3, seed=1), "gradient")


def test_new_sizes_and_other_functions_of_state_go_the_general_way():
    f = static.function(lambda x, y: x.sum(0) + y)
    out = np.empty(3, np.float32)
    call = f.into(out)
    for n in (4, 4, 5, 5, 4):
        x = floats(n, 3)
        call(x, floats(3))
        assert_same_bits(out, f(x, floats(3)), "sum")
    call(x=floats(2, 3), y=floats(3))
    assert_same_bits(out, f(floats(2, 3), floats(3)), "sum")
    call(dynamic.tensor(floats(6, 3)), floats(3))
    assert_same_bits(out, f(floats(6, 3), floats(3)), "sum")
    static.set_num_threads(2)
    try:
        for seed in (1, 2):
            call(floats(4, 3, seed=seed), floats(3))
            assert_same_bits(out, f(floats(4, 3, seed=seed), floats(3)), "two threads")
    finally:
        static.set_num_threads(1)
    interpreted = static.function(lambda x: x * 2, interpret=True).into(out)
    interpreted(floats(3))
    assert_same_bits(out, floats(3) * 2, "interpreted")


@pytest.mark.parametrize("again", [False, True])
def test_given_arrays_that_overlap_are_refused(again):
    w = Parameter(floats(4))
    f = static.function(lambda x: (x * 2 + w, x - w))
    memory = np.zeros(6, np.float32)
    first, second, x = memory[:4], np.zeros(4, np.float32), floats(4)
    call = f.into((first, second))
    if again:
        call(x)
    for bad in (memory[2:], second, first):
        with pytest.raises(ArgumentError, match="overlaps"):
            call(bad)
    with pytest.raises(ArgumentError, match="array 1 for results overlaps"):
        f.into((memory[:4], memory[2:]))(x)
    with pytest.raises(ArgumentError, match="array 0 for results overlaps"):
        f.into((w.numpy(), second))(x)
    call(x)
    assert_same_bits(first, x * 2 + w.numpy(), "first")


def test_given_arrays_must_fit():
    f = static.function(lambda x: x * 2)
    for bad in (np.zeros((4, 4), np.float32).T[:, :3], [1.0], dynamic.zeros(3), np.zeros(3, ">f4")):
        with pytest.raises(ArgumentError):
            f.into(bad)
    readonly = floats(3)
    readonly.flags.writeable = False
    with pytest.raises(ArgumentError, match="writeable"):
        f.into(readonly)
    with pytest.raises(ShapeError, match=r"`out` has shape \(4,\), the result has \(3,\)"):
        f.into(np.empty(4, np.float32))(floats(3))
    with pytest.raises(DTypeError, match="has dtype float64, the result has float32"):
        f.into(np.empty(3))(floats(3))
    with pytest.raises(ArgumentError, match="returns"):
        f.into((np.empty(3, np.float32),))(floats(3))
    with pytest.raises(ArgumentError, match="part of the tape"):
        f.into(np.empty(3, np.float32))(dynamic.tensor(floats(3), requires_grad=True))
    with pytest.raises(ArgumentError, match="donated"):
        static.function(lambda x: x * 2, donate_argnums=0).into(np.empty(3, np.float32))(floats(3))
    with pytest.raises(ArgumentError, match="from outside"):
        static.function(lambda x: f.into(np.empty(3, np.float32))(x))(floats(3))


# ------------------------------------------------------------------ nested arguments and results

TREES = [
    ({"w": 1, "b": (2, None)}, 3),
    ([], {}, (), None, 4),
    (Pair(1, [2, {"x": Pair(3, 4)}]),),
    ((1, 2, 3), [4, 5], {"a": 6, "b": 7}),
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_trees_are_taken_apart_and_put_together(tree):
    leaves, structure = flatten(tree)
    take = taker(structure)
    assert list(take(tree)) == leaves
    assert nester(structure, [None] * len(leaves))(tuple(leaves)) == tree == unflatten(structure, leaves)
    for other in (*TREES, 5, None, tree[:-1], [*tree], (*tree, 6)):
        found = take(other)
        assert (found is not None) == (type(other) is tuple and flatten(other)[1] == structure)


def test_nested_arguments_are_one_native_call(monkeypatch):
    f = static.function(lambda p, x: ({k: v - x.sum() for k, v in p.items()}, Pair(x, [x * 2, "text"])))
    p, x = {f"w{i}": floats(3, seed=i) for i in range(4)}, floats(2)
    plain = f(p, x)
    monkeypatch.setattr(Plan, "__call__", None)
    found = f(p, x)
    assert flatten(found)[1] == flatten(plain)[1]
    for a, b in zip(flatten(found)[0], flatten(plain)[0], strict=True):
        if isinstance(a, np.ndarray):
            assert_same_bits(a, b, "leaf")
    monkeypatch.undo()
    q = dict(reversed(p.items()))
    assert list(f(q, x)[0]) == list(q)
    assert_same_bits(f(q, x)[0]["w0"], plain[0]["w0"], "other order")
    assert_same_bits(f(p, x)[0]["w3"], plain[0]["w3"], "first order")


def test_views_that_one_op_makes_are_made_once_per_call(monkeypatch):
    from static.jit import same_objects

    made, apply = [], same_objects.apply
    monkeypatch.setattr(same_objects, "apply", lambda *x: made.append(x) or apply(*x))
    rows = static.function(lambda x: (*static.unbind(x.t(), 1), x[0], x[0]))
    x = static.tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    for count in (5, 10):  # of the transpose, of its rows, and two of a row of their own, one for the first of both
        parts = rows(x)
        assert len(made) <= count
        parts[2].add_(1)
        assert parts[4] is not parts[5]
        for part, row in zip(parts[:4], x.numpy(), strict=True):
            assert_same_bits(part.numpy(), row, "rows")
