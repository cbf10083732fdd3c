"""Distributions against SciPy's, their draws against their moments, and traced ones against eager ones."""

import numpy as np
import pytest
from scipy import special, stats

import dynamic
import static
from common.core.errors import ArgumentError, NotDefinedError
from tests.bits import assert_all_same_bits, assert_same_bits

d = dynamic.distributions
X, COUNTS = np.array([0.15, 0.4, 0.9]), np.array([0.0, 2.0, 5.0])
A, B = np.array([0.3, 1.5, 1.1]), np.array([0.7, 1.5, 2.0])
P, LOGITS = np.array([0.2, 0.5, 0.9]), np.array([-1.0, 0.0, 2.0])
WEIGHTS = np.array([[1.0, 3.0, 4.0], [1.0, 1.0, 2.0]])
C = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
N = np.array([5.0, 6.0, 9.0])

#: Family -> its arguments, SciPy's, and values.
FAMILIES = {
    "Normal": ((A, B), stats.norm(A, B), X),
    "Laplace": ((A, B), stats.laplace(A, B), X),
    "Cauchy": ((A, B), stats.cauchy(A, B), X),
    "Gumbel": ((A, B), stats.gumbel_r(A, B), X),
    "StudentT": ((B + 2, A, B), stats.t(B + 2, A, B), X),
    "Uniform": ((A - 2, B), stats.uniform(A - 2, B - A + 2), X),
    "HalfNormal": ((B,), stats.halfnorm(scale=B), X),
    "HalfCauchy": ((B,), stats.halfcauchy(scale=B), X),
    "VonMises": ((A, B), stats.vonmises(B, A), X),
    "Exponential": ((B,), stats.expon(scale=1 / B), X),
    "Gamma": ((A, B), stats.gamma(A, scale=1 / B), X),
    "Chi2": ((B,), stats.chi2(B), X),
    "InverseGamma": ((A + 2, B), stats.invgamma(A + 2, scale=B), X),
    "Weibull": ((A, B), stats.weibull_min(B, scale=A), X),
    "GeneralizedPareto": ((A - 2, B, np.array([-0.3, 0.0, 0.2])), stats.genpareto([-0.3, 0.0, 0.2], A - 2, B), X),
    "Pareto": ((A, B + 2), stats.pareto(B + 2, scale=A), X + 1.5),
    "FisherSnedecor": ((A, B + 4), stats.f(A, B + 4), X),
    "LogNormal": ((A, B), stats.lognorm(B, scale=np.exp(A)), X),
    "Beta": ((A, B), stats.beta(A, B), X),
    "Bernoulli": ((P,), stats.bernoulli(P), np.array([0.0, 1.0, 1.0])),
    "Geometric": ((P,), stats.geom(P, loc=-1), COUNTS),
    "Poisson": ((B,), stats.poisson(B), COUNTS),
    "Binomial": ((N, P), stats.binom(N, P), COUNTS),
    "NegativeBinomial": ((N, P), stats.nbinom(N, 1 - P), COUNTS),
}
#: Families that SciPy does not have: arguments, and a value.
OTHERS = {
    "Kumaraswamy": ((A, B), X),
    "ContinuousBernoulli": ((P,), X),
    "RelaxedBernoulli": ((B, P), X),
    "RelaxedOneHotCategorical": ((np.array(0.7), WEIGHTS), np.array([0.2, 0.3, 0.5])),
    "LogisticNormal": ((A, B), np.array([0.2, 0.3, 0.1, 0.4])),
    "LKJCholesky": ((3, np.array(1.5)), np.linalg.cholesky(C / np.sqrt(np.outer(np.diag(C), np.diag(C))))),
    "Dirichlet": ((A,), np.array([0.2, 0.3, 0.5])),
    "Categorical": ((WEIGHTS,), np.array([1, 0])),
    "OneHotCategorical": ((WEIGHTS,), np.eye(3)[:2]),
    "OneHotCategoricalStraightThrough": ((WEIGHTS,), np.eye(3)[:2]),
    "Multinomial": ((4, WEIGHTS), np.array([1.0, 3.0, 0.0])),
    "MultivariateNormal": ((A, C), X),
    "LowRankMultivariateNormal": ((A, C[:, :2], B), X),
    "Wishart": ((np.array(4.5), C), C + np.eye(3)),
}
EVERY = {name: (arguments, value) for name, (arguments, _, value) in FAMILIES.items()} | OTHERS
SEVERAL = (X - 0.1, np.array(0.5))


