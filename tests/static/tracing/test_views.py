"""Which results of a trace are views of its operands."""

from __future__ import annotations

import numpy as np
import pytest

import static
from static.tracing import recorder
from tests.static.compare import assert_compiles


@pytest.mark.parametrize("rows", [2, 300])
def test_one_look_tells_of_all_parts_of_an_op_whether_they_are_views(monkeypatch, rows):
    looked, placed = [], recorder.placed
    monkeypatch.setattr(recorder, "placed", lambda *given: looked.append(given) or placed(*given))
    static.function(lambda x: [static.sum(part) for part in static.unbind(x, 0)])(np.ones((rows, 2), np.float32))
    assert len(looked) <= 2


@pytest.mark.parametrize("turned", [False, True])
def test_writes_to_parts_are_writes_to_what_they_are_parts_of(turned):
    def program(x):
        y = x * 2
        first, second = (y.t().reshape(-1) if turned else y).chunk(2, 0)  # turned, they are parts of a copy
        first.mul_(3)
        second.add_(1)
        return y, first, second

    assert_compiles(program, (np.arange(24, dtype=np.float32).reshape(4, 6),))
