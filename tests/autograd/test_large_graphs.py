"""Graphs as long as memory allows: nothing recurses, and the garbage collector does not eat what they gain."""

import gc
import sys

import pytest

import dynamic as tw
from common.autograd import tape_garbage
from common.autograd.tape_garbage import LONGEST, MANY, postponement


def chain(x, n):
    y = x
    for _ in range(n // 2):
        y = y * 1.0 + 0.25
    return y


@pytest.mark.parametrize("create_graph", [False, True])
def test_long_graphs_are_differentiated_and_freed_without_recursion(create_graph):
    x = tw.tensor([0.5, -2.0], requires_grad=True)
    chain(x, 10).sum().backward()  # compiles
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
def thresholds():
    gc.collect()
    before, put = gc.get_threshold(), postponement.put
    yield before
    gc.set_threshold(*before)
    postponement.put = put


def collected(found, new_nodes):
    postponement.number = tape_garbage.next_number() - new_nodes
    postponement("stop", {"generation": 2, "collected": found})
    return gc.get_threshold()


def test_full_collections_are_put_off_while_the_tape_grows(thresholds):
    gc.set_threshold(700, 10, 10)
    assert collected(0, MANY + 1) == (700, 10, 100)
    assert collected(0, MANY + 1) == (700, 10, LONGEST)
    assert collected(0, MANY + 1) == (700, 10, LONGEST)
    assert collected(0, 5) == (700, 10, 10)  # the tape grows no more
    assert collected(0, MANY + 1) == (700, 10, 100)
    assert collected(3, MANY + 1) == (700, 10, 10)  # there was garbage


def test_thresholds_of_the_program_are_its_own(thresholds):
    gc.set_threshold(700, 10, 10)
    collected(0, MANY + 1)
    gc.set_threshold(900, 5, 7)
    assert collected(0, 5) == (900, 5, 7)
    gc.set_threshold(900, 5, 5000)
    assert collected(0, MANY + 1) == (900, 5, 5000)
    assert collected(0, 5) == (900, 5, 5000)


def test_the_collector_asks():
    assert gc.callbacks.count(postponement) == 1
