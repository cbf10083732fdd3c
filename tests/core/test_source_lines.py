"""Where something happened is a line of the user's, whatever lies between it and the engine."""

import numpy as np
import pytest

import static


def square(x):
    return (x * x).sum()


MADE = {
    "grad": static.grad(square),
    "value_and_grad": static.value_and_grad(square),
    "no_grad": static.no_grad()(square),
    "enable_grad of grad": static.enable_grad()(static.grad(square)),
}


@pytest.mark.parametrize("name", MADE)
def test_each_node_has_a_line_of_this_file(name):
    f = static.function(MADE[name])
    f(np.ones(3, np.float32))
    assert {node.source[0] for node in f.newest.raw.nodes if node.op is not None} == {__file__}
