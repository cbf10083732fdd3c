"""Transforms of functions: `torch.func`, and what `autograd.functional` has besides."""

import pytest


def _points(tw):
    return tw.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def mapping_over_the_first_dimension(tw):
    x = _points(tw)
    assert tw.func.vmap(lambda r: r.sum())(x).tolist() == [3.0, 7.0, 11.0]
    assert tw.vmap(lambda r: r * 2)(x).tolist() == (x * 2).tolist()


def mapping_over_other_dimensions(tw):
    x, y = _points(tw), tw.tensor([10.0, 20.0])
    assert tw.func.vmap(lambda c: c.sum(), in_dims=1)(x).tolist() == [9.0, 12.0]
    assert tw.func.vmap(lambda c: c.sum(), in_dims=-1)(x).tolist() == [9.0, 12.0]
    assert tw.func.vmap(lambda r, y: r * y, in_dims=(0, None))(x, y).tolist() == (x * y).tolist()
    assert tw.func.vmap(lambda c, n: c * n, in_dims=(1, 0))(x, y).tolist() == (x * y).T.tolist()
    assert tw.func.vmap(lambda r: r * 2, out_dims=1)(x).tolist() == (x * 2).T.tolist()
    a, b = tw.func.vmap(lambda r: (r, r.sum()), out_dims=(1, 0))(x)
    assert (a.tolist(), b.tolist()) == (x.T.tolist(), [3.0, 7.0, 11.0])


def mapping_over_structures(tw):
    x = _points(tw)

    def f(d, pair):
        return {"sum": d["a"] + pair[0] * pair[1]}

    found = tw.func.vmap(f, in_dims=({"a": 0}, (0, None)))({"a": x}, (x, tw.tensor(2.0)))
    assert found["sum"].tolist() == (x * 3).tolist()
    assert tw.func.vmap(lambda x, *, k: x + k)(x, k=tw.tensor([1.0, 1.0])).tolist() == (x + 1).tolist()


def mapping_in_mapping(tw):
    x, y = _points(tw), tw.tensor([1.0, 10.0])
    outer = tw.func.vmap(lambda r: tw.func.vmap(lambda s: r.sum() * s)(y))
    assert outer(x).tolist() == [[3.0, 30.0], [7.0, 70.0], [11.0, 110.0]]


def gradients_per_example(tw):
    w = tw.tensor([2.0, 3.0])

    def loss(w, r):
        return ((w * r).sum() - 1) ** 2

    found = tw.func.vmap(tw.func.grad(loss), in_dims=(None, 0))(w, _points(tw))
    assert found.tolist() == [[14.0, 28.0], [102.0, 136.0], [270.0, 324.0]]


def differentiating_a_mapped_function(tw):
    x = _points(tw)
    assert tw.func.grad(lambda x: tw.func.vmap(lambda r: (r**2).sum())(x).sum())(x).tolist() == (2 * x).tolist()
    j = tw.func.jacrev(tw.func.vmap(lambda r: r.sum()))(x)
    assert j.shape == (3, 3, 2)
    assert j.sum((1, 2)).tolist() == [2.0, 2.0, 2.0]
    h = tw.func.vmap(tw.func.hessian(lambda r: (r**3).sum()))(x)
    assert h.tolist() == [[[6.0, 0.0], [0.0, 12.0]], [[18.0, 0.0], [0.0, 24.0]], [[30.0, 0.0], [0.0, 36.0]]]
    leaf = _points(tw).requires_grad_()
    tw.func.vmap(lambda r: r.prod())(leaf).sum().backward()
    assert leaf.grad.tolist() == [[2.0, 1.0], [4.0, 3.0], [6.0, 5.0]]


