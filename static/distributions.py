"""Probability distributions, under the names of `torch.distributions`."""

from common.api.places import publish
from common.distributions import *  # noqa: F403
from common.distributions import ConstraintRegistry as ConstraintRegistry
from common.distributions import LogitRelaxedBernoulli as LogitRelaxedBernoulli
from common.distributions import __all__ as __all__
from common.distributions import broadcast_all as broadcast_all
from common.distributions import clamp_probs as clamp_probs
from common.distributions import lazy_property as lazy_property
from common.distributions import logits_to_probs as logits_to_probs
from common.distributions import probs_to_logits as probs_to_logits
from common.distributions import tril_matrix_to_vec as tril_matrix_to_vec
from common.distributions import vec_to_tril_matrix as vec_to_tril_matrix

publish(__name__)
