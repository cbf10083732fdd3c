"""`autograd.forward_ad`: tensors that carry tangents through ops, views, writes, backward passes and functions."""

import pytest


def _pair(tw):
    return tw.tensor([[1.0, 2.0], [3.0, 4.0]]), tw.tensor([[1.0, 0.0], [2.0, -1.0]])


def ops_carry_tangents(tw):
    fw = tw.autograd.forward_ad
    x, v = _pair(tw)
    layer = tw.nn.Linear(2, 3)
    window = tw.ones(1, 1, 2, 2)
    functions = [
        lambda x: x.sin() * x,
        lambda x: (x @ x).sum(0, keepdim=True),
        lambda x: layer(x).tanh(),
        lambda x: tw.nn.functional.softmax(x, -1).log(),
        lambda x: tw.linalg.inv(x),
        lambda x: x.sort(descending=True)[0],
        lambda x: tw.nn.functional.conv2d(x[None, None], window),
        lambda x: tw.stack([x[0], x[:, 1]]).prod(0),
    ]
    for function in functions:
        y, t = tw.func.jvp(function, (x,), (v,))
        with fw.dual_level():
            primal, tangent = fw.unpack_dual(function(fw.make_dual(x, v)))
        assert tw.equal(primal, y)
        assert tw.allclose(tangent, t, atol=1e-5)


def draws_have_derivatives_of_zero(tw):
    fw = tw.autograd.forward_ad
    x, v = _pair(tw)
    x = x.abs().clamp(max=1)
    draws = [
        lambda p: tw.normal(p),
        lambda p: tw.normal(0.0, p),
        lambda p: tw.normal(p, p),
        lambda p: tw.bernoulli(p),
        lambda p: tw.poisson(p),
    ]
    for draw in draws:
        with fw.dual_level():
            tangent = fw.unpack_dual(draw(fw.make_dual(x, v))).tangent
            assert tangent.shape == x.shape
            assert tw.count_nonzero(tangent).item() == 0
        p = x.clone().requires_grad_()
        drawn = draw(p)
        assert drawn.requires_grad
        (g,) = tw.autograd.grad((drawn * p).sum(), p)
        assert tw.equal(g, drawn)
        with tw.no_grad():
            assert not draw(p).requires_grad


def levels_begin_and_end(tw):
    fw = tw.autograd.forward_ad
    x, v = _pair(tw)
    with fw.dual_level() as level:
        assert level == 0
        dual = fw.make_dual(x, v)
        assert fw.unpack_dual(dual).tangent is v
        assert fw.unpack_dual(x).tangent is None
        assert "tangent=" in str(dual)
        assert "tangent=" not in str(x)
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            fw.enter_dual_level()
    assert fw.unpack_dual(dual).tangent is None
    assert fw.enter_dual_level() == 0
    assert fw.unpack_dual(dual).tangent is None
    fw.exit_dual_level()
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, v)
    with pytest.raises(RuntimeError):
        fw.exit_dual_level()


def what_is_no_tangent(tw):
    fw = tw.autograd.forward_ad
    x, v = _pair(tw)
    with fw.dual_level():
        with pytest.raises(RuntimeError, match="has a different size"):
            fw.make_dual(x, v[0])
        with pytest.raises(ValueError, match="Expected tangent to be floating point"):
            fw.make_dual(x, tw.ones(2, 2, dtype=tw.int64))
        with pytest.raises(ValueError, match="Expected primal to be floating point"):
            fw.make_dual(tw.ones(2, 2, dtype=tw.int64), v)
        dual = fw.make_dual(x, v)
        with pytest.raises(RuntimeError, match="forward grad"):
            fw.make_dual(x, dual)
        assert fw.unpack_dual(dual > 2).tangent is None
        assert fw.unpack_dual(dual.detach() * 2).tangent is None
        with pytest.raises(RuntimeError, match="out="):
            tw.add(dual, x, out=tw.zeros(2, 2))


