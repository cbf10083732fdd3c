"""Modules that a traced program reads without a call: what it has read is noticed when it changes."""

import pytest

import dynamic
import static


def parameter(tw, value):
    return tw.nn.Parameter(tw.full((2,), float(value)))


def scale(tw, value):
    module = tw.nn.Module()
    module.w = parameter(tw, value)
    module.register_buffer("b", tw.ones(2))
    return module


def total(found):
    return sum((x * 1).sum() for x in found)


def put(key, make, value):
    def change(tw, m):
        m[key] = make(tw, value)

    return change


MAKE = {
    "ParameterList": lambda tw: tw.nn.ParameterList([parameter(tw, 1), parameter(tw, 2)]),
    "ParameterDict": lambda tw: tw.nn.ParameterDict({"a": parameter(tw, 1), "b": parameter(tw, 2)}),
    "ModuleList": lambda tw: tw.nn.ModuleList([scale(tw, 1), scale(tw, 2)]),
    "Sequential": lambda tw: tw.nn.Sequential(scale(tw, 1), scale(tw, 2)),
    "ModuleDict": lambda tw: tw.nn.ModuleDict({"a": scale(tw, 1), "b": scale(tw, 2)}),
    "Module": lambda tw: scale(tw, 1),
}
LISTS = {
    "iter": lambda m: total(m), "item": lambda m: m[-1].sum(), "len": lambda m: len(m), "slice": lambda m: total(m[:1]),
}  # fmt: skip
DICTS = {
    "iter": lambda m: total(m[k] for k in m), "values": lambda m: total(m.values()), "in": lambda m: "c" in m,
    "items": lambda m: total(v for _, v in m.items()), "len": lambda m: len(m), "keys": lambda m: len(list(m.keys())),
}  # fmt: skip
MODULES = {
    "iter": lambda m: total(x.w for x in m), "len": lambda m: len(m), "parameters": lambda m: total(m.parameters()),
    "names": lambda m: total(p for _, p in m.named_parameters()), "slice": lambda m: total(x.w for x in m[:1]),
    "children": lambda m: total(x.w for x in m.children()), "modules": lambda m: len(list(m.modules())),
    "state": lambda m: total(m.state_dict().values()), "buffers": lambda m: total(m.buffers()),
}  # fmt: skip
SINGLE = {
    "table": lambda m: total(m._parameters.values()), "hasattr": lambda m: hasattr(m, "extra"),
    "modules": lambda m: len(m._modules), "own": lambda m: total(p for _, p in m.named_parameters(recurse=False)),
}  # fmt: skip
OF_LISTS = {
    "append": lambda tw, m: m.append(parameter(tw, 5)), "first": put(0, parameter, 7), "last": put(1, parameter, 8),
}  # fmt: skip
OF_DICTS = {"new": put("c", parameter, 5), "other": put("a", parameter, 7), "pop": lambda tw, m: m.pop("b")}
OF_MODULES = {
    "append": lambda tw, m: m.append(scale(tw, 5)), "other": put(0, scale, 7),
    "inside": lambda tw, m: setattr(m[0], "w", parameter(tw, 9)), "delete": lambda tw, m: m.__delitem__(1),
}  # fmt: skip
OF_SINGLE = {
    "parameter": lambda tw, m: m.register_parameter("extra", parameter(tw, 5)),
    "module": lambda tw, m: m.add_module("sub", scale(tw, 3)), "other": lambda tw, m: setattr(m, "w", parameter(tw, 4)),
}  # fmt: skip
KINDS = {
    "ParameterList": (LISTS, OF_LISTS), "ParameterDict": (DICTS, OF_DICTS), "ModuleList": (MODULES, OF_MODULES),
    "Sequential": (MODULES, OF_MODULES), "Module": (SINGLE, OF_SINGLE),
    "ModuleDict": (
        {**{name: DICTS[name] for name in ("in", "len", "keys")}, "values": lambda m: len(list(m.values()))},
        {"new": put("c", scale, 5), "pop": lambda tw, m: m.pop("b")},
    ),
}  # fmt: skip
CASES = [(kind, read, change) for kind, (reads, changes) in KINDS.items() for read in reads for change in changes]


@pytest.mark.parametrize(("kind", "read", "change"), CASES)
def test_what_was_read_and_changed_is_read_again(kind, read, change):
    seen = []
    for tw, wrap in ((dynamic, lambda f: f), (static, static.function)):
        m = MAKE[kind](tw)
        f = wrap(lambda m=m, tw=tw: tw.ones(()) * KINDS[kind][0][read](m))
        first = f().item()
        KINDS[kind][1][change](tw, m)
        seen.append((first, f().item()))
    assert seen[0] == seen[1]


def test_nothing_is_traced_again_without_a_change():
    m = MAKE["Sequential"](static)
    f = static.function(lambda x: x * total(m.parameters()))
    for _ in range(3):
        f(static.ones(2))
        static.nn.Linear(2, 2).extra = 3  # a change of something else, which makes a call look at its facts
    assert len(f.traces) == 1