def tensors(tw, values):
    return [x if isinstance(x, int) else tw.as_tensor(x) for x in values]


def make(tw, name, arguments=None):
    return getattr(tw.distributions, name)(*tensors(tw, EVERY[name][0] if arguments is None else arguments))


def told(method, *arguments):
    """The result of a family's method, None if it has none."""
    try:
        return np.asarray(method(*arguments))
    except NotDefinedError:
        return None


@pytest.mark.parametrize("name", FAMILIES)
def test_densities_and_moments_are_scipys(name):
    _, theirs, value = FAMILIES[name]
    ours, x = make(dynamic, name), dynamic.tensor(value)
    discrete = ours.support.is_discrete
    table = [
        (ours.log_prob, (x,), (theirs.logpmf if discrete else theirs.logpdf)(value)),
        (ours.cdf, (x,), theirs.cdf(value)),
    ]
    if not discrete:
        table += [(ours.icdf, (dynamic.tensor(P),), theirs.ppf(P))]
    if not discrete or name == "Bernoulli":
        table += [(ours.entropy, (), theirs.entropy())]
    if name not in ("VonMises", "Cauchy"):  # the variance of angles is the circular one; infinite, and SciPy's nan
        table += [(lambda: ours.mean, (), theirs.mean()), (lambda: ours.variance, (), theirs.var())]
    for method, arguments, expected in table:
        if (found := told(method, *arguments)) is not None:
            np.testing.assert_allclose(found, expected, rtol=2e-8, err_msg=getattr(method, "__name__", "moments"))
    dynamic.manual_seed(0)
    draws = np.asarray(ours.sample((2000,)))
    for i in range(3):  # the share of draws up to the median, and up to a quartile
        for p in (0.25, 0.5):
            edge = theirs.ppf(p)[i]
            share = theirs.cdf(edge)[i] if discrete else p
            assert abs((draws[:, i] <= edge).mean() - share) < 5 * np.sqrt(share * (1 - share) / 2000) + 1e-9


@pytest.mark.parametrize("engine", [dynamic, static], ids=["dynamic", "static"])
def test_batches_grow_and_are_mapped(engine):
    for name, (_, value) in EVERY.items():
        ours, x = make(engine, name), engine.tensor(value)
        wide = ours.expand((2, *ours.batch_shape))
        assert wide.sample((3,)).shape == (3, 2, *ours.batch_shape, *ours.event_shape), name
        expected = np.asarray(ours.log_prob(x))
        np.testing.assert_array_equal(np.asarray(wide.log_prob(x)), np.stack([expected] * 2), name)
        assert repr(ours).startswith(name)
        if engine is dynamic:
            mapped = engine.vmap(ours.log_prob)(engine.stack([x, x]))
            np.testing.assert_allclose(np.asarray(mapped), np.stack([expected] * 2), rtol=1e-12, err_msg=name)


def test_traced_gradients_and_draws_have_the_bits_of_eager_ones():
    names = [name for name in EVERY if name not in ("Wishart", "LKJCholesky")]

    def program(tw):
        def f(arrays):
            total = 0.0
            for name, given in arrays.items():
                fixed = [x for x in EVERY[name][0] if isinstance(x, int)]
                ours = getattr(tw.distributions, name)(*fixed, *given)
                total = total + ours.log_prob(tw.as_tensor(EVERY[name][1])).sum()
                if ours.has_rsample:
                    total = total + (ours.rsample() * ours.rsample()).sum()
                else:
                    total = total + ours.sample().sum()
            return total

        tw.manual_seed(1)
        arrays = {name: [x for x in EVERY[name][0] if not isinstance(x, int)] for name in names}
        return tw.function(tw.grad(f))(arrays)

    ours, theirs = program(static), program(dynamic)
    for name in names:
        for a, b in zip(ours[name], theirs[name], strict=True):
            assert_same_bits(a, b, name)


