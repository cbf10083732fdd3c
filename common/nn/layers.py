"""Linear and bilinear maps, layer norm, and modules that only reshape, with PyTorch's initial distributions."""

from __future__ import annotations

import math
from typing import Any

from common.core.devices import on_cpu
from common.core.errors import ArgumentError
from common.core.int_arguments import integer, members
from common.core.sizes import Dim
from common.nn import functions as F
from common.nn import init
from common.nn.module import Module
from common.nn.reset import reset_parameters


class Linear(Module):
    """``x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : sizes of the last dimension of input and output.
    bias : whether there is one.
    device : the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight : (out_features, in_features), drawn from U(-k, k), k = 1 / sqrt(in_features).
    bias : (out_features,), drawn likewise, or None.

    Examples
    --------
    >>> import dynamic as tw
    >>> import numpy as np
    >>> tw.nn.Linear(3, 2)(np.ones((5, 3), np.float32)).shape
    torch.Size([5, 2])
    """

    reset_parameters = reset_parameters

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        on_cpu(device, type(self).__name__)
        self.in_features, self.out_features = in_features, out_features
        bound = init.linear_bound(in_features)
        self.weight = init.uniform((out_features, in_features), bound, dtype)
        self.register_parameter("bias", init.uniform((out_features,), bound, dtype) if bias else None)

    def forward(self, input: Any) -> Any:
        """Map input (..., in_features) to (..., out_features).

        Raises
        ------
        ShapeError : the last size is not `in_features`.
        DTypeError : `x` has another dtype than the weight.
        """
        try:  # a quarter of the time of a small layer is the way of an attribute to its table
            parameters = self.__dict__["_parameters"]
            weight, bias = parameters["weight"], parameters["bias"]
        except KeyError:  # it is an attribute of another kind
            weight, bias = self.weight, self.bias
        return F.linear(input, weight, bias)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class LayerNorm(Module):
    """Normalisation over the last dimensions, with scale and shift.

    Parameters
    ----------
    normalized_shape : sizes of the last dimensions.
    eps : added to the variance.
    elementwise_affine : whether there are weight and bias.
    bias : whether there is a bias.
    device : the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight : (*normalized_shape), ones, or None.
    bias : (*normalized_shape), zeros, or None.
    """

    reset_parameters = reset_parameters

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        on_cpu(device, type(self).__name__)
        one = isinstance(normalized_shape, int)
        shape = (normalized_shape,) if one else tuple(members(normalized_shape, "LayerNorm", "normalized_shape"))
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self.weight = init.constant(shape, 1, dtype) if elementwise_affine else None
        self.bias = init.constant(shape, 0, dtype) if elementwise_affine and bias else None

    def forward(self, input: Any) -> Any:
        """Normalise input (..., *normalized_shape).

        Raises
        ------
        ShapeError : `x` does not end in `normalized_shape`.
        """
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class Identity(Module):
    """Its input; takes any arguments, so that it can stand in for another module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return x."""
        return input


class Flatten(Module):
    """Dimensions `start_dim` to `end_dim` as one.

    Parameters
    ----------
    start_dim, end_dim : first and last of them; the batch dimension stays by default.
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        """Flatten input (batch, ...) to (batch, n), by default."""
        return F.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Bilinear(Module):
    """``x1 weight[k] x2 + bias[k]`` for each k.

    Parameters
    ----------
    in1_features, in2_features, out_features : last sizes of both inputs and the output.
    bias : whether there is one.
    device : None or the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight : (out_features, in1_features, in2_features), drawn from U(-k, k), k = 1 / sqrt(in1_features).
    bias : (out_features,), drawn likewise, or None.
    """

    reset_parameters = reset_parameters

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        on_cpu(device, "Bilinear")
        if in1_features <= 0:
            raise ArgumentError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = 1 / math.sqrt(in1_features)
        self.weight = init.uniform((out_features, in1_features, in2_features), bound, dtype)
        self.register_parameter("bias", init.uniform((out_features,), bound, dtype) if bias else None)

    def forward(self, input1: Any, input2: Any) -> Any:
        """The form of input1 (..., in1_features) and input2 (..., in2_features): (..., out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Unflatten(Module):
    """One dimension as several.

    Parameters
    ----------
    dim : the dimension.
    unflattened_size : sizes of the new ones, a tuple or a list of ints.

    Raises
    ------
    ArgumentError : a size that is no int, or names, which dimensions do not have.
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        integer(dim, "Unflatten", "dim")
        if not isinstance(unflattened_size, (tuple, list)):
            kind = type(unflattened_size).__name__
            raise ArgumentError(f"Unflatten: unflattened_size must be a tuple of ints, but found type {kind}")
        for i, n in enumerate(unflattened_size):
            if not isinstance(n, (int, Dim)):
                raise ArgumentError(
                    f"Unflatten: unflattened_size must be tuple of ints, but found element of type {type(n).__name__} "
                    f"at pos {i}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Any) -> Any:
        """Split the dimension of input (...)."""
        return F.unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
