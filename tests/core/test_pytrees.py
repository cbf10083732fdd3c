"""`tree_util`: own classes as nodes of trees, everywhere in both engines."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError
from common.core.pytrees import (
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    tree_all,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_reduce,
    tree_structure,
    tree_unflatten,
)

pytestmark = pytest.mark.quick
Point = namedtuple("Point", ["x", "y"])


@register_dataclass
@dataclass
class Layer:
    weight: object
    bias: object
    name: str = field(default="", metadata={"static": True})


class Pair:
    def __init__(self, first, second, kind="pair"):
        self.first, self.second, self.kind = first, second, kind


register_pytree_node(Pair, lambda p: ((p.first, p.second), p.kind), lambda kind, parts: Pair(parts[0], parts[1], kind))


class Keyed(Pair):
    pass


register_pytree_with_keys(
    Keyed,
    lambda p: ((("first", p.first), ("second", p.second)), p.kind),
    lambda kind, parts: Keyed(parts[0], parts[1], kind),
)
TREES = [
    3, None, (), [1, (2, None)], {"b": 1, "a": [2]}, Point(1, (2, 3)), OrderedDict([("z", 1), ("a", 2)]),
    Layer(1, [2, 3], "first"), [Layer(1, None), {"k": Layer(2, 3, "n")}],
]  # fmt: skip


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_a_tree_is_its_leaves_and_its_structure(tree):
    leaves, structure = tree_flatten(tree)
    assert tree_unflatten(structure, leaves) == tree
    assert leaves == tree_leaves(tree)
    assert structure == tree_structure(tree)
    assert hash(structure) == hash(tree_structure(tree_map(str, tree)))
    assert structure.num_leaves == len(leaves)
    assert tree_map(lambda a, b: a - b, tree, tree) == tree_unflatten(structure, [0] * len(leaves))
    assert tree_reduce(lambda a, b: a + b, tree, 0) == sum(leaves)
    with pytest.raises(ArgumentError, match="leaves"):
        structure.unflatten([*leaves, 1])


def test_structures_tell_data_and_classes_apart_but_not_the_order_of_keys():
    assert tree_structure(Layer(1, 2, "a")) == tree_structure(Layer(5, 6, "a"))
    for a, b in [
        (Layer(1, 2, "a"), Layer(1, 2, "b")),
        ((1,), [1]),
        ({"a": 1}, {"b": 1}),
    ]:
        assert tree_structure(a) != tree_structure(b)
        with pytest.raises(ArgumentError, match="different ways"):
            tree_map(max, a, b)
    assert tree_structure({"a": 1, "b": 2}) == tree_structure({"b": 1, "a": 2})
    assert tree_map(lambda x, y: x - y, {"a": 5, "b": 7}, {"b": 1, "a": 2}) == {"a": 3, "b": 6}
    assert repr(tree_structure([Layer(1, (2,), "n")])) == "PyTreeDef([Layer[('n',)](*, (*,))])"


def test_leaves_may_be_trees():
    assert tree_leaves([(1, 2), {"a": (3, 4)}], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), (3, 4)]
    assert tree_map(len, [(1, 2), None, (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, None, 1]
    assert tree_map(lambda x, y: (x, y), {"a": 1}, {"a": [2, 3]}) == {"a": (1, [2, 3])}
    assert tree_all([True, {"a": True}])
    assert not tree_all([True, False])


def test_what_cannot_be_registered():
    class Known(Pair):
        pass

    register_pytree_node(Known, lambda p: ((p.first,), [p.second]), lambda _, parts: Known(*parts, 0))
    for wrong in (3, dict, tuple, Point, Layer):
        with pytest.raises(ArgumentError):
            register_pytree_node(wrong, lambda x: ((), None), lambda _, parts: None)
    with pytest.raises(ArgumentError, match="hashable"):
        tree_flatten(Known(1, 2))
    with pytest.raises(ArgumentError, match="tree_flatten"):
        register_pytree_node_class(type("Nothing", (), {}))
    with pytest.raises(ArgumentError, match="each field"):
        register_dataclass(dataclass(type("Two", (), {"__annotations__": {"a": int, "b": int}})), ["a"], [])
    with pytest.raises(ArgumentError, match="no dataclass"):
        register_dataclass(type("None", (), {}))


X = np.array([[0.5, -1.0], [2.0, 0.25]])


def test_transforms_and_compiled_functions_take_and_give_nodes():
    results = []
    for tw in (dynamic, static):

        def loss(layer, pair, tw=tw):
            h = tw.tanh(pair.first @ layer.weight + layer.bias) * (2 if pair.kind == "twice" else 1)
            return (h * pair.second).sum()

        made = lambda kind: (Layer(X, X[0], "l"), Keyed(X * 2, X[1], kind))  # noqa: E731
        f, g = tw.function(loss), tw.function(tw.grad(loss, (0, 1)))
        values = [f(*made(kind)) for kind in ("once", "twice", "once")]
        layer, pair = g(*made("once"))
        assert (type(layer), type(pair), layer.name, pair.kind) == (Layer, Keyed, "l", "once")
        rows = tw.vmap(lambda layer: Pair(layer.bias * 2, layer.weight.sum()), in_dims=(Layer(0, None, "l"),))
        mapped = rows(Layer(tw.as_tensor(X), tw.as_tensor(X), "l"))
        out = tw.function(lambda p: Pair({"a": p.first * 2}, p.second))(Pair(X, X[0]))
        results.append([*values, *tree_leaves((layer, pair, mapped, out))])
    assert float(results[0][1]) == 2 * float(results[0][0]) == 2 * float(results[0][2])
    np.testing.assert_allclose(results[0][0], (np.tanh(X * 2 @ X + X[0]) * X[1]).sum())
    for a, b in zip(*results, strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()