def ops_convert_tangents_of_other_dtypes(tw):
    fw = tw.autograd.forward_ad
    x, v = _pair(tw)
    with fw.dual_level():
        dual = fw.make_dual(x.to(tw.float64), v)
        tangent = fw.unpack_dual(dual * 2).tangent
        assert fw.unpack_dual(dual).tangent is v
        assert tangent.dtype == tw.float64
        assert tangent.tolist() == (2 * v).tolist()


def writes_and_views(tw):
    fw = tw.autograd.forward_ad
    x, v = _pair(tw)
    kept = v.clone()
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        part = dual[0]
        part.mul_(3)
        assert tw.equal(fw.unpack_dual(dual).tangent, tw.tensor([[3.0, 0.0], [2.0, -1.0]]))
        assert tw.equal(x, tw.tensor([[3.0, 6.0], [3.0, 4.0]]))
        assert fw.unpack_dual(x).tangent is None
        copy = dual.clone()
        copy.add_(dual)
        assert tw.equal(fw.unpack_dual(copy).tangent, 2 * v)
        fresh = tw.zeros(2, 2)
        view = fresh.t()
        fresh[1] = dual[1]
        assert tw.equal(fw.unpack_dual(fresh).tangent, tw.tensor([[0.0, 0.0], [2.0, -1.0]]))
        assert tw.equal(fw.unpack_dual(view).tangent, tw.tensor([[0.0, 2.0], [0.0, -1.0]]))
        view.mul_(2)
        assert tw.equal(fw.unpack_dual(fresh).tangent, tw.tensor([[0.0, 0.0], [4.0, -2.0]]))
        plain = tw.zeros(2, 2)
        plain.detach().add_(dual)
        assert fw.unpack_dual(plain).tangent is None
        dual.zero_()
        assert tw.equal(fw.unpack_dual(dual).tangent, tw.zeros(2, 2))
        primal, tangent = fw.unpack_dual(fw.make_dual(x, kept))
        primal.add_(1)
        assert fw.unpack_dual(primal).tangent is None
        assert tw.equal(tangent, kept)
        cloned = dual.clone()
        cloned.detach_()
        assert fw.unpack_dual(cloned).tangent is None


def no_grad_changes_nothing(tw):
    fw = tw.autograd.forward_ad
    x, v = _pair(tw)
    x.requires_grad_()
    with fw.dual_level(), tw.no_grad():
        y, t = fw.unpack_dual(fw.make_dual(x, v) * 3)
    assert not y.requires_grad
    assert not t.requires_grad
    assert tw.equal(t, v * 3)


def tangents_have_gradients(tw):
    fw = tw.autograd.forward_ad
    x, v = _pair(tw)
    x.requires_grad_()
    v.requires_grad_()
    with fw.dual_level():
        tangent = fw.unpack_dual((fw.make_dual(x, v) ** 3).sum()).tangent
        dx, dv = tw.autograd.grad(tangent, (x, v))
    assert tw.allclose(dx, 6 * x * v)
    assert tw.allclose(dv, 3 * x * x)


def gradients_have_tangents(tw):
    fw = tw.autograd.forward_ad
    x, v = _pair(tw)
    x.requires_grad_()

    def loss(x):
        return (x.exp() * x.t()).sum() + (x @ x).tanh().sum()

    (g,) = tw.autograd.grad(loss(x), x, create_graph=True)
    (wanted,) = tw.autograd.grad((g * v).sum(), x)
    for create_graph in (False, True):
        with fw.dual_level():
            dual = fw.make_dual(x, v)
            (g,) = tw.autograd.grad(loss(dual), dual, create_graph=create_graph)
            found = fw.unpack_dual(g).tangent
        assert tw.allclose(found, wanted, atol=1e-4)
    with fw.dual_level():
        found = fw.unpack_dual(tw.func.grad(loss)(fw.make_dual(x.detach(), v))).tangent
    assert tw.allclose(found, wanted, atol=1e-4)


