"""Pooling, unpooling, unfold and fold as modules."""

from __future__ import annotations

from typing import Any

from common.core.docstrings import sections_of
from common.nn import functions as F
from common.nn.module import Module


class _Pooling(Module):
    """A function of images with arguments that it keeps; its text names those in `shown`."""

    shown: tuple[str, ...] = ()
    function: str

    def extra_repr(self) -> str:
        """The arguments."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.shown)


class _MaxPoolNd(_Pooling):
    """The maximum of each window.

    Parameters
    ----------
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    padding : elements before and after that no maximum comes from.
    dilation : from one element of a window to the next.
    return_indices : whether to return ``(maxima, indices)``.
    ceil_mode : whether a last window may reach beyond the end.
    """

    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Any) -> Any:
        """Pool input (batch, channels, ...), or (channels, ...).

        Raises
        ------
        ShapeError : an image without elements, or smaller than a window.
        ArgumentError : arguments of windows that the function refuses.
        """
        return getattr(F, self.function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class _MaxUnpoolNd(_Pooling):
    """Maxima in the places where pooling found them, zeros elsewhere.

    Parameters
    ----------
    kernel_size, stride, padding : those of the pooling.
    """

    shown = ("kernel_size", "stride", "padding")
    rank = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()

        def each(value: Any) -> Any:
            return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self.rank

        self.kernel_size, self.padding = each(kernel_size), each(padding)
        self.stride = self.kernel_size if stride is None else each(stride)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """Put input (batch, channels, ...) where `indices` say.

        Raises
        ------
        ShapeError : the shapes differ.
        ArgumentError : an `output_size` that the pooling does not come from.
        IndexRangeError : an index outside the result.
        """
        return getattr(F, self.function)(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _AvgPoolNd(_Pooling):
    """The mean of each window.

    Parameters
    ----------
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    padding : zeros before and after.
    ceil_mode : whether a last window may reach beyond the end.
    count_include_pad : whether the zeros count.
    divisor_override : what sums are divided by instead of the number of elements.
    """

    shown = ("kernel_size", "stride", "padding")

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Any) -> Any:
        """Pool input (batch, channels, ...), or (channels, ...).

        Raises
        ------
        ShapeError : an image without elements, or smaller than a window.
        ArgumentError : arguments of windows that the function refuses.
        """
        return getattr(F, self.function)(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class _LPPoolNd(_Pooling):
    """The sum of powers of each window, to the power of 1 / `norm_type`.

    Parameters
    ----------
    norm_type : the power.
    kernel_size : of the windows; an int, or one per dimension.
    stride : from one window to the next; `kernel_size` by default.
    ceil_mode : whether a last window may reach beyond the end.
    """

    shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Any) -> Any:
        """Pool input (batch, channels, ...), or (channels, ...).

        Raises
        ------
        ShapeError : an image without elements, or smaller than a window.
        ArgumentError : arguments of windows that the function refuses.
        """
        return getattr(F, self.function)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveAvgPoolNd(_Pooling):
    """The mean of each of as many windows as are wanted.

    Parameters
    ----------
    output_size : an int, or one per dimension; None is the size of the input.
    """

    shown = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        """Pool input (batch, channels, ...), or (channels, ...).

        Raises
        ------
        ShapeError : an image without elements.
        ArgumentError : another `output_size`.
        """
        return getattr(F, self.function)(input, self.output_size)


class _AdaptiveMaxPoolNd(_Pooling):
    """The maximum of each of as many windows as are wanted.

    Parameters
    ----------
    output_size : an int, or one per dimension; None is the size of the input.
    return_indices : whether to return ``(maxima, indices)``.
    """

    shown = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Any) -> Any:
        """Pool input (batch, channels, ...), or (channels, ...).

        Raises
        ------
        ShapeError : an image without elements.
        ArgumentError : another `output_size`.
        """
        return getattr(F, self.function)(input, self.output_size, self.return_indices)


@sections_of(_MaxPoolNd)
class MaxPool1d(_MaxPoolNd):
    """The maximum of each window, images of 1 dimension; see `max_pool1d`."""

    function = "max_pool1d"


@sections_of(_MaxPoolNd)
class MaxPool2d(_MaxPoolNd):
    """The maximum of each window, images of 2 dimensions; see `max_pool2d`."""

    function = "max_pool2d"


@sections_of(_MaxPoolNd)
class MaxPool3d(_MaxPoolNd):
    """The maximum of each window, images of 3 dimensions; see `max_pool3d`."""

    function = "max_pool3d"


@sections_of(_MaxUnpoolNd)
class MaxUnpool1d(_MaxUnpoolNd):
    """The inverse of max pooling, images of 1 dimension; see `max_unpool1d`."""

    function = "max_unpool1d"
    rank = 1


@sections_of(_MaxUnpoolNd)
class MaxUnpool2d(_MaxUnpoolNd):
    """The inverse of max pooling, images of 2 dimensions; see `max_unpool2d`."""

    function = "max_unpool2d"
    rank = 2


@sections_of(_MaxUnpoolNd)
class MaxUnpool3d(_MaxUnpoolNd):
    """The inverse of max pooling, images of 3 dimensions; see `max_unpool3d`."""

    function = "max_unpool3d"
    rank = 3


@sections_of(_AvgPoolNd)
class AvgPool1d(_AvgPoolNd):
    """The mean of each window, images of 1 dimension; see `avg_pool1d`."""

    function = "avg_pool1d"

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        sizes = (kernel_size, kernel_size if stride is None else stride, padding)
        size, step, margin = (tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in sizes)
        super().__init__(size, step, margin, ceil_mode, count_include_pad)

    def forward(self, input: Any) -> Any:
        """Pool input (batch, channels, length), or (channels, length)."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


