"""Two engines of one line each and a workload for them, to test the run without the real ones."""

from types import ModuleType

import numpy as np

from benchmarks.workload import Program, Workload


class FakeParameter:
    def __init__(self, value):
        self.value, self.grad = value, None

    def detach(self):
        return self

    def numpy(self):
        return self.value


def engine(name="dynamic", error=0.0, fails=False):
    """Return an engine of w -= x that returns the sum of w, wrong by `error` from the third call."""
    module = ModuleType(name)
    calls = 0

    def step(parameter, x):
        nonlocal calls
        calls += 1
        if fails:
            raise ValueError("no such kernel")
        parameter.grad = FakeParameter(x.copy())
        parameter.value = parameter.value - x
        return parameter.value.sum() + (error if calls > 2 else 0.0)

    module.step = step
    return module


class FakeWorkload(Workload):
    """w -= x

    And more.
    """

    name = "fake"

    def inputs(self):
        return [(np.arange(3.0),), (np.ones(3),)]

    def make(self, tw):
        parameter = FakeParameter(np.zeros(3))
        return Program(lambda x: tw.step(parameter, x), [("w", parameter)])


def pair(**second):
    return {"dynamic": engine(), "static": engine("static", **second)}
