"""Hooks: which of them run, in which order, and what they see and change."""

import gc
import weakref

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def order_of_all_kinds(tw):
    """Tensor hook on the total, node pre-hook, rule, node hook; at leaves hook, accumulation, post-accumulate hook."""
    w = _leaf(tw, 1.0, 2.0)
    o = w * 2
    log = []
    o.grad_fn.register_prehook(lambda gs: log.append(("pre", gs[0].tolist())))
    o.grad_fn.register_hook(lambda inputs, outputs: log.append(("post", inputs[0].tolist(), outputs[0].tolist())))
    o.register_hook(lambda g: log.append(("tensor", g.tolist())))
    w.register_hook(lambda g: log.append(("leaf", g.tolist(), w.grad is None)))
    w.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", p.grad.tolist())))
    o.sum().backward()
    assert log == [
        ("tensor", [1.0, 1.0]),
        ("pre", [1.0, 1.0]),
        ("post", [2.0, 2.0], [1.0, 1.0]),
        ("leaf", [2.0, 2.0], True),
        ("accumulated", [2.0, 2.0]),
    ]


def hooks_of_the_accumulator(tw):
    w = _leaf(tw, 1.0)
    o = w * 3
    sink = o.grad_fn.next_functions[0][0]
    assert sink.name().endswith("AccumulateGrad")
    assert sink.variable is w
    log = []
    sink.register_prehook(lambda gs: log.append(("pre", gs[0].tolist(), w.grad)))
    sink.register_hook(lambda inputs, outputs: log.append(("post", inputs, outputs[0].tolist(), w.grad.tolist())))
    o.backward()
    assert log == [("pre", [3.0], None), ("post", (), [3.0], [3.0])]


def a_tensor_hook_sees_the_total_once(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 2 + y * 3 + y).sum().backward()
    assert seen == [[6.0, 6.0]]


def a_tensor_hook_replaces_the_gradient(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert x.grad.tolist() == [22.0, 22.0]


def a_leaf_hook_changes_what_is_added(tw):
    x = _leaf(tw, 1.0)
    x.register_hook(lambda g: -g)
    (x * 2).backward()
    (x * 2).backward()
    assert x.grad.tolist() == [-4.0]


def node_hooks_replace_gradients(tw):
    x = _leaf(tw, 1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 5,))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, *inputs[1:]))
    y.backward()
    assert x.grad.tolist() == [11.0]


def removed_hooks_do_not_run(tw):
    x = _leaf(tw, 1.0)
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    with x.register_hook(lambda g: g * 7):
        (x * 1).backward()
    (x * 1).backward()
    assert x.grad.tolist() == [8.0]


def hooks_run_for_grad_too(tw):
    """`autograd.grad` runs the tensor hooks of what it returns, not the hooks of its node."""
    x = _leaf(tw, 1.0)
    y = x * 2
    log = []
    y.register_hook(lambda g: log.append("tensor") or g * 3)
    y.grad_fn.register_prehook(lambda gs: log.append("node"))
    (g,) = tw.autograd.grad(y * 5, y)
    assert g.tolist() == [15.0]
    assert log == ["tensor"]


def post_accumulate_hooks_do_not_run_for_grad(tw):
    x = _leaf(tw, 1.0)
    log = []
    x.register_post_accumulate_grad_hook(lambda p: log.append(p))
    tw.autograd.grad((x * 2).sum(), x)
    assert log == []


def an_optimizer_step_in_backward(tw):
    """A post-accumulate hook may use the gradient up, so that it never outlives the pass."""
    x = _leaf(tw, 1.0)

    def step(p):
        with tw.no_grad():
            p.sub_(0.5 * p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.tolist() == [0.0]
    assert x.grad is None


def hooks_within_create_graph(tw):
    """With `create_graph` hooks get tensors with history."""
    x = _leaf(tw, 3.0)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(g.requires_grad) or g * x)
    (g,) = tw.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [18.0]
    (h,) = tw.autograd.grad(g.sum(), x)
    assert h.tolist() == [12.0]