def test_gradients_of_draws_are_those_of_the_quantile():
    for name, column in (("Gamma", 0), ("Beta", 0), ("Beta", 1)):
        arguments, theirs = [dynamic.tensor(x, requires_grad=True) for x in (A, B)], FAMILIES[name][1]
        ours = getattr(d, name)(*arguments)
        dynamic.manual_seed(3)
        x = ours.rsample()
        (slope,) = dynamic.autograd.grad(x.sum(), [arguments[column]])
        step, moved = 1e-6, [[A, B], [A, B]]
        for sign, each in zip((1, -1), moved, strict=True):
            each[column] = each[column] + sign * step
        family = {"Gamma": lambda a, b: stats.gamma(a, scale=1 / b), "Beta": stats.beta}[name]
        value = x.detach().numpy()
        by_parameter = (family(*moved[0]).cdf(value) - family(*moved[1]).cdf(value)) / (2 * step)
        np.testing.assert_allclose(slope.numpy(), -by_parameter / theirs.pdf(value), rtol=1e-5)


def test_vectors_and_matrices_are_scipys():
    tensor, normal = dynamic.tensor, stats.multivariate_normal(A, C)
    table = [
        (d.MultivariateNormal(tensor(A), tensor(C)), normal, X),
        (d.MultivariateNormal(tensor(A), precision_matrix=tensor(np.linalg.inv(C))), normal, X),
        (d.LowRankMultivariateNormal(tensor(A), tensor(C[:, :2]), tensor(B)),
         stats.multivariate_normal(A, C[:, :2] @ C[:, :2].T + np.diag(B)), X),
        (d.Wishart(tensor(4.5, dtype=dynamic.float64), tensor(C)), stats.wishart(4.5, C), C + np.eye(3)),
        (d.Dirichlet(tensor(A)), stats.dirichlet(A), np.array([0.2, 0.3, 0.5])),
    ]  # fmt: skip
    for ours, theirs, value in table:
        np.testing.assert_allclose(ours.log_prob(tensor(value)), theirs.logpdf(value), rtol=1e-10)
        np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-10)
        dynamic.manual_seed(0)
        draws = np.asarray(ours.sample((3000,)))
        assert np.all(np.abs(draws.mean(0) - np.asarray(ours.mean)) < 5 * np.asarray(ours.stddev) / np.sqrt(3000))
    counts = d.Multinomial(4, tensor(WEIGHTS[0]))
    theirs = stats.multinomial(4, WEIGHTS[0] / 8)
    np.testing.assert_allclose(counts.log_prob(tensor([1.0, 3.0, 0.0])), theirs.logpmf([1, 3, 0]), rtol=1e-6)
    np.testing.assert_allclose(counts.entropy(), theirs.entropy(), rtol=1e-6)
    mixture = d.MixtureSameFamily(d.Categorical(tensor(WEIGHTS[0])), d.Normal(tensor(A), tensor(B)))
    expected = np.log(stats.norm(A, B).pdf(0.5) @ WEIGHTS[0] / 8)
    np.testing.assert_allclose(mixture.log_prob(tensor(0.5, dtype=dynamic.float64)), expected)
    assert mixture.sample((7,)).shape == (7,)
    assert tensor(3.0) != 0
    correlations = np.asarray(d.LKJCholesky(4, 2.0).sample((5,)))
    np.testing.assert_allclose((correlations @ correlations.transpose(0, 2, 1)).diagonal(0, 1, 2), 1, rtol=1e-5)


