"""The standing example of structure that is data: a tree-LSTM over syntax trees."""

import ast
import gc

import numpy as np
import pytest

import dynamic as tw
from benchmarks.tree_lstm import KINDS, MASKED, Training, Tree, build, tree_of, trees
from common.tensor.node import Node, next_number
from dynamic.autograd import graph


def function(text):
    return tree_of(ast.parse(text).body[0])


def test_trees_are_those_of_the_parser():
    tree = function("def f(x):\n    while x:\n        x -= 1\n")
    names = {number: name for name, number in KINDS.items()} | {MASKED: "?"}
    assert [names[k] for k in tree.kinds] == [
        "arg", "arguments", "Name", "Name", "Sub", "Constant", "AugAssign", "?", "FunctionDef",
    ]  # fmt: skip
    assert tree.children == [[], [0], [], [], [], [], [3, 4, 5], [2, 6], [1, 7]]
    assert tree.has_loop
    powers = function("def f(x):\n    return (x ** 2) ** (3 ** x)\n")  # the parser has one object for all powers
    assert powers.children[-3:] == [[5, 6, 10], [11], [1, 12]]
    other = function("def f(x):\n    if x:\n        x -= 1\n")
    assert other.kinds.tolist() == tree.kinds.tolist()  # a loop cannot be told by its own node
    assert not other.has_loop


def test_examples_differ_in_size_and_hold_both_answers():
    examples = trees(100)
    assert len(examples) == 100
    assert len({len(t.kinds) for t in examples}) > 20
    assert 10 < sum(t.has_loop for t in examples) < 90
    for tree in examples:
        assert all(child < i for i, below in enumerate(tree.children) for child in below)
        assert sorted(child for below in tree.children for child in below) == list(range(len(tree.kinds) - 1))


def test_it_learns():
    everything = sorted(trees(300), key=lambda t: len(t.kinds))
    examples = [t for pair in zip(*([t for t in everything if t.has_loop is x][:12] for x in (True, False)),
                                  strict=True) for t in pair]  # fmt: skip
    training = Training(tw, width=16, lr=0.02)
    losses = [training.epoch(examples) for _ in range(8)]
    assert losses[-1] < 0.3 * losses[0]
    assert training.accuracy(examples) > 0.85


def test_gradients_are_those_of_differences():
    model = build(tw, 5).double()
    rng = np.random.default_rng(3)
    parameters = list(model.parameters())
    with tw.no_grad():
        for p in parameters:
            p.copy_(tw.tensor(rng.uniform(-0.7, 0.7, tuple(p.shape))))
    tree = function("def f(x, y):\n    for i in x:\n        y = y + i * (x - y)\n    return y\n")

    def loss():
        return tw.nn.functional.cross_entropy(model(tw.tensor(tree.kinds), tree.children), tw.tensor([1]))

    loss().backward()
    directions = [rng.normal(size=tuple(p.shape)) for p in parameters]
    slope = sum(float((p.grad.numpy() * d).sum()) for p, d in zip(parameters, directions, strict=True))
    values, step = [], 1e-5
    for sign in (1, -2):
        with tw.no_grad():
            for p, d in zip(parameters, directions, strict=True):
                p.add_(tw.tensor(d * step * sign))
        values.append(loss().item())
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(slope, rel=1e-8)


def test_each_tree_is_a_graph_of_its_own_which_is_freed():
    training = Training(tw, width=4)
    counts, start = [], next_number()
    gc.collect()
    gc.disable()
    try:
        for tree in trees(5):
            loss = training.loss(tree)
            nodes = [n for n in graph.iter_graph(loss) if isinstance(n, Node)]
            counts.append((len(nodes), len(tree.kinds)))
            del nodes, loss
            assert not [x for x in gc.get_objects() if type(x) is Node and x.number > start]
    finally:
        gc.enable()
    assert len({nodes for nodes, _ in counts}) == 5
    assert all(6 * size < nodes < 30 * size for nodes, size in counts)


def test_deep_trees_need_no_deep_stack():
    depth = 3000
    tree = Tree(np.zeros(depth, np.int64), [[], *([i] for i in range(depth - 1))], False)
    training = Training(tw, width=2)
    loss = training.loss(tree)
    loss.backward()
    assert np.isfinite(loss.item())
    assert all(p.grad is not None for p in training.model.parameters())
