"""Normalised weights, as parametrizations."""

from __future__ import annotations

from functools import partial
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError
from common.nn import functions as F
from common.nn.module import Module
from common.nn.orthogonal_weight import orthogonal
from common.nn.parametrize import register_parametrization
from common.random.generator import randn
from common.tensor.create import lift


def _others(x: Any, dim: int | None) -> Any:
    """All dimensions but one; all for None."""
    return tuple(i for i in range(x.ndim) if dim is None or i != dim % x.ndim)


def lengths(x: Any, dim: int | None) -> Any:
    """The norms of x over all dimensions but one, which keeps its place; over all, a number, for None."""
    dims = _others(x, dim)
    return F.sqrt(F.sum(F.square(x), dims, dim is not None)) if dims else F.abs(x)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = None if dim == -1 else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        """g v / |v|, (...)."""
        return weight_v * (weight_g / lengths(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """The norms of a weight, and itself."""
        return lengths(weight, self.dim), weight


def _rename(names: dict[str, str], module: Module, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Give what states of PyTorch's former hooks hold, `weight_g` for example, the names of a parametrization."""
    for former, name in names.items():
        if prefix + former in state:
            state[prefix + name] = state.pop(prefix + former)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train a weight as its length and its direction: ``g v / |v|``.

    Parameters
    ----------
    module, name : see `register_parametrization`; ``original0`` is g, ``original1`` v. A state with ``weight_g`` and
        ``weight_v`` can be loaded.
    dim : the dimension with a length each; None for one length.

    References
    ----------
    Salimans and Kingma, Weight normalization, 2016.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    there = f"parametrizations.{name}"
    names = {f"{name}_g": f"{there}.original0", f"{name}_v": f"{there}.original1"}
    module.register_load_state_dict_pre_hook(partial(_rename, names))
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if n_power_iterations <= 0:
            raise ArgumentError(f"Expected n_power_iterations to be positive, but got n_power_iterations="
                                f"{n_power_iterations}")  # fmt: skip
        self.dim, self.eps, self.n_power_iterations = dim % max(weight.ndim, 1), eps, n_power_iterations
        if weight.ndim > 1:
            with mode.GradSwitch(False):
                matrix = self._matrix(weight.detach())
                for kind, n in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
                    drawn = lift(randn(int(n), dtype=weight.dtype))
                    self.register_buffer(kind, F.normalize(drawn, dim=0, eps=eps))
                self._iterate(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        order = (self.dim, *_others(weight, self.dim))
        return F.reshape(F.permute(weight, order), (weight.shape[self.dim], -1))

    def _iterate(self, matrix: Any, count: int) -> None:
        for _ in range(count):
            self._u.copy_(F.normalize(F.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(F.mv(matrix.transpose(0, 1), self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        """The weight divided by its largest singular value."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            with mode.GradSwitch(False):
                self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / F.dot(u, F.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        """The value itself."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, which power iteration follows during training.

    Parameters
    ----------
    module, name : see `register_parametrization`. A state with ``weight_orig``, ``weight_u`` and ``weight_v`` can be
        loaded.
    n_power_iterations : iterations each time that the weight is read in training.
    eps : least norm.
    dim : the rows of the matrix; 0, and 1 for transposed convolutions.

    Raises
    ------
    ArgumentError : there is no such parameter; no iterations.

    References
    ----------
    Miyato and others, Spectral normalization for generative adversarial networks, 2018.
    """
    weight = getattr(module, name, None)
    if weight is None:
        raise ArgumentError(f"Module '{type(module).__name__}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = int(type(module).__name__.startswith("ConvTranspose"))
    register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    there = f"parametrizations.{name}"
    names = {f"{name}_orig": f"{there}.original", f"{name}_u": f"{there}.0._u", f"{name}_v": f"{there}.0._v"}
    module.register_load_state_dict_pre_hook(partial(_rename, names))
    return module


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
