"""Graphs as long as memory allows: nothing recurses, and the garbage collector does not eat what they gain."""

import gc
import sys

import pytest

import dynamic as tw
from common.tensor import tape_garbage
from common.tensor.node import next_number
from common.tensor.tape_garbage import LONGEST, MANY, _Postponement


def chain(x, n):
    y = x
    for _ in range(n // 2):
        y = y * 1.0 + 0.25
    return y


@pytest.mark.parametrize("create_graph", [False, True])
def test_long_graphs_are_differentiated_and_freed_without_recursion(create_graph):
    x = tw.tensor([0.5, -2.0], requires_grad=True)
    tw.autograd.grad(chain(x, 10).sum(), x, create_graph=create_graph)  # compiles and imports
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_depth() + 60)
    try:
        y = chain(x, 20_000).sum()
        (g,) = tw.autograd.grad(y, x, create_graph=create_graph)
        found = g.tolist()
        del y, g
    finally:
        sys.setrecursionlimit(limit)
    assert found == [1.0, 1.0]


def test_long_chains_of_views_are_freed_without_recursion():
    x = tw.zeros(4).requires_grad_()
    y = x
    for _ in range(50_000):
        y = y.reshape(4)
    y.sum().backward()
    del y


def _depth():
    depth, frame = 0, sys._getframe(1)
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


@pytest.fixture
def collected(monkeypatch):
    """Puts the third threshold where nodes of a number meet so many full collections, which freed so much."""
    before, fresh, done = gc.get_threshold(), _Postponement(), [0, 0]
    monkeypatch.setattr(gc, "get_stats", lambda: [{}, {}, dict(zip(("collections", "collected"), done, strict=True))])
    gc.set_threshold(700, 10, 10)

    def found(freed, new_nodes, full=1):
        done[0], done[1] = done[0] + full, done[1] + freed
        fresh.look(fresh.number + new_nodes)
        return gc.get_threshold()

    found.fresh = fresh
    yield found
    gc.set_threshold(*before)
    tape_garbage.waiting, tape_garbage.due = False, next_number()


def test_full_collections_are_put_off_while_the_tape_grows(collected):
    assert collected(0, MANY + 1) == (700, 10, 100)
    assert collected(0, MANY + 1) == (700, 10, LONGEST)
    assert collected(0, 5, 0) == collected(0, MANY + 1) == (700, 10, LONGEST)
    assert collected(0, 5) == (700, 10, 10)  # the tape grows no more
    assert collected(0, 3 * MANY, 3) == (700, 10, 100)
    assert collected(0, 3 * MANY, 5) == (700, 10, 10)  # in which few nodes came to each
    assert collected(0, MANY + 1) == (700, 10, 100)
    assert collected(3, MANY + 1) == (700, 10, 10)  # there was garbage


def test_short_passes_give_back_what_was_put_off(collected):
    assert collected(0, MANY + 1) == (700, 10, 100)
    collected.fresh.passed(2 * MANY)
    assert gc.get_threshold() == (700, 10, 100)
    assert tape_garbage.waiting
    collected.fresh.passed(2 * MANY + 7)
    assert gc.get_threshold() == (700, 10, 10)
    assert not tape_garbage.waiting


def test_thresholds_of_the_program_are_its_own(collected):
    collected(0, MANY + 1)
    gc.set_threshold(900, 5, 7)
    assert collected(0, 5) == (900, 5, 7)
    gc.set_threshold(900, 5, 5000)
    assert collected(0, MANY + 1) == (900, 5, 5000)
    assert collected(0, 5) == (900, 5, 5000)
    collected(0, MANY + 1)
    gc.set_threshold(900, 5, 70)
    collected.fresh.passed(MANY)
    assert gc.get_threshold() == (900, 5, 70)


def test_nodes_look_and_passes_give_back():
    x = tw.tensor([0.5, -2.0], requires_grad=True)
    before, limit = gc.get_threshold(), tape_garbage.EVERY
    chain(x, 10).sum().backward()
    looked = tape_garbage.due
    y = chain(x, 2 * limit)
    assert tape_garbage.due > looked
    looked = tape_garbage.due
    y = y.reshape(2, 1)
    for _ in range(limit):  # nodes of other ops, too
        y = y.exp2().log2()
    assert tape_garbage.due > looked
    y.sum().backward()
    gc.set_threshold(before[0], before[1], before[2])


def test_the_collector_calls_nothing_of_ours():
    """An exception of Ctrl-C in a callback of the collector is lost."""
    assert not [f for f in gc.callbacks if (getattr(f, "__module__", None) or "").startswith(("common", "static"))]
