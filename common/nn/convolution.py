"""Convolutions as modules."""

from __future__ import annotations

from typing import Any

from common.core.devices import on_cpu
from common.core.docstrings import sections_of
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integer, integers
from common.nn import functions as F
from common.nn import init
from common.nn.module import Module
from common.nn.reset import reset_parameters
from common.ops.image.geometry import per_dimension

_MODES = ("zeros", "reflect", "replicate", "circular")
_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")


class _ConvNd(Module):
    """The base of convolutions and transposed ones: arguments, parameters and their text."""

    rank = 0
    reset_parameters = reset_parameters

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        transposed: bool, output_padding: Any, groups: int, bias: bool, padding_mode: str,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if not self.rank:  # a program's own class: the kernel says of how many dimensions
            self.rank = len(integers(kernel_size, type(self).__name__, "kernel_size"))
        on_cpu(device, type(self).__name__)
        self.transposed = transposed
        name, n = type(self).__name__, self.rank
        groups = integer(groups, name, "groups")
        if groups <= 0:
            raise ArgumentError(f"groups must be a positive integer, got {groups}")
        for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if integer(channels, name, what) % groups:
                raise ArgumentError(f"{what} must be divisible by groups, got {channels} and groups={groups}")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ArgumentError(f"Invalid padding string {padding!r}, should be one of 'valid', 'same'")
        if padding_mode not in _MODES:
            raise ArgumentError(f"padding_mode must be one of {', '.join(map(repr, _MODES))}, but got {padding_mode!r}")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = per_dimension(kernel_size, n, name, "kernel_size")
        self.stride = per_dimension(stride, n, name, "stride")
        self.padding = padding if isinstance(padding, str) else per_dimension(padding, n, name, "padding")
        self.dilation = per_dimension(dilation, n, name, "dilation")
        self.output_padding = per_dimension(output_padding, n, name, "output_padding")
        self.groups, self.padding_mode = groups, padding_mode
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ArgumentError("padding='same' is not supported for strided convolutions")
        rows, columns = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (rows, columns // groups, *self.kernel_size)
        fan_in = columns // groups
        for k in self.kernel_size:
            fan_in *= k
        bound = init.linear_bound(fan_in)
        self.weight = init.uniform(shape, bound, dtype)
        self.register_parameter("bias", init.uniform((out_channels,), bound, dtype) if bias else None)

    @property
    def _reversed_padding_repeated_twice(self) -> list[Any]:
        """The padding before and after, the last dimension first, under the name that subclasses of PyTorch's use."""
        if self.padding == "valid":
            return [0] * (2 * self.rank)
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [size for t in reversed(totals) for size in (t // 2, t - t // 2)]
        return [size for p in reversed(self.padding) for size in (p, p)]

    def extra_repr(self) -> str:
        """The arguments that are not PyTorch's defaults."""
        n = self.rank
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, default in (("padding", (0,) * n), ("dilation", (1,) * n), ("output_padding", (0,) * n),
                              ("groups", 1)):  # fmt: skip
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_ConvNd):
    """Convolution with weights of its own.

    Parameters
    ----------
    in_channels, out_channels : of input and result.
    kernel_size : of the windows, an int or one per dimension.
    stride : from one window to the next.
    padding : on both sides; or "valid", or "same".
    dilation : from one element of a window to the next.
    groups : in how many parts the channels fall.
    bias : whether there is one.
    padding_mode : "zeros", "reflect", "replicate" or "circular".
    device : the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight : (out_channels, in_channels / groups, *kernel_size), drawn from U(-k, k), k = 1 / sqrt of the elements that
        make one number of the result.
    bias : (out_channels,), drawn likewise, or None.

    Raises
    ------
    ArgumentError : groups that do not divide the channels, another padding, or "same" with a stride.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0, groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Any) -> Any:
        """Convolve input (batch, in_channels, ...), or (in_channels, ...).

        Raises
        ------
        ShapeError : sizes that do not fit.
        DTypeError : another dtype than the weight's.
        """
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        """Convolve with another weight and bias: layers that compute theirs call it, as in PyTorch, or replace it."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        convolve = getattr(F, _CONVOLUTIONS[len(self.kernel_size) - 1])
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """Transposed convolution with weights of its own.

    Parameters
    ----------
    in_channels, out_channels : of input and result.
    kernel_size : of the windows, an int or one per dimension.
    stride : from one window of the result to the next.
    padding : elements that are left out at both ends.
    output_padding : elements more at the end.
    groups : in how many parts the channels fall.
    bias : whether there is one.
    dilation : from one element of a window to the next.
    padding_mode : "zeros".
    device : the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight : (in_channels, out_channels / groups, *kernel_size), drawn as for convolutions.
    bias : (out_channels,), drawn likewise, or None.

    Raises
    ------
    ArgumentError : groups that do not divide the channels, or another `padding_mode`.
    """

    function: str

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ArgumentError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, True, output_padding, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """Map input (batch, in_channels, ...) to larger images; `output_size` chooses among those that are possible.

        Raises
        ------
        ShapeError : sizes that do not fit.
        DTypeError : another dtype than the weight's.
        """
        more = self.output_padding if output_size is None else self._more(input, output_size)
        return getattr(F, self.function)(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation
        )

    def _more(self, input: Any, output_size: Any) -> tuple[Any, ...]:
        """The output padding that makes results of a size."""
        n = self.rank
        sizes = tuple(output_size)
        sizes = sizes[-n:] if len(sizes) in (n + 1, n + 2) and len(sizes) == input.ndim else sizes
        if len(sizes) != n:
            raise ShapeError(
                f"{type(self).__name__}: for {input.ndim}D input, output_size must have {n} or {input.ndim} elements "
                f"(got {len(sizes)})"
            )
        least = [
            (m - 1) * s - 2 * p + d * (k - 1) + 1
            for m, s, p, d, k in zip(
                input.shape[-n:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        if any(m < low or m > low + s - 1 for m, low, s in zip(sizes, least, self.stride, strict=True)):
            most = [low + s - 1 for low, s in zip(least, self.stride, strict=True)]
            raise ShapeError(
                f"requested an output size of {list(sizes)}, but valid sizes range from {least} to {most} (for an "
                f"input of {list(input.shape[-n:])})"
            )
        return tuple(m - low for m, low in zip(sizes, least, strict=True))


@sections_of(_Conv)
class Conv1d(_Conv):
    """Convolution of images of 1 dimension, see `conv1d`."""

    rank = 1


@sections_of(_Conv)
class Conv2d(_Conv):
    """Convolution of images of 2 dimensions, see `conv2d`."""

    rank = 2


@sections_of(_Conv)
class Conv3d(_Conv):
    """Convolution of images of 3 dimensions, see `conv3d`."""

    rank = 3


@sections_of(_ConvTransposeNd)
class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of images of 1 dimension, see `conv_transpose1d`."""

    rank, function = 1, "conv_transpose1d"


@sections_of(_ConvTransposeNd)
class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of images of 2 dimensions, see `conv_transpose2d`."""

    rank, function = 2, "conv_transpose2d"


@sections_of(_ConvTransposeNd)
class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of images of 3 dimensions, see `conv_transpose3d`."""

    rank, function = 3, "conv_transpose3d"
