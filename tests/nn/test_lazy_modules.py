"""Lazy modules become what their first input asks for, in both engines with the same bits."""

import inspect

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ShapeError, TraceError
from tests.bits import assert_all_same_bits

CASES = {
    "LazyLinear": ((4,), {}, (2, 3), 3),
    "LazyConv1d": ((4, 2), {"padding": 1}, (2, 3, 5), 3),
    "LazyConv2d": ((4, 2), {"bias": False}, (3, 5, 5), 3),
    "LazyConv3d": ((2, 2), {"groups": 2}, (1, 4, 3, 3, 3), 4),
    "LazyConvTranspose1d": ((4, 2), {"stride": 2}, (2, 3, 5), 3),
    "LazyConvTranspose2d": ((4, 2), {}, (2, 3, 5, 5), 3),
    "LazyConvTranspose3d": ((2, 2), {}, (1, 4, 3, 3, 3), 4),
    "LazyBatchNorm1d": ((), {}, (4, 3), 3),
    "LazyBatchNorm2d": ((), {"affine": False}, (4, 3, 2, 2), 3),
    "LazyBatchNorm3d": ((), {}, (2, 3, 2, 2, 2), 3),
    "LazyInstanceNorm1d": ((), {"affine": True}, (2, 3, 5), 3),
    "LazyInstanceNorm2d": ((), {}, (2, 3, 5, 5), 3),
    "LazyInstanceNorm3d": ((), {"affine": True}, (2, 3, 3, 3, 3), 3),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_call_makes_what_was_asked_for(name):
    args, options, shape, features = CASES[name]
    x = np.random.default_rng(0).standard_normal(shape)
    results = []
    for engine in (dynamic, static):
        engine.manual_seed(7)
        lazy = getattr(engine.nn, name)(*args, **options).double()
        wanted = {**type(lazy).defaults, **options}
        assert lazy.has_uninitialized_params()
        parameters, seen = list(lazy.parameters()), []
        assert all(isinstance(p, engine.nn.UninitializedParameter) for p in parameters)
        lazy.register_forward_hook(lambda *given, seen=seen: seen.append(given))
        y = lazy.eval()(engine.tensor(x))
        engine.manual_seed(7)
        kind = getattr(engine.nn, name.removeprefix("Lazy"))
        plain = kind(features, *args, **wanted, dtype=engine.float64).eval()
        assert type(lazy) is type(plain)
        assert repr(lazy) == repr(plain)
        assert not lazy.training
        assert len(seen) == 1
        assert all(p is q for p, q in zip(parameters, lazy.parameters(), strict=True))
        assert y.detach().numpy().tobytes() == plain(engine.tensor(x)).detach().numpy().tobytes()
        results.append(y.detach().numpy().tobytes())
    assert results[0] == results[1]
    listed = list(inspect.signature(getattr(dynamic.nn, name)).parameters)
    assert listed == list(inspect.signature(type(plain)).parameters)[1:]


def test_an_optimiser_may_be_made_before():
    layer = dynamic.nn.LazyLinear(1, bias=False)
    optimizer = dynamic.optim.SGD(layer.parameters(), lr=1.0)
    layer(dynamic.ones(1, 2)).sum().backward()
    before = layer.weight.detach().clone()
    optimizer.step()
    assert (before - layer.weight).tolist() == [[1.0, 1.0]]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="expected input of 4 dimensions, or one less without a batch, but got 2"):
        dynamic.nn.LazyConv2d(1, 1)(dynamic.ones(2, 2))
    with pytest.raises(ShapeError, match="expected input of 2 or 3 dimensions, but got 4"):
        dynamic.nn.LazyBatchNorm1d()(dynamic.ones(2, 2, 2, 2))
    layer = static.nn.LazyLinear(1)
    with pytest.raises(TraceError, match="call it once before"):
        static.function(layer)(static.ones(1, 2))
    layer(static.ones(1, 2))
    assert static.function(layer)(static.ones(1, 2)).shape == (1, 1)


@pytest.mark.parametrize("engine", [dynamic, static])
@pytest.mark.parametrize("name", CASES)
def test_state_tells_how_many_features(engine, name):
    args, kwargs, shape, features = CASES[name]
    kind, x = getattr(engine.nn, name), engine.tensor(np.random.default_rng(0).standard_normal(shape, np.float32))
    saved = engine.nn.Sequential(kind(*args, **kwargs))
    empty = saved.state_dict()
    saved(x)
    loaded = engine.nn.Sequential(kind(*args, **kwargs))
    loaded.load_state_dict(empty)  # of one that is lazy, too
    assert type(loaded[0]) is kind
    loaded.load_state_dict(saved.state_dict())
    if saved.state_dict():
        assert type(loaded[0]) is kind.cls_to_become
        assert getattr(loaded[0], next(iter(inspect.signature(kind.cls_to_become).parameters))) == features
    assert_all_same_bits([saved.eval()(x)], [loaded.eval()(x)], name)
    other = engine.nn.Sequential(engine.nn.LazyLinear(7))
    with pytest.raises(RuntimeError, match=r"size mismatch|Unexpected"):
        other.load_state_dict(engine.nn.Sequential(engine.nn.Linear(3, 5)).state_dict())
