"""Functions of users with a rule of their own for `vmap`, and what transforms refuse of functions and modules."""

import pytest


def _sorting(tw, dims):
    class Sort(tw.autograd.Function):
        """Sorts, and notes how many dimensions it is given."""

        @staticmethod
        def forward(x, dim):
            dims.append(x.ndim)
            return tuple(tw.sort(x, dim))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(output[1])
            ctx.dim = inputs[1]

        @staticmethod
        def backward(ctx, g, _):
            (order,) = ctx.saved_tensors
            return tw.zeros_like(g).scatter(ctx.dim, order, g), None

        @staticmethod
        def vmap(info, in_dims, x, dim):
            assert in_dims[1] is None
            x = x.movedim(in_dims[0], 0)
            assert info.batch_size == x.shape[0]
            assert info.randomness == "error"
            return Sort.apply(x, dim + 1), (0, 0)

    return Sort


def _rows(tw):
    return tw.tensor([[3.0, 1.0, 2.0], [5.0, 6.0, 4.0]])


def rules_get_all_examples(tw):
    dims = []
    sort = _sorting(tw, dims)
    values, order = tw.func.vmap(lambda r: sort.apply(r, 0))(_rows(tw))
    assert values.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert order.tolist() == [[1, 2, 0], [2, 0, 1]]
    columns = tw.func.vmap(lambda c: sort.apply(c, 0)[0], in_dims=1, out_dims=1)(_rows(tw))
    assert columns.tolist() == [[3.0, 1.0, 2.0], [5.0, 6.0, 4.0]]
    assert set(dims) == {2}


def rules_are_asked_at_each_level(tw):
    dims = []
    sort = _sorting(tw, dims)
    x = tw.stack([_rows(tw), -_rows(tw)])
    found = tw.func.vmap(tw.func.vmap(lambda r: sort.apply(r, 0)[0]))(x)
    assert found.tolist() == [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[-3.0, -2.0, -1.0], [-6.0, -5.0, -4.0]]]
    assert set(dims) == {3}


def gradients_of_functions_with_rules(tw):
    sort, w = _sorting(tw, []), tw.tensor([1.0, 10.0, 100.0])

    def loss(r):
        return (sort.apply(r, 0)[0] * w).sum()

    expected = [[100.0, 1.0, 10.0], [10.0, 100.0, 1.0]]
    assert tw.func.vmap(tw.func.grad(loss))(_rows(tw)).tolist() == expected
    x = _rows(tw).requires_grad_()
    tw.func.vmap(loss)(x).sum().backward()
    assert x.grad.tolist() == expected


