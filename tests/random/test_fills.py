"""Draws to a tensor's own memory are those of the functions, and nothing else changes."""

import numpy as np
import pytest

import dynamic
import static

CALLS = {
    "uniform": (lambda x: x.uniform_(), lambda n, d: dynamic.rand(n, dtype=d)),
    "uniform of": (lambda x: x.uniform_(-2, 0.5), lambda n, d: dynamic.rand(n, dtype=d) * 2.5 + -2),
    "uniform to": (lambda x: x.uniform_(0, 3), lambda n, d: dynamic.rand(n, dtype=d) * 3 + 0),
    "normal": (lambda x: x.normal_(), lambda n, d: dynamic.randn(n, dtype=d) + 0.0),
    "normal of": (lambda x: x.normal_(1, 0.25), lambda n, d: dynamic.randn(n, dtype=d) * 0.25 + 1),
    "no spread": (lambda x: x.normal_(-0.0, 0), lambda n, d: dynamic.randn(n, dtype=d) * 0 + -0.0),
    "integers": (lambda x: x.random_(-3, 300), lambda n, d: (_uniform(n) * 303).long().add(-3).to(d)),
    "many integers": (lambda x: x.random_(0, 2**53), lambda n, d: (_uniform(n) * 2**53).long().to(d)),
    "ones": (lambda x: x.bernoulli_(0.3), lambda n, d: (_uniform(n) < 0.3).to(d)),
    "all": (lambda x: x.bernoulli_(1), lambda n, d: (_uniform(n) < 1).to(d)),
}
OF_FLOATS = [name for name in CALLS if "uniform" in name or "normal" in name or name == "no spread"]


def _uniform(n):
    return dynamic.rand(n, dtype=dynamic.float64)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int16", "int32", "int64"])
def test_numbers_are_those_of_the_function(name, dtype):
    if "float" not in dtype and name in OF_FLOATS:
        with pytest.raises(TypeError):
            CALLS[name][0](dynamic.zeros(3, dtype=getattr(dynamic, dtype)))
        return
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_of_a_size_are_scaled_ones_of_randn(dtype):
    kind = getattr(dynamic, dtype)
    for mean, std in ((0.0, 1.0), (2, 0.5), (-0.0, 0), (1.5, 3)):
        drawn = []
        for tw in (dynamic, static):
            tw.manual_seed(4)
            drawn.append(tw.normal(mean, std, (3, 5), dtype=getattr(tw, dtype)).numpy().tobytes())
            tw.manual_seed(4)
            draw = lambda mean=mean, std=std, tw=tw: tw.normal(mean, std, (3, 5), dtype=getattr(tw, dtype))  # noqa: E731
            drawn.append(tw.function(draw)().numpy().tobytes())
        dynamic.manual_seed(4)
        expected = dynamic.randn(3, 5, dtype=kind) * std + mean
        assert drawn == [expected.numpy().tobytes()] * 4
        assert dynamic.normal(mean, std, (0, 2)).shape == (0, 2)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int32", "int64", "bool"])
def test_integers_are_those_of_a_program(dtype):
    for first, last in ((0, 2), (-7, 120), (0, 1)):
        if dtype in ("uint8", "bool") and first:
            continue
        drawn = []
        for tw in (dynamic, static):
            tw.manual_seed(5)
            drawn.append(tw.randint(first, last, (40,), dtype=getattr(tw, dtype)).numpy().tobytes())
            tw.manual_seed(5)
            draw = lambda a=first, b=last, tw=tw: tw.randint(a, b, (40,), dtype=getattr(tw, dtype))  # noqa: E731
            drawn.append(tw.function(draw)().numpy().tobytes())
        dynamic.manual_seed(5)
        u = dynamic.rand(40, dtype=dynamic.float64).numpy()
        expected = (np.floor(u * (last - first)) + first).astype(dtype)
        assert drawn == [expected.tobytes()] * 4
