"""Both engines offer the same names with the same signatures."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dynamic
import static
from common.api import surface
from common.core.errors import ArgumentError
from common.ops import functional
from common.tensor.base import TensorBase
from static.api.binding import EXPORTS, ROOMS, SESSION
from tests.bits import assert_same_bits

pytestmark = pytest.mark.quick

MODULES = ("", ".nn", ".nn.functional", ".optim", ".autograd", ".random")
ENGINES = (dynamic, static)
ROOT = Path(__file__).resolve().parent.parent


ONLY_STATIC = {"compare", "compile", "debug", "nan_watch", "njit", *SESSION, *EXPORTS, *ROOMS}
"""What a define-by-run engine has no use for."""


def public(module: str) -> tuple[dict[str, object], dict[str, object]]:
    found = []
    for engine in ENGINES:
        space = importlib.import_module(engine.__name__ + module)
        found.append({name: getattr(space, name) for name in space.__all__ if name not in ONLY_STATIC})
    return found[0], found[1]


@pytest.mark.parametrize("module", MODULES)
def test_both_engines_list_the_same_names(module):
    first, second = public(module)
    assert list(first) == list(second)
    assert first


@pytest.mark.parametrize("module", MODULES)
def test_signatures_are_equal(module):
    first, second = public(module)
    for name, ours in first.items():
        theirs = second[name]
        if callable(ours) and not isinstance(ours, (type, np.dtype)):
            assert str(inspect.signature(ours)) == str(inspect.signature(theirs)), name


@pytest.mark.parametrize("module", MODULES)
def test_everything_callable_says_what_it_does(module):
    for space in public(module):
        missing = [n for n, x in space.items() if callable(x) and not isinstance(x, np.dtype) and not x.__doc__]
        assert missing == []


@pytest.mark.parametrize("module", MODULES[1:])
def test_submodules_are_real(module):
    for engine in ENGINES:
        assert inspect.ismodule(importlib.import_module(engine.__name__ + module))


def test_the_surface_is_what_the_engines_list():
    assert set(dynamic.__all__) == {*surface.NAMES, *surface.ENGINE_NAMES}


def test_every_public_function_is_on_the_surface():
    assert set(functional.__all__) - set(surface.FUNCTIONS) == {"getitem"}


def test_state_and_modules_are_the_same_objects():
    for name in ("Parameter", "Linear", "Module"):
        assert getattr(dynamic.nn, name) is getattr(static.nn, name)
    assert dynamic.optim.SGD is static.optim.SGD
    assert dynamic.manual_seed is static.manual_seed


X = np.array([[0.5, -1.25, 2.0], [3.0, 0.0, -0.75]], np.float32)
CALLS = {
    "unary": lambda tw: tw.tanh(X),
    "list": lambda tw: tw.exp([0.5, 1.0]),
    "number": lambda tw: tw.exp(0.5),
    "binary": lambda tw: tw.mul(X, X),
    "weak number": lambda tw: tw.add(X, 0.1),
    "number first": lambda tw: tw.sub(1, X),
    "numbers": lambda tw: tw.add(1.5, 2.5),
    "dim": lambda tw: tw.sum(X, dim=0),
    "axis": lambda tw: tw.sum(X, axis=1, keepdims=True),
    "sequence": lambda tw: tw.cat([X, X], 1),
    "condition": lambda tw: tw.where(X > 0, X, 0.0),
    "index": lambda tw: tw.gather(X, 1, np.array([[0], [2]])),
    "shape": lambda tw: tw.reshape(X, 3, 2),
    "functional": lambda tw: tw.nn.functional.linear(X, X, np.ones(2, np.float32)),
    "loss": lambda tw: tw.nn.functional.cross_entropy(X, np.array([0, 2])),
    "zeros": lambda tw: tw.zeros(2, 3),
    "full": lambda tw: tw.full((2,), 7),
    "arange": lambda tw: tw.arange(0, 1, 0.125),
    "eye": lambda tw: tw.eye(2, 3, dtype=tw.float64),
    "tensor": lambda tw: tw.tensor([[1, 2], [3, 4]]),
    "as_tensor": lambda tw: tw.as_tensor(X, dtype=tw.float64),
    "grad": lambda tw: tw.grad(lambda x: tw.sum(x * x))(X),
    "vjp": lambda tw: tw.vjp(lambda x: tw.sin(x), X)[1](X)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_outside_a_trace_arrays_give_equal_bits(name):
    """dynamic.f(array) and static.f(array) are tensors of the same bits."""
    ours, theirs = CALLS[name](dynamic), CALLS[name](static)
    assert type(ours) is type(theirs) is dynamic.Tensor is static.Tensor
    assert_same_bits(theirs, ours, name)


@pytest.mark.parametrize("draw", ["rand", "randn"])
def test_draws_are_one_stream_in_and_outside_traces(draw):
    def numbers(tw, wrapped):
        tw.manual_seed(3)
        f = lambda: getattr(tw, draw)(5)  # noqa: E731
        f = tw.function(f) if wrapped else f
        return [np.asarray(f()).tolist() for _ in range(3)], tw.get_rng_state().tolist()

    expected = numbers(dynamic, False)
    assert len({tuple(x) for x in expected[0]}) == 3
    assert all(numbers(tw, wrapped) == expected for tw in ENGINES for wrapped in (False, True))


def test_arguments_have_pytorchs_names():
    for tw in ENGINES:
        assert np.asarray(tw.add(input=X, other=1.0)).tolist() == (X + 1).tolist()
        assert np.asarray(tw.softmax(input=X, dim=1)).shape == X.shape


def test_an_argument_given_under_both_names_is_refused():
    for tw in ENGINES:
        with pytest.raises(ArgumentError, match="both 'dim' and its alias 'axis'"):
            tw.sum(X, 0, axis=1)
        with pytest.raises(ArgumentError, match="missing required argument: 'dim'"):
            tw.logsumexp(X)


def test_every_kind_of_tensor_is_a_tensor():
    seen = []

    @static.function
    def f(x):
        seen.append([isinstance(x, tw.Tensor) for tw in ENGINES])
        return x

    f(X)
    parameter = dynamic.nn.Parameter(X)
    assert seen == [[True, True]]
    assert all(isinstance(parameter, tw.Tensor) for tw in ENGINES)
    assert isinstance(dynamic.tensor(1.0), TensorBase)
    assert not isinstance(X, dynamic.Tensor)


ALONE = """
import sys, numpy as np, static as tw
model = tw.nn.Linear(3, 2)
eager = (model(np.ones((1, 3), np.float32)) ** 2).mean()
eager.backward()
assert model.weight.grad.numpy().any()
optimizer = tw.optim.Adam(model.parameters())

@tw.function
def step(x):
    optimizer.zero_grad()
    loss = (model(x) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss

before = model.weight.numpy().copy()
losses = [float(step(np.ones((4, 3), np.float32))) for _ in range(3)]
assert losses[2] < losses[0]
assert model.weight.grad.numpy().any() and (model.weight.numpy() != before).all()
assert "dynamic" not in sys.modules
"""


def test_the_compiling_engine_trains_alone():
    # in a process of its own: here the eager engine has been imported
    subprocess.run([sys.executable, "-W", "error", "-c", ALONE], cwd=ROOT, check=True)
