"""Small promises of autograd: warnings, versions, callbacks, marks of a function, copies of what is saved."""

import warnings

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def _said(function):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function()
    return [str(w.message) for w in seen]


def the_gradient_of_what_is_no_leaf_warns(tw):
    x = _leaf(tw, 1.0)
    y = x * 2
    assert _said(lambda: x.grad) == []
    assert [".grad attribute of a Tensor that is not a leaf" in text for text in _said(lambda: y.grad)] == [True]
    y.retain_grad()
    assert _said(lambda: y.grad) == []


def a_backward_pass_that_is_recorded_warns(tw):
    getattr(tw, "set_warn_always", bool)(True)  # PyTorch says it once in a process
    x = _leaf(tw, 3.0)
    y = (x * x).sum()
    assert any("create_graph=True" in text for text in _said(lambda: y.backward(create_graph=True)))
    x.grad = None
    y = (x * x).sum()
    assert _said(lambda: tw.autograd.grad(y, x, create_graph=True)) == []


def a_decorated_class_warns(tw):
    class Made:
        def __init__(self):
            self.recorded = tw.is_grad_enabled()

    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        decorated = tw.no_grad()(Made)
    assert not decorated().recorded


def gradients_of_nothing_are_refused(tw):
    x = _leaf(tw, 1.0)
    with pytest.raises(RuntimeError, match="cannot be empty"):
        tw.autograd.grad(x * 2, [])


def an_edge_has_no_shape_to_make_zeros_of(tw):
    x, y = _leaf(tw, 1.0).clone(), _leaf(tw, 1.0).clone()
    edge = tw.autograd.graph.get_gradient_edge(y)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used"):
        tw.autograd.grad(x.sum(), (x, edge), allow_unused=True, materialize_grads=True)


def backward_to_an_edge_runs_hooks_and_keeps_nothing(tw):
    x = _leaf(tw, 1.0)
    y = x.clone()
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    tw.autograd.backward((y * 3).sum(), inputs=(tw.autograd.graph.get_gradient_edge(y),))
    assert seen == [[3.0]]
    assert x.grad is None


