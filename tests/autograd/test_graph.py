"""Recorded graphs, and how gradients flow back through them."""

import sys
import threading

import numpy as np
import pytest

import dynamic as tw
from common.core.errors import GradientError, GraphFreedError

pytestmark = pytest.mark.quick


def leaf(*values, **options):
    return tw.tensor(list(values), requires_grad=True, **options)


NAMES = {
    "AddBackward0": lambda x: x + 1,
    "SubBackward0": lambda x: x - 1,
    "MulBackward0": lambda x: x * 2,
    "DivBackward0": lambda x: x / 2,
    "NegBackward0": lambda x: -x,
    "PowBackward0": lambda x: x**2,
    "ExpBackward0": lambda x: x.exp(),
    "LogBackward0": lambda x: x.log(),
    "TanhBackward0": lambda x: x.tanh(),
    "SigmoidBackward0": lambda x: x.sigmoid(),
    "ReluBackward0": lambda x: x.relu(),
    "SumBackward0": lambda x: x.sum(),
    "MeanBackward0": lambda x: x.mean(),
    "ViewBackward0": lambda x: x.view(4, 1),
    "PermuteBackward0": lambda x: x.view(2, 2).permute(1, 0),
    "ExpandBackward0": lambda x: x.expand(3, 4),
    "MmBackward0": lambda x: x.view(2, 2) @ x.view(2, 2),
    "CatBackward0": lambda x: tw.cat([x, x]),
    "CloneBackward0": lambda x: x.clone(),
    "ToCopyBackward0": lambda x: x.double(),
    "WhereBackward0": lambda x: tw.where(x > 2, x, 0.0),
    "LogSoftmaxBackward0": lambda x: x.log_softmax(0),
    "IndexSelectBackward0": lambda x: x.index_select(0, tw.tensor([1, 0])),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_nodes_have_pytorchs_names(name):
    y = NAMES[name](leaf(1.0, 2.0, 3.0, 4.0))
    assert y.grad_fn.name() == name
    assert name in repr(y)


def test_next_functions_lead_to_accumulators():
    x, w = leaf(1.0), leaf(2.0)
    y = (x * w) + 1
    ((product, output), constant) = y.grad_fn.next_functions
    assert (product.name(), output, constant) == ("MulBackward0", 0, (None, 0))
    (first, _), (second, _) = product.next_functions
    assert first.name() == second.name() == "AccumulateGrad"
    assert first.variable is x
    assert product.next_functions[0][0] is first


def test_leaves_and_results():
    x = leaf(1.0)
    y = x * 2
    assert (x.is_leaf, x.grad_fn, y.is_leaf, y.requires_grad) == (True, None, False, True)
    assert not (tw.tensor([1.0]) * 2).requires_grad
    assert not (x > 0).requires_grad
    assert not x.detach().requires_grad


def test_gradients_accumulate_over_passes():
    x = leaf(1.0, -2.0)
    for _ in range(3):
        (x * x).sum().backward()
    assert x.grad.tolist() == [6.0, -12.0]
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_intermediate_results_keep_no_grad():
    x = leaf(2.0)
    y = x * x
    y.sum().backward()
    assert y.grad is None


def test_a_given_cotangent():
    x = leaf(1.0, 2.0)
    (x * 3).backward(tw.tensor([1.0, -1.0]))
    assert x.grad.tolist() == [3.0, -3.0]
    (x * 3).backward(np.float32([0.0, 1.0]))
    assert x.grad.tolist() == [3.0, 0.0]


def test_backward_into_chosen_leaves_only():
    x, w = leaf(2.0), leaf(3.0)
    (x * w).sum().backward(inputs=[w])
    assert x.grad is None
    assert w.grad.tolist() == [2.0]


def test_backward_of_several_roots():
    x = leaf(2.0)
    tw.autograd.backward([x * 2, x * 5], [tw.tensor([1.0]), tw.tensor([10.0])])
    assert x.grad.tolist() == [52.0]


def test_backward_twice_names_both_lines():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(GraphFreedError, match="Trying to backward through the graph a second time") as caught:
        y.backward()
    first = test_backward_twice_names_both_lines.__code__.co_firstlineno
    assert f"test_graph.py:{first + 2}" in str(caught.value)
    assert f"test_graph.py:{first + 3}" in str(caught.value)


def test_retained_graphs_can_be_used_again():
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_a_part_can_be_freed_while_another_lives():
    x = leaf(3.0)
    shared = x * x
    a, b = shared.sum(), (shared * 2).sum()
    a.backward()
    with pytest.raises(GraphFreedError):
        b.backward()


@pytest.mark.parametrize("f", [lambda x: x + 1, lambda x: -x])
def test_nodes_that_save_nothing_can_run_twice(f):
    # as in PyTorch: only freed values forbid a second pass
    y = f(leaf(3.0))
    y.backward()
    y.backward()


def test_one_tensor_used_many_times():
    x = leaf(2.0)
    y = x
    for _ in range(10):
        y = y + x
    y.sum().backward()
    assert x.grad.tolist() == [11.0]


def test_order_of_accumulation_is_descending_program_order():
    # contributions of 1, 1e8 and -1e8 in float32: only one order gives each of the possible sums
    x = leaf(1.0)
    a = x * 1.0
    b = x * 1e8
    c = x * -1e8
    (a + b + c).sum().backward()
    assert x.grad.tolist() == [1.0]  # ((-1e8 + 1e8) + 1)
    x = leaf(1.0)
    b, a, c = x * 1e8, x * 1.0, x * -1e8
    (a + b + c).sum().backward()
    assert x.grad.tolist() == [0.0]  # ((-1e8 + 1) + 1e8)


def test_absent_is_not_zero():
    # a slot starts absent: 0.0 + -0.0 would lose the sign
    x = leaf(1.0)
    (x * -0.0).sum().backward()
    assert np.signbit(x.grad.numpy()).all()


def test_deep_graphs_need_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    assert sys.getrecursionlimit() < 100_000


def test_deep_graphs_are_freed_without_recursion():
    y = leaf(1.0)
    for _ in range(200_000):
        y = y * 1.0
    del y


def test_broadcast_gradients_have_the_operands_shape():
    x, w, s = leaf(1.0, 2.0, 3.0), tw.ones(4, 1).requires_grad_(), tw.tensor(2.0, requires_grad=True)
    (x * w * s).sum().backward()
    assert (x.grad.shape, w.grad.shape, s.grad.shape) == ((3,), (4, 1), ())
    assert x.grad.tolist() == [8.0] * 3
    assert w.grad.tolist() == [[12.0]] * 4
    assert s.grad.item() == 24.0


def test_gradients_have_the_operands_dtype():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0, dtype=tw.float64)
    (x * w).sum().backward()
    assert (x.grad.dtype, w.grad.dtype) == (tw.float32, tw.float64)