def retained_gradients(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 2
    z = y * 3
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad
    z.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [3.0, 3.0]
    assert not z.retains_grad
    z.sum().backward()
    assert y.grad.tolist() == [6.0, 6.0]


def retained_gradients_are_those_after_hooks(tw):
    x = _leaf(tw, 1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 4)
    y.backward()
    assert y.grad.tolist() == [4.0]


def retaining_needs_a_gradient(tw):
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        tw.tensor([1.0]).retain_grad()
    x = _leaf(tw, 1.0)
    x.retain_grad()
    assert not x.retains_grad


def registering_needs_a_gradient(tw):
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require grad"):
        tw.tensor([1.0]).register_hook(lambda g: g)
    y = _leaf(tw, 1.0) * 2
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        y.register_post_accumulate_grad_hook(lambda p: None)


def a_hook_that_raises_leaves_the_engine_usable(tw):
    x = _leaf(tw, 1.0)
    y = x * 2

    def fail(g):
        raise KeyError("from the hook")

    y.register_hook(fail)
    with pytest.raises(KeyError, match="from the hook"):
        y.sum().backward()
    assert x.grad is None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0]


def hooks_of_several_tensors(tw):
    a, b, c = _leaf(tw, 1.0), _leaf(tw, 2.0), _leaf(tw, 3.0)
    seen = []
    handle = tw.autograd.graph.register_multi_grad_hook(
        (a, b, c), lambda grads: seen.append([None if g is None else g.tolist() for g in grads])
    )
    (a * b).backward()
    assert seen == [[[2.0], [1.0], None]]
    handle.remove()
    (a * b).backward()
    assert len(seen) == 1


def hooks_of_any_of_several_tensors(tw):
    a, b = _leaf(tw, 1.0), _leaf(tw, 2.0)
    seen = []
    tw.autograd.graph.register_multi_grad_hook((a, b), lambda g: seen.append(g.tolist()), mode="any")
    (a * b).backward()
    (a * b).backward()
    assert len(seen) == 2


def a_hook_keeps_nothing_alive_after_the_graph(tw):
    class Held:
        pass

    held = Held()
    alive = weakref.ref(held)
    x = _leaf(tw, 1.0)
    y = x * 2
    y.register_hook(lambda g, held=held: None)
    del held
    gc.disable()
    try:
        del y
        assert alive() is None
    finally:
        gc.enable()


def metadata_belongs_to_the_user(tw):
    y = _leaf(tw, 1.0) * 2
    y.grad_fn.metadata["key"] = 7
    assert y.grad_fn.metadata == {"key": 7}


def accumulators_form_no_cycle(tw):
    x = _leaf(tw, 1.0)
    y = x * 2
    assert y.grad_fn.next_functions[0][0] is not None
    alive = weakref.ref(x)
    gc.disable()
    try:
        del x, y
        assert alive() is None
    finally:
        gc.enable()


def hooks_of_results_that_are_left_out(tw):
    seen = []
    x = tw.ones(3, requires_grad=True)
    first, second, _ = x.unbind()
    first.register_hook(seen.append)
    second.backward()
    assert seen == [None]
    first.backward()
    assert seen[1].item() == 1


def callbacks_run_when_the_pass_is_over(tw):
    seen = []
    x = tw.ones(2, requires_grad=True)

    class Asks(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, name, inside):
            ctx.name, ctx.inside = name, inside
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            grad = None if x.grad is None else x.grad.tolist()
            seen.append((ctx.name, grad))
            tw.autograd.Variable._execution_engine.queue_callback(lambda: seen.append((ctx.name, "done")))
            if ctx.inside:
                with tw.enable_grad():
                    Asks.apply(tw.ones(1, requires_grad=True), "inner", False).sum().backward()
            return g, None, None

    Asks.apply(x * 2, "outer", True).sum().backward()
    assert seen == [("outer", None), ("inner", None), ("inner", "done"), ("outer", "done")]
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        tw.autograd.Variable._execution_engine.queue_callback(lambda: None)


def a_written_view_has_hooks_of_its_own(tw):
    for write in (lambda v: v.mul_(2), lambda v: v.copy_(tw.tensor([3.0], requires_grad=True))):
        seen = []
        base = _leaf(tw, 1.0, 2.0).clone()
        base.register_hook(lambda g, seen=seen: seen.append("base"))
        view, other = base[:1], base[:1]
        view.register_hook(lambda g, seen=seen: seen.append("before"))
        other.register_hook(lambda g, seen=seen: seen.append("of another"))
        write(view)
        assert view.grad_fn is not None
        view.register_hook(lambda g, seen=seen: seen.append(g.tolist()))
        (view * 3 + other).sum().backward()
        assert seen == [[3.0], "base"]