PAIRS = [
    (p, q)
    for p, others in {
        "Normal": "Normal Gumbel Laplace", "Laplace": "Laplace", "Exponential": "Exponential Gamma Gumbel Normal",
        "Gamma": "Gamma Exponential Gumbel Normal", "Beta": "Beta Exponential Gamma Normal", "Cauchy": "Cauchy",
        "Gumbel": "Gumbel Normal", "Pareto": "Pareto Gamma Normal", "HalfNormal": "HalfNormal",
        "HalfCauchy": "HalfCauchy", "InverseGamma": "InverseGamma", "Weibull": "Weibull", "Wishart": "Wishart",
        "Uniform": "Normal Gumbel", "Bernoulli": "Bernoulli Poisson", "Geometric": "Geometric", "Poisson": "Poisson",
        "Binomial": "Binomial", "Categorical": "Categorical", "Dirichlet": "Dirichlet", "LogNormal": "LogNormal",
        "ContinuousBernoulli": "ContinuousBernoulli", "MultivariateNormal": "LowRankMultivariateNormal",
        "LowRankMultivariateNormal": "MultivariateNormal LowRankMultivariateNormal",
    }.items()
    for q in others.split()
]  # fmt: skip


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_divergence_is_the_mean_of_the_logarithm(p, q):
    moved = [x * 0.8 if x.ndim < 2 or q != p else x + 0.3 for x in EVERY[q][0]] if q != "Binomial" else [N, P * 0.8]
    p, q = make(dynamic, p), make(dynamic, q, moved)
    dynamic.manual_seed(0)
    terms = np.asarray(p.log_prob(x := p.sample((8000,))) - q.log_prob(x))
    found = np.asarray(d.kl_divergence(p, q))
    assert np.all(np.abs(found - terms.mean(0)) < 6 * terms.std(0) / np.sqrt(8000) + 1e-9)


def test_divergence_that_is_infinite_or_unknown():
    normal, uniform = make(dynamic, "Normal"), make(dynamic, "Uniform")
    assert np.isinf(np.asarray(d.kl_divergence(normal, uniform))).all()
    assert np.isinf(np.asarray(d.kl_divergence(uniform, make(dynamic, "Exponential")))).tolist() == [True, True, True]
    narrow, beta, q = (
        kind(*(dynamic.tensor(x, dtype=dynamic.float64) for x in given))
        for kind, given in ((d.Uniform, (0.2, 0.8)), (d.Beta, (1.5, 2.0)), (d.ContinuousBernoulli, (0.3,)))
    )
    # PyTorch's values
    assert d.kl_divergence(narrow, q).item() == pytest.approx(0.5405617470178659, rel=1e-12)
    assert d.kl_divergence(beta, q).item() == pytest.approx(0.07726504861214212, rel=1e-11)
    assert np.isinf(d.kl_divergence(d.Uniform(-1.0, 1.0), q).item())
    with pytest.raises(NotDefinedError, match="No KL"):
        d.kl_divergence(normal, make(dynamic, "VonMises"))

    class Own(d.Normal):
        pass

    @d.register_kl(Own, d.VonMises)
    def rule(p, q):
        return p.scale

    assert d.kl_divergence(Own(0.0, 2.0), make(dynamic, "VonMises")).item() == 2.0


@pytest.mark.parametrize(
    ("transform", "x"),
    [
        (d.ExpTransform(), X), (d.SigmoidTransform(), X), (d.TanhTransform(), X), (d.SoftplusTransform(), X),
        (d.PowerTransform(2.5), X), (d.AffineTransform(1.0, -2.0), X), (d.StickBreakingTransform(), X),
        (d.CorrCholeskyTransform(), X), (d.CumulativeDistributionTransform(d.Normal(0.3, 2.0)), X),
        (d.LowerCholeskyTransform(), C), (d.ReshapeTransform((3,), (1, 3)), X), (d.PositiveDefiniteTransform(), C),
        (d.ComposeTransform([d.AffineTransform(0.5, 2.0), d.ExpTransform()]), X),
        (d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.AffineTransform(0.0, 2.0)]), X),
        (d.CatTransform([d.ExpTransform(), d.TanhTransform()], lengths=[1, 2]), X),
        (d.IndependentTransform(d.ExpTransform(), 1), X), (d.ExpTransform().inv, X), (d.SoftmaxTransform(), X),
        (d.AbsTransform(), X),
    ],
)  # fmt: skip
def test_transforms_are_inverted_and_have_their_determinant(transform, x):
    x = dynamic.tensor(np.tril(x) if x.ndim > 1 else x)
    y = transform(x)
    assert tuple(y.shape) == tuple(transform.forward_shape(tuple(x.shape)))
    assert tuple(x.shape) == tuple(transform.inverse_shape(tuple(y.shape)))
    back = transform(transform.inv(y))
    np.testing.assert_allclose(np.asarray(back), np.asarray(y), rtol=1e-6)
    assert bool(transform.codomain.check(y).all())
    if not transform.bijective or x.ndim > 1 or y.numel() > 3 or y.ndim > 1:
        return
    slopes = np.diag(np.asarray(dynamic.func.jacrev(transform)(x)))
    found = np.asarray(transform.log_abs_det_jacobian(x, y))
    np.testing.assert_allclose(found.sum(), np.log(np.abs(slopes)).sum(), rtol=1e-6)


