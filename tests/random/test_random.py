"""Draws and generators: one stream in both engines, the right distributions, PyTorch's errors."""

import re

import numpy as np
import pytest
from scipy import stats

import dynamic
import static
from common.core.errors import ArgumentError, DeviceError, DTypeError, GradientError, ShapeError
from tests.helpers.proofs import rotated

ENGINES = (dynamic, static)
WEIGHTS = np.array([[0.5, 0.0, 3.0, 1.25], [1.0, 1.0, 1.0, 1.0], [0.0, 1e-3, 7.0, 2.0]], np.float32)
MEANS = np.linspace(-2, 2, 5)


def filled(method, *args, **options):
    """A method that fills, as a function of a shape given by an array."""

    def draw(tw, x):
        y = tw.zeros_like(x) if isinstance(x, dynamic.Tensor) else dynamic.zeros(x.shape, dtype=x.dtype)
        return getattr(y, method)(*args, **options)

    return draw


DRAWS = {
    "normal of numbers": lambda tw, x: tw.normal(2.0, 0.5, (x.shape[0], 2), dtype=tw.float64),
    "normal of a size": lambda tw, x: tw.normal(size=7),
    "normal of means": lambda tw, x: tw.normal(x, 0.5),
    "normal of deviations": lambda tw, x: tw.normal(1.5, x * x),
    "normal of both": lambda tw, x: tw.normal(x, std=x[:, :1] * x[:, :1]),
    "multinomial": lambda tw, x: tw.multinomial(x * x, 3),
    "multinomial of a row": lambda tw, x: tw.multinomial((x * x)[0], 1),
    "multinomial with replacement": lambda tw, x: tw.multinomial(input=x * x, num_samples=9, replacement=True),
    "bernoulli": lambda tw, x: tw.bernoulli(1 / (x * x + 1)),
    "randint": lambda tw, x: tw.randint(-3, 9, (x.shape[0], 3)),
    "randint_like": lambda tw, x: tw.randint_like(x, -3, 9, dtype=tw.int64),
    "randperm": lambda tw, x: tw.randperm(x.shape[0]),
    "uniform_": filled("uniform_", -2, 3),
    "normal_": filled("normal_", 1.0, std=2.0),
    "exponential_": filled("exponential_", 3.0),
    "bernoulli_": filled("bernoulli_", 0.25),
    "log_normal_": filled("log_normal_", 0.5, 0.25),
    "cauchy_": filled("cauchy_", 1.0, sigma=2.0),
    "geometric_": filled("geometric_", 0.3),
    "random_": filled("random_", 3, 20),
    "bernoulli of one probability": lambda tw, x: tw.bernoulli(x, 0.25),
}


@pytest.mark.parametrize(("name", "dtype"), rotated(DRAWS, ["float32", "float64"]))
def test_all_engines_draw_the_same_bits_and_go_on_alike(name, dtype):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(n, 4)).astype(dtype) for n in (5, 8, 1, 5)]
    found = []
    ways = [(dynamic, lambda f: f), (dynamic, dynamic.function), (static, static.function),
            (static, lambda f: static.function(f, fuse=False)), (static, lambda f: static.function(f, interpret=True)),
            (static, lambda f: f)]  # fmt: skip
    for tw, wrap in ways:
        program = wrap(lambda x, tw=tw: DRAWS[name](tw, x))
        tw.manual_seed(7)
        results = [np.asarray(program(tw.tensor(x) if tw is dynamic else x)) for x in arrays]
        found.append([(x.dtype, x.shape, np.asarray(x).tobytes()) for x in results] + tw.get_rng_state().tolist())
    assert all(x == found[0] for x in found)
    assert found[0][-1] > 0  # the generator has advanced


# ------------------------------------------------------------------ distributions

N = 200_000


def numbers(method, *args, dtype="float64", n=N):
    x = dynamic.zeros(n, dtype=getattr(dynamic, dtype))
    return getattr(x, method)(*args, generator=dynamic.Generator(2024)).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("method", "args", "law"),
    [("uniform_", (-2.0, 3.0), stats.uniform(-2, 5)), ("normal_", (1.0, 2.0), stats.norm(1, 2)),
     ("exponential_", (4.0,), stats.expon(scale=0.25)), ("cauchy_", (1.0, 2.0), stats.cauchy(1, 2)),
     ("log_normal_", (0.5, 0.25), stats.lognorm(0.25, scale=np.exp(0.5)))],
)  # fmt: skip
def test_continuous_distributions(method, args, law, dtype):
    """Kolmogorov and Smirnov's test; the seed fixes the numbers, so it does not fail by chance."""
    x = numbers(method, *args, dtype=dtype)
    assert np.isfinite(x).all()
    assert stats.kstest(x, law.cdf).pvalue > 0.01
    assert stats.kstest(x, lambda t: law.cdf(t * 1.02)).pvalue < 1e-4  # it can fail


