"""Fractional max pooling as modules."""

from __future__ import annotations

from typing import Any

from common.core.docstrings import sections_of
from common.core.errors import ArgumentError
from common.nn.pooling import _Pooling
from common.random import fractional_pooling as F
from common.tensor.leaf import Buffer


class _FractionalMaxPool(_Pooling):
    """The maxima of windows whose places are drawn.

    Parameters
    ----------
    kernel_size : of the windows; an int, or one per dimension.
    output_size : of the result; or
    output_ratio : the result's size over that of the image, in (0, 1); a number, or one per dimension.
    return_indices : whether to return ``(maxima, indices)``.
    _random_samples : (batch, channels, dimensions) numbers in [0, 1), of which the places follow; drawn by default.
    """

    shown = ("kernel_size", "output_size", "output_ratio")

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if output_size is None and output_ratio is None:
            raise ArgumentError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ArgumentError("only one of output_size and output_ratio may be specified")
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,)
        if output_ratio is not None and not all(0 < r < 1 for r in ratios):
            raise ArgumentError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.kernel_size, self.return_indices = kernel_size, return_indices
        self.output_size, self.output_ratio = output_size, output_ratio
        self.register_buffer("_random_samples", None if _random_samples is None else Buffer(_random_samples))

    def forward(self, input: Any) -> Any:
        """Pool input (batch, channels, ...), or (channels, ...).

        Raises
        ------
        ShapeError : windows that do not fit.
        """
        return getattr(F, self.function)(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


@sections_of(_FractionalMaxPool)
class FractionalMaxPool2d(_FractionalMaxPool):
    """The maxima of windows whose places are drawn, images of 2 dimensions; see `fractional_max_pool2d`."""

    function = "fractional_max_pool2d"


@sections_of(_FractionalMaxPool)
class FractionalMaxPool3d(_FractionalMaxPool):
    """The maxima of windows whose places are drawn, images of 3 dimensions; see `fractional_max_pool3d`."""

    function = "fractional_max_pool3d"
