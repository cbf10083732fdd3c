"""The default dtype: what is made of Python's floats, and of ints by functions of floats, in both engines."""

import io

import numpy as np
import pytest

import dynamic
import static
from common.core.op import REGISTRY
from common.evaluate.specialise import run

ENGINES = {"dynamic": dynamic, "static": static}

MADE = {
    "quotient of ints": lambda tw: tw.tensor([1, 2]) / 3,
    "int times float": lambda tw: tw.tensor([1, 2]) * 0.1,
    "int in place of a float": lambda tw: tw.tensor([1, 2]).sin(),
    "bool times float": lambda tw: tw.tensor([True, False]) * 0.5,
    "list": lambda tw: tw.tensor([0.1, 1]),
    "number": lambda tw: tw.tensor(0.1),
    "class": lambda tw: tw.Tensor([0.1, 0.2]),
    "zeros": lambda tw: tw.zeros(2),
    "full": lambda tw: tw.full((2,), 0.1),
    "arange": lambda tw: tw.arange(0.0, 1.0, 0.25),
    "linspace": lambda tw: tw.linspace(0.0, 1.0, 4),
    "eye": lambda tw: tw.eye(2),
    "window": lambda tw: tw.hann_window(5),
    "choice between numbers": lambda tw: tw.where(tw.tensor([True, False]), 0.1, 0.2),
    "draw": lambda tw: tw.rand(3),
    "parameter": lambda tw: tw.nn.Linear(2, 3).weight.detach(),
    "distribution": lambda tw: tw.distributions.Normal(0.1, 0.2).log_prob(tw.tensor(0.3)),
    "gamma of ints": lambda tw: tw.lgamma(tw.tensor([3, 4])),
    "sum of exponentials of ints": lambda tw: tw.logsumexp(tw.tensor([1, 2]), 0),
}


@pytest.fixture(autouse=True)
def _restored():
    yield
    dynamic.set_default_dtype(dynamic.float32)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_maker_follows_the_default_there_and_back(engine, name):
    tw, make = ENGINES[engine], MADE[name]
    for wanted in (tw.float64, tw.float32, tw.float64):
        tw.set_default_dtype(wanted)
        assert [make(tw).dtype for _ in range(5)] == [wanted] * 5  # often enough for every cache of calls


@pytest.mark.parametrize("name", MADE)
def test_compiled_programs_are_traced_again_under_another_default(name):
    make = MADE[name]
    compiled = static.function(lambda: make(static)) if name not in ("class", "parameter") else lambda: make(static)
    for wanted in (static.float32, static.float64, static.float32):
        static.set_default_dtype(wanted)
        static.manual_seed(3)
        found = compiled()
        dynamic.manual_seed(3)
        expected = make(dynamic)
        assert found.dtype == expected.dtype == wanted
        assert found.numpy().tobytes() == expected.numpy().tobytes()


OF_FLOATS = [op for op in REGISTRY.values() if op.kind == "elementwise" and op.domain == "float" and not op.attrs]


@pytest.mark.parametrize("op", OF_FLOATS, ids=lambda op: op.name)
def test_every_function_of_floats_takes_ints_as_the_default(op):
    ints = [np.array([1, 2, 3]) % (i + 2) + 1 for i in range(len(op.inputs))]
    compiled = static.function(op)
    for wanted in (dynamic.float32, dynamic.float64, dynamic.float32):
        dynamic.set_default_dtype(wanted)
        expected = op(*(dynamic.tensor(x).to(wanted) for x in ints))
        for found in (op(*map(dynamic.tensor, ints)), compiled(*ints)):
            assert found.dtype == expected.dtype
            assert found.numpy().tobytes() == expected.numpy().tobytes()


def test_ops_that_run_on_arrays_follow_it():
    for wanted in (np.float32, np.float64, np.float32):
        dynamic.set_default_dtype(wanted)
        assert run(REGISTRY["sin"], (np.array([1, 2]),), {}).dtype == wanted


def test_a_program_is_traced_once_per_default():
    f = static.function(lambda n: n / 3)
    out = np.empty(2, np.float32)
    into = f.into(out)
    for wanted in (static.float32, static.float64, static.float32, static.float64):
        static.set_default_dtype(wanted)
        assert f(static.tensor([1, 2])).dtype == wanted
    assert len(f.traces) == 2
    assert f.retraces == ["the default dtype is float64 now, it was float32"]
    static.set_default_dtype(static.float32)
    assert into(np.array([1, 2])).tobytes() == (np.array([1, 2], np.float32) / np.float32(3)).tobytes()
    static.set_default_dtype(static.float64)
    with pytest.raises(TypeError, match="float32"):  # the array is of the default that was
        into(np.array([1, 2]))


@pytest.mark.parametrize("saved_under", ["float32", "float64"])
def test_a_saved_program_keeps_its_dtypes(saved_under):
    f = static.function(lambda n, x: (n / 3 + static.ones(1), n * 0.1, x * 2, static.tensor(0.1) + n))
    static.set_default_dtype(getattr(static, saved_under))
    expected = [[x.numpy() for x in f(np.arange(1, n), np.array([1.5], np.float32))] for n in (3, 6)]
    file = io.BytesIO()
    static.save(f, file)
    other = "float64" if saved_under == "float32" else "float32"
    static.set_default_dtype(getattr(static, other))
    loaded = static.load(io.BytesIO(file.getvalue()))
    for n, wanted in zip((3, 6), expected, strict=True):
        found = loaded(np.arange(1, n), np.array([1.5], np.float32))
        for a, b in zip(found, wanted, strict=True):
            assert a.dtype == b.dtype
            assert a.numpy().tobytes() == b.tobytes()


def test_a_traced_function_does_not_change_it():
    def f(x):
        static.set_default_dtype(static.float64)
        return x / 3

    with pytest.raises(TypeError, match="call it before"):
        static.function(f)(np.array([1]))
    assert static.get_default_dtype() == static.float32


@pytest.mark.parametrize("tw", ENGINES.values(), ids=ENGINES)
def test_a_digit_that_float32_does_not_have_is_kept(tw):
    tw.set_default_dtype(tw.float64)
    assert tw.tensor(0.1).item() == 0.1
    assert (tw.tensor([1]) / 3).item() == 1 / 3
    assert np.isclose(tw.tensor([2]).sqrt().item(), 2**0.5, rtol=1e-15)


def test_training_in_double_precision_is_bit_identical():
    def train(tw):
        tw.manual_seed(0)
        model = tw.nn.Sequential(tw.nn.Linear(4, 8), tw.nn.Tanh(), tw.nn.Linear(8, 1))
        opt = tw.optim.Adam(model.parameters(), lr=0.01)
        x, y = tw.randn(16, 4), tw.randn(16, 1)

        def step():
            opt.zero_grad()
            loss = tw.nn.functional.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            return loss

        step = tw.function(step)
        return [step().item() for _ in range(5)]

    static.set_default_dtype(static.float64)
    assert train(static) == train(dynamic)


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_a_default_that_is_no_float_is_refused(dtype):
    with pytest.raises(TypeError, match="only floating-point types"):
        dynamic.set_default_dtype(getattr(dynamic, dtype))
    assert dynamic.get_default_dtype() == dynamic.float32
