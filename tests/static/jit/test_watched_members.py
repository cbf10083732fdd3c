"""Compiled functions notice other members of modules, called or only read: beside `dynamic`."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits


def model(engine):
    class Holding(engine.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = engine.nn.ModuleList([engine.nn.Linear(2, 2), engine.nn.Tanh()])
            self.kinds = engine.nn.ModuleDict({"a": engine.nn.Tanh(), "b": engine.nn.Sigmoid()})
            self.factors = engine.nn.ParameterList([filled((2,), 0.5)])
            self.terms = engine.nn.ParameterDict({"u": filled((2,), 0.25)})
            self.head = engine.nn.Sequential(engine.nn.Linear(2, 2), engine.nn.Tanh())
            self.register_buffer("shift", engine.tensor([1.0, 2.0]))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            for factor in self.factors:
                x = x * factor
            for name in self.terms:
                x = x + self.terms[name]
            return self.kinds["a"](self.head(x)) - self.shift

        def encode(self, x):
            return self.layers[0](x) * (2 if self.training else 3)

    def filled(shape, value):
        return engine.nn.Parameter(np.full(shape, value, np.float32))

    made = Holding()
    with engine.no_grad():
        for i, p in enumerate(made.parameters()):
            p.copy_(engine.tensor(np.linspace(-1, 1 + i, p.numel(), dtype=np.float32).reshape(p.shape)))
    return made


def parameter(engine, value):
    return engine.nn.Parameter(np.full(2, value, np.float32))


CHANGES = {
    "ModuleList.append": lambda m, e: m.layers.append(e.nn.ReLU()),
    "ModuleList.insert": lambda m, e: m.layers.insert(0, e.nn.Tanh()),
    "ModuleList[]=": lambda m, e: m.layers.__setitem__(1, e.nn.ReLU()),
    "del ModuleList[]": lambda m, e: m.layers.__delitem__(1),
    "ModuleDict[]=": lambda m, e: m.kinds.__setitem__("a", e.nn.ReLU()),
    "ModuleDict.pop": lambda m, e: m.kinds.update({"a": m.kinds.pop("b")}),
    "ParameterList.append": lambda m, e: m.factors.append(parameter(e, 3.0)),
    "ParameterList[]=": lambda m, e: m.factors.__setitem__(0, parameter(e, 3.0)),
    "ParameterDict[]=": lambda m, e: m.terms.__setitem__("v", parameter(e, -30.0)),
    "del ParameterDict[]": lambda m, e: m.terms.__delitem__("u"),
    "Sequential[]=": lambda m, e: m.head.__setitem__(1, e.nn.ReLU()),
    "Sequential.append": lambda m, e: m.head.append(e.nn.Sigmoid()),
    "register_buffer": lambda m, e: m.register_buffer("shift", e.tensor([5.0, 6.0])),
    "register_parameter": lambda m, e: m.terms.register_parameter("u", parameter(e, 3.0)),
    "add_module": lambda m, e: m.head.add_module("1", e.nn.ReLU()),
    "_modules[]=": lambda m, e: m.head._modules.__setitem__("1", e.nn.ReLU()),
    "_modules.update": lambda m, e: m.kinds._modules.update(a=e.nn.ReLU()),
    "_parameters.clear": lambda m, e: m.terms._parameters.clear(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_members_of_modules(name):
    found = []
    for engine, compiled in ((dynamic, False), (static, True)):
        m = model(engine)
        run = static.function(lambda x, m=m: m(x)) if compiled else m
        x = engine.tensor([[0.5, -1.0], [2.0, 0.25]])
        values = [run(x)]
        CHANGES[name](m, engine)
        values += [run(x), run(x)]
        found.append([y.detach().numpy() for y in values])
        assert not np.array_equal(found[-1][0], found[-1][1])
    assert_all_same_bits(found[1], found[0], name)
    assert len(run.explain().retraces) == 1


def test_attributes_of_a_module_of_which_only_a_method_is_called():
    m = model(static)
    encode = static.function(lambda x: m.encode(x))
    x = static.ones(1, 2)
    before = encode(x)
    m.eval()
    assert_all_same_bits([encode(x).detach().numpy()], [(before / 2 * 3).detach().numpy()], "eval")


def test_modules_that_are_not_called_may_have_other_numbers():
    """A meter that the training loop writes to makes no new trace."""

    class Meter(static.nn.Module):
        last = 0.0

    m = model(static)
    m.meter = Meter()
    run = static.function(lambda x: m(x))
    for i in range(3):
        run(static.ones(1, 2))
        m.meter.last = float(i)
    assert run.explain().retraces == []
