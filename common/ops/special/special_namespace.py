"""The functions of `torch.special`, by their names there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.ops.math import logarithms, rounding, special_functions, transcendental
from common.ops.reduce import softmax as soft
from common.ops.special import by_scipy, orthogonal_polynomials

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **by_scipy.of_one_operand(), **orthogonal_polynomials.OF_ONE, **orthogonal_polynomials.POLYNOMIALS,
    **{name: getattr(by_scipy, name) for name in ("i0", "ndtr", "zeta")},
    **{name: getattr(special_functions, name)
       for name in ("digamma", "entr", "erfc", "erfinv", "logit", "polygamma", "sinc", "xlog1py", "xlogy")},
    **{name: getattr(transcendental, name) for name in ("erf", "expm1", "log1p")},
    **{name: getattr(soft, name) for name in ("log_softmax", "logsumexp", "softmax")},
    "exp2": logarithms.exp2, "expit": transcendental.sigmoid, "gammainc": by_scipy.igamma,
    "gammaincc": by_scipy.igammac, "gammaln": special_functions.lgamma, "multigammaln": by_scipy.mvlgamma,
    "psi": special_functions.digamma, "round": rounding.round,
}  # fmt: skip
