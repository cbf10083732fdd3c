"""`dynamic.function`: a plain call that is differentiated as one node."""

import inspect

import numpy as np
import pytest

import dynamic as tw
from common.core.errors import GraphFreedError
from common.core.python_numbers import Number


def leaf(*values):
    return tw.tensor(list(values), requires_grad=True)


def test_it_is_the_function():
    def f(x, *, scale=2.0):
        """Scale."""
        return x * scale

    g = tw.function(f)
    assert (g.__name__, g.__doc__) == ("f", "Scale.")
    assert inspect.signature(g) == inspect.signature(f)
    assert g(tw.ones(2), scale=3.0).tolist() == [3.0, 3.0]
    assert tw.function(fuse=False)(f)(tw.ones(1)).tolist() == [2.0]


def test_arrays_become_tensors_and_structures_stay():
    @tw.function
    def f(batch, mode):
        return {"y": batch["x"] @ batch["w"], "mode": mode, "none": None}

    out = f({"x": np.ones((2, 3), np.float32), "w": np.ones((3, 1), np.float32)}, "train")
    assert out["y"].tolist() == [[3.0], [3.0]]
    assert (out["mode"], out["none"]) == ("train", None)


def test_one_node_with_an_edge_per_argument_and_captured_tensor():
    w, x = leaf(3.0), leaf(2.0)

    @tw.function
    def f(x):
        return x * w + w

    y = f(x)
    assert y.grad_fn.name() == "FBackward"
    assert [node.variable for node, _ in y.grad_fn.next_functions] == [x, w]
    y.sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([3.0], [3.0])


def contributions(call):
    """The gradient of w if it gets 1 outside first and 1e8 and -1e8 inside, in float32."""
    w = leaf(1.0)
    y = call(w)
    (w * 1.0 + y).sum().backward()
    return w.grad.tolist()


def test_contributions_are_totalled_inside():
    def body(w):
        return (w * 1e8) + (w * -1e8)

    # the plain call gives (1 + -1e8) + 1e8; the region 1 + (-1e8 + 1e8)
    assert contributions(body) == [0.0]
    assert contributions(tw.function(body)) == [1.0]


def test_captured_values_are_totalled_inside_too():
    def through(decorate):
        def call(w):
            return decorate(lambda: (w * 1e8) + (w * -1e8))()

        return contributions(call)

    assert through(lambda f: f) == [0.0]
    assert through(tw.function) == [1.0]


def test_the_same_tensor_twice_is_two_arguments():
    x = leaf(3.0)

    @tw.function
    def f(a, b):
        return a * a * b

    y = f(x, x)
    assert [node.variable for node, _ in y.grad_fn.next_functions] == [x, x]
    y.sum().backward()
    assert x.grad.tolist() == [27.0]


def test_a_function_inside_a_function_is_inlined():
    inner = tw.function(lambda x: x * x)
    seen = []

    @tw.function
    def outer(x):
        y = inner(x)
        seen.append(y.grad_fn.name())
        return y + 1

    outer(leaf(2.0)).sum().backward()
    assert seen == ["MulBackward0"]


def test_several_results_and_intermediate_arguments():
    x = leaf(2.0)

    @tw.function
    def f(a, b):
        return a * b, a + b, a.detach()

    p, q, r = f(x * 1, x * 3)
    assert (p.tolist(), q.tolist(), r.tolist(), r.requires_grad) == ([12.0], [8.0], [2.0], False)
    (p * 2 + q).sum().backward()
    assert x.grad.tolist() == [2 * 2 * 3 * 2 + 4.0]


def test_only_one_of_several_results_is_used():
    x = leaf(2.0)
    p, _ = tw.function(lambda a: (a * a, a + 1))(x)
    p.sum().backward()
    assert x.grad.tolist() == [4.0]


def test_results_that_are_arguments_or_captured():
    x, w = leaf(2.0), leaf(5.0)
    a, b = tw.function(lambda x: (x, w))(x)
    (a * 2 + b * 3).sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([2.0], [3.0])


