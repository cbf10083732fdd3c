"""Draws to a tensor's own memory are those of the functions, and nothing else changes."""

import numpy as np
import pytest

import dynamic

CALLS = {
    "uniform": (lambda x: x.uniform_(), lambda n, d: dynamic.rand(n, dtype=d)),
    "uniform of": (lambda x: x.uniform_(-2, 0.5), lambda n, d: dynamic.rand(n, dtype=d) * 2.5 + -2),
    "uniform to": (lambda x: x.uniform_(0, 3), lambda n, d: dynamic.rand(n, dtype=d) * 3 + 0),
    "normal": (lambda x: x.normal_(), lambda n, d: dynamic.randn(n, dtype=d) + 0.0),
    "normal of": (lambda x: x.normal_(1, 0.25), lambda n, d: dynamic.randn(n, dtype=d) * 0.25 + 1),
    "no spread": (lambda x: x.normal_(-0.0, 0), lambda n, d: dynamic.randn(n, dtype=d) * 0 + -0.0),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_those_of_the_function(name, dtype):
    write, function = CALLS[name]
    kind = getattr(dynamic, dtype)
    for n in (0, 1, 17, 1000):
        memory = np.full(n + 2, 7, dtype)
        x = dynamic.from_numpy(memory)[1:-1]
        version = x._version
        dynamic.manual_seed(n)
        assert write(x) is x
        state = dynamic.get_rng_state().tolist()
        dynamic.manual_seed(n)
        expected = function(n, kind).numpy()
        assert x.numpy().tobytes() == expected.tobytes()
        assert state == dynamic.get_rng_state().tolist()
        assert memory[0] == memory[-1] == 7
        assert x._version == version + 1
        dynamic.manual_seed(n)
        turned = dynamic.zeros(n, 2, dtype=kind)[:, 1]
        assert write(turned).numpy().tobytes() == expected.tobytes()


def test_histories_and_leaves_are_respected():
    leaf = dynamic.ones(3, requires_grad=True)
    for write in (lambda x: x.normal_(), lambda x: x.uniform_()):
        with pytest.raises(RuntimeError, match="leaf"):
            write(leaf)
        assert leaf.tolist() == [1, 1, 1]
        x = leaf * 2
        y = x * x
        write(x)
        with pytest.raises(RuntimeError, match="modified"):
            y.sum().backward()
        with dynamic.no_grad():
            version = leaf._version
            write(leaf)
            assert leaf._version == version + 1
            leaf.fill_(1.0)
    with pytest.raises(RuntimeError):
        dynamic.arange(3).uniform_()
