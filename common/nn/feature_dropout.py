"""Dropout of elements and of whole channels, and dropout that keeps mean and variance, as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core.docstrings import sections_of
from common.core.errors import ArgumentError
from common.methods.in_place_functions import over
from common.nn.module import Module
from common.random import feature_dropout as f
from common.random.generator import dropout


class _DropoutNd(Module):
    """The base of dropouts: while training, drop with probability `p`.

    Parameters
    ----------
    p : probability, 0 <= p <= 1.
    inplace : write the result over the input.

    Raises
    ------
    ArgumentError : another `p`.
    """

    function: Callable[..., Any]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
        if not 0 <= p <= 1:
            raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p

    def forward(self, input: Any) -> Any:
        """Drop of input (...), or of the channels of (batch, channels, ...), if `training`."""
        function = type(self).function
        if self.inplace and self.training:
            return over(function.__name__, function, input, self.p, True)
        return function(input, self.p, self.training)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"p={self.p}, inplace={self.inplace}"


@sections_of(_DropoutNd)
class Dropout(_DropoutNd):
    """Elements set to 0 with probability `p` while training, the others scaled by 1 / (1 - p)."""

    function = dropout


@sections_of(_DropoutNd)
class Dropout1d(_DropoutNd):
    """Dropout of channels of (batch, channels, length); see `dropout1d`."""

    function = f.dropout1d


@sections_of(_DropoutNd)
class Dropout2d(_DropoutNd):
    """Dropout of channels of (batch, channels, height, width); see `dropout2d`."""

    function = f.dropout2d


@sections_of(_DropoutNd)
class Dropout3d(_DropoutNd):
    """Dropout of channels of (batch, channels, depth, height, width); see `dropout3d`."""

    function = f.dropout3d


@sections_of(_DropoutNd)
class AlphaDropout(_DropoutNd):
    """Dropout of elements that keeps mean and variance, for SELU; see `alpha_dropout`."""

    function = f.alpha_dropout


@sections_of(_DropoutNd)
class FeatureAlphaDropout(_DropoutNd):
    """Dropout of channels that keeps mean and variance, for SELU; see `feature_alpha_dropout`."""

    function = f.feature_alpha_dropout