def rules_return_what_examples_share(tw):
    class Ends(tw.autograd.Function):
        @staticmethod
        def forward(pair):
            return pair[0] * 2, tw.zeros(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, pair):
            assert in_dims == ([0, None],)
            return (pair[0] * 2, tw.zeros(2)), (0, None)

    x = _rows(tw)
    doubled, zeros = tw.func.vmap(lambda r: Ends.apply([r, tw.ones(1)]))(x)
    assert doubled.tolist() == (x * 2).tolist()
    assert zeros.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def rules_are_not_asked_where_nothing_is_mapped(tw):
    class Same(tw.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            raise AssertionError("nothing is mapped")

    one = tw.ones(1)
    assert tw.func.vmap(lambda r: r + Same.apply(one))(_rows(tw)).tolist() == (_rows(tw) + 2).tolist()


def rules_that_return_something_else_are_refused(tw):
    def returning(found):
        class Returns(tw.autograd.Function):
            @staticmethod
            def forward(x):
                return x

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def vmap(info, in_dims, x):
                return found(x)

        return Returns.apply

    for found, message in (
        (lambda x: x, "to have two returns"),
        (lambda x: (x, 0, 0), "to have two returns"),
        (lambda x: (x, (None,)), "returned an incompatible"),
        (lambda x: ([x], (None,)), "returned an incompatible"),
    ):
        with pytest.raises(RuntimeError, match=message):
            tw.func.vmap(returning(found))(_rows(tw))


def rules_beside_generated_ones_are_refused(tw):
    class Both(tw.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return x, in_dims[0]

    with pytest.raises(RuntimeError, match="generate_vmap_rule=True and"):
        tw.func.vmap(Both.apply)(_rows(tw))

    class Named(tw.autograd.Function):
        @staticmethod
        def forward(x, *, y):
            return x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, *, y):
            return x + y, 0

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        tw.func.vmap(lambda r: Named.apply(r, y=r))(_rows(tw))


def inputs_that_are_results_are_not_kept(tw):
    """`setup_context` cannot say which of the two it means: refused, unless the function has overwritten it."""

    def returning(keep, dirty):
        class Returning(tw.autograd.Function):
            @staticmethod
            def forward(x):
                return x

            @staticmethod
            def setup_context(ctx, inputs, output):
                if dirty:
                    ctx.mark_dirty(inputs[0])
                keep(ctx, inputs[0], output)

            @staticmethod
            def backward(ctx, g):
                return g * 3

        return lambda x: Returning.apply(x.clone())

    x = tw.tensor(2.0, requires_grad=True)
    for keep in (
        lambda ctx, x, y: ctx.save_for_backward(x),
        lambda ctx, x, y: ctx.save_for_backward(y),
        lambda ctx, x, y: ctx.save_for_forward(x),
    ):
        for call in (lambda f: f(x), lambda f: tw.func.grad(f)(x)):
            with pytest.raises(RuntimeError, match="input that has been returned as-is"):
                call(returning(keep, False))
            call(returning(keep, True))
    assert tw.func.grad(returning(lambda ctx, x, y: None, False))(x.detach()).item() == 3.0


def results_without_a_dimension_may_be_anything(tw):
    x = _rows(tw)
    first, second = tw.func.vmap(lambda r: (r * 2, "rows"), out_dims=(0, None))(x)
    assert (first.tolist(), second) == ((x * 2).tolist(), "rows")
    assert tw.func.vmap(lambda r: "rows", out_dims=None)(x) == "rows"
    with pytest.raises(ValueError, match="must only return Tensors"):
        tw.func.vmap(lambda r: (r, "rows"))(x)
    with pytest.raises(ValueError, match="must be an int, None or a python collection of ints"):
        tw.func.vmap(lambda r: r, out_dims="rows")(x)


def stacking_modules_that_differ_in_what_requires_grad(tw):
    models = [tw.nn.Linear(2, 2) for _ in range(3)]
    models[0].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"same \.requires_grad"):
        tw.func.stack_module_state(models)


def batch_normalisation_without_statistics(tw):
    net = tw.nn.Sequential(tw.nn.BatchNorm1d(3), tw.nn.Sequential(tw.nn.BatchNorm1d(3, affine=False)))
    x = tw.stack([_rows(tw), _rows(tw) * 2, _rows(tw) - 1])
    with pytest.raises(RuntimeError, match=r"(?i)in.?place"):
        tw.func.vmap(net)(x)
    assert tw.func.replace_all_batch_norm_modules_(net) is net
    assert not list(net.buffers())
    together = tw.func.vmap(net)(x)
    for one, found in zip(x, together, strict=True):
        assert tw.allclose(net(one), found)
    net.eval()
    assert tw.equal(tw.func.vmap(net)(x), together)


def tangents_unlike_the_primals_of_linearize(tw):
    x = tw.ones(3, 1)
    _, push = tw.func.linearize(lambda x: x.sin(), x)
    for tangents, message in (
        ((x, x), "to have the same argspec as the primals"),
        (((x,),), "to have the same argspec as the primals"),
        ((x[None],), "in flattened pytree doesn't match the shape"),
        ((x.double(),), "in flattened pytree doesn't match the dtype"),
    ):
        with pytest.raises(RuntimeError, match=message):
            push(*tangents)


def anomalies_of_mapped_gradients(tw):
    x = tw.tensor([1.0, -1.0, 4.0])
    mapped = tw.func.vmap(tw.func.grad(lambda x: x.sqrt()))
    with tw.autograd.set_detect_anomaly(True):
        assert mapped(x.abs()).tolist() == [0.5, 0.5, 0.25]
        for f in (mapped, tw.func.vmap(tw.func.vmap(tw.func.grad(lambda x: x.sqrt())))):
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values"):
                f(x if f is mapped else x[None])
