"""Copies and pickles of tensors, as PyTorch has them."""

import copy
import pickle

import numpy as np
import pytest

import dynamic
from common.core import errors
from tests.bits import assert_all_same_bits
from tests.helpers.copied import ENGINES, WAYS, X, array, flat, halve, loss, scaled


def leaf(engine):
    x = engine.tensor(X, requires_grad=True)
    loss(x).backward()
    return x


TENSORS = {
    "tensor": lambda tw: tw.tensor(X),
    "leaf": leaf,
    "parameter": lambda tw: tw.nn.Parameter(X),
    "buffer": lambda tw: tw.nn.BatchNorm1d(3).running_mean,
    "frozen": lambda tw: tw.nn.Parameter(X, requires_grad=False),
    "transposed": lambda tw: tw.tensor(X).t(),
    "permuted": lambda tw: tw.tensor(X).reshape(2, 2, 3).permute(2, 0, 1).clone(),
    "window": lambda tw: tw.tensor(X)[1:3, ::2],
    "expanded": lambda tw: tw.tensor(X[:1]).expand(5, 3),
    "flipped": lambda tw: tw.from_numpy(X[::-1]),
    "empty": lambda tw: tw.tensor(X)[:0],
    "zero-dimensional": lambda tw: tw.tensor(2.5, dtype=tw.float64),
    "bools": lambda tw: tw.tensor(X) > 0,
    "integers": lambda tw: tw.arange(5)[1:],
    "of an array": lambda tw: tw.from_numpy(X.copy()),
    "read-only": lambda tw: tw.from_numpy(np.broadcast_to(X, (2, 4, 3))),
    "compiled": lambda tw: tw.function(scaled)(tw.tensor(X)),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TENSORS)
def test_another_tensor_is_a_leaf_with_the_same_elements_and_strides(name, engine):
    for way, other in WAYS.items():
        x = TENSORS[name](engine)
        y = other(x)
        assert_all_same_bits([array(y)], [array(x)], way)
        assert (type(y), y.requires_grad, y.is_leaf) == (type(x), x.requires_grad, True), way
        assert getattr(y, "name", None) == getattr(x, "name", None)
        if x.numel() > 0 and name not in ("flipped", "read-only"):  # of arrays that are made of others without a rule
            assert y.payload.strides == x.payload.strides, way
        assert np.shares_memory(y.payload, x.payload) == (way == "copy" and x.numel() > 0), way
        assert (y.grad is not None) == (way == "deepcopy" and name == "leaf"), way
        if way != "copy" and name != "expanded":
            with engine.no_grad():
                y.zero_()  # memory that can be written
            assert not array(y).any()
            assert_all_same_bits([array(x)], [array(TENSORS[name](engine))], "the original")


@pytest.mark.parametrize("way", ["deepcopy", "pickle 2", "pickle 5", "pickle 5 out of band"])
def test_what_shares_memory_shares_it_afterwards(way):
    base = dynamic.zeros(3, 4)
    alias, row, column = base.detach(), base[1], base.t()[2]
    parts = WAYS[way]({"base": base, "parts": [alias, row, column], "again": base})
    assert parts["again"] is parts["base"]
    alias, row, column = parts["parts"]
    row.fill_(1.0)
    column.add_(2.0)
    assert (
        parts["base"].tolist() == alias.tolist() == [[0.0, 0.0, 2.0, 0.0], [1.0, 1.0, 3.0, 1.0], [0.0, 0.0, 2.0, 0.0]]
    )
    assert not array(base).any()


def test_a_copy_shares_memory_and_forgets_gradients_hooks_and_history():
    x = dynamic.tensor(X, requires_grad=True)
    x.register_hook(loss)
    y = x * 2
    for other in (copy.copy(x), copy.copy(y)):
        assert other.is_leaf
        assert other.requires_grad
        assert other.grad is None
        (other * 3).sum().backward()
        assert_all_same_bits([array(other.grad)], [np.full_like(X, 3.0)], "gradient of the copy")
    assert x.grad is None


def test_a_pickle_of_a_tensor_with_hooks_warns_that_they_stay_behind():
    x = dynamic.tensor(X, requires_grad=True)
    x.register_hook(halve)
    with pytest.warns(UserWarning, match="halve.* on tensor will not be serialized"):
        y = pickle.loads(pickle.dumps(x))
    (y * 3).sum().backward()
    assert y.requires_grad
    p = dynamic.nn.Parameter(X)
    p.register_hook(halve)
    assert pickle.loads(pickle.dumps(p)).requires_grad


def test_tensors_with_history():
    y = dynamic.tensor(X, requires_grad=True) * 2
    with pytest.raises(errors.GradientError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(y)
    with pytest.raises(errors.GradientError, match="support the deepcopy protocol"):
        copy.deepcopy([y])
    z = pickle.loads(pickle.dumps(y))
    assert (z.is_leaf, z.requires_grad) == (True, True)
    with dynamic.inference_mode():
        marked = dynamic.tensor(X) * 2
    for other in WAYS.values():
        assert not other(marked).is_inference()


class Marked(dynamic.nn.Parameter):
    """A parameter with attributes."""


def test_attributes_of_a_class_of_the_users_go_along():
    p = Marked(X)
    p.parts = [dynamic.tensor(X)]
    for way, other in WAYS.items():
        q = other(p)
        assert type(q) is Marked
        assert (q.parts is p.parts) == (way == "copy")
        assert_all_same_bits([array(q.parts[0])], [X], way)


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_inside_a_function(engine):
    def f(x, w):
        a, b = copy.deepcopy(x), copy.copy(x)
        a += 1
        return a * w, b * 2

    x, w = engine.tensor(X), engine.tensor(X[0])
    assert_all_same_bits(flat(engine.function(f)(x, w)), [(X + 1) * X[0], X * 2], "copies")
    with pytest.raises(errors.GradientError, match="graph leaves"):
        engine.function(lambda x: copy.deepcopy(x * 2))(leaf(dynamic))