def what_mapping_refuses(tw):
    x = _points(tw)
    with pytest.raises(ValueError, match="Expected all tensors to have the same size in the mapped dimension"):
        tw.func.vmap(lambda a, b: a)(x, x[:2])
    with pytest.raises(ValueError, match="in_dim=2 for some input, but that input is a Tensor of dimensionality 2"):
        tw.func.vmap(lambda a: a, in_dims=2)(x)
    with pytest.raises(ValueError, match=r"at least one|has in_dim=None for all inputs"):
        tw.func.vmap(lambda a: a, in_dims=(None,))(x)
    with pytest.raises(ValueError, match="is not compatible with the structure"):
        tw.func.vmap(lambda a: a, in_dims=(0, 0))(x)
    with pytest.raises(ValueError, match="must only return Tensors, got type <class 'int'>"):
        tw.func.vmap(lambda a: 3)(x)
    for call, message in (
        (lambda: tw.func.vmap(lambda: x)(), "got no inputs"),
        (lambda: tw.func.vmap(tw.mul, [0, 0])(x, x), r"expected `in_dims` to be int or a \(potentially nested\) tuple"),
        (lambda: tw.func.vmap(lambda p: p[0], in_dims=((0, 0),))([x, x]), "in_dims is not compatible with the str"),
        (lambda: tw.func.vmap(lambda a: a, out_dims="1")(x), "`out_dims` must be an int"),
        (lambda: tw.func.vmap(lambda a: a, out_dims=(0, 0))(x), "not compatible"),
        (lambda: tw.func.vmap(lambda a: (a, a), out_dims=(0,))(x), "not compatible"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(IndexError, match="Dimension out of range"):
        tw.func.vmap(lambda a: a, out_dims=2)(x)
    assert tw.func.vmap(lambda a: a, out_dims=(1,))(x).tolist() == x.T.tolist()
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        tw.func.vmap(lambda a: a, randomness="none")(x)


def random_numbers_in_mapped_functions(tw):
    x = tw.zeros(4)
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        tw.func.vmap(lambda a: a + tw.rand(()))(x)
    same = tw.func.vmap(lambda a: a + tw.rand(()), randomness="same")(x).tolist()
    assert len(set(same)) == 1
    different = tw.func.vmap(lambda a: a + tw.rand(()), randomness="different")(x).tolist()
    assert len(set(different)) == 4


def draws_that_cannot_be_the_same_or_different(tw):
    x = tw.full((3, 2), 0.5)
    for draw in (lambda a: tw.normal(a, 1.0), tw.bernoulli, tw.poisson, lambda a: tw.multinomial(a, 1)):
        with pytest.raises(RuntimeError, match="does not currently support same randomness with a batched tensor"):
            tw.func.vmap(draw, randomness="same")(x)
        assert len(tw.func.vmap(draw, randomness="different")(x)) == 3
    for draw in (lambda a, b: b.uniform_(), lambda a, b: b.normal_(), lambda a, b: b.bernoulli_(0.5)):
        with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
            tw.func.vmap(draw, (0, None), randomness="different")(x, tw.zeros(2))


def mapped_functions_that_write_and_return(tw):
    x = tw.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = tw.func.vmap(lambda a: a.mul_(2))(x)
    assert x.tolist() == y.tolist() == [[2.0, 4.0], [6.0, 8.0]]
    x.zero_()
    assert y.tolist() == [[0.0, 0.0], [0.0, 0.0]]  # it is the argument's memory
    slope = tw.func.grad(lambda t: tw.func.vmap(lambda a: a.mul_(3))(t * 1).sum())
    assert slope(tw.ones(2)).tolist() == [3.0, 3.0]


def what_transforms_refuse(tw):
    x = tw.tensor([1.0, 2.0])
    f = lambda a: a.sum()  # noqa: E731
    for call, message in (
        (lambda: tw.func.grad(f, argnums=())(x), "must be non-empty"),
        (lambda: tw.func.grad(f, argnums=1)(x), "but only 1 positional inputs"),
        (lambda: tw.func.jacrev(f, argnums=(0, -1))(x), "must be unique"),
        (lambda: tw.func.jacfwd(f, argnums=0.0)(x), "must be int or Tuple"),
        (lambda: tw.func.grad(f, argnums=("0",))(x), "must be int"),
        (lambda: tw.func.grad(f, has_aux=True)(x), "output of function f should be a tuple"),
        (lambda: tw.func.vjp(f, x, has_aux=True), r"vjp\(f, \*primals\): output of function f should be a tuple"),
        (lambda: tw.func.vjp(lambda a: (), x), r"vjp\(f, \*primals\): Expected f to be a function that has non-empty"),
        (lambda: tw.func.jacrev(lambda a: 1.5)(x), r"expected f\(\*primals\) to return only tensors"),
        (lambda: tw.func.vjp(lambda a: a, x)[1]((x, x)), "Expected pytree structure"),
        (lambda: tw.func.jvp(f, x, (x,)), "Expected primals to be a tuple"),
        (lambda: tw.func.jvp(f, (x,), (x, x)), "same python structure"),
        (lambda: tw.func.jvp(f, (x,), (1.0,)), "only contain Tensors"),
        (lambda: tw.func.jvp(f, ((x, 1),), ((x, 1),)), "only contain Tensors"),
        (lambda: tw.func.jvp(f, (), ()), "at least one Tensor"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    for call, message in (
        (lambda: tw.func.jacrev(f, chunk_size=0), r"jacrev: `chunk_size` should be greater than 0\."),
        (lambda: tw.func.vmap(f)(1.0), "Got in_dim=0 for an input but the input is of type <?(class ')?float"),
        (
            lambda: tw.func.vmap(lambda a, b: a)(x, True),
            "Got in_dim=0 for an input but the input is of type <?(class ')?bool",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    kept = []
    tw.func.vmap(lambda a: kept.append(a) or a)(x)
    with pytest.raises(RuntimeError, match="your tensor may have escaped from inside a function being vmapped"):
        kept[0].sin()


def auxiliary_results(tw):
    x = tw.tensor([1.0, 2.0])
    g, aux = tw.func.grad(lambda x: ((x * x).sum(), x * 3), has_aux=True)(x)
    assert (g.tolist(), aux.tolist()) == ([2.0, 4.0], [3.0, 6.0])
    assert not aux.requires_grad
    g, (value, aux) = tw.func.grad_and_value(lambda x: ((x * x).sum(), x * 3), has_aux=True)(x)
    assert (g.tolist(), value.tolist(), aux.tolist()) == ([2.0, 4.0], 5.0, [3.0, 6.0])
    y, pull, aux = tw.func.vjp(lambda x: (x * x, {"a": x + 1}), x, has_aux=True)
    assert (pull(tw.ones(2))[0].tolist(), aux["a"].tolist()) == ([2.0, 4.0], [2.0, 3.0])
    y, t, aux = tw.func.jvp(lambda x: (x * x, x + 1), (x,), (tw.ones(2),), has_aux=True)
    assert (y.tolist(), t.tolist(), aux.tolist()) == ([1.0, 4.0], [2.0, 4.0], [2.0, 3.0])
    for transform in (tw.func.jacrev, tw.func.jacfwd):
        j, aux = transform(lambda x: (x * x, x + 1), has_aux=True)(x)
        assert (j.tolist(), aux.tolist()) == ([[2.0, 0.0], [0.0, 4.0]], [2.0, 3.0])
    with pytest.raises(RuntimeError, match="tuple"):
        tw.func.grad(lambda x: (x * x).sum(), has_aux=True)(x)


def several_arguments(tw):
    x, y = tw.tensor([1.0, 2.0]), tw.tensor([3.0, 4.0])

    def f(x, y):
        return (x * x * y).sum()

    gx, gy = tw.func.grad(f, argnums=(0, 1))(x, y)
    assert (gx.tolist(), gy.tolist()) == ([6.0, 16.0], [1.0, 4.0])
    assert tw.func.grad(f, argnums=1)(x, y).tolist() == [1.0, 4.0]
    assert tw.func.grad(f, argnums=-1)(x, y).tolist() == [1.0, 4.0]
    (only,) = tw.func.grad(f, argnums=(1,))(x, y)
    assert only.tolist() == [1.0, 4.0]
    for transform in (tw.func.jacrev, tw.func.jacfwd):
        a, b = transform(lambda x, y: x * y, argnums=(0, 1))(x, y)
        assert (a.tolist(), b.tolist()) == ([[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]])
    (xx, xy), (yx, yy) = tw.func.hessian(f, argnums=(0, 1))(x, y)
    assert xx.tolist() == [[6.0, 0.0], [0.0, 8.0]]
    assert xy.tolist() == yx.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert yy.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError, match="argnum"):
        tw.func.grad(f, argnums=2)(x, y)


def structures_of_arguments(tw):
    params = {"w": tw.tensor([1.0, 2.0]), "b": tw.tensor(3.0)}
    g = tw.func.grad(lambda p: (p["w"] * p["b"]).sum())(params)
    assert (g["w"].tolist(), g["b"].tolist()) == ([3.0, 3.0], 3.0)
    j = tw.func.jacrev(lambda p: {"y": p["w"] * p["b"]})(params)
    assert j["y"]["w"].tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert j["y"]["b"].tolist() == [1.0, 2.0]
    _, t = tw.func.jvp(lambda p: p["w"] * p["b"], (params,), ({"w": tw.ones(2), "b": tw.tensor(1.0)},))
    assert t.tolist() == [4.0, 5.0]


def tangents_that_do_not_fit(tw):
    x = tw.ones(2)
    with pytest.raises((RuntimeError, ValueError), match=r"different size|same structure and shapes"):
        tw.func.jvp(lambda x: x, (x,), (tw.ones(3),))
    with pytest.raises((RuntimeError, ValueError, TypeError), match=r"expected|Expected"):
        tw.func.jvp(lambda x: x, x, x)


def results_that_are_no_tensors_are_refused(tw):
    x = tw.tensor([1.0, 2.0])
    for f in (lambda x: 3.0, lambda x: (x, 3.0)):
        with pytest.raises((RuntimeError, TypeError), match=r"only [Tt]ensors"):
            tw.func.jvp(f, (x,), (x,))
        with pytest.raises((RuntimeError, TypeError), match=r"only [Tt]ensors"):
            tw.func.jacrev(f)(x)


def results_have_no_history(tw):
    x = tw.tensor([1.0, 2.0])
    assert not tw.func.grad(lambda x: (x * x).sum())(x).requires_grad
    y, pull = tw.func.vjp(lambda x: x * x, x)
    assert not y.requires_grad
    assert not pull(tw.ones(2))[0].requires_grad
    assert not tw.func.jacrev(lambda x: x * x)(x).requires_grad
    assert x.grad is None


def transforms_see_through_outer_history(tw):
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    g = tw.func.grad(lambda x: (x**3).sum())(x)
    assert g.requires_grad
    g.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def pullbacks_lead_to_what_requires_grad(tw):
    x, w = (tw.tensor([v], requires_grad=True) for v in (3.0, 2.0))
    with tw.no_grad():
        y, pull = tw.func.vjp(lambda a: a * a * w, x)
        assert not pull(tw.ones(1))[0].requires_grad
    assert not y.requires_grad
    (g,) = pull(tw.ones(1))
    assert g.item() == 12
    assert tw.autograd.grad(g, x, retain_graph=True)[0].item() == 4


def transforms_under_no_grad(tw):
    x = tw.tensor([1.0, 2.0])
    with tw.no_grad():
        g = tw.func.grad(lambda x: (x**3).sum())(x)
    assert g.tolist() == [3.0, 12.0]
    h = tw.func.grad(lambda x: (x * tw.func.grad(lambda z: (z**2).sum())(x)).sum())(x)
    assert h.tolist() == [4.0, 8.0]

    def f(x):
        with tw.no_grad():
            shift = x * 10
        return (x * shift).sum()

    assert tw.func.grad(f)(x).tolist() == [10.0, 20.0]


def gradients_of_what_is_no_scalar(tw):
    with pytest.raises(RuntimeError, match="Expected"):
        tw.func.grad(lambda x: x)(tw.ones(2))
    with pytest.raises(RuntimeError, match="Expected"):
        tw.func.grad(lambda x: 3.0)(tw.ones(2))


def perturbations_are_kept_apart(tw):
    """d/dx (x * d/dy (x + y)) is 1, not 2: each transform sees its own argument only."""
    x = tw.tensor(1.0)

    def f(x):
        return x * tw.func.grad(lambda y: x + y)(tw.tensor(1.0))

    assert tw.func.grad(f)(x).tolist() == 1.0


def functional_products_with_aux_structure(tw):
    x, y = tw.tensor([1.0, 2.0]), tw.tensor([3.0, 4.0])
    v = (tw.tensor([1.0, 0.0]), tw.tensor([0.0, 1.0]))
    out, products = tw.autograd.functional.vjp(lambda x, y: (x * y, x + y), (x, y), v)
    assert [p.tolist() for p in products] == [[3.0, 1.0], [1.0, 1.0]]
    assert [o.tolist() for o in out] == [[3.0, 8.0], [4.0, 6.0]]
    out, products = tw.autograd.functional.jvp(lambda x, y: (x * y, x + y), (x, y), v)
    assert [p.tolist() for p in products] == [[3.0, 2.0], [1.0, 1.0]]
    value, products = tw.autograd.functional.hvp(lambda x, y: (x * x * y).sum(), (x, y), v)
    assert value.tolist() == 19.0
    assert [p.tolist() for p in products] == [[6.0, 4.0], [2.0, 0.0]]


def functional_with_create_graph(tw):
    x = tw.tensor([2.0], requires_grad=True)
    y, g = tw.autograd.functional.vjp(lambda x: x**3, x, tw.ones(1), create_graph=True)
    assert y.requires_grad
    assert tw.autograd.grad(g.sum(), x)[0].tolist() == [12.0]
    h = tw.autograd.functional.hessian(lambda x: (x**3).sum(), x, create_graph=True)
    assert tw.autograd.grad(h.sum(), x)[0].tolist() == [6.0]
    _, p = tw.autograd.functional.hvp(lambda x: (x**3).sum(), x, tw.ones(1), create_graph=True)
    assert tw.autograd.grad(p.sum(), x)[0].tolist() == [6.0]
    _, p = tw.autograd.functional.jvp(lambda x: x**3, x, tw.ones(1), create_graph=True)
    assert tw.autograd.grad(p.sum(), x)[0].tolist() == [12.0]


def functional_strictly(tw):
    x, y = tw.tensor([1.0]), tw.tensor([2.0])
    f = tw.autograd.functional
    without_history, constant_slope = "Output 0 .* does not require gradients", "jacobian .* with respect to input 0 is"
    for message, call in (
        ("output .* independent of input 1", lambda: f.vjp(lambda x, y: x * 2, (x, y), tw.ones(1), strict=True)),
        ("Output 0 .* independent of input 1", lambda: f.jacobian(lambda x, y: x * 2, (x, y), strict=True)),
        (without_history, lambda: f.vjp(lambda x: tw.ones(1), x, tw.ones(1), strict=True)),
        (without_history, lambda: f.jvp(lambda x: tw.ones(1), x, tw.ones(1), strict=True)),
        (without_history, lambda: f.hessian(lambda x: x.detach().sum(), x, strict=True)),
        (constant_slope, lambda: f.hessian(lambda x: (x * 2).sum(), x, strict=True)),
        (constant_slope, lambda: f.vhp(lambda x: (x * 2).sum(), x, tw.ones(1), strict=True)),
        (constant_slope, lambda: f.hvp(lambda x: (x * 2).sum(), x, tw.ones(1), strict=True)),
        ("jacobian .* independent of input 0", lambda: f.vjp(lambda x: x * 2, x, tw.ones(1), True, strict=True)),
        ("are not supported together", lambda: f.jacobian(lambda x: x * 2, x, strict=True, vectorize=True)),
        ("should return a single Tensor", lambda: f.hessian(lambda x: (x, x), x)),
        ("contain a single element", lambda: f.hessian(lambda x: tw.cat([x, x]), x)),
        ("v should contain", lambda: f.vjp(lambda x: x, x, (x, x))),
        ("v has invalid size", lambda: f.jvp(lambda x: x, x, tw.ones(2))),
        ("v can only be None if the input", lambda: f.jvp(lambda x: x, tw.ones(2))),
        ("v can only be None if the input", lambda: f.vhp(lambda x: (x * x).sum(), tw.ones(2))),
        ("v can only be None if the user-provided function returns", lambda: f.vjp(lambda x: x, tw.ones(2))),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    for message, call in (
        ("inputs given to vjp must be", lambda: f.vjp(lambda x: x, "x")),
        ("outputs of .* given to hessian must be", lambda: f.hessian(lambda x: None, x)),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    assert f.jacobian(lambda x, y: x * 2, (x, y))[1].tolist() == [[0.0]]


def functional_hessians_with_strategies(tw):
    x = tw.tensor([1.0, 2.0])
    for options in ({"vectorize": True}, {"outer_jacobian_strategy": "reverse-mode"}):
        h = tw.autograd.functional.hessian(lambda x: (x**3).sum(), x, **options)
        assert h.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    for options in ({"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        j = tw.autograd.functional.jacobian(lambda x: x**3, x, **options)
        assert j.tolist() == [[3.0, 0.0], [0.0, 12.0]]


def linearising(tw):
    x = tw.tensor([1.0, 2.0])
    y, push = tw.func.linearize(lambda x: x**2, x)
    assert (y.tolist(), push(tw.tensor([1.0, 10.0])).tolist()) == ([1.0, 4.0], [2.0, 40.0])
    assert push(tw.tensor([1.0, 0.0])).tolist() == [2.0, 0.0]


def derivatives_of_what_does_not_move(tw):
    """Constants, and results that are not floating point."""
    one = tw.ones(2)
    for function, expected in (
        (lambda x: one, [0.0, 0.0]),
        (lambda x: x.long(), [0, 0]),
        (lambda x: x > 0, [False, False]),
        (lambda x: x.detach() * 3, [0.0, 0.0]),
    ):
        value, tangent = tw.func.jvp(function, (one,), (one * 5,))
        assert tangent.tolist() == expected
        assert tangent.dtype == value.dtype
        _, (first, second) = tw.func.jvp(lambda x, f=function: (f(x), x * 2), (one,), (one * 5,))
        assert first.tolist() == expected
        assert second.tolist() == [10.0, 10.0]
    assert tw.func.jacfwd(lambda x: one)(one).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert tw.func.grad(lambda x: one.sum())(one).tolist() == [0.0, 0.0]
