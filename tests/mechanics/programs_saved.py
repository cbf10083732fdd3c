"""Values saved for backward: hooks on them, and when they are freed."""

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def saved_values_pass_through_hooks(tw):
    log = []

    def pack(x):
        log.append(("pack", x.tolist()))
        return len(log) - 1

    def unpack(i):
        log.append(("unpack", i))
        return tw.tensor(log[i][1])

    a, b = _leaf(tw, 2.0), _leaf(tw, 5.0)
    with tw.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = a * b
    y.backward()
    assert sorted(log) == [("pack", [2.0]), ("pack", [5.0]), ("unpack", 0), ("unpack", 1)]
    assert (a.grad.tolist(), b.grad.tolist()) == ([5.0], [2.0])


def only_ops_inside_are_packed(tw):
    log = []
    x = _leaf(tw, 2.0)
    y = x * x
    with tw.autograd.graph.saved_tensors_hooks(lambda t: log.append(1) or t, lambda t: t):
        z = y.exp()
    (z * z).sum().backward()
    assert len(log) == 1


def the_innermost_hooks_hold(tw):
    log = []
    x = _leaf(tw, 2.0)
    with tw.autograd.graph.saved_tensors_hooks(lambda t: log.append("outer") or t, lambda t: t):
        with tw.autograd.graph.saved_tensors_hooks(lambda t: log.append("inner") or t, lambda t: t):
            a = x.exp()
        b = x.exp()
    (a + b).sum().backward()
    assert log == ["inner", "outer"]


def unpacking_twice(tw):
    log = []
    x = _leaf(tw, 1.0)
    hooks = lambda t: t.detach().numpy().copy(), lambda t: log.append(1) or tw.from_numpy(t)
    with tw.autograd.graph.saved_tensors_hooks(*hooks):
        y = x.exp()
    y.backward(retain_graph=True)
    y.backward()
    assert len(log) == 2


def what_comes_back_is_a_tensor(tw):
    x = _leaf(tw, 1.0)
    with tw.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got"):
        y.backward()


def anomalies_in_backward(tw):
    x = _leaf(tw, 0.0)
    text = r"Function 'SqrtBackward0' returned nan values in its 0th output"
    with pytest.raises(RuntimeError, match=text), tw.autograd.detect_anomaly():
        (tw.sqrt(x) * 0).sum().backward()


def anomaly_mode_ends(tw):
    assert not tw.is_anomaly_enabled() if hasattr(tw, "is_anomaly_enabled") else True
    x = _leaf(tw, 0.0)
    with tw.autograd.detect_anomaly():
        pass
    (tw.sqrt(x) * 0).sum().backward()
    assert x.grad.tolist()[0] != x.grad.tolist()[0]


def a_graph_is_freed_by_backward(tw):
    x = _leaf(tw, 2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def a_graph_that_saves_nothing_can_be_used_again(tw):
    x = _leaf(tw, 2.0)
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0]


def retained_graphs(tw):
    x = _leaf(tw, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]


def hooks_that_an_unpack_hook_enters_end_with_it(tw):
    seen = []

    def unpack(x):
        tw.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t).__enter__()
        return x

    x = _leaf(tw, 2.0)
    with tw.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        x.exp().sum().backward()
    (x.exp() * x).sum().backward()
    assert seen == []


def an_unpack_hook_may_leave_the_hooks_it_runs_in(tw):
    def unpack(x):
        hooks.__exit__(None, None, None)
        return x

    x = _leaf(tw, 2.0)
    hooks = tw.autograd.graph.saved_tensors_hooks(lambda t: t, unpack)
    with hooks:
        x.exp().sum().backward()
    seen = []
    with tw.autograd.graph.saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
        (x * x).sum().backward()
    x.sin().sum().backward()
    assert len(seen) > 0


def each_saved_value_takes_its_own_hooks(tw):
    x = _leaf(tw, 2.0, 3.0)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: 2 * t, lambda t: t / 2)
    y.grad_fn._raw_saved_other.register_hooks(lambda t: 2 * t, lambda t: t)
    with pytest.raises(RuntimeError, match="already"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 9.0]


def gather_takes_sparse_grad(tw):
    x = _leaf(tw, 2.0, 3.0)
    x.gather(0, tw.tensor([1, 1, 0]), sparse_grad=False).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]


def a_context_outlives_its_node(tw):
    class Keeps(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            kept.append(ctx)
            return g * 2

    for retain in (True, False):
        kept, x = [], _leaf(tw, 1.0)
        y = Keeps.apply(x)
        y.backward(retain_graph=retain)
        del y
        if retain:
            assert [t.tolist() for t in kept[0].saved_tensors] == [[1.0], [2.0]]
            assert kept[0].saved_tensors[0] is x
        else:
            with pytest.raises(RuntimeError, match="after they have already been freed"):
                _ = kept[0].saved_tensors
