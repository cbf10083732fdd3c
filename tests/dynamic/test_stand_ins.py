"""Stand-ins, on which functions are written down to be remembered, have a form and nothing else."""

from __future__ import annotations

import dynamic
import dynamic.nn.functional as F
from dynamic.eager import remembered


def test_a_row_that_stays_gets_no_gradient_however_often_it_is_looked_up():
    """Beside what the definition says: the gradient (entries, width) is how often a row is looked up, or 0."""
    index, weight = dynamic.tensor([[1, 2], [2, 0]]), dynamic.ones(3, 2, requires_grad=True)
    for _ in range(2 * remembered.OFTEN):
        weight.grad = None
        F.embedding(index, weight, padding_idx=2).sum().backward()
        assert weight.grad.tolist() == [[1, 1], [1, 1], [0, 0]]
        weight.grad = None
        F.embedding(index, weight, scale_grad_by_freq=True).sum().backward()
        assert weight.grad.tolist() == [[1, 1], [1, 1], [1, 1]]
        assert not F.embedding(index, weight.detach(), padding_idx=2).requires_grad


def test_a_function_that_asks_whether_its_operand_requires_grad_is_not_remembered():
    def double(x):
        return x * 2 if getattr(x, "requires_grad", False) else x + x

    def left(x):
        return x * 2 if getattr(x, "grad", None) is None else x + x

    assert remembered._learnt(double, [dynamic.ones(2)]) is None
    assert remembered._learnt(left, [dynamic.ones(2)]) is None
    assert remembered._learnt(lambda x: x * 2, [dynamic.ones(2)]) is not None
