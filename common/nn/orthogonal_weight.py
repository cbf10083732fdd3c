"""A weight with orthonormal rows or columns, as a parametrization."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, NotDefinedError
from common.nn import functions as F
from common.nn.module import Module
from common.nn.parametrize import register_parametrization
from common.ops.create.creation import eye
from common.ops.linalg.matrix_exponential import matrix_exp
from common.ops.linalg.orthogonal import geqrf, householder_product
from common.ops.linalg.solving import solve
from common.random.generator import randn
from common.tensor.base import TensorBase
from common.tensor.create import lift

_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """An orthogonal matrix as a function of a triangle, times a constant one, `base`, if that is kept."""

    def __init__(self, shape: tuple[int, ...], map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape, self.map, self.has_base = shape, map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        """The matrix with orthonormal columns, or rows where there are fewer of them, (..., m, n)."""
        x, turned = _tall(x)
        n, k = x.shape[-2:]
        if self.map == "householder":
            below = F.tril(x, -1)
            q = householder_product(below, 2.0 / (1.0 + F.sum(F.square(below), -2)))
            q = q * F.unsqueeze(F.trunc(F.diagonal(x.detach(), 0, -2, -1)), -2)
        else:
            below = F.pad(F.tril(x), (0, n - k))
            skew = below - F.transpose(below, -2, -1)
            if self.map == "matrix_exp":
                q = matrix_exp(skew)
            else:
                one = lift(eye(n, dtype=skew.dtype))
                q = solve(one - 0.5 * skew, one + 0.5 * skew)
            q = q[..., :k]
        if self.has_base:
            q = F.matmul(self.base, q)
        return F.transpose(q, -2, -1) if turned else q

    def right_inverse(self, value: Any) -> Any:
        """The triangle of which `value` is made, or a matrix near it that is orthogonal.

        Raises
        ------
        ArgumentError : `value` has another shape.
        NotDefinedError : of the exponential and of Cayley's map, where no base is kept.
        """
        if tuple(value.shape) != self.shape:
            raise ArgumentError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape "
                f"{tuple(value.shape)}."
            )
        if not self.has_base and self.map != "householder":
            raise NotDefinedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        with mode.no_grad():
            q, turned = _tall(value)
            n, k = q.shape[-2:]
            if self.has_base:
                if n != k:
                    q = F.cat([q, lift(randn(*q.shape[:-1], n - k, dtype=q.dtype))], -1)
                self.base = q.clone() if n == k and _is_orthogonal(q) else _nearest(q)
                made = F.zeros_like(value)
                F.diagonal(made, 0, -2, -1).fill_(-1.0)  # where reflections by no vector give the unit matrix
                return made
            made, tau = geqrf(q)
            signs = F.sign(F.diagonal(made, 0, -2, -1))
            F.diagonal(made, 0, -2, -1).copy_(F.where(tau == 0, -signs, signs))
            return F.transpose(made, -2, -1) if turned else made


def _tall(x: Any) -> tuple[Any, bool]:
    """A matrix with at least as many rows as columns, and whether it is turned."""
    turned = x.shape[-2] < x.shape[-1]
    return F.transpose(x, -2, -1) if turned else x, turned


def _is_orthogonal(q: Any) -> bool:
    one = lift(eye(q.shape[-1], dtype=q.dtype))
    eps = 10.0 * q.shape[-2] * float(np.finfo(q.dtype).eps)
    return bool(F.allclose(F.matmul(F.transpose(q, -2, -1), q), F.expand(one, q.shape), atol=eps))


def _nearest(a: Any) -> Any:
    """Q of the QR decomposition in which the diagonal of R is positive."""
    reflectors, tau = geqrf(a)
    q = householder_product(reflectors, tau)
    return q * F.unsqueeze(F.sign(F.diagonal(reflectors, 0, -2, -1)), -2)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight orthogonal: orthonormal columns, or rows where there are fewer of them.

    Parameters
    ----------
    module, name : see `register_parametrization`; the weight is (..., m, n).
    orthogonal_map : from what is trained to a matrix: "matrix_exp" (default for square ones), "cayley" or
        "householder".
    use_trivialization : multiply by a constant orthogonal matrix, the buffer ``base``, so that any orthogonal matrix
        can be assigned.

    Raises
    ------
    ArgumentError : there is no such parameter, it is no matrix, or there is no such map.

    Examples
    --------
    >>> import dynamic as tw
    >>> layer = orthogonal(tw.nn.Linear(4, 3))
    >>> tw.allclose(layer.weight @ layer.weight.T, tw.eye(3), atol=1e-6)
    True

    References
    ----------
    Lezcano-Casado, Trivializations for gradient-based optimization on manifolds, 2019.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, TensorBase):
        raise ArgumentError(f"Module '{type(module).__name__}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ArgumentError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    shape = tuple(weight.shape)
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if shape[-2] == shape[-1] else "householder"
    if orthogonal_map not in _MAPS:
        raise ArgumentError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    return register_parametrization(module, name, _Orthogonal(shape, orthogonal_map, use_trivialization), unsafe=True)


__all__ = ["orthogonal"]