def test_stick_breaking_has_its_determinant():
    for transform, places in ((d.StickBreakingTransform(), np.s_[:-1]), (d.CorrCholeskyTransform(), None)):
        x = dynamic.tensor(X)
        jacobian = np.asarray(dynamic.func.jacrev(transform)(x))
        jacobian = jacobian[places] if places else jacobian[np.tril_indices(3, -1)]
        found = np.asarray(transform.log_abs_det_jacobian(x, transform(x)))
        np.testing.assert_allclose(found, np.linalg.slogdet(jacobian)[1], rtol=1e-10)


def test_parameters_and_values_are_checked():
    with pytest.raises(ArgumentError, match=r"Expected parameter scale .* to satisfy the constraint GreaterThan"):
        d.Normal(0.0, -1.0)
    with pytest.raises(ArgumentError, match=r"Expected value argument .* to be within the support"):
        d.Exponential(1.0).log_prob(dynamic.tensor(-1.0))
    with pytest.raises(ValueError, match="The value argument to log_prob must be a Tensor"):
        d.Normal(0.0, 1.0).log_prob(1.0)
    assert d.Normal(0.0, 1.0, validate_args=False).log_prob(0.0).item() == pytest.approx(-0.9189385)
    assert d.Gamma(1.0, 1.0).log_prob(1).item() == pytest.approx(-1.0)
    with pytest.raises(ArgumentError, match="Either `probs` or `logits` must be specified"):
        d.Bernoulli()
    with pytest.raises(ArgumentError, match="The right-most size of value must match event_shape"):
        d.Dirichlet(dynamic.ones(3)).log_prob(dynamic.ones(2) / 2)
    with pytest.raises(ArgumentError, match="Value is not broadcastable with batch_shape"):
        d.Normal(dynamic.zeros(3), 1.0).log_prob(dynamic.ones(2))
    with pytest.raises(NotDefinedError, match="Poisson has no rsample"):
        d.Poisson(1.0).rsample()
    with pytest.raises(ArgumentError, match="at least one-dimensional"):
        d.Categorical(dynamic.tensor(1.0))
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1


def test_densities_without_a_maximum_have_no_mode():
    found = dynamic.distributions.Weibull(2.0, dynamic.tensor([0.5, 1.0, 2.0])).mode
    np.testing.assert_allclose(found, [np.nan, 0, 2 * np.sqrt(0.5)], rtol=1e-6)


@pytest.mark.parametrize("a", [[0.5, 0.4, 0.1], [0.1, 0.1, 0.1], [0.02, 0.01, 0.1]])
def test_small_parts_of_dirichlet_draws_keep_their_digits(a):
    """Means of logarithms are those of the definition, and derivatives of means; bits are equal in both engines."""
    found = []
    for tw in (dynamic, static):
        tw.manual_seed(5)
        concentration = tw.tensor(a, dtype=tw.float64, requires_grad=True)
        y = tw.distributions.Dirichlet(concentration).rsample((3000,))
        found.append(
            np.stack([np.asarray(tw.autograd.grad(x, concentration, retain_graph=True)[0]) for x in y.mean(0)])
        )
        found.append(np.asarray(y.detach()))
    slopes, draws, *others = found
    assert_all_same_bits(others, [slopes, draws], "Dirichlet")
    total = np.sum(a)
    wanted = np.eye(3) / total - np.array(a)[:, None] / total**2
    assert np.abs(slopes - wanted).max() < 0.15 * np.abs(wanted).max()
    logs, exact = np.log(draws), special.digamma(a) - special.digamma(total)
    if min(a) > 0.05:  # else some lie below the range of float64
        assert np.all(np.abs(logs.mean(0) - exact) < 5 * logs.std(0) / np.sqrt(len(logs)))
