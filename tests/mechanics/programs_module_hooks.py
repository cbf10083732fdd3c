"""Hooks of modules: which run, in which order, and what they change."""

import pytest


def _linear(tw, weight=((2.0, 0.0), (0.0, 3.0))):
    layer = tw.nn.Linear(2, 2, bias=False)
    with tw.no_grad():
        layer.weight.copy_(tw.tensor(weight))
    return layer


def _x(tw):
    return tw.tensor([[1.0, 1.0]], requires_grad=True)


def order_of_all_kinds(tw):
    log = []
    layer = _linear(tw)
    layer.register_forward_pre_hook(lambda m, args: log.append(("pre", args[0].tolist())))
    layer.register_forward_hook(lambda m, args, y: log.append(("post", y.tolist())))
    layer.register_full_backward_pre_hook(lambda m, gs: log.append(("backward pre", gs[0].tolist())))
    layer.register_full_backward_hook(
        lambda m, inputs, outputs: log.append(("backward", inputs[0].tolist(), outputs[0].tolist()))
    )
    layer(_x(tw)).sum().backward()
    assert log == [
        ("pre", [[1.0, 1.0]]),
        ("post", [[2.0, 3.0]]),
        ("backward pre", [[1.0, 1.0]]),
        ("backward", [[2.0, 3.0]], [[1.0, 1.0]]),
    ]


def tables_of_hooks_are_listed_and_cleared(tw):
    layer, log = _linear(tw), []
    kinds = ("forward_pre_hooks", "forward_hooks", "backward_pre_hooks", "backward_hooks")
    assert [str(getattr(layer, f"_{kind}")) for kind in kinds] == ["OrderedDict()"] * 4

    def note(*given):
        log.append(len(given))

    layer.register_forward_pre_hook(note)
    layer.register_forward_hook(note)
    layer.register_full_backward_pre_hook(note)
    layer.register_full_backward_hook(note)
    assert [list(getattr(layer, f"_{kind}").values()) for kind in kinds] == [[note]] * 4
    layer._forward_hooks.clear()
    layer._backward_hooks.clear()
    layer(_x(tw)).sum().backward()
    assert log == [2, 2]
    assert len(layer._forward_pre_hooks) == 1


def forward_hooks_change_arguments_and_result(tw):
    layer = _linear(tw)
    layer.register_forward_pre_hook(lambda m, args: (args[0] * 10,))
    layer.register_forward_pre_hook(lambda m, args: args[0] + 1)  # what is no tuple becomes one
    layer.register_forward_hook(lambda m, args, y: y * 100)
    layer.register_forward_hook(lambda m, args, y: None)
    assert layer(_x(tw)).tolist() == [[2200.0, 3300.0]]


def hooks_with_keywords(tw):
    class Scaled(tw.nn.Module):
        def forward(self, x, *, factor=1.0):
            return x * factor

    seen = []
    m = Scaled()
    m.register_forward_pre_hook(lambda m, args, kwargs: (args, {"factor": kwargs["factor"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda m, args, kwargs, y: seen.append(kwargs), with_kwargs=True)
    assert m(tw.tensor([1.0]), factor=2.0).tolist() == [3.0]
    assert seen == [{"factor": 3.0}]
    m.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        m(tw.tensor([1.0]), factor=2.0)


def prepended_hooks_run_first(tw):
    log = []
    layer = _linear(tw)
    for kind in ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"):
        register = getattr(layer, f"register_{kind}")
        register(lambda *a, kind=kind: log.append((kind, "second")) and None)
        register(lambda *a, kind=kind: log.append((kind, "first")) and None, prepend=True)
    layer(_x(tw)).sum().backward()
    kinds = ["forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"]
    assert log == [(kind, place) for kind in kinds for place in ("first", "second")]


def removed_hooks_do_not_run(tw):
    log = []
    layer = _linear(tw)
    handle = layer.register_forward_hook(lambda m, args, y: log.append(1))
    handle.remove()
    handle.remove()
    with layer.register_forward_pre_hook(lambda m, args: log.append(2)):
        layer(_x(tw))
    layer(_x(tw))
    assert log == [2]


def hooks_that_always_run(tw):
    class Failing(tw.nn.Module):
        def forward(self, x):
            raise KeyError("inside")

    log = []
    m = Failing()
    m.register_forward_hook(lambda m, args, y: log.append("plain"))
    m.register_forward_hook(lambda m, args, y: log.append(("always", y)), always_call=True)
    with pytest.raises(KeyError, match="inside"):
        m(_x(tw))
    assert log == [("always", None)]


def a_forward_hook_that_raises_leaves_the_module_usable(tw):
    layer = _linear(tw)

    def fail(m, args, y):
        raise KeyError("hook")

    handle = layer.register_forward_hook(fail)
    with pytest.raises(KeyError, match="hook"):
        layer(_x(tw))
    handle.remove()
    assert layer(_x(tw)).tolist() == [[2.0, 3.0]]


def backward_hooks_change_gradients(tw):
    x, layer = _x(tw), _linear(tw)
    layer.register_full_backward_pre_hook(lambda m, gs: (gs[0] * 10,))
    layer.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] + 1,))
    layer(x).sum().backward()
    assert x.grad.tolist() == [[21.0, 31.0]]
    assert layer.weight.grad.tolist() == [[10.0, 10.0], [10.0, 10.0]]


