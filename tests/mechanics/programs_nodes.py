"""Nodes: names, neighbours, what they save, and places of the graph as roots and inputs."""

import gc
import weakref

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def names_of_common_nodes(tw):
    x, y = _leaf(tw, 1.0, 2.0), _leaf(tw, 3.0, 4.0)
    wanted = {
        "AddBackward0": x + y, "SubBackward0": x - y, "MulBackward0": x * y, "DivBackward0": x / y,
        "PowBackward0": x**2, "PowBackward1": x**y, "NegBackward0": -x, "ExpBackward0": x.exp(),
        "LogBackward0": x.log(), "TanhBackward0": x.tanh(),
        "SigmoidBackward0": x.sigmoid(),
        "ReluBackward0": x.relu(), "SumBackward0": x.sum(), "SumBackward1": x.view(1, 2).sum(0),
        "MeanBackward0": x.mean(), "MeanBackward1": x.view(1, 2).mean(0), "SqrtBackward0": x.sqrt(),
        "AbsBackward0": x.abs(),
        "CloneBackward0": x.clone(),
        "SliceBackward0": x[:1], "ViewBackward0": x.view(2, 1), "CatBackward0": tw.cat([x, y]),
        "DotBackward0": x.dot(y), "WhereBackward0": tw.where(x > 1, x, y), "ExpandBackward0": x.expand(3, 2),
        "MmBackward0": x.view(1, 2) @ y.view(2, 1), "PermuteBackward0": x.view(1, 2).permute(1, 0),
        "SoftmaxBackward0": x.softmax(0), "LogSoftmaxBackward0": x.log_softmax(0), "SinBackward0": x.sin(),
        "CumsumBackward0": x.cumsum(0), "ProdBackward0": x.prod(),
        "UnbindBackward0": x.unbind()[0], "SplitBackward0": x.split(1)[0],
        "GatherBackward0": x.gather(0, tw.tensor([0])),
        "IndexBackward0": x[tw.tensor([0])], "ClampBackward1": x.clamp(0, 1),
        "LogsumexpBackward0": x.logsumexp(0), "StdBackward0": x.std(), "VarBackward0": x.var(),
        "ToCopyBackward0": x.double(),
    }  # fmt: skip
    found = {name: y.grad_fn.name() for name, y in wanted.items() if y is not None}
    assert {name: got for name, got in found.items() if got != name} == {}


def neighbours(tw):
    x, c = _leaf(tw, 1.0), tw.tensor([2.0])
    y = x * c + x
    (mul, i), (sink, j) = y.grad_fn.next_functions
    assert (mul.name(), i, j) == ("MulBackward0", 0, 0)
    assert mul.next_functions[1] == (None, 0)
    assert mul.next_functions[0][0] is sink
    assert sink.variable is x
    assert sink.next_functions == ()
    assert (x * 3).grad_fn.next_functions[0][0] is sink
    assert isinstance(y.grad_fn.next_functions, tuple)


def neighbours_of_numbers(tw):
    x = _leaf(tw, 1.0)
    assert len((x * 2).grad_fn.next_functions) == 2
    assert (x * 2).grad_fn.next_functions[1] == (None, 0)


def neighbours_of_one_of_several_results(tw):
    x = _leaf(tw, 1.0, 2.0)
    a, b = x.unbind()
    y = b * 2
    node, output = y.grad_fn.next_functions[0]
    assert output == 1
    assert node is a.grad_fn is b.grad_fn


def the_accumulator_lives_as_long_as_it_is_used(tw):
    x = _leaf(tw, 1.0)
    y = x * 2
    one, two = y.grad_fn.next_functions[0][0], (x + 1).grad_fn.next_functions[0][0]
    assert one is two
    assert x.grad_fn is None
    assert "AccumulateGrad" in repr(one)


def readable_text(tw):
    x = _leaf(tw, 2.0, 3.0)
    assert repr(x) == "tensor([2., 3.], requires_grad=True)"
    assert repr(x * 1) == "tensor([2., 3.], grad_fn=<MulBackward0>)"
    assert repr(x.detach().double()) == "tensor([2., 3.], dtype=torch.float64)".replace(
        "torch.", "torch." if tw.__name__ == "torch" else ""
    )
    assert repr((x * 1).grad_fn).startswith("<MulBackward0 object at 0x")


def saved_operands_and_results(tw):
    x, w = _leaf(tw, 1.0, 2.0), _leaf(tw, 3.0, 4.0)
    assert (x * w).grad_fn._saved_self is x
    quotient = (x / w).grad_fn
    assert quotient._saved_other is w
    y = x.sigmoid()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert x.log().grad_fn._saved_self is x
    p = (x**3).grad_fn
    assert (p._saved_exponent, p._saved_self.tolist()) == (3, [1.0, 2.0])
    m = x.view(1, 2) @ w.view(2, 1)
    assert m.grad_fn._saved_self.shape == (1, 2)
    assert m.grad_fn._saved_mat2.shape == (2, 1)