def functions_bring_their_own(tw):
    fw = tw.autograd.forward_ad

    class Scaled(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, factor):
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            ctx.factor = factor
            return factor * x * y, (x > 0)

        @staticmethod
        def jvp(ctx, x_t, y_t, _):
            x, y = ctx.saved_tensors
            return ctx.factor * (x_t * y + x * y_t), None

        @staticmethod
        def vjp(ctx, g, _):
            x, y = ctx.saved_tensors
            return ctx.factor * g * y, ctx.factor * g * x, None

    x, v = _pair(tw)
    y = x + 1
    for wanted in (False, True):
        with fw.dual_level():
            found, sign = Scaled.apply(fw.make_dual(x.detach().requires_grad_(wanted), v), y, 4)
            assert tw.equal(fw.unpack_dual(found).tangent, 4 * v * y)
            assert fw.unpack_dual(sign).tangent is None
    a, b = (z.to(tw.float64).requires_grad_() for z in (x, y))
    assert tw.autograd.gradcheck(lambda a, b: Scaled.apply(a, b, 3)[0], (a, b), check_forward_ad=True)


def functions_that_bring_nothing(tw):
    fw = tw.autograd.forward_ad

    class Bare(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    class Few(Bare):
        @staticmethod
        def forward(ctx, x):
            return x.clone(), x.clone()

        @staticmethod
        def jvp(ctx, t):
            return t

    class Constant(Bare):
        @staticmethod
        def forward(ctx, x):
            y = x.clone()
            ctx.mark_non_differentiable(y)
            return y

        @staticmethod
        def jvp(ctx, t):
            return t

    class Viewed(Bare):
        @staticmethod
        def forward(ctx, x):
            return x[0]

        @staticmethod
        def jvp(ctx, t):
            return t[0].clone()

    class Written(Bare):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t):
            return t * 2

    x, v = _pair(tw)
    said = [
        (Bare, "must implement the jvp function"),
        (Few, "expected|incorrect number"),
        (Constant, "You should return None at that position instead"),
        (Viewed, "jvp is not returning a view"),
        (Written, "not modifying the forward mode gradients inplace"),
    ]
    for function, message in said:
        with fw.dual_level(), pytest.raises(RuntimeError, match=message):
            function.apply(fw.make_dual(x, v).clone() if function is Written else fw.make_dual(x, v))


def checks_of_forward_mode(tw):
    class Wrong(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * 3

    x = tw.tensor([0.5, 1.5], dtype=tw.float64, requires_grad=True)
    for fast_mode in (False, True):
        with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for output 0"):
            tw.autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True, fast_mode=fast_mode)
        assert tw.autograd.gradcheck(
            lambda x: x.exp() * x, (x,), check_forward_ad=True, check_batched_forward_grad=True, fast_mode=fast_mode
        )


def a_tangent_that_lies_otherwise_is_copied(tw):
    fw = tw.autograd.forward_ad
    alike = (tw.randn(2, 3), tw.randn(2, 3))
    others = [
        (tw.randn(5)[:4], tw.randn(4)),
        (tw.randn(3, 2).t(), tw.randn(2, 3)),
        (tw.randn(2, 3), tw.randn(2, 1).expand(2, 3)),
    ]
    for x, v in (alike, *others):
        with fw.dual_level():
            tangent = fw.unpack_dual(fw.make_dual(x, v)).tangent
            assert tangent.tolist() == v.tolist()
            assert (tangent is v) == (v is alike[1])
            before = v.tolist()
            if tangent is not v:
                tangent *= 2
                assert v.tolist() == before

    def carried(x):
        def through(t):
            with fw.dual_level():
                return fw.unpack_dual(fw.make_dual(x, t)).tangent

        return through

    batch, legacy = tw.ones(2, 2, 2), getattr(tw, "_vmap_internals", None)
    vmap = tw.vmap if legacy is None else legacy._vmap
    assert vmap(carried(tw.ones(2, 2)))(batch) is batch
    assert vmap(carried(tw.ones(2, 2).t()))(batch) is not batch
    v = tw.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    with fw.dual_level():
        (fw.unpack_dual(fw.make_dual(tw.randn(5)[:4], v)).tangent * 3).sum().backward()
    assert v.grad.tolist() == [3.0] * 4
