"""Stand-ins, on which functions are written down to be remembered, have a form and nothing else."""

from __future__ import annotations

import numpy as np

import dynamic
import dynamic.nn.functional as F
from dynamic.eager import remembered
from tests.bits import assert_all_same_bits


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


def test_a_choice_between_a_result_and_itself_is_that_result_but_two_results_have_memory_of_their_own():
    index, weight = dynamic.tensor([[1, 2], [2, 0]]), dynamic.tensor([[0.5, -0.0], [float("nan"), 3.0], [1.0, 2.0]])
    wide = dynamic.tensor([[[[True]]], [[[False]]]])

    def chosen(index, weight):
        rows = dynamic.embedding(index, weight)
        return rows, dynamic.where((index == 2).unsqueeze(-1), rows.detach(), rows)

    def one(index, weight):
        return chosen(index, weight)[1]

    def larger(index, weight):
        rows = dynamic.embedding(index, weight)
        return dynamic.where(wide, rows, rows)

    for function in (chosen, one, larger, lambda index, weight: dynamic.where(index == 2, index, index)):
        expected, found = function(index, weight), remembered._learnt(function, [index, weight])(index, weight)
        several = isinstance(found, tuple)
        assert_all_same_bits(found if several else [found], expected if several else [expected], "remembered")
        arrays = [x.numpy() for x in (found if several else [found])]
        assert not several or not np.shares_memory(*arrays)
        assert not any(np.shares_memory(x, index.numpy()) for x in arrays)


def test_a_function_that_asks_whether_its_operand_requires_grad_is_not_remembered():
    def double(x):
        return x * 2 if getattr(x, "requires_grad", False) else x + x

    def left(x):
        return x * 2 if getattr(x, "grad", None) is None else x + x

    assert remembered._learnt(double, [dynamic.ones(2)]) is None
    assert remembered._learnt(left, [dynamic.ones(2)]) is None
    assert remembered._learnt(lambda x: x * 2, [dynamic.ones(2)]) is not None