def backward_hooks_chain(tw):
    x, layer = _x(tw), _linear(tw)
    layer.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] * 2,))
    layer.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] + 1,))
    layer(x).sum().backward()
    assert x.grad.tolist() == [[5.0, 7.0]]


def backward_hooks_where_no_input_needs_a_gradient(tw):
    log = []
    layer = _linear(tw)
    layer.register_full_backward_hook(lambda m, inputs, outputs: log.append((inputs, outputs[0].tolist())))
    layer(_x(tw).detach()).sum().backward()
    assert log == [((None,), [[1.0, 1.0]])]


def backward_hooks_of_several_inputs_and_results(tw):
    class Both(tw.nn.Module):
        def forward(self, x, n, z):
            return x * 2, z * 3, n

    log = []
    m = Both()
    m.register_full_backward_hook(
        lambda m, inputs, outputs: log.append(
            [[g if g is None else g.tolist() for g in gs] for gs in (inputs, outputs)]
        )
    )
    x, z = tw.tensor([1.0], requires_grad=True), tw.tensor([1.0], requires_grad=True)
    a, b, n = m(x, 7, z)
    assert n == 7
    (a + b).sum().backward()
    assert log == [[[[2.0], None, [3.0]], [[1.0], [1.0], None]]] or log == [[[[2.0], None, [3.0]], [[1.0], [1.0]]]]


def results_keep_their_structure(tw):
    class Named(tw.nn.Module):
        def forward(self, x):
            return {"twice": x * 2}

    m = Named()
    m.register_forward_hook(lambda m, args, y: {"thrice": y["twice"] * 1.5})
    assert m(tw.tensor([2.0]))["thrice"].tolist() == [6.0]


def a_backward_hook_of_the_wrong_length_is_refused(tw):
    layer = _linear(tw)
    layer.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0], inputs[0]))
    with pytest.raises(RuntimeError, match="got 2, but expected 1"):
        layer(_x(tw)).sum().backward()


def backward_hooks_run_for_grad_too(tw):
    log = []
    x, layer = _x(tw), _linear(tw)
    layer.register_full_backward_hook(lambda m, inputs, outputs: log.append(inputs[0].tolist()))
    (g,) = tw.autograd.grad(layer(x).sum(), x)
    assert g.tolist() == [[2.0, 3.0]]
    assert log == [[[2.0, 3.0]]]


def backward_hooks_within_create_graph(tw):
    class Square(tw.nn.Module):
        def forward(self, x):
            return x * x

    m = Square()
    m.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] * 3,))
    x = tw.tensor([2.0], requires_grad=True)
    (g,) = tw.autograd.grad(m(x).sum(), x, create_graph=True)
    (h,) = tw.autograd.grad(g.sum(), x)
    assert (g.tolist(), h.tolist()) == ([12.0], [6.0])


def outputs_behind_backward_hooks_are_not_overwritten(tw):
    layer = _linear(tw)
    layer.register_full_backward_hook(lambda m, inputs, outputs: None)
    y = layer(_x(tw))
    assert y.grad_fn is not None
    assert "BackwardHookFunction" in y.grad_fn.name()


def hooks_of_modules_inside(tw):
    log = []
    model = tw.nn.Sequential(_linear(tw), tw.nn.Tanh(), _linear(tw))
    for i, m in enumerate(model):
        m.register_forward_hook(lambda m, args, y, i=i: log.append(f"forward {i}"))
        m.register_full_backward_hook(lambda m, inputs, outputs, i=i: log.append(f"backward {i}"))
    model(_x(tw)).sum().backward()
    assert log == ["forward 0", "forward 1", "forward 2", "backward 2", "backward 1", "backward 0"]


def hooks_of_all_modules(tw):
    log = []
    handles = [
        tw.nn.modules.module.register_module_forward_pre_hook(lambda m, args: log.append("global pre")),
        tw.nn.modules.module.register_module_forward_hook(lambda m, args, y: log.append("global post")),
        tw.nn.modules.module.register_module_full_backward_pre_hook(lambda m, gs: log.append("global backward pre")),
        tw.nn.modules.module.register_module_full_backward_hook(lambda m, i, o: log.append("global backward")),
    ]
    layer = _linear(tw)
    layer.register_forward_pre_hook(lambda m, args: log.append("pre"))
    layer.register_full_backward_hook(lambda m, i, o: log.append("backward"))
    try:
        layer(_x(tw)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    layer(_x(tw).detach())
    assert log == ["global pre", "pre", "global post", "global backward pre", "global backward", "backward", "pre"]
