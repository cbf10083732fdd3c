"""Probability distributions, under the names of `torch.distributions`."""

from common.api.places import open_places
from common.distributions.discrete import Bernoulli, Categorical, MultivariateNormal
from common.distributions.divergence import kl_divergence
from common.distributions.families import Distribution, Exponential, Laplace, Normal, Uniform
from common.tensor import boundary

open_places(__name__)

__all__ = [
    "Bernoulli", "Categorical", "Distribution", "Exponential", "Laplace", "MultivariateNormal", "Normal", "Uniform",
    "kl_divergence",
]  # fmt: skip

boundary.close(__name__)
