"""Sums and differences whose second operand has a factor, in the dtype of the result."""

import pytest

import dynamic
import static


@pytest.mark.parametrize("engine", [dynamic, static])
def test_whole_numbers_take_their_factor_in_the_dtype_of_the_result(engine):
    int8, int64 = engine.tensor([100, 2], dtype=engine.int8), engine.tensor([1, 2])
    uint8, bools = engine.tensor([1, 2], dtype=engine.uint8), engine.tensor([True, False])
    zero, low = engine.tensor(2.0, dtype=engine.float64), engine.tensor([[1.0]], dtype=engine.float64)
    cases = [
        (engine.add, int64, int8, 3, [301, 8], engine.int64),
        (engine.add, uint8, int8, 3, [301, 8], engine.int16),
        (engine.sub, uint8, int8, 3, [-299, -4], engine.int16),
        (engine.rsub, int8, int64, 3, [-299, -4], engine.int64),
        (engine.add, int8, bools, 3, [103, 2], engine.int8),
        (engine.add, int8, int64, 3, [103, 8], engine.int64),
        (engine.add, zero, int64, 0.5, [2.5, 3.0], engine.float64),
        (engine.sub, zero, int64, 2.0, [0.0, -2.0], engine.float64),
        (engine.add, low[0], int64, 0.1, [1.1, 1.2], engine.float64),
    ]
    for op, a, b, alpha, wanted, dtype in cases:
        for f in (op, engine.function(lambda a, b, op=op, alpha=alpha: op(a, b, alpha=alpha))):
            y = f(a, b) if f is not op else f(a, b, alpha=alpha)
            assert (y.tolist(), y.dtype) == (wanted, dtype), (op.__name__, alpha)
    assert int64.clone().add_(int8, alpha=3).tolist() == [301, 8]