@sections_of(_AvgPoolNd)
class AvgPool2d(_AvgPoolNd):
    """The mean of each window, images of 2 dimensions; see `avg_pool2d`."""

    function = "avg_pool2d"


@sections_of(_AvgPoolNd)
class AvgPool3d(_AvgPoolNd):
    """The mean of each window, images of 3 dimensions; see `avg_pool3d`."""

    function = "avg_pool3d"


@sections_of(_LPPoolNd)
class LPPool1d(_LPPoolNd):
    """The p-norm of each window, images of 1 dimension; see `lp_pool1d`."""

    function = "lp_pool1d"


@sections_of(_LPPoolNd)
class LPPool2d(_LPPoolNd):
    """The p-norm of each window, images of 2 dimensions; see `lp_pool2d`."""

    function = "lp_pool2d"


@sections_of(_LPPoolNd)
class LPPool3d(_LPPoolNd):
    """The p-norm of each window, images of 3 dimensions; see `lp_pool3d`."""

    function = "lp_pool3d"


@sections_of(_AdaptiveAvgPoolNd)
class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The means of as many windows as are wanted, images of 1 dimension; see `adaptive_avg_pool1d`."""

    function = "adaptive_avg_pool1d"


@sections_of(_AdaptiveAvgPoolNd)
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The means of as many windows as are wanted, images of 2 dimensions; see `adaptive_avg_pool2d`."""

    function = "adaptive_avg_pool2d"


@sections_of(_AdaptiveAvgPoolNd)
class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The means of as many windows as are wanted, images of 3 dimensions; see `adaptive_avg_pool3d`."""

    function = "adaptive_avg_pool3d"


@sections_of(_AdaptiveMaxPoolNd)
class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maxima of as many windows as are wanted, images of 1 dimension; see `adaptive_max_pool1d`."""

    function = "adaptive_max_pool1d"


@sections_of(_AdaptiveMaxPoolNd)
class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maxima of as many windows as are wanted, images of 2 dimensions; see `adaptive_max_pool2d`."""

    function = "adaptive_max_pool2d"


@sections_of(_AdaptiveMaxPoolNd)
class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maxima of as many windows as are wanted, images of 3 dimensions; see `adaptive_max_pool3d`."""

    function = "adaptive_max_pool3d"


class Unfold(_Pooling):
    """The windows of images as columns; see `unfold`.

    Parameters
    ----------
    kernel_size, dilation, padding, stride : of the windows.
    """

    shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Any) -> Any:
        """Map input (batch, channels, height, width) to columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Pooling):
    """Columns added up where the windows of images are; see `fold`.

    Parameters
    ----------
    output_size : height and width of the images.
    kernel_size, dilation, padding, stride : of the windows.
    """

    shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Any) -> Any:
        """Map columns (batch, channels kernel elements, windows) to images."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
