"""Hooks of what modules are given: parameters, children, buffers."""

import numpy as np
import pytest

import dynamic
import static


@pytest.mark.parametrize("engine", [dynamic, static])
def test_hooks_see_and_replace_what_any_module_is_given(engine):
    hooks, nn, seen = engine.nn.modules.module, engine.nn, []

    def note(module, name, value):
        seen.append((type(module).__name__, name, type(value).__name__))

    def doubled(module, name, value):
        return nn.Parameter(value.detach() * 2)

    handles = [hooks.register_module_parameter_registration_hook(note),
               hooks.register_module_parameter_registration_hook(doubled),
               hooks.register_module_buffer_registration_hook(note),
               hooks.register_module_module_registration_hook(note)]  # fmt: skip
    try:
        net = nn.Module()
        net.w = nn.Parameter(np.ones(2, np.float32))
        net.register_parameter("v", nn.Parameter(np.ones(2, np.float32)))
        net.register_parameter("none", None)
        net.register_buffer("b", engine.zeros(1))
        net.child = nn.Tanh()
        net.add_module("other", nn.Tanh())
    finally:
        for handle in handles:
            handle.remove()
    assert [(a, b) for a, b, _ in seen] == [("Module", x) for x in ("w", "v", "b", "child", "other")]
    assert net.w.tolist() == net.v.tolist() == [2, 2]
    assert net.none is None
    net.w = nn.Parameter(np.ones(2, np.float32))
    assert net.w.tolist() == [1, 1]
    assert len(seen) == 5


@pytest.mark.parametrize("engine", [dynamic, static])
def test_the_older_name_of_the_backward_hook_of_all_modules(engine):
    seen = []
    handle = engine.nn.modules.module.register_module_backward_hook(lambda m, i, o: seen.append((i, o)))
    try:
        x = engine.ones(2, requires_grad=True)
        engine.nn.Tanh()(x * 0).sum().backward()
    finally:
        handle.remove()
    ((inner, outer),) = seen
    assert inner[0].tolist() == outer[0].tolist() == [1, 1]


@pytest.mark.parametrize("engine", [dynamic, static])
def test_a_module_does_not_contain_itself(engine):
    """A walk through all modules would not come back: the module is refused, and nothing is changed."""
    nn = engine.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.ModuleList([nn.ModuleDict({"deep": nn.Sequential(nn.Tanh())})]))
    deep = net[1][0]["deep"]
    ways = [
        lambda: setattr(deep, "up", net), lambda: deep.add_module("up", net), lambda: deep.append(net),
        lambda: net[1].append(net), lambda: net[1].insert(0, net), lambda: net[1][0].update({"up": net[1]}),
        lambda: setattr(net, "own", net), lambda: setattr(deep, "0", net), lambda: net.__setitem__(0, net),
        lambda: net[1].extend([net]),
    ]  # fmt: skip
    for way in ways:
        with pytest.raises(RuntimeError, match=r"a module cannot contain itself; a list registers nothing: self\."):
            way()
    assert [type(m).__name__ for m in net.modules()] == [
        "Sequential", "Linear", "ModuleList", "ModuleDict", "Sequential", "Tanh",
    ]  # fmt: skip
    deep.up = [net]
    shared = nn.Tanh()
    twice = nn.Sequential(shared, nn.Sequential(shared), net, net)  # one module in several places is no cycle
    assert len(twice.state_dict()) == 4
    twice.apply(lambda module: None)


def test_a_parameter_goes_by_its_first_name():
    """A name is given at registration; one parameter under two names keeps the one that comes first."""
    net = dynamic.nn.Linear(2, 2)
    net.other = net.weight
    assert net.weight.name == "weight"
    other = dynamic.nn.Module()
    other.first = net.weight
    assert net.weight.name == "first"
    whole = dynamic.nn.Sequential(other, net)
    assert [x.name for x in whole.parameters()] == ["0.first", "1.bias"]
    net.scale = dynamic.nn.Parameter(net.bias.detach() + 1)
    assert net.scale.name == "scale"


@pytest.mark.parametrize("engine", [dynamic, static])
def test_a_handle_knows_the_table_of_its_hook(engine):
    layer = engine.nn.Linear(1, 1)
    handle = layer.register_forward_hook(lambda *given: None)
    assert handle.hooks_dict_ref() is layer._forward_hooks
    handle.remove()
    assert handle.id not in handle.hooks_dict_ref()
