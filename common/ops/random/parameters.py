"""Parameters of distributions, looked at when a program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.op import NativeCall, Refusal
from common.core.spec import Spec, numel
from common.ops._define import kernel


def _weights_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import weights

    (x,), least = specs, attrs["least"]
    none = "invalid multinomial distribution (sum of probabilities <= 0)"
    few = (
        "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample): "
        f"{least} draws from fewer weights above 0"
    )
    errors = {
        weights.WRONG: Refusal("probability tensor contains either `inf`, `nan` or element < 0"),
        weights.NONE: Refusal(none),
        weights.FEW: Refusal(few),
    }
    ints = (numel(x.shape[:-1]), x.shape[-1], least)
    return [NativeCall(weights.weights_source(x.dtype), "weights", ints, errors=errors)]


weights_ = kernel(
    "weights", ("x",), lambda x, *, least: x, _weights_native, lambda x, least: x.copy(),
    samples=lambda rng, dtype: [((np.asarray(rng.uniform(0.5, 2, (3, 4)), dtype),), {"least": 2})],
    doc="Rows of weights, finite and >= 0, of which `least` are above 0; others are refused.", attrs=("least",),
)  # fmt: skip

#: The words about an element that an op cannot have, and whether it has to be a probability.
BOUNDS = {
    "bernoulli": ("bernoulli expects all probabilities to be in [0, 1]", True),
    "bernoulli_": ("bernoulli_ expects p to be in [0, 1]", True),
    "binary_cross_entropy": ("all elements of input should be between 0 and 1", True),
    "binary_cross_entropy of target": ("all elements of target should be between 0 and 1", True),
    "normal": ("normal expects all elements of std >= 0.0", False),
}


def _bounded_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import weights

    (x,), (message, bound) = specs, BOUNDS[attrs["user"]]
    source = weights.bounded_source(x.dtype, bound)
    return [NativeCall(source, "bounded", (numel(x.shape),), errors={weights.WRONG: Refusal(message)})]


bounded_ = kernel(
    "within_bounds", ("x",), lambda x, *, user: x, _bounded_native, lambda x, user: x.copy(),
    samples=lambda rng, dtype: [((np.asarray(rng.uniform(0, 1, (3, 4)), dtype),), {"user": "bernoulli"})],
    doc="Parameters of op `user`: numbers >= 0, probabilities also <= 1; others are refused.", attrs=("user",),
)  # fmt: skip