def test_normal_is_a_scaled_and_shifted_normal_number():
    mean, std = np.array([[1.0], [-2.0]], np.float32), np.array([0.5, 3.0, 0.0], np.float32)
    z = dynamic.randn(2, 3, generator=dynamic.Generator(8)).numpy()
    drawn = dynamic.normal(dynamic.tensor(mean), dynamic.tensor(std), generator=dynamic.Generator(8)).numpy()
    assert np.asarray(drawn).tobytes() == (z * std + mean).tobytes()
    assert (drawn[:, 2] == mean[:, 0]).all()


def chi_square(counts, probabilities):
    expected = np.asarray(probabilities) * counts.sum()
    assert counts[expected == 0].sum() == 0
    return stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_bernoulli(p):
    x = numbers("bernoulli_", p, n=100_000)
    assert chi_square(np.bincount(x.astype(int), minlength=2), [1 - p, p]) > 0.01
    assert chi_square(np.bincount(x.astype(int), minlength=2), [1 - p * 0.95, p * 0.95]) < 1e-4


def test_trials_up_to_a_success():
    x = numbers("geometric_", 0.3, n=100_000).astype(int)
    counts = np.bincount(np.minimum(x, 12), minlength=13)[1:]
    probabilities = [0.3 * 0.7 ** (k - 1) for k in range(1, 12)]
    assert chi_square(counts, [*probabilities, 0.7**11]) > 0.01
    assert dynamic.zeros(50, dtype=dynamic.int64).geometric_(1 - 1e-12).tolist() == [1] * 50


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 2**24 + 1), ("uint8", 256), ("int32", 2**31), ("bool", 2)])
def test_integers_fill_what_a_dtype_holds(dtype, limit):
    x = dynamic.zeros(20_000, dtype=getattr(dynamic, dtype)).random_(generator=dynamic.Generator(4)).numpy()
    counts = np.bincount((x.astype("float64") * 2 / limit).astype(int), minlength=2)
    assert chi_square(counts, [0.5, 0.5]) > 0.01
    assert set(dynamic.zeros(99, dtype=getattr(dynamic, dtype)).random_(2).tolist()) == {0, 1}


def test_integers_are_equally_probable():
    x = dynamic.randint(3, 13, (100_000,), generator=dynamic.Generator(5)).numpy()
    assert chi_square(np.bincount(x - 3, minlength=10), np.full(10, 0.1)) > 0.01


def test_bounds_and_sizes_of_integers_are_taken_as_in_pytorch():
    def drawn(*args, **options):
        return dynamic.randint(*args, **options, generator=dynamic.Generator(1)).tolist()

    expected = drawn(0, 10, (4,))
    assert (
        drawn(10, (4,))
        == drawn(high=10, size=(4,))
        == drawn(10, size=(4,))
        == drawn(low=0, high=10, size=[4])
        == expected
    )
    like = dynamic.zeros(4)
    assert dynamic.randint_like(like, 10, generator=dynamic.Generator(1)).tolist() == expected
    assert dynamic.randint_like(like, low=0, high=10, generator=dynamic.Generator(1)).dtype == like.dtype
    assert drawn(3, 13, size=(4,)) == [n + 3 for n in expected]


def test_orders_are_equally_probable():
    generator = dynamic.Generator(3)
    orders = [tuple(dynamic.randperm(4, generator=generator).tolist()) for _ in range(6000)]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert chi_square(counts, np.full(24, 1 / 24)) > 0.01


@pytest.mark.parametrize("row", range(3))
def test_multinomial_with_replacement(row):
    weights = WEIGHTS[row].astype("float64")
    x = dynamic.multinomial(dynamic.tensor(weights), 100_000, replacement=True, generator=dynamic.Generator(row))
    assert chi_square(np.bincount(x.numpy(), minlength=4), weights / weights.sum()) > 0.01