def test_freed_after_backward_like_any_node():
    x = leaf(2.0)
    y = tw.function(lambda x: x * x)(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(GraphFreedError, match="second time"):
        y.sum().backward()


def test_higher_order_through_a_region():
    x = leaf(2.0)
    y = tw.function(lambda x: (x * x * x).sum())(x)
    (g,) = tw.autograd.grad(y, x, create_graph=True)
    (h,) = tw.autograd.grad(g.sum(), x)
    assert (g.tolist(), h.tolist()) == ([12.0], [12.0])


def test_a_training_step_leaves_gradients_and_no_history():
    w = tw.nn.Parameter(np.float32([1.0, 2.0]))
    optimizer = tw.optim.SGD([w], lr=0.5)

    @tw.function
    def step(x):
        optimizer.zero_grad()
        loss = (w * x).sum()
        other = loss * 2
        loss = (loss * loss).mean()
        loss.backward()
        optimizer.step()
        return loss, other

    loss, _ = step(np.float32([1.0, 1.0]))
    assert (loss.item(), loss.requires_grad) == (9.0, False)
    assert loss.numpy() == 9.0
    assert w.grad.tolist() == [6.0, 6.0]
    assert w.tolist() == [-2.0, -1.0]


def test_backward_inside_reaches_arguments():
    x, w = leaf(2.0), leaf(4.0)

    @tw.function
    def f(a, b):
        (a * a * b).sum().backward()

    f(x, w * 1)
    assert (x.grad.tolist(), w.grad.tolist()) == ([16.0], [4.0])


def test_nothing_is_recorded_without_gradients():
    f = tw.function(lambda x: x * x)
    assert not f(tw.ones(2)).requires_grad
    with tw.no_grad():
        assert not f(leaf(1.0)).requires_grad


def test_numbers_compute_like_the_registry():
    seen = {}

    @tw.function
    def f(x, p):
        seen["type"] = type(p)
        seen["pow"], seen["mixed"], seen["left"] = p**1.7, (p * 2 - 1) / 3, 2**p
        seen["by zero"] = p / 0
        return x**p, p + 1

    y, number = f(tw.tensor([2.0]), 0.3)
    registry = tw.tensor(0.3, dtype=tw.float64) ** tw.tensor(1.7, dtype=tw.float64)
    assert seen["type"] is Number
    assert float(seen["pow"]) == registry.item()
    assert float(seen["mixed"]) == (0.3 * 2 - 1) / 3
    assert seen["by zero"] == np.inf
    assert all(type(seen[name]) is Number for name in ("pow", "mixed", "left"))
    assert y.numpy() == (tw.tensor([2.0]) ** 0.3).numpy()
    assert type(number) is float


def test_integers_and_bools_are_left_alone():
    @tw.function
    def f(n, flag):
        assert type(n) is int
        assert flag is True
        return tw.zeros(n)

    assert f(3, True).shape == (3,)


def test_an_exception_ends_the_region():
    @tw.function
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(leaf(1.0))
    y = tw.function(lambda x: x * x)(leaf(3.0))
    assert y.grad_fn.name().endswith("Backward")
    assert y.grad_fn.name() != "MulBackward0"


def test_transforms_inline_functions_and_take_weak_numbers():
    # as in the other engine, where a transform outside a trace is compiled as a whole
    names, numbers = [], []
    inner = tw.function(lambda x: x * x)

    def loss(x, scale):
        y = inner(x)
        names.append(y.grad_fn.name())
        numbers.append(type(scale))
        return y.sum() * scale

    tw.grad(loss)(tw.ones(2), 0.5)
    tw.value_and_grad(loss)(tw.ones(2), 0.5)
    tw.vjp(lambda x: loss(x, 0.5), tw.ones(2))
    assert names == ["MulBackward0"] * 3
    assert numbers == [Number, Number, float]