def saved_only_where_it_is_needed(tw):
    x, c = _leaf(tw, 1.0, 2.0), tw.tensor([3.0, 4.0])
    node = (x * c).grad_fn
    assert node._saved_other is not None
    assert node._saved_self is None


def saved_attributes(tw):
    x = _leaf(tw, 1.0, 2.0)
    assert tuple(x.sum(0, keepdim=True).grad_fn._saved_dim) == (0,)
    assert x.sum(0, keepdim=True).grad_fn._saved_keepdim is True
    assert x.softmax(0).grad_fn._saved_dim in (0, 2**64 - 1, -1)


def saved_tensors_of_functions(tw):
    class Keep(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            ctx.n = n
            return x * n

        @staticmethod
        def backward(ctx, g):
            return g * ctx.n, None

    x = _leaf(tw, 1.0)
    y = Keep.apply(x, 3)
    (saved,) = y.grad_fn.saved_tensors
    assert saved.tolist() == [1.0]
    assert y.grad_fn.name() == "KeepBackward"
    assert not hasattr((x * x).grad_fn, "saved_tensors")


def raw_saved_values_take_hooks(tw):
    log = []
    x = _leaf(tw, 2.0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: log.append("pack") or t, lambda t: log.append("unpack") or t)
    y.backward()
    assert log == ["pack", "unpack"]


def edges_are_roots_of_backward(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 3
    edge = tw.autograd.graph.get_gradient_edge(y)
    del y
    tw.autograd.backward(edge, tw.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [3.0, 30.0]


def edges_are_roots_of_grad(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 3
    edge = tw.autograd.graph.get_gradient_edge(y)
    (g,) = tw.autograd.grad([edge], [x], grad_outputs=[tw.tensor([1.0, 10.0])])
    assert g.tolist() == [3.0, 30.0]


def edges_beside_tensors_as_roots(tw):
    x = _leaf(tw, 1.0, 2.0)
    y, z = x * 3, (x * x).sum()
    edge = tw.autograd.graph.get_gradient_edge(y)
    tw.autograd.backward((edge, z), (tw.ones(2), None))
    assert x.grad.tolist() == [5.0, 7.0]


def edges_are_inputs_of_backward(tw):
    x, w = _leaf(tw, 1.0), _leaf(tw, 2.0)
    edge = tw.autograd.graph.get_gradient_edge(x)
    (x * w).backward(inputs=[edge])
    assert x.grad.tolist() == [2.0]
    assert w.grad is None


def edges_of_results_are_inputs(tw):
    x = _leaf(tw, 1.0, 2.0)
    a, b = x.unbind()
    edge = tw.autograd.graph.get_gradient_edge(b)
    assert edge.output_nr == 1
    (g,) = tw.autograd.grad((a * b).sum(), [edge])
    assert g.tolist() == 1.0


def edges_keep_no_tensor(tw):
    x = _leaf(tw, 1.0)
    y = x + 3
    alive = weakref.ref(y)
    edge = tw.autograd.graph.get_gradient_edge(y)
    gc.disable()
    try:
        del y
        assert alive() is None
    finally:
        gc.enable()
    assert edge.node.name() == "AddBackward0"


def unused_edges_are_refused(tw):
    x, w = _leaf(tw, 1.0), _leaf(tw, 1.0)
    edge = tw.autograd.graph.get_gradient_edge(w * 2)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        tw.autograd.grad(x * 2, [edge])
    assert tw.autograd.grad(x * 2, [edge], allow_unused=True) == (None,)


def grad_of_several_roots(tw):
    x = _leaf(tw, 1.0, 2.0)
    (g,) = tw.autograd.grad([x * 2, (x * x).sum()], [x], [tw.ones(2), None])
    assert g.tolist() == [4.0, 6.0]
    tw.autograd.backward([(x * 2).sum(), (x * x).sum()])
    assert x.grad.tolist() == [4.0, 6.0]


def a_root_that_is_a_leaf(tw):
    x = _leaf(tw, 1.0)
    x.backward()
    assert x.grad.tolist() == [1.0]
    (g,) = tw.autograd.grad(x, x)
    assert g.tolist() == [1.0]
    c = tw.tensor([1.0])
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        c.backward()


def materialised_gradients(tw):
    x, w = _leaf(tw, 1.0), _leaf(tw, 2.0, 3.0)
    g, h = tw.autograd.grad(x * 2, [x, w], materialize_grads=True)
    assert (g.tolist(), h.tolist()) == ([2.0], [0.0, 0.0])
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        tw.autograd.grad(x * 2, [x, w], allow_unused=False, materialize_grads=True)


def what_a_sum_hands_back_is_no_shared_memory(tw):
    x, y = _leaf(tw, 1.0, 2.0), _leaf(tw, 1.0, 2.0)
    (x + y).sum().backward()
    with tw.no_grad():
        x.grad.add_(5)
    assert y.grad.tolist() == [1.0, 1.0]


def gradients_that_do_not_fit(tw):
    x = _leaf(tw, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of"):
        (x * 2).backward(tw.ones(3))
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        tw.autograd.backward([x * 2, x * 3], [tw.ones(2)])
    with pytest.raises(RuntimeError, match="assign"):
        x.grad = tw.ones(3)


def contexts_are_seen_through_their_nodes(tw):
    class Times(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            ctx.factor, ctx.saved_shape = factor, tuple(x.shape)
            return x * factor

        @staticmethod
        def backward(ctx, g):
            ctx.seen = (ctx.name(), len(ctx.next_functions), ctx.metadata["note"])
            return g * ctx.factor, None

    x = tw.tensor([1.0, 2.0], requires_grad=True)
    node = Times.apply(x, 3.0).grad_fn
    assert node.factor == 3.0
    assert node.saved_shape == (2,)
    assert node.needs_input_grad == (True, False)
    assert node.saved_tensors[0].tolist() == [1.0, 2.0]
    assert {"factor", "saved_shape", "saved_tensors", "next_functions"} <= set(dir(node))
    assert not hasattr(node, "other")
    node.other, node.factor = [1], 4.0
    assert node.other == [1]
    del node.other
    with pytest.raises(AttributeError, match="'TimesBackward' object has no attribute 'other'"):
        _ = node.other
    node.metadata["note"] = "kept"
    y = Times.apply(x, 5.0)
    y.grad_fn.factor = 7.0
    y.grad_fn.metadata["note"] = "kept"
    node = y.grad_fn
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    assert node.seen[0] == "TimesBackward"
    assert node.seen[2] == "kept"
    with pytest.raises(RuntimeError, match="already been freed"):
        _ = node.saved_tensors


def nodes_list_what_they_save(tw):
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    for y, expected in ((x.exp(), {"_saved_result"}), (x * x, {"_saved_self", "_saved_other"})):
        assert {name for name in dir(y.grad_fn) if name.startswith("_saved")} == expected
        for name in dir(y.grad_fn):
            getattr(y.grad_fn, name)
    assert tuple(x.sum().grad_fn._saved_self_sym_sizes) == (2,)


def nodes_are_functions(tw):
    x = tw.tensor([2.0, 3.0], requires_grad=True)
    y = x * x.exp()
    g = tw.tensor([1.0, 10.0])
    left, right = y.grad_fn(g)
    assert tw.equal(left, g * x.exp())
    assert tw.equal(right, g * x)
    (total,) = tw.autograd.grad(x**2, x, g)
    assert tw.equal((x**2).grad_fn(g), total)
    for wrong in ((), (g, g)):
        with pytest.raises(TypeError, match=r"expected .* arguments, got .* instead"):
            (x**2).grad_fn(*wrong)
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"second time|already been freed"):
        y.grad_fn(g)


def classes_have_names(tw):
    class Double(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = tw.ones(2, requires_grad=True)
    assert Double.apply(x).grad_fn.__class__.__name__ == "DoubleBackward"
    assert (x * x).grad_fn.__class__.__name__ == "MulBackward0"
    assert isinstance((x * x).grad_fn, tw.autograd.graph.Node)


def edges_of_scalars_need_no_cotangent(tw):
    x = _leaf(tw, 1.0, 2.0)
    edge = tw.autograd.graph.get_gradient_edge((x * x).sum())
    assert tw.autograd.grad(edge, x)[0].tolist() == [2.0, 4.0]
    edge = tw.autograd.graph.get_gradient_edge(x * x)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar output"):
        tw.autograd.grad(edge, x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        tw.autograd.grad(edge, x, grad_outputs=tw.ones(3))


def raw_saved_values_of_functions_take_hooks(tw):
    class Keep(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x, log = _leaf(tw, 3.0), []
    y = Keep.apply(x)
    first, second = y.grad_fn._raw_saved_tensors
    with pytest.raises(RuntimeError, match="None is forbidden"):
        second.register_hooks(lambda t: t, lambda t: t)
    for arguments in ((lambda t: t,), (1, 1)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            first.register_hooks(*arguments)
    first.register_hooks(lambda t: log.append("pack") or t, lambda t: log.append("unpack") or t * 2)
    with pytest.raises(RuntimeError, match="already been set"):
        first.register_hooks(lambda t: t, lambda t: t)
    del first, second
    y.backward()
    assert (log, x.grad.tolist()) == (["pack", "unpack"], [12.0])
    for name in ("_raw_saved_tensors", "saved_tensors"):
        with pytest.raises(RuntimeError, match="after they have already been freed"):
            getattr(y.grad_fn, name)
