"""Normalised weights under PyTorch's former names: `weight_g` and `weight_v`; `weight_orig`, `weight_u`, `weight_v`.

The weight itself is no parameter: it is computed of the others where it is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError, RegistrationError
from common.nn import functions as F
from common.nn.computed import compute, compute_no_more, computed
from common.nn.module import Module
from common.nn.parametrizations import lengths
from common.random.generator import randn
from common.tensor.create import lift
from common.tensor.leaf import Buffer, Parameter


class FormerNorm(ABC):
    """How a weight is computed of what a module keeps in its place.

    Attributes
    ----------
    name : of the weight.
    kind : the function that installs this.
    ends : of the names of what is kept.
    """

    kind = ""
    ends: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def __call__(self, module: Module) -> Any:
        """The weight."""

    def kept(self, module: Module) -> list[Any]:
        """What is kept, in the order of `ends`."""
        return [getattr(module, self.name + end) for end in self.ends]

    def install(self, module: Module, *values: Any) -> None:
        """Keep values in the place of the weight."""
        del module._parameters[self.name]
        for end, value in zip(self.ends, values, strict=True):
            setattr(module, self.name + end, value)
        compute(module, self.name, self)

    @classmethod
    def of(cls, module: Module, name: str) -> Any:
        """The one of a module's weight; None if it has none."""
        found = computed(module).get(name)
        return found if isinstance(found, cls) else None

    @classmethod
    def weight(cls, module: Module, name: str) -> Parameter:
        """The parameter that one can be installed for.

        Raises
        ------
        RegistrationError : it has one already.
        ArgumentError : there is no such parameter.
        """
        if cls.of(module, name) is not None:
            raise RegistrationError(f"Cannot register two {cls.kind} hooks on the same parameter {name}")
        found = module._parameters.get(name)
        if found is None:
            raise ArgumentError(f"{cls.kind}(): {type(module).__name__} has no parameter {name!r}")
        return found

    @classmethod
    def remove(cls, module: Module, name: str) -> Module:
        """Make the weight a parameter again.

        Raises
        ------
        ArgumentError : it is none that was computed.
        """
        own = cls.of(module, name)
        if own is None:
            raise ArgumentError(f"{cls.kind} of '{name}' not found in {module}")
        with mode.GradSwitch(False):
            weight = own(module).detach()
        for end in own.ends:
            delattr(module, name + end)
        compute_no_more(module, name)
        own.forget(module)
        module.register_parameter(name, Parameter(weight))
        return module

    def forget(self, module: Module) -> None:  # noqa: B027  most add nothing
        """Take away what else was added to a module."""


class WeightNorm(FormerNorm):
    """A length and a direction."""

    kind, ends = "weight_norm", ("_g", "_v")

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = None if dim == -1 else dim

    @classmethod
    def apply(cls, module: Module, name: str, dim: int | None) -> WeightNorm:
        """Take a weight apart; see `weight_norm`."""
        weight = cls.weight(module, name)
        made = cls(name, dim)
        with mode.GradSwitch(False):
            g = lengths(weight.detach(), made.dim)
        made.install(module, Parameter(g), Parameter(weight.detach()))
        return made

    def __call__(self, module: Module) -> Any:
        """g v / |v|."""
        g, v = self.kept(module)
        return v * (g / lengths(v, self.dim))

    compute_weight = __call__


class SpectralNorm(FormerNorm):
    """A weight and the vectors that tell its largest singular value."""

    kind, ends = "spectral_norm", ("_orig", "_u", "_v")

    def __init__(self, name: str, iterations: int, dim: int, eps: float) -> None:
        super().__init__(name)
        self.iterations, self.dim, self.eps = iterations, dim, eps
        self.hook: Any = None

    def matrix(self, weight: Any) -> Any:
        """The weight as a matrix whose rows are its dimension `dim`."""
        order = (self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        return F.reshape(F.permute(weight, order), (weight.shape[self.dim], -1))

    def direction(self, count: int, dtype: Any) -> Buffer:
        """A random vector of length 1."""
        return Buffer(F.normalize(lift(randn(count, dtype=dtype)), dim=0, eps=self.eps))

    def iterate(self, module: Module, inputs: Any) -> None:
        """Before each call in training: iterations of the power method."""
        if not module.training:
            return
        weight, u, v = self.kept(module)
        with mode.GradSwitch(False):
            matrix = self.matrix(weight.detach())
            for _ in range(self.iterations):
                v.copy_(F.normalize(F.mv(F.transpose(matrix, 0, 1), u), dim=0, eps=self.eps))
                u.copy_(F.normalize(F.mv(matrix, v), dim=0, eps=self.eps))

    def __call__(self, module: Module) -> Any:
        """The weight divided by u W v."""
        weight, u, v = self.kept(module)
        return weight / F.dot(u.clone(), F.mv(self.matrix(weight), v.clone()))

    def forget(self, module: Module) -> None:
        """Take away the iterations."""
        self.hook.remove()


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train a weight as its length and its direction, ``g v / |v|``: the parameters ``weight_g`` and ``weight_v``.

    Parameters
    ----------
    module, name : the parameter.
    dim : the dimension with a length each; None for one length.

    Raises
    ------
    ArgumentError : there is no such parameter.
    RegistrationError : it is taken apart already.

    References
    ----------
    Salimans and Kingma, Weight normalization, 2016.
    """
    WeightNorm.apply(module, name, dim)
    return module


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight, which stays as ``weight_orig``, by its largest singular value.

    Parameters
    ----------
    module, name : the parameter.
    n_power_iterations : iterations before each call in training; ``weight_u`` and ``weight_v`` are the vectors.
    eps : least norm.
    dim : the rows of the matrix; 0, and 1 for transposed convolutions.

    Raises
    ------
    ArgumentError : there is no such parameter; no iterations.
    RegistrationError : it is divided already.

    References
    ----------
    Miyato and others, Spectral normalization for generative adversarial networks, 2018.
    """
    if n_power_iterations <= 0:
        raise ArgumentError(
            f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
        )
    weight = SpectralNorm.weight(module, name)
    rows = int(type(module).__name__.startswith("ConvTranspose")) if dim is None else dim
    made = SpectralNorm(name, n_power_iterations, rows % max(weight.ndim, 1), eps)
    with mode.GradSwitch(False):
        vectors = [made.direction(int(n), weight.dtype) for n in made.matrix(weight.detach()).shape]
    made.install(module, weight, *vectors)
    made.hook = module.register_forward_pre_hook(made.iterate)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight that `weight_norm` has taken apart an ordinary parameter."""
    return WeightNorm.remove(module, name)


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight that `spectral_norm` divides an ordinary parameter."""
    return SpectralNorm.remove(module, name)
