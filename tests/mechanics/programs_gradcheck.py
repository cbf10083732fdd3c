"""`gradcheck` and `gradgradcheck`: what they accept and what they notice, in both modes."""

import inspect
import warnings

import pytest

BOTH = ({"fast_mode": False}, {"fast_mode": True})


def _point(tw, *shape):
    count = 1
    for n in shape:
        count *= n
    values = [((i * 7) % 11 - 5) / 4 + 0.1 for i in range(count)]
    return tw.tensor(values, dtype=tw.float64).reshape(shape).requires_grad_()


def _wrong(tw, factor):
    class Wrong(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g * factor

    return Wrong.apply


def right_gradients(tw):
    for options in BOTH:
        x, w = _point(tw, 3, 4), _point(tw, 4, 2)
        assert tw.autograd.gradcheck(lambda x, w: (x @ w).tanh(), (x, w), **options)
        assert tw.autograd.gradcheck(lambda x: (x.exp(), x.sum(0)), (x,), **options)
        assert tw.autograd.gradcheck(lambda x: x * 2, x, masked=False, **options)
        assert tw.autograd.gradgradcheck(lambda x, w: (x @ w).tanh(), (x, w), **options)
        assert tw.autograd.gradgradcheck(lambda x: (x.exp(), (x**3).sum(0)), (x,), **options)


def wrong_gradients(tw):
    error = inspect.unwrap(tw.autograd.gradcheck).__globals__["GradcheckError"]
    assert issubclass(error, RuntimeError)
    for options in BOTH:
        wrong = _wrong(tw, tw.tensor([1.0, 1.0, 1.01], dtype=tw.float64))
        with pytest.raises(error, match="Jacobian mismatch for output 0 with respect to input 0"):
            tw.autograd.gradcheck(wrong, (_point(tw, 3),), **options)
        assert not tw.autograd.gradcheck(wrong, (_point(tw, 3),), raise_exception=False, **options)


def tolerances(tw):
    wrong = _wrong(tw, 1.01)
    for options in BOTH:
        assert tw.autograd.gradcheck(wrong, (_point(tw, 3),), rtol=0.1, **options)
        assert tw.autograd.gradcheck(wrong, (_point(tw, 3),), atol=1.0, **options)
        assert tw.autograd.gradcheck(lambda x: x**2, (_point(tw, 3),), eps=1e-4, **options)


def wrong_second_derivatives(tw):
    class Cubed(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x.detach() ** 2 * g

    for options in BOTH:
        x = _point(tw, 3)
        assert tw.autograd.gradcheck(Cubed.apply, (x,), **options)
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            tw.autograd.gradgradcheck(Cubed.apply, (x,), **options)


def only_inputs_that_require_grad(tw):
    x, c = _point(tw, 3), tw.ones(3, dtype=tw.float64)
    for options in BOTH:
        assert tw.autograd.gradcheck(lambda x, c, n: x * c * n, (x, c, 3), **options)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        tw.autograd.gradcheck(lambda c: c, (c,))


def inputs_of_low_precision(tw):
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not tw.autograd.gradcheck(lambda x: x.exp(), (x,), raise_exception=False)
        assert tw.autograd.gradcheck(lambda x: x * 3, (x,), eps=1e-2, atol=1e-2)


def gradients_that_change(tw):
    class Unsteady(tw.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            Unsteady.calls += 1
            return g * (2 + 1e-8 * Unsteady.calls)

    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        tw.autograd.gradcheck(Unsteady.apply, (_point(tw, 2),))
    for options in BOTH:
        assert tw.autograd.gradcheck(Unsteady.apply, (_point(tw, 2),), nondet_tol=1e-5, **options)


def absent_gradients(tw):
    class Needy(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3  # fails where one of them is None

    x = _point(tw, 2)
    with pytest.raises((RuntimeError, TypeError)):
        tw.autograd.gradcheck(Needy.apply, (x,))


def forward_products(tw):
    x = _point(tw, 3)
    for options in BOTH:
        assert tw.autograd.gradcheck(lambda x: x.exp() * x, (x,), check_forward_ad=True, **options)


def batched_and_typed_gradients(tw):
    x = _point(tw, 3)
    assert tw.autograd.gradcheck(lambda x: x.exp() * x, (x,), check_batched_grad=True, check_grad_dtypes=True)


def results_without_elements_and_scalars(tw):
    for options in BOTH:
        assert tw.autograd.gradcheck(lambda x: x.sum(), (_point(tw, 3),), **options)
        assert tw.autograd.gradcheck(lambda x: x * x, (_point(tw),), **options)


def cotangents_are_given(tw):
    x = _point(tw, 3)
    g = tw.ones(3, dtype=tw.float64).requires_grad_()
    assert tw.autograd.gradgradcheck(lambda x: x**3, (x,), (g,))
    assert tw.autograd.gradgradcheck(lambda x: x**3, (x,), gen_non_contig_grad_outputs=True)


def absent_tangents(tw):
    def product(right):
        class Product(tw.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_forward(x, y)
                ctx.set_materialize_grads(False)
                return x * y

            @staticmethod
            def jvp(ctx, s, t):
                x, y = ctx.saved_tensors
                left, other = (None if t is None else t * x), (None if s is None else s * y)
                if left is None or other is None:
                    total = left if other is None else other
                    return total if right else total * 2
                return left + other

        return Product.apply

    x, y = _point(tw, 3), _point(tw, 3)
    for options in BOTH:
        options = {**options, "check_forward_ad": True, "check_backward_ad": False}
        assert tw.autograd.gradcheck(product(True), (x, y), **options)
        assert tw.autograd.gradcheck(product(False), (x, y), check_undefined_grad=False, **options)
        with pytest.raises(RuntimeError, match="Mismatch in tangent values for output with index"):
            tw.autograd.gradcheck(product(False), (x, y), **options)


def inputs_are_moved_where_they_lie(tw):
    w = _point(tw, 3)
    layer, before = tw.nn.Linear(2, 2).double(), w.tolist()
    for options in BOTH:
        assert tw.autograd.gradcheck(lambda *_: (w * w).sin(), (w,), **options)
        x = _point(tw, 2)
        assert tw.autograd.gradcheck(lambda x, *_: layer(x), (x, *layer.parameters()), **options)
        assert tw.autograd.gradgradcheck(lambda x, *_: layer(x).tanh(), (x, *layer.parameters()), **options)
        assert w.tolist() == before


def a_result_that_is_an_argument_gives_its_memory_to_nobody(tw):
    """Nothing that `gradcheck` writes counts as a write from outside."""

    class Both(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x, x

        @staticmethod
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            return 2 * x * g + h

    for options in BOTH:
        x = _point(tw, 3)
        assert tw.autograd.gradcheck(Both.apply, (x,), **options)
        assert tw.autograd.gradcheck(lambda x: (x * x, x), (x,), **options)


def what_cannot_be_batched_is_a_finding(tw):
    class Draws(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, t):
            tw.randn_like(t)
            return t * 2

    options = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False,
               "check_batched_grad": False}  # fmt: skip
    for mode in BOTH:
        assert tw.autograd.gradcheck(Draws.apply, (_point(tw, 2),), **options, **mode)
        batched = {"check_batched_forward_grad": True, **options, **mode}
        with pytest.raises(RuntimeError, match="While computing batched gradients, got: vmap: "):
            tw.autograd.gradcheck(Draws.apply, (_point(tw, 2),), **batched)
        assert not tw.autograd.gradcheck(Draws.apply, (_point(tw, 2),), raise_exception=False, **batched)
