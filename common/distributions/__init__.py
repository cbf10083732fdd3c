"""Probability distributions: densities, entropies and draws as programs of ops, so in traces and with gradients too."""

from common.distributions import (
    constraint_registry,
    constraints,
    distribution,
    implied,
    odds,
    packed_triangles,
    unit_interval,
)
from common.distributions.categories import (
    Categorical,
    MixtureSameFamily,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from common.distributions.constraint_registry import biject_to, transform_to
from common.distributions.counted import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from common.distributions.distribution import Distribution, ExponentialFamily
from common.distributions.divergence import kl_divergence, register_kl
from common.distributions.extreme_values import GeneralizedPareto, Pareto, Weibull
from common.distributions.gaussian_vectors import LowRankMultivariateNormal, MultivariateNormal
from common.distributions.independent import Independent
from common.distributions.positive_half import (
    Chi2,
    Exponential,
    FisherSnedecor,
    Gamma,
    InverseGamma,
    LogNormal,
)
from common.distributions.random_matrices import LKJCholesky, Wishart
from common.distributions.real_line import (
    Cauchy,
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Laplace,
    Normal,
    StudentT,
    Uniform,
    VonMises,
)
from common.distributions.scalar_transforms import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from common.distributions.simplexes import Dirichlet, LogisticNormal, RelaxedOneHotCategorical
from common.distributions.transformed import TransformedDistribution
from common.distributions.transforms import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    identity_transform,
)
from common.distributions.unit_interval import (
    Beta,
    ContinuousBernoulli,
    Kumaraswamy,
    RelaxedBernoulli,
)
from common.distributions.vector_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)

#: Names of PyTorch's inner modules, such as `utils`.
broadcast_all, lazy_property = distribution.broadcast_all, implied.Implied
clamp_probs, logits_to_probs, probs_to_logits = odds.clamp_probs, odds.logits_to_probs, odds.probs_to_logits
tril_matrix_to_vec, vec_to_tril_matrix = packed_triangles.tril_matrix_to_vec, packed_triangles.vec_to_tril_matrix
ConstraintRegistry, LogitRelaxedBernoulli = constraint_registry.ConstraintRegistry, unit_interval.LogitRelaxedBernoulli

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy",
    "Chi2", "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
    "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial",
    "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
    "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform",
    "VonMises", "Weibull", "Wishart", "biject_to", "constraints", "identity_transform", "kl_divergence",
    "register_kl", "transform_to",
]  # fmt: skip
