"""Distributions against SciPy's, their draws against their moments, and traced ones against eager ones."""

import numpy as np
import pytest
import scipy.stats

import dynamic
import static
from common.core.errors import ArgumentError, NotDefinedError
from tests.bits import assert_same_bits

X = np.array([0.1, 0.4, 0.9])
A, B = np.array([0.3, 0.5, 0.1]), np.array([0.7, 1.5, 2.0])
C = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
FAMILIES = {
    "Normal": ((A, B), scipy.stats.norm(A, B)),
    "Laplace": ((A, B), scipy.stats.laplace(A, B)),
    "Uniform": ((A - 1, B), scipy.stats.uniform(A - 1, B - A + 1)),
    "Exponential": ((B,), scipy.stats.expon(scale=1 / B)),
}


def make(tw, name, arguments=None):
    arguments = FAMILIES[name][0] if arguments is None else arguments
    return getattr(tw.distributions, name)(*(tw.as_tensor(x) for x in arguments))


@pytest.mark.parametrize("name", FAMILIES)
def test_continuous(name):
    arguments, theirs = FAMILIES[name]
    ours = make(dynamic, name)
    x = dynamic.tensor(X)
    for found, expected in (
        (ours.log_prob(x), theirs.logpdf(X)), (ours.cdf(x), theirs.cdf(X)), (ours.entropy(), theirs.entropy()),
        (ours.mean, theirs.mean()), (ours.variance, theirs.var()),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10)
    dynamic.manual_seed(0)
    draws = np.asarray(ours.sample((20000,)))
    assert np.all(np.abs(draws.mean(0) - theirs.mean()) < 5 * theirs.std() / 140)

    def program(tw):
        def f(x, *arguments):
            d = getattr(tw.distributions, name)(*arguments)
            return (d.log_prob(x) * d.rsample()).sum()

        tw.manual_seed(1)
        return tw.function(tw.grad(f))(X, *arguments)

    assert_same_bits(program(static), program(dynamic), name)


def test_discrete_and_vectors():
    d = dynamic.distributions
    p = np.array([0.2, 0.5, 0.9])
    ours = d.Bernoulli(dynamic.tensor(p))
    np.testing.assert_allclose(np.asarray(ours.log_prob(dynamic.tensor([0.0, 1.0, 1.0]))), np.log([0.8, 0.5, 0.9]))
    np.testing.assert_allclose(np.asarray(ours.entropy()), scipy.stats.bernoulli(p).entropy())
    weights = d.Categorical(dynamic.tensor([[1.0, 3.0], [1.0, 1.0]], dtype=dynamic.float64))
    np.testing.assert_allclose(np.asarray(weights.log_prob(dynamic.tensor([1, 0]))), np.log([0.75, 0.5]))
    assert weights.sample((5, 4)).shape == (5, 4, 2)
    ours = d.MultivariateNormal(dynamic.tensor(A), dynamic.tensor(C))
    theirs = scipy.stats.multivariate_normal(A, C)
    np.testing.assert_allclose(np.asarray(ours.log_prob(dynamic.tensor(X))), theirs.logpdf(X), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(ours.entropy()), theirs.entropy(), rtol=1e-12)
    assert ours.rsample((2,)).shape == (2, 3)


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Exponential"])
def test_divergence_is_the_mean_of_the_logarithm(name):
    p, q = make(dynamic, name), make(dynamic, name, [x + 0.3 for x in FAMILIES[name][0]])
    dynamic.manual_seed(0)
    x = p.sample((100000,))
    expected = np.asarray(p.log_prob(x) - q.log_prob(x)).mean(0)
    np.testing.assert_allclose(np.asarray(dynamic.distributions.kl_divergence(p, q)), expected, atol=0.02)
    with pytest.raises(NotDefinedError, match="No KL"):
        dynamic.distributions.kl_divergence(p, make(dynamic, "Uniform"))


def test_parameters_and_values_are_checked():
    d = dynamic.distributions
    with pytest.raises(ArgumentError, match=r"Expected parameter scale .* to satisfy the constraint GreaterThan"):
        d.Normal(0.0, -1.0)
    with pytest.raises(ArgumentError, match=r"Expected value argument .* to be within the support"):
        d.Exponential(1.0).log_prob(dynamic.tensor(-1.0))
    with pytest.raises(ArgumentError, match="Either `probs` or `logits` must be specified"):
        d.Bernoulli()
