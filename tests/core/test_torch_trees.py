"""utils._pytree: PyTorch's signatures, and None as a leaf."""

from collections import OrderedDict, namedtuple

import pytest

import dynamic
import static
from common.core.errors import ArgumentError

Pair = namedtuple("Pair", "a b")
TREE = {"b": [1, None, (2.0,)], "a": Pair("x", OrderedDict(k=dynamic.ones(2)))}


@pytest.mark.parametrize("engine", [dynamic, static])
def test_trees_are_taken_apart_and_put_together(engine):
    trees = engine.utils._pytree
    leaves, spec = trees.tree_flatten(TREE)
    assert leaves[:4] == [1, None, 2.0, "x"]
    assert leaves[4] is TREE["a"].b["k"]
    assert trees.tree_leaves(TREE) == leaves
    assert trees.tree_structure(TREE) == spec
    again = trees.tree_unflatten(leaves, spec)
    assert again == TREE
    assert type(again["a"]) is Pair
    with pytest.raises(ArgumentError, match="5 leaves"):
        trees.tree_unflatten([1], spec)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_maps_over_trees(engine):
    trees = engine.utils._pytree
    assert trees.tree_map(lambda x: x is None, [None, {"a": 1}]) == [True, {"a": False}]
    assert trees.tree_map(lambda x, y: (x, y), [1, 2], [3, [4]]) == [(1, 3), (2, [4])]
    assert trees.tree_map(len, [[1, 2], [3]], is_leaf=lambda x: x != [[1, 2], [3]]) == [2, 1]
    assert trees.tree_map_only((int, float), lambda x: -x, (1, "a", 2.0)) == (-1, "a", -2.0)
    assert trees.tree_any(lambda x: x is None, TREE)
    assert not trees.tree_all(lambda x: x is None, TREE)