def test_multinomial_without_replacement_is_one_draw_after_the_other():
    weights = np.array([1.0, 2.0, 0.0, 3.0])
    rows = np.broadcast_to(weights, (60_000, 4)).copy()
    drawn = dynamic.multinomial(dynamic.tensor(rows), 2, generator=dynamic.Generator(1)).numpy()
    counts, probabilities = [], []
    for first in (0, 1, 3):
        for second in {0, 1, 3} - {first}:
            counts.append((drawn == [first, second]).all(1).sum())
            probabilities.append(weights[first] / 6 * weights[second] / (6 - weights[first]))
    assert sum(counts) == 60_000
    assert chi_square(np.array(counts), probabilities) > 0.01


def test_all_weights_are_drawn_without_replacement():
    drawn = dynamic.multinomial(dynamic.ones(500, 6), 6).numpy()
    assert (np.sort(drawn, 1) == np.arange(6)).all()


def test_weights_of_zero_are_never_drawn():
    class Lowest:
        """A generator whose uniform numbers are all 0, the least there are."""

        def draw(self, name, shape, dtype):
            return np.zeros(shape, dtype)

    weights = dynamic.tensor([0.0, 2.0, 0.0, 1.0])
    for replacement in (False, True):
        drawn = dynamic.multinomial(weights, 2, replacement, generator=Lowest()).tolist()
        assert set(drawn) <= {1, 3}


# ------------------------------------------------------------------ generators


def test_a_state_is_saved_restored_and_forked():
    generator = dynamic.Generator(3, device="cpu")
    dynamic.rand(5, generator=generator)
    state, fork = generator.get_state(), generator.clone_state()
    expected = dynamic.normal(size=(3,), generator=generator).tolist()
    assert dynamic.normal(size=(3,), generator=fork).tolist() == expected
    assert generator.get_state().tolist() == fork.get_state().tolist() == [3, 8]
    generator.set_state(dynamic.tensor(state))
    assert dynamic.normal(size=(3,), generator=generator).tolist() == expected
    with pytest.raises(ArgumentError, match="RNG state must be an int64 tensor"):
        generator.set_state([1.0, 2.0])


def test_seeds():
    for seed in (0, 7, -1, 2**64 - 1, 2**63):
        assert dynamic.manual_seed(seed).initial_seed() == dynamic.initial_seed() == seed % 2**64
    assert dynamic.seed() != dynamic.seed()
    assert dynamic.Generator().seed() != dynamic.Generator().seed()
    dynamic.manual_seed(0)
    with pytest.raises(DeviceError, match="device"):
        dynamic.Generator(0, device="cuda")


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("tw", ENGINES, ids=lambda tw: tw.__name__)
def test_forked_draws_leave_the_stream_as_it_was(tw, enabled):
    def f(x):
        with tw.random.fork_rng(enabled=enabled):
            inside = tw.rand(3)
        return inside, tw.rand(3) + 0 * x

    for program in (f, tw.function(f)):
        tw.manual_seed(11)
        for _ in range(2):
            inside, after = (np.asarray(y).tolist() for y in program(np.zeros(3, np.float32)))
            assert (inside == after) is enabled
    with tw.random.fork_rng(devices=[]):
        tw.manual_seed(99)
        tw.rand(3)
    assert tw.get_rng_state().tolist()[0] == 11


# ------------------------------------------------------------------ refusals


def leaf():
    return dynamic.ones(3, requires_grad=True)