def a_callback_asks_for_another(tw):
    calls = []
    ask = tw.autograd.Variable._execution_engine.queue_callback

    class Same(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            ask(lambda: (calls.append("first"), ask(lambda: calls.append("second"))))
            return g

    Same.apply(_leaf(tw, 1.0)).sum().backward()
    assert calls == ["first", "second"]


def other_memory_keeps_the_count_of_writes(tw):
    x = tw.ones(2)
    view = x[:]
    x.add_(1)
    x.data = tw.zeros(3)
    assert x._version == view._version == 1
    x.add_(1)
    assert x._version == view._version == 2
    view.add_(1)
    assert x._version == view._version == 3


def hooks_of_a_tensor_are_a_dict(tw):
    x, plain, seen = _leaf(tw, 1.0), tw.ones(1), []
    assert x._backward_hooks is None
    x.register_hook(lambda g: seen.append(g.tolist()))
    assert len(x._backward_hooks) == 1
    plain._backward_hooks = {"never": lambda g: seen.append("never")}
    (x * plain).sum().backward()
    assert seen == [[1.0]]
    for name in ("_backward_hooks", "_grad_fn"):
        with pytest.raises(RuntimeError):
            delattr(x, name)


def marked_as_written_but_no_argument(tw):
    class Odd(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = 3 * x
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return 3 * g

    x = _leaf(tw, 1.0)
    made = []
    assert len(_said(lambda: made.append(Odd.apply(x.clone())))) == 1
    made[0].sum().backward()
    assert x.grad.tolist() == [3.0]


def a_written_view_has_one_result(tw):
    class Two(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x, x + 1

        @staticmethod
        def backward(ctx, a, b):
            return a + b

    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view"):
        Two.apply(_leaf(tw, 1.0).clone().view(1))


def no_zeros_for_results_without_gradient(tw):
    seen = []

    class Pair(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            second = x.clone()
            ctx.mark_non_differentiable(second)
            ctx._materialize_non_diff_grads = False
            return x.clone(), second

        @staticmethod
        def backward(ctx, first, second):
            seen.append(second)
            return first

    Pair.apply(_leaf(tw, 1.0))[0].sum().backward()
    assert seen == [None]


def one_copy_of_each_state_that_is_saved(tw):
    with tw.autograd.graph.allow_mutation_on_saved_tensors() as ctx:
        x = _leaf(tw, 2.0).clone()
        a, b = x**2, x**2
        assert (len(ctx.tid_to_weakhandle), len(ctx.cloned)) == (1, 0)
        x.mul_(3)
        assert len(ctx.cloned) == 1
        c = x**2
        x.mul_(5)
        assert len(ctx.cloned) == 2
        del a, b
        assert len(ctx.cloned) == 1
        del c
        assert len(ctx.cloned) == 0
        d = x**2
        ctx.clear()
        assert len(ctx.tid_to_weakhandle) == 0
        del d


def inference_tensors_keep_their_shape_outside(tw):
    with tw.inference_mode():
        x = tw.ones(2, 3)
    assert tw.is_inference(x)
    assert not tw.is_inference(tw.ones(1))
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        x.transpose_(0, 1)


def the_second_derivative_of_a_product_with_one_zero(tw):
    x = tw.tensor([13.0], dtype=tw.float64, requires_grad=True)
    factors = tw.tensor([0.0, 2.0], dtype=tw.float64, requires_grad=True)
    y = tw.index_reduce(x, 0, tw.tensor([0, 0]), factors, "prod")
    (g,) = tw.autograd.grad(y.sum(), factors, create_graph=True)
    assert g.tolist() == [26.0, 0.0]
    (h,) = tw.autograd.grad((g * tw.tensor([1.0, 10.0], dtype=tw.float64)).sum(), factors)
    assert h.tolist() == [130.0, 13.0]


def a_norm_that_scales_nothing_may_be_overwritten(tw):
    x = tw.tensor([[[[1.0, 3.0]], [[2.0, 6.0]]]], requires_grad=True)
    for norm in (
        tw.nn.InstanceNorm2d(2),
        tw.nn.GroupNorm(1, 2, affine=False),
        tw.nn.BatchNorm2d(2, affine=False),
        tw.nn.LayerNorm(2, elementwise_affine=False),
    ):
        plain, written = ((f(norm(x)) ** 3).sum() for f in (tw.nn.ReLU(), tw.nn.ReLU(inplace=True)))
        (a,), (b,) = tw.autograd.grad(plain, x), tw.autograd.grad(written, x)
        assert a.tolist() == b.tolist()


def parts_are_not_written(tw):
    parts = tw.ones(2, 3, requires_grad=True).clone().unbind()
    with pytest.raises(RuntimeError, match=r"Output 1 of Unbind(Backward0)? is a view and is being modified inplace"):
        parts[1].add_(1)


def a_batch_of_cotangents_has_the_shape_of_the_result(tw):
    x = tw.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first"):
        tw.autograd.grad(x.clone(), (x,), (tw.ones(2, 2),), is_grads_batched=True)


def gradcheck_looks_at_functions_that_cut_the_tape(tw):
    x = tw.ones(1, dtype=tw.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Numerical gradient for function expected to be zero"):
        tw.autograd.gradcheck(lambda x: tw.tensor([x.item()], dtype=tw.float64), x)
    with pytest.raises(AssertionError, match="outputs with the same shape when inputs are perturbed"):
        tw.autograd.gradcheck(lambda x: tw.cat([x, x]) if x >= 1 else x, x)


def a_tangent_is_written_with_its_value(tw):
    class Twice(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(2))
            return x

        @staticmethod
        def jvp(ctx, t):
            return t

    forward = tw.autograd.forward_ad
    with forward.dual_level(), pytest.raises(RuntimeError, match="must modify the corresponding gradient inplace"):
        Twice.apply(forward.make_dual(tw.ones(1), tw.ones(1)))


def a_list_of_tensors_with_history_becomes_a_tensor(tw):
    x = tw.tensor(2.0, requires_grad=True)
    y = tw.tensor([x, x * 3])
    assert (y.tolist(), y.requires_grad) == ([2.0, 6.0], False)


def a_view_of_a_tensor_of_outside_asks_for_gradients_as_it_does(tw):
    x = _leaf(tw, 1.0, 2.0).clone()
    with tw.inference_mode():
        view = x.view(2, 1)
        assert (view.requires_grad, view.is_leaf, view._is_view(), tw.is_inference(view)) == (True, True, True, False)
        made = tw.ones(2, requires_grad=True)
        made.resize_(1)
    assert (view * view).requires_grad
    assert not made.view(1)._is_view()
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified inplace"):
        view.add_(1)


def a_view_of_inference_mode_has_no_history_after_a_write(tw):
    ways = (lambda v: v * v, lambda v: v.exp(), lambda v: v.sum(), lambda v: v[0], lambda v: tw.cat([v, v]), tw.relu)
    for write_inside in (True, False):
        x = _leaf(tw, 1.0, 2.0).clone()
        with tw.inference_mode():
            early = x.view(2, 1)
            of_early = early[0]
            if write_inside:
                x.add_(1)
            of_written = early.view(2)
        if not write_inside:
            with tw.no_grad():
                x.add_(1)
        for way in ways:
            for view in (early, of_early) if write_inside else (early, of_early, of_written):
                with pytest.raises(RuntimeError, match="view was created in inference mode and its base or another"):
                    way(view)
        with tw.no_grad():
            assert not (early * early).requires_grad
        assert not write_inside or (of_written * of_written).requires_grad
        assert early.detach().tolist() == [[2.0], [3.0]]
        assert (x.view(2, 1) * 2).requires_grad


def the_mode_decorates_by_its_keyword(tw):
    assert tw.is_inference(tw.inference_mode(mode=lambda x: x * 2)(tw.ones(1)))


def a_function_knows_the_class_of_its_node(tw):
    class Same(tw.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    assert Same.apply(_leaf(tw, 1.0)).grad_fn.__class__ is Same._backward_cls


def bools_are_not_subtracted(tw):
    b = tw.tensor([True, False])
    for negate in (lambda: -b, lambda: b.neg(), lambda: tw.negative(b), lambda: b.clone().neg_()):
        with pytest.raises(RuntimeError, match=r"Negation, the `-` operator, on a bool tensor is not supported"):
            negate()
    for subtract in (lambda: b - b, lambda: b - True, lambda: tw.sub(b, b), lambda: tw.rsub(b, b)):
        with pytest.raises(RuntimeError, match=r"Subtraction, the `-` operator, with two bool tensors is not supp"):
            subtract()
    x = tw.ones(2)
    for subtract in (
        lambda: b - 1, lambda: 1 - b, lambda: b - 1.5, lambda: x - b, lambda: b - x, lambda: x - True,
        lambda: x.sub_(b), lambda: b - tw.tensor([1, 2]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"Subtraction, the `-` operator, with a bool tensor is not supported"):
            subtract()
    with pytest.raises(TypeError, match=r"~ \(operator.invert\) is only implemented on integer and Boolean-type"):
        _ = ~x
    assert (~b).tolist() == [False, True]


def bools_have_no_magnitude_and_no_power(tw):
    b = tw.tensor([True, False])
    for refused in (lambda: abs(b), lambda: b.abs(), lambda: b.clone().abs_(), lambda: b**b, lambda: tw.pow(True, b)):
        with pytest.raises(NotImplementedError, match=r"not implemented for '?[bB]ool"):
            refused()
    for signs in (b.sign(), tw.sgn(b), b.clone().sign_(), b.clone().sgn_()):
        assert signs.dtype == tw.bool
        assert signs.tolist() == [True, False]
    numbers = tw.tensor([3, 2])
    for power, dtype, values in (
        (b**2, tw.int64, [1, 0]), (tw.square(b), tw.int64, [1, 0]), (2**b, tw.int64, [2, 1]),
        (numbers**b, tw.int64, [3, 1]), (b**numbers, tw.int64, [1, 0]), (b**0.5, tw.float32, [1.0, 0.0]),
    ):  # fmt: skip
        assert power.dtype == dtype
        assert power.tolist() == values


def results_without_elements_are_functions_of_their_operands(tw):
    for which in range(2):  # no reflections: of which vectors and factors?
        operands = [tw.ones(5, 0), tw.ones(0)]
        operands[which].requires_grad_()
        product = tw.linalg.householder_product(*operands)
        turned = tw.ormqr(*operands, tw.ones(5, 2))
        assert (product.requires_grad, turned.requires_grad) == (True, True)
        assert turned.detach().tolist() == [[1.0, 1.0]] * 5
        tw.autograd.grad(product.sum() + turned.sum(), operands[which], allow_unused=True)
    a, b = tw.ones(2, 3, requires_grad=True), tw.ones(2, 1)
    residuals = tw.linalg.lstsq(a, b).residuals
    assert residuals.shape == (0,)
    assert residuals.requires_grad
