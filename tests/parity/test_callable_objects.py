"""`function` of an object that is called: its attributes are its own, and leave the compiled function's alone."""

import pytest

import dynamic
import static


class Scaled:
    """Has attributes that compiled functions have under these names, and one that they have not."""

    def __init__(self, factor):
        self.factor = factor
        self._keep = self._last = self._target = self._always = self.target = self.traces = self.general = None

    def __call__(self, x):
        return x * self.factor


@pytest.mark.parametrize("engine", [dynamic, static])
def test_attributes_of_an_object_leave_the_compiled_function_alone(engine):
    program = engine.function(Scaled(3.0))
    for n in (2, 3, 2):
        assert program(engine.ones(n)).tolist() == [3.0] * n
    assert program.factor == 3.0

    def twice(x):
        return 2 * x

    twice.general, twice.mark = None, "mine"
    program = engine.function(twice)
    assert (program(engine.ones(1)).tolist(), program.mark, program.__name__) == ([2.0], "mine", "twice")
