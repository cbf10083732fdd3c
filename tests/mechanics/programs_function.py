"""`autograd.Function`: operations with a rule of the user's own."""

import gc
import warnings
import weakref

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def _cube(tw):
    class Cube(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    return Cube


def a_rule_of_ones_own(tw):
    x = _leaf(tw, 2.0, 3.0)
    y = _cube(tw).apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]


def derivatives_of_the_rule(tw):
    x = _leaf(tw, 2.0)
    (g,) = tw.autograd.grad(_cube(tw).apply(x), x, create_graph=True)
    (h,) = tw.autograd.grad(g, x, create_graph=True)
    (i,) = tw.autograd.grad(h, x)
    assert (g.tolist(), h.tolist(), i.tolist()) == ([12.0], [12.0], [6.0])


def a_saved_result(tw):
    class Exp(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = _leaf(tw, 0.0)
    y = Exp.apply(x)
    (g,) = tw.autograd.grad(y, x, create_graph=True)
    (h,) = tw.autograd.grad(g, x)
    assert (g.tolist(), h.tolist()) == ([1.0], [1.0])


def a_saved_result_makes_no_cycle(tw):
    class Twice(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = Twice.apply(_leaf(tw, 1.0))
    alive = weakref.ref(y)
    gc.disable()
    try:
        del y
        assert alive() is None
    finally:
        gc.enable()


def setup_context_of_its_own(tw):
    class Scale(tw.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor = inputs

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    x = _leaf(tw, 1.0, 2.0)
    Scale.apply(x, 5.0).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def several_results_and_missing_gradients(tw):
    seen = []

    class Pair(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g.tolist(), h.tolist()))
            return g * 2 + h * 3

    x = _leaf(tw, 1.0)
    _, b = Pair.apply(x)
    b.backward()
    assert seen == [([0.0], [1.0])]
    assert x.grad.tolist() == [3.0]


def no_zeros_if_unwanted(tw):
    seen = []

    class Pair(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append(g)
            return h * 3

    Pair.apply(_leaf(tw, 1.0))[1].backward()
    assert seen == [None]


def what_needs_no_gradient(tw):
    seen = []

    class Mul(tw.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            a, b = ctx.saved_tensors
            return (g * b if ctx.needs_input_grad[0] else None), (g * a if ctx.needs_input_grad[1] else None)

    a, b = _leaf(tw, 2.0), tw.tensor([5.0])
    Mul.apply(a, b).backward()
    assert seen == [(True, False)]
    assert a.grad.tolist() == [5.0]
    assert not Mul.apply(b, b).requires_grad


def results_without_gradient(tw):
    class SortIt(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = x > 0
            y = x * 1
            ctx.mark_non_differentiable(mask)
            return y, mask

        @staticmethod
        def backward(ctx, g, _):
            return g

    y, mask = SortIt.apply(_leaf(tw, 1.0, -1.0))
    assert y.requires_grad
    assert not mask.requires_grad


def an_argument_returned_as_it_is(tw):
    class Same(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = _leaf(tw, 1.0)
    y = Same.apply(x)
    assert y is not x
    y.backward()
    assert x.grad.tolist() == [7.0]


def overwriting_an_argument(tw):
    class AddOne(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 4

    x = _leaf(tw, 1.0)
    y = x * 2
    z = AddOne.apply(y)
    assert z is y
    assert y.tolist() == [3.0]
    y.sum().backward()
    assert x.grad.tolist() == [8.0]


def a_dirty_argument_must_be_returned(tw):
    class Bad(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match=r"marked as dirty during the forward method were not returned as output"):
        Bad.apply(_leaf(tw, 1.0) * 1)


def _bad(tw, rule):
    class Bad(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return rule(g)

    return Bad.apply(_leaf(tw, 1.0, 2.0), _leaf(tw, 1.0, 2.0)).sum()


def wrong_numbers_of_gradients(tw):
    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 1\)"):
        _bad(tw, lambda g: g).backward()
    _bad(tw, lambda g: (g, g, None)).backward()


def wrong_shapes_of_gradients(tw):
    with pytest.raises(RuntimeError, match=r"returned an invalid gradient at index 0 - got \[3\] but expected"):
        _bad(tw, lambda g: (tw.ones(3), g)).backward()


def gradients_are_brought_to_shape(tw):
    class Widen(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return g * tw.ones(3, 2)

    x = _leaf(tw, 1.0, 2.0)
    Widen.apply(x).backward()
    assert x.grad.tolist() == [3.0, 3.0]


def rules_that_may_be_used_once(tw):
    class Once(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @tw.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x = _leaf(tw, 3.0)
    (g,) = tw.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [6.0]
    y = Once.apply(x * 1)
    (g,) = tw.autograd.grad((y * y).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"marked with @once_differentiable"):
        g.sum().backward()


def freed_values_are_gone(tw):
    x = _leaf(tw, 2.0)
    y = _cube(tw).apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match=r"Trying to backward through the graph a second time"):
        y.backward()


def overwritten_saved_values_are_noticed(tw):
    x = _leaf(tw, 2.0)
    z = x * 1
    y = _cube(tw).apply(z)
    with tw.no_grad():
        z.mul_(3)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation"):
        y.backward()


def only_tensors_are_saved(tw):
    class Bad(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3.0)
            return x

    with pytest.raises(TypeError, match=r"save_for_backward can only save variables, but .*float"):
        Bad.apply(_leaf(tw, 1.0))


def forward_is_not_recorded(tw):
    seen = []

    class Look(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            seen.append((y.requires_grad, tw.is_grad_enabled()))
            return y

        @staticmethod
        def backward(ctx, g):
            return g

    Look.apply(_leaf(tw, 1.0))
    assert seen == [(False, False)]


def missing_rules(tw):
    class Empty(tw.autograd.Function):
        pass

    with pytest.raises(NotImplementedError, match=r"must implement the forward"):
        Empty.apply(_leaf(tw, 1.0))


def saved_without_history_is_the_tensor(tw):
    class Keeps(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            found.extend(ctx.saved_tensors)
            return g, None

    found = []
    x, y = tw.ones(2, requires_grad=True), tw.zeros(2)
    Keeps.apply(x, y).sum().backward()
    assert found[0] is y


def instances_are_no_functions(tw):
    class Old(tw.autograd.Function):
        def forward(self, x):
            return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="non-static forward method is deprecated"):
            Old()(tw.ones(2))
