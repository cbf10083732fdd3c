"""Modules: what is registered, found, copied, loaded and shown."""

import copy
import os

import pytest


def _model(tw):
    class Block(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = tw.nn.Linear(2, 3)
            self.register_buffer("count", tw.zeros(2))

        def forward(self, x):
            return self.inner(x)

    class Model(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Block()
            self.second = tw.nn.Sequential(tw.nn.Linear(3, 3), tw.nn.Tanh())
            self.scale = tw.nn.Parameter(tw.ones(3))

        def forward(self, x):
            return self.second(self.first(x)) * self.scale

    return Model()


def names_of_everything(tw):
    m = _model(tw)
    assert [n for n, _ in m.named_modules()] == ["", "first", "first.inner", "second", "second.0", "second.1"]
    assert [n for n, _ in m.named_modules(prefix="m")][:2] == ["m", "m.first"]
    assert [n for n, _ in m.named_children()] == ["first", "second"]
    assert list(m.children()) == [m.first, m.second]
    wanted = ["scale", "first.inner.weight", "first.inner.bias", "second.0.weight", "second.0.bias"]
    assert [n for n, _ in m.named_parameters()] == wanted
    assert [n for n, _ in m.named_parameters(prefix="m", recurse=False)] == ["m.scale"]
    assert [n for n, _ in m.named_buffers()] == ["first.count"]
    assert len(list(m.parameters(recurse=False))) == 1
    assert len(list(m.buffers(recurse=False))) == 0


def shared_things_are_found_once(tw):
    m = tw.nn.Module()
    m.a = tw.nn.Linear(2, 2)
    m.b = m.a
    m.c = tw.nn.Linear(2, 2)
    m.c.weight = m.a.weight
    assert [n for n, _ in m.named_modules()] == ["", "a", "c"]
    assert [n for n, _ in m.named_modules(remove_duplicate=False)] == ["", "a", "b", "c"]
    assert [n for n, _ in m.named_parameters()] == ["a.weight", "a.bias", "c.bias"]
    names = [n for n, _ in m.named_parameters(remove_duplicate=False)]
    assert names == ["a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias"]
    assert list(m.state_dict()) == names


def by_qualified_name(tw):
    m = _model(tw)
    assert m.get_submodule("first.inner") is m.first.inner
    assert m.get_submodule("") is m
    assert m.get_parameter("second.0.bias") is m.second[0].bias
    assert m.get_buffer("first.count") is m.first.count
    with pytest.raises(AttributeError, match="has no attribute `third`"):
        m.get_submodule("third")
    with pytest.raises(AttributeError, match=r"`scale` is not an nn\.Module"):
        m.get_submodule("scale")
    with pytest.raises(AttributeError, match=r"is not an nn\.Parameter"):
        m.get_parameter("first.count")
    with pytest.raises(AttributeError, match="is not a buffer"):
        m.get_buffer("scale")


def registering(tw):
    m = tw.nn.Module()
    m.register_parameter("w", tw.nn.Parameter(tw.ones(2)))
    m.register_parameter("none", None)
    m.register_buffer("b", tw.zeros(2))
    m.register_buffer("hidden", tw.zeros(1), persistent=False)
    m.register_module("child", tw.nn.Linear(1, 1))
    m.add_module("other", None)
    assert m.none is None
    assert m.other is None
    assert list(m.state_dict()) == ["w", "b", "child.weight", "child.bias"]
    assert [n for n, _ in m.named_buffers()] == ["b", "hidden"]
    assert [n for n, _ in m.named_parameters()] == ["w", "child.weight", "child.bias"]


def names_that_are_refused(tw):
    m = tw.nn.Module()
    p = tw.nn.Parameter(tw.ones(1))
    for register, value in ((m.register_parameter, p), (m.register_buffer, tw.ones(1)), (m.add_module, tw.nn.Tanh())):
        with pytest.raises(KeyError, match=r"can.*t contain"):
            register("a.b", value)
        with pytest.raises(KeyError, match=r"can.*t be empty"):
            register("", value)
        with pytest.raises(KeyError, match="already exists"):
            register("forward", value)
    with pytest.raises(TypeError, match="Parameter or None required"):
        m.register_parameter("x", tw.ones(1))
    with pytest.raises(TypeError, match="Tensor or None required"):
        m.register_buffer("x", "text")
    with pytest.raises(TypeError, match="is not a Module subclass"):
        m.add_module("x", 3)


def assigning(tw):
    m = tw.nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"cannot assign .* as parameter 'weight' \(.*Parameter or None expected\)"):
        m.weight = tw.ones(2, 2)
    m.bias = None
    assert m.bias is None
    assert list(m.state_dict()) == ["weight"]
    assert m(tw.ones(1, 2)).shape == (1, 2)
    m.register_buffer("b", tw.zeros(2))
    m.b = tw.ones(2)
    assert m.state_dict()["b"].tolist() == [1.0, 1.0]
    m.child = tw.nn.Tanh()
    with pytest.raises(TypeError, match="cannot assign"):
        m.child = 3
    del m.child
    assert not hasattr(m, "child")


def before_init(tw):
    class Late(tw.nn.Module):
        def __init__(self):
            self.w = tw.nn.Parameter(tw.ones(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Late()

    class Early(tw.nn.Module):
        def __init__(self):
            self.dim, self.start = -1, tw.ones(2)
            super().__init__()

    assert Early().dim == -1
    assert not Early().state_dict()


def places_for_modules(tw):
    """None keeps the place for a module in every container."""
    nn = tw.nn
    several = nn.ModuleList([nn.Linear(1, 1), None])
    several.append(None)
    several.insert(0, None)
    assert [m is None for m in several] == [True, False, True, True]
    assert list(several.state_dict()) == ["1.weight", "1.bias"]
    several[0] = nn.ReLU()
    assert len(list(several.modules())) == 3
    named = nn.ModuleDict({"a": None, "b": nn.ReLU()})
    assert named["a"] is None
    assert len(list(named.children())) == 1
    assert "(1): None" in repr(nn.Sequential(nn.ReLU(), None))
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        nn.Sequential(nn.ReLU(), None)(tw.ones(1))
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        nn.ModuleList([3])


def unknown_attributes(tw):
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wait'"):
        _ = tw.nn.Linear(1, 1).wait
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        tw.nn.Module()(tw.ones(1))


def modes(tw):
    m = _model(tw)
    assert m.training
    assert m.eval() is m
    assert not m.second[1].training
    assert m.train() is m
    assert m.second[1].training
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        m.train("yes")


def freezing(tw):
    m = _model(tw)
    assert m.requires_grad_(False) is m
    assert not any(p.requires_grad for p in m.parameters())
    m.second.requires_grad_()
    assert [n for n, p in m.named_parameters() if p.requires_grad] == ["second.0.weight", "second.0.bias"]
    m(tw.ones(1, 2)).sum().backward()
    assert m.scale.grad is None
    assert m.second[0].bias.grad is not None


def zeroing(tw):
    m = _model(tw)
    m(tw.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.scale.grad.tolist() == [0.0, 0.0, 0.0]
    m.zero_grad()
    assert m.scale.grad is None


def applying(tw):
    m = _model(tw)
    seen = []
    assert m.apply(lambda module: seen.append(type(module).__name__)) is m
    assert seen == ["Linear", "Block", "Linear", "Tanh", "Sequential", "Model"]


def state_is_copied_in(tw):
    a, b = _model(tw), _model(tw)
    state = a.state_dict()
    assert list(state)[:3] == ["scale", "first.count", "first.inner.weight"]
    found = b.load_state_dict(state)
    assert (found.missing_keys, found.unexpected_keys) == ([], [])
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        assert x.tolist() == y.tolist()
        assert x is not y


def state_with_a_prefix(tw):
    m = tw.nn.Linear(1, 1)
    assert list(m.state_dict(prefix="m.")) == ["m.weight", "m.bias"]
    given = {"before": 1}
    assert m.state_dict(destination=given) is given
    assert list(given) == ["before", "weight", "bias"]


def state_is_shared_and_detached(tw):
    m = tw.nn.Linear(1, 1)
    state = m.state_dict()
    assert not state["weight"].requires_grad
    with tw.no_grad():
        m.weight.fill_(7.0)
    assert state["weight"].tolist() == [[7.0]]
    assert m.state_dict(keep_vars=True)["weight"] is m.weight


def wrong_state(tw):
    m = tw.nn.Linear(2, 1)
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "bias"'):
        m.load_state_dict({"weight": tw.ones(1, 2)})
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "extra"'):
        m.load_state_dict({**m.state_dict(), "extra": tw.ones(1)})
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        m.load_state_dict({"weight": tw.ones(3, 2), "bias": tw.ones(1)})
    found = m.load_state_dict({"weight": tw.ones(1, 2), "extra": tw.ones(1)}, strict=False)
    assert (found.missing_keys, found.unexpected_keys) == (["bias"], ["extra"])
    assert m.weight.tolist() == [[1.0, 1.0]]


def loading_keeps_the_parameter(tw):
    m = tw.nn.Linear(1, 1, bias=False)
    w = m.weight
    m.load_state_dict({"weight": tw.tensor([[5.0]])})
    assert m.weight is w
    assert w.tolist() == [[5.0]]
    m.load_state_dict({"weight": tw.nn.Parameter(tw.tensor([[6.0]]))}, assign=True)
    assert m.weight is not w
    assert m.weight.tolist() == [[6.0]]
    assert m.weight.requires_grad


def state_of_ones_own(tw):
    class Own(tw.nn.Module):
        def get_extra_state(self):
            return {"steps": 3}

        def set_extra_state(self, state):
            self.got = state

    m = Own()
    state = m.state_dict()
    assert list(state) == ["_extra_state"]
    m.load_state_dict(state)
    assert m.got == {"steps": 3}


def hooks_of_the_state(tw):
    log = []
    m = tw.nn.Linear(1, 1)
    m.register_state_dict_pre_hook(lambda module, prefix, keep: log.append(("save", prefix, keep)))
    m.register_state_dict_post_hook(lambda module, state, prefix, local: log.append(("saved", list(state))))
    m.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: log.append(("load", prefix)))
    m.register_load_state_dict_post_hook(lambda module, keys: log.append(("loaded", keys.missing_keys)))
    m.load_state_dict(m.state_dict())
    assert log == [("save", "", False), ("saved", ["weight", "bias"]), ("load", ""), ("loaded", [])]


def shown_as_text(tw):
    m = _model(tw)
    assert repr(m).splitlines() == [
        "Model(",
        "  (first): Block(",
        "    (inner): Linear(in_features=2, out_features=3, bias=True)",
        "  )",
        "  (second): Sequential(",
        "    (0): Linear(in_features=3, out_features=3, bias=True)",
        "    (1): Tanh()",
        "  )",
        ")",
    ]

    class Extra(tw.nn.Module):
        def extra_repr(self):
            return "size=3"

    assert repr(Extra()) == "Extra(size=3)"


def copies_are_deep(tw):
    m = _model(tw)
    c = copy.deepcopy(m)
    assert [n for n, _ in c.named_parameters()] == [n for n, _ in m.named_parameters()]
    with tw.no_grad():
        c.scale.fill_(9.0)
    assert m.scale.tolist() == [1.0, 1.0, 1.0]
    shared = tw.nn.Module()
    shared.a = tw.nn.Linear(1, 1)
    shared.b = shared.a
    again = copy.deepcopy(shared)
    assert again.a is again.b


def conversions(tw):
    m = tw.nn.Linear(1, 1)
    assert m.double() is m
    assert m.weight.dtype == tw.float64
    assert m.to(tw.float32) is m
    assert m.weight.dtype == tw.float32
    with pytest.raises(TypeError, match="only accepts floating point"):
        m.to(tw.int64)


def lists_and_dicts(tw):
    layers = tw.nn.ModuleList([tw.nn.Linear(1, 2), tw.nn.Linear(2, 1)])
    layers.insert(1, tw.nn.Tanh())
    assert [type(m).__name__ for m in layers] == ["Linear", "Tanh", "Linear"]
    del layers[1]
    assert [n for n, _ in layers.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert len(layers + [tw.nn.Tanh()]) == 3
    named = tw.nn.ModuleDict({"a": tw.nn.Tanh()})
    named["b"] = tw.nn.Linear(1, 1)
    assert list(named.keys()) == ["a", "b"]
    assert "b" in named
    assert isinstance(named.pop("a"), tw.nn.Tanh)
    assert len(named) == 1
    weights = tw.nn.ParameterList([tw.nn.Parameter(tw.ones(1))])
    weights.append(tw.nn.Parameter(tw.zeros(2)))
    assert [n for n, _ in weights.named_parameters()] == ["0", "1"]
    table = tw.nn.ParameterDict({"w": tw.nn.Parameter(tw.ones(1))})
    table["v"] = tw.nn.Parameter(tw.ones(2))
    assert sorted(n for n, _ in table.named_parameters()) == ["v", "w"]
    model = tw.nn.Sequential(tw.nn.Linear(1, 1))
    model.append(tw.nn.Tanh())
    assert isinstance(model[1], tw.nn.Tanh)
    assert isinstance(model[-1], tw.nn.Tanh)
    assert isinstance(model[:1], tw.nn.Sequential)
    assert len(model[:1]) == 1


def memory_is_shared_with_processes(tw):
    x = tw.tensor([1.0, 2.0])
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert x[1:].is_shared()
    assert x.tolist() == [1.0, 2.0]
    m = tw.nn.Linear(2, 1)
    before = m.weight.tolist()
    assert m.share_memory() is m
    assert all(p.is_shared() for p in m.parameters())
    assert m.weight.tolist() == before
    pid = os.fork()
    if pid == 0:
        with tw.no_grad():
            x.add_(10)
            m.weight.fill_(3)
        os._exit(0)
    os.waitpid(pid, 0)
    assert x.tolist() == [11.0, 12.0]
    assert m.weight.tolist() == [[3.0, 3.0]]


def parametrizations_leave_their_value(tw):
    class Doubled(tw.nn.Module):
        def forward(self, x):
            return 2 * x

    parametrize = tw.nn.utils.parametrize
    layer = tw.nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Doubled())
    made = layer.weight.detach().clone()
    parametrize.remove_parametrizations(layer, "weight")
    assert tw.equal(layer.weight, made)
    assert layer.weight.requires_grad
    assert isinstance(layer.weight, tw.nn.Parameter)