X = dynamic.tensor([1.0, 2.0])
REFUSED = {
    "expects all elements of std >= 0": (ArgumentError, lambda: dynamic.normal(0.0, dynamic.tensor([1.0, -2.0]))),
    "but found std -1": (ArgumentError, lambda: dynamic.normal(0.0, -1.0, (2,))),
    "found std nan": (ArgumentError, lambda: X.clone().normal_(0, float("nan"))),
    "takes a size": (ArgumentError, lambda: dynamic.normal(0.0, 1.0)),
    "a size cannot be given": (ArgumentError, lambda: dynamic.normal(X, 1.0, (2,))),
    "expected floating point": (DTypeError, lambda: dynamic.normal(dynamic.tensor([1]), 1.0)),
    "dtype must be floating": (DTypeError, lambda: dynamic.tensor([1]).normal_()),
    "multinomial only supports": (DTypeError, lambda: dynamic.multinomial(dynamic.tensor([1]), 1)),
    "prob_dist must be 1 or 2 dim": (ShapeError, lambda: dynamic.multinomial(dynamic.ones(1, 1, 1), 1)),
    "n_sample <= 0": (ArgumentError, lambda: dynamic.multinomial(X, 0)),
    "without replacement, got 3": (ArgumentError, lambda: dynamic.multinomial(X, 3)),
    "not enough non-negative category": (ArgumentError, lambda: dynamic.multinomial(dynamic.tensor([0.0, 1.0]), 2)),
    "sum of probabilities <= 0": (ArgumentError, lambda: dynamic.multinomial(dynamic.zeros(2), 1, True)),
    "`inf`, `nan` or element < 0: -1": (ArgumentError, lambda: dynamic.multinomial(dynamic.tensor([-1.0]), 1)),
    "element < 0: inf": (ArgumentError, lambda: dynamic.multinomial(dynamic.tensor([float("inf")]), 1)),
    "element < 0: nan": (ArgumentError, lambda: dynamic.multinomial(dynamic.tensor([float("nan")]), 1)),
    "element < 0: -2": (ArgumentError, lambda: dynamic.multinomial(dynamic.tensor([[1.0, 0.0], [3.0, -2.0]]), 1)),
    "(sum of probabilities <= 0)": (ArgumentError, lambda: dynamic.multinomial(dynamic.tensor([[1.0], [-0.0]]), 1)),
    "3 draws from 2": (ArgumentError, lambda: dynamic.multinomial(dynamic.tensor([[1.0] * 3, [1.0, 0.0, 1.0]]), 3)),
    "from=2 > to=1": (ArgumentError, lambda: X.clone().uniform_(2, 1)),
    "takes from, to": (ArgumentError, lambda: X.clone().uniform_(high=1)),
    "lambda=0": (ArgumentError, lambda: X.clone().exponential_(0)),
    "std=0": (ArgumentError, lambda: X.clone().log_normal_(1, 0)),
    "sigma=-1": (ArgumentError, lambda: X.clone().cauchy_(0, -1)),
    "got p=1": (ArgumentError, lambda: X.clone().geometric_(1)),
    "but got 5 and 5": (ArgumentError, lambda: X.clone().random_(5, 5)),
    "random_() takes": (ArgumentError, lambda: X.clone().random_(1, 2, 3)),
    "within 64 bits, but got 0 and": (ArgumentError, lambda: dynamic.tensor([1]).random_(2**70)),
    "probabilities to be in [0, 1], but got p=2": (ArgumentError, lambda: dynamic.bernoulli(X)),
    "tensor of probabilities, got int64": (DTypeError, lambda: dynamic.bernoulli(dynamic.tensor([1]))),
    "but got 3 and 3": (ArgumentError, lambda: dynamic.randint_like(X, 3, 3)),
    "from 0 to 3 - 1 is out of bounds for bool": (
        ArgumentError, lambda: dynamic.randint_like(dynamic.tensor([True]), 3)
    ),
    "out of bounds for uint8": (ArgumentError, lambda: dynamic.randint(-1, 3, (2,), dtype=dynamic.uint8)),
    "'size' must be tuple of ints, not int": (ArgumentError, lambda: dynamic.randint(high=3)),
    "p=1.5": (ArgumentError, lambda: X.clone().bernoulli_(1.5)),
    "leaf Variable that requires grad": (GradientError, lambda: leaf().normal_()),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_makes_no_sense_is_refused(message):
    kind, call = REFUSED[message]
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)


IMPOSSIBLE = {
    "element < 0": lambda tw, x: tw.multinomial(x - 1, 1),
    "sum of probabilities <= 0": lambda tw, x: tw.multinomial(x * 0, 1, replacement=True),
    "2 draws from": lambda tw, x: tw.multinomial(x, 2),
    "probabilities to be in [0, 1]": lambda tw, x: tw.bernoulli(x * 2),
    "p to be in [0, 1]": lambda tw, x: tw.zeros(2).bernoulli_(x - 0.5),
    "std >= 0.0": lambda tw, x: tw.normal(0.0, x - 0.5),
    "elements of input should be between 0 and 1": lambda tw, x: tw.binary_cross_entropy(x + 0.5, x),
    "elements of target should be between 0 and 1": lambda tw, x: tw.vmap(tw.binary_cross_entropy)(x, x * 2),
}


