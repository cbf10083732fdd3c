"""Equal data of another kind have another key; data that are not plain have none."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
from common.core.dispatch import Attrs, interned
from common.core.plain_data import NotPlainError, identity
from common.core.size_tuples import Size
from common.core.sizes import DimScope

DISTINCT = [
    1, 1.0, True, 0, 0.0, -0.0, False, None, "1", "", (), Size(()), (1,), (1.0,), (True,), ((1,),), Size((1,)),
    (0.0,), (-0.0,), np.dtype(np.float32), np.dtype(np.float64), (np.dtype(np.float32), 1),
]  # fmt: skip


def traced_size():
    return DimScope(None, None).input(0, 0, 5)


def test_plain_data_is_told_apart():
    assert len({identity(x) for x in DISTINCT}) == len(DISTINCT)
    assert len({id(interned({"value": x})) for x in DISTINCT}) == len(DISTINCT)
    assert interned({"a": 1}) is not interned({"b": 1})


@pytest.mark.parametrize("x", DISTINCT)
def test_equal_attributes_are_one_object(x):
    first = interned({"value": x, "dim": (1, 0)})
    assert type(first) is Attrs
    assert first == {"value": x, "dim": (1, 0)}
    assert interned({"value": x, "dim": (1, 0)}) is first


@pytest.mark.parametrize(
    "x",
    [[1], float("nan"), np.float32(1), np.ones(1), dynamic.ones(1), traced_size(), object(), {}],
    ids=lambda x: type(x).__name__,
)
def test_all_else_is_left_as_it_is(x):
    for value in (x, (1, x), Size((1, x)), ((x,),)):
        with pytest.raises(NotPlainError):
            identity(value)
        attrs = {"value": value}
        assert interned(attrs) is attrs