def test_no_grad_and_enable_grad():
    x = leaf(1.0)
    with tw.no_grad():
        assert not tw.is_grad_enabled()
        assert not (x * 2).requires_grad
        with tw.enable_grad():
            assert (x * 2).requires_grad
        with tw.set_grad_enabled(True):
            assert (x * 2).requires_grad
    assert tw.is_grad_enabled()

    @tw.no_grad()
    def f(x):
        return x * 2

    assert not f(x).requires_grad


def test_no_grad_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError), tw.no_grad():
        raise ZeroDivisionError
    assert tw.is_grad_enabled()


def test_threads_have_their_own_grad_mode_and_graphs():
    results, barrier = {}, threading.Barrier(4)

    def work(k):
        barrier.wait()
        for _ in range(50):
            with tw.set_grad_enabled(k % 2 == 0):
                x = leaf(float(k))
                y = (x * x).sum()
                if y.requires_grad:
                    y.backward()
                results[k] = x.grad

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {k: g if g is None else g.tolist() for k, g in results.items()} == {0: [0.0], 1: None, 2: [4.0], 3: None}


def test_nodes_know_the_users_line():
    x = leaf(1.0)
    y = x * 2
    file, line, function = y.grad_fn.source
    assert file == __file__
    assert line == test_nodes_know_the_users_line.__code__.co_firstlineno + 2
    assert function == "test_nodes_know_the_users_line"


def test_nodes_made_by_public_functions_know_the_users_line():
    x = leaf(1.0, 2.0)
    for y in (tw.tanh(x), tw.softmax(x, 0), tw.nn.functional.gelu(x), tw.cat([x, x]), x.sum(axis=0)):
        assert y.grad_fn.source[0] == __file__


def test_requires_grad_can_be_switched_for_leaves():
    x = tw.ones(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert not x.requires_grad_(False).requires_grad
    y = x.requires_grad_() * 2
    with pytest.raises(GradientError, match="only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