@pytest.mark.parametrize("message", IMPOSSIBLE)
def test_compiled_programs_refuse_impossible_parameters(message):
    for engine in (dynamic, static):
        program = engine.function(lambda x, engine=engine: IMPOSSIBLE[message](engine, x))
        for x in (np.array([0, 1], np.float32), np.array([0, 1], np.float64)):
            with pytest.raises(ArgumentError, match=re.escape(message)):
                program(x)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, -1e-40])
def test_compiled_draws_refuse_weights_that_are_none(poison):
    program = static.function(lambda x: static.multinomial(x, 1))
    program(np.ones((3, 5), np.float32))
    with pytest.raises(ArgumentError, match="element < 0"):
        program(np.where(np.arange(15).reshape(3, 5) == 7, np.float32(poison), np.float32(1)))
    with pytest.raises(ArgumentError, match="sum of probabilities"):
        program(np.float32([[1, 2], [0, 0]]))


def test_draws_depend_on_nothing():
    w = leaf()
    for y in (dynamic.normal(w, w), dynamic.bernoulli(w), dynamic.poisson(w)):
        assert dynamic.autograd.grad(y.sum(), w)[0].tolist() == [0, 0, 0]
    assert not dynamic.multinomial(w, 2).requires_grad
    with dynamic.no_grad():
        w.uniform_(**{"from": 3, "to": 4})
    assert bool((w >= 3).all())
    y = (w * 2).normal_()  # what was there before has no influence any more
    (g,) = dynamic.autograd.grad((y * w).sum(), w)
    assert g.tolist() == y.tolist()
    assert dynamic.normal(0.0, 1.0, (2,), requires_grad=True).is_leaf


def test_any_dtype_takes_ones_and_zeros():
    assert dynamic.zeros(4, dtype=dynamic.int64).bernoulli_(1.0).tolist() == [1, 1, 1, 1]
    assert dynamic.zeros(2, dtype=dynamic.bool).bernoulli_(dynamic.tensor([0.0, 1.0])).tolist() == [False, True]


def test_draws_that_are_known_are_those_of_the_first_time():
    generator = dynamic.Generator(7)
    first = [dynamic.rand(2, 3, generator=generator, dtype=dtype).numpy() for dtype in (None, dynamic.float64)]
    assert generator.get_state().tolist() == [7, 12]
    for sizes in ((2, 3), ((2, 3),), (dynamic.ones(2, 3).shape,)):
        generator.manual_seed(7)
        for y, dtype in zip(first, (None, dynamic.float64), strict=True):
            again = dynamic.rand(*sizes, generator=generator, dtype=dtype).numpy()
            assert again.dtype == y.dtype
            assert np.array_equal(again, y)
    generator.set_state(np.array([7, 2**63 - 6]))
    dynamic.rand(2, 3, generator=generator)
    assert generator.get_state().tolist() == [7, -(2**63)]
    dynamic.rand(1, generator=generator)
    for sizes, error in (((-1,), "negative dimension"), ((True,), "bool"), ((1.0,), "float")):
        for _ in range(2):
            with pytest.raises((ArgumentError, ValueError), match=error):
                dynamic.rand(*sizes, generator=generator)


@pytest.mark.parametrize("bad", [-0.5, 1.5, np.nan, np.inf])
def test_one_element_beyond_the_bounds_is_found_among_many(bad):
    x = np.full(1000, 0.5, np.float32)
    assert dynamic.bernoulli(dynamic.tensor(x)).shape == (1000,)
    x[613] = bad
    with pytest.raises(ArgumentError, match="got p="):
        dynamic.bernoulli(dynamic.tensor(x))
    if bad != 1.5:
        with pytest.raises(ArgumentError, match="inf"):
            dynamic.multinomial(dynamic.tensor(x), 3, replacement=True)


def test_uniform_between_0_and_1_is_what_rand_draws():
    dynamic.manual_seed(3)
    u = dynamic.rand(50)
    dynamic.manual_seed(3)
    assert np.array_equal(dynamic.empty(50).uniform_().numpy(), u.numpy())


@pytest.mark.parametrize("tw", [dynamic, static])
def test_parameters_expanded_beyond_memory_are_looked_at_where_they_are(tw):
    """2**40 views of one element: the element decides, in no time."""
    many = tw.full((1,), 2.0).expand(2**40)
    with pytest.raises(ValueError, match="got p=2"):
        tw.bernoulli(tw.zeros(8), many)
    with pytest.raises(RuntimeError, match="std >= 0"):
        tw.zeros(8).normal_(0.0, tw.full((1,), -2.0).expand(2**40))
