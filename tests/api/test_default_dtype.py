"""The default dtype: what is made of Python's floats, and of ints by functions of floats, in both engines."""

import numpy as np
import pytest

import dynamic
import static

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
    "mean of a softmax of ints": lambda tw: tw.softmax(tw.tensor([1, 2]).double().to(tw.get_default_dtype()), 0).mean(),
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
