"""The base class of all distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from common.core import mode as modes
from common.core.dtypes import default_float, promote
from common.core.errors import ArgumentError, NotDefinedError, ShapeError
from common.core.int_arguments import members, shown
from common.core.shapes import broadcast_shapes
from common.core.size_tuples import Size
from common.core.source_lines import warn_user
from common.distributions import constraints
from common.ops import functional as F
from common.ops.create.creation import arange, eye
from common.random.counts import by_quantile
from common.random.generator import draw
from common.tensor.base import TensorBase
from common.tensor.create import lift

Shape = tuple[Any, ...]


def limits(x: Any) -> np.finfo[Any]:
    """The limits of a tensor's numbers."""
    return np.finfo(x.dtype)


def parameters(*values: Any) -> list[Any]:
    """Numbers and tensors as tensors of one dtype and shape."""
    made = one_dtype(*values)
    shape = broadcast_shapes(*(x.shape for x in made), op="distribution")
    return [x if tuple(x.shape) == tuple(shape) else x.expand(*shape) for x in made]


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one dtype and shape.

    Raises
    ------
    ArgumentError : one is neither.
    """
    return tuple(parameters(*values))


def one_dtype(*values: Any) -> list[Any]:
    """Numbers and tensors as tensors of one dtype.

    Raises
    ------
    ArgumentError : one is neither.
    """
    tensors = [x for x in values if isinstance(x, TensorBase)]
    dtype = tensors[0].dtype if tensors else default_float()
    for x in tensors[1:]:
        dtype = promote(dtype, x.dtype)
    dtype = dtype if dtype.kind == "f" else default_float()
    return [x.to(dtype) if isinstance(x, TensorBase) else lift(_array(x, dtype)) for x in values]


def _array(x: Any, dtype: np.dtype) -> np.ndarray:
    try:
        return np.asarray(x, dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"Input arguments must all be instances of Number or Tensor, got {x!r}") from error


def known(x: Any) -> bool:
    """Whether the elements of a tensor can be looked at: it is neither traced nor one example of a batch."""
    return modes.current_trace() is None and isinstance(x, TensorBase) and isinstance(x.payload, np.ndarray)


def every(x: Any) -> bool:
    """Whether all truth values hold."""
    return bool(F.all(x))


def uniform(shape: Shape, dtype: Any) -> Any:
    """Uniform numbers, in (0, 1)."""
    u = lift(draw("rand", shape, dtype, None))
    return F.clamp(u, min=float(np.finfo(dtype).tiny), max=1 - float(np.finfo(dtype).epsneg))


def normal(shape: Shape, dtype: Any) -> Any:
    """Normal numbers of mean 0 and variance 1."""
    return lift(draw("randn", shape, dtype, None))


def gamma(shape: Shape, concentration: Any) -> Any:
    """Gamma numbers of rate 1, above 0."""
    return F.clamp(by_quantile("gamma_quantile", shape, concentration), min=float(limits(concentration).tiny))


def whole_numbers(n: Any, dtype: Any) -> Any:
    """0, 1, ... n - 1."""
    return lift(arange(n)).to(dtype)


def identity(n: Any, dtype: Any) -> Any:
    """The matrix of n rows."""
    return lift(eye(n)).to(dtype)


class Distribution:
    """The base of all; names and shapes are those of `torch.distributions`.

    A family here defines what it has of ``_family_mean``, ``_family_variance``, ``_family_mode``, ``_family_entropy``,
    ``_family_log_prob(value)``, ``_family_cdf(value)``, ``_family_icdf(p)`` and ``_family_draw(shape)``, whose result
    has the gradient that ``rsample`` promises; one of a program defines the public methods.

    Parameters
    ----------
    batch_shape : of independent distributions.
    event_shape : of one draw.
    validate_args : whether parameters and values are looked at, outside of traces.

    Raises
    ------
    ArgumentError : a parameter that its constraint does not hold for.
    """

    #: Of parameters, by name, and of values; a family says them.
    arg_constraints: Any = property(lambda self: self._refuse("arg_constraints"))
    support: Any = property(lambda self: self._refuse("support"))
    has_rsample = False
    has_enumerate_support = False
    _validate_args = True
    _takes_numbers = False  # whether log_prob, where it checks, takes Python's; PyTorch's families differ in it

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        name = type(self).__name__
        self._batch_shape = Size(members(batch_shape, name, "batch_shape"))
        self._event_shape = Size(members(event_shape, name, "event_shape"))
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        for name, constraint in self._told("arg_constraints", {}, ". Please set `arg_constraints = {}` or").items():
            value = self.__dict__.get(name)
            if value is None or not known(value) or constraints.is_dependent(constraint):
                continue
            if not every(constraint.check(value)):
                raise ArgumentError(
                    f"Expected parameter {name} (Tensor of shape {tuple(value.shape)}) of distribution {self!r} to "
                    f"satisfy the constraint {constraint}, but found invalid values:\n{value}"
                )

    @property
    def batch_shape(self) -> Any:
        """The shape of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one draw."""
        return self._event_shape

    if TYPE_CHECKING:  # a family's parameters are attributes, by the names in `arg_constraints`

        def __getattr__(self, name: str) -> Any: ...

    def _refuse(self, name: str) -> Any:
        raise self._lacks_part(name)

    def _told(self, name: str, otherwise: Any, what: str) -> Any:
        """A family's answer about itself; a user's family that gives none is not checked, and warned of."""
        try:
            return getattr(self, name)
        except NotImplementedError:
            warn_user(
                f"{type(self)} does not define `{name}`{what} initialize the distribution with `validate_args=False` "
                "to turn off validation."
            )
            return otherwise

    def _hold(self, validate_args: bool | None, **given: Any) -> None:
        """Keep parameters of one shape, which is that of the batch."""
        values = parameters(*given.values())
        self.__dict__.update(zip(given, values, strict=True))
        Distribution.__init__(self, values[0].shape, (), validate_args)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether parameters and values are looked at where `validate_args` is not given.

        Raises
        ------
        ArgumentError : neither True nor False.
        """
        if value not in (True, False):
            raise ArgumentError(f"set_default_validate_args() takes True or False, got {value!r}")
        Distribution._validate_args = value

    def _extended_shape(self, sample_shape: Any = ()) -> Shape:
        try:
            return Size((*members(sample_shape, "sample", "sample_shape"), *self.batch_shape, *self.event_shape))
        except TypeError as error:
            raise ArgumentError(f"sample_shape must be a sequence of sizes, got {sample_shape!r}") from error

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        """The object that `expand` of a family of a user's fills, as PyTorch names it."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotDefinedError(f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                                  "method must also define a custom .expand() method.")  # fmt: skip
        return object.__new__(type(self)) if _instance is None else _instance

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions for a larger batch, as `expand` of a tensor.

        Parameters
        ----------
        batch_shape : to which the own one broadcasts.
        _instance : an object to fill, by a family of a user's, whose attributes stay; else a new one.
        """
        batch_shape = members(batch_shape, "expand", "batch_shape")
        new = self._get_checked_instance(type(self), _instance)
        new.__dict__ |= {**self.__dict__, **new.__dict__, "_batch_shape": Size(batch_shape)}
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if isinstance(value, TensorBase):
                event = value.shape[value.ndim - constraint.event_dim :]
                new.__dict__[name] = F.broadcast_to(value, (*new.batch_shape, *event))
        return new

    def _validate_sample(self, value: Any, takes_numbers: bool = False) -> Any:
        number = isinstance(value, (int, float)) and (takes_numbers or not self._validate_args)
        if not number and not isinstance(value, (TensorBase, np.ndarray)):
            raise ArgumentError(
                f"The value argument to log_prob must be a Tensor, got {shown(value)} of type {type(value).__name__}; "
                "give tensor(...) or an array"
            )
        value = value if isinstance(value, TensorBase) else lift(np.asarray(value, default_float()))
        if not self._validate_args:
            return value
        event, shape = self.event_shape, Size((*self.batch_shape, *self.event_shape))
        if tuple(value.shape[value.ndim - len(event) :]) != tuple(event):
            raise ArgumentError(
                f"The right-most size of value must match event_shape: {tuple(value.shape)} vs {tuple(event)}."
            )
        try:
            broadcast_shapes(value.shape, shape, op="log_prob")
        except ShapeError as error:
            raise ArgumentError(
                f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs {tuple(shape)}."
            ) from error
        support = self._told("support", None, " to enable sample validation. Please")
        if support is None:
            return value
        if known(value) and not constraints.is_dependent(support) and not every(support.check(value)):
            raise ArgumentError(
                f"Expected value argument (Tensor of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )
        return value

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw so that gradients reach the parameters.

        Parameters
        ----------
        sample_shape : of draws, before the shapes of batch and event.

        Raises
        ------
        NotDefinedError : the family has no such draws.
        """
        if not self.has_rsample:
            raise self._lacks_part("rsample: its draws are not differentiable; use sample()")
        return self._family_draw(self._extended_shape(sample_shape))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without a gradient.

        Parameters
        ----------
        sample_shape : of draws, before the shapes of batch and event.
        """
        with modes.no_grad():
            if self.has_rsample or type(self).rsample is not Distribution.rsample:
                return self.rsample(sample_shape)
            return self._family_draw(self._extended_shape(sample_shape))

    def sample_n(self, n: int) -> Any:
        """n draws: ``sample((n,))``."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability.

        Parameters
        ----------
        value : (..., batch, event), inside the support.

        Raises
        ------
        ArgumentError : a shape that does not fit, a value outside the support.
        """
        return self._family_log_prob(self._validate_sample(value, self._takes_numbers))

    def cdf(self, value: Any) -> Any:
        """The probability of values up to this one."""
        return self._family_cdf(self._validate_sample(value))

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        return self._family_icdf(value if isinstance(value, TensorBase) else one_dtype(value)[0])

    def entropy(self) -> Any:
        """The entropy, differential for a density, of each distribution of the batch."""
        return self._family_entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values, along a new first dimension.

        Parameters
        ----------
        expand : whether to repeat them for each distribution of the batch.
        """
        values = self._family_values()
        values = F.reshape(values, (values.shape[0], *(1,) * len(self.batch_shape), *values.shape[1:]))
        return values.expand(-1, *self.batch_shape, *self.event_shape) if expand else values

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return F.exp(self.entropy())

    @property
    def mean(self) -> Any:
        """The mean."""
        return self._family_mean()

    @property
    def mode(self) -> Any:
        """Where the density, or the probability, is largest."""
        return self._family_mode()

    @property
    def variance(self) -> Any:
        """The variance."""
        return self._family_variance()

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return F.sqrt(self.variance)

    def _lacks_part(self, what: str) -> NotDefinedError:
        return NotDefinedError(f"{type(self).__name__} has no {what}")

    def _family_draw(self, shape: Shape) -> Any:
        raise self._lacks_part("sample")

    def _family_log_prob(self, value: Any) -> Any:
        raise self._lacks_part("log_prob")

    def _family_cdf(self, value: Any) -> Any:
        raise self._lacks_part("cdf")

    def _family_icdf(self, p: Any) -> Any:
        raise self._lacks_part("icdf")

    def _family_entropy(self) -> Any:
        raise self._lacks_part("entropy")

    def _family_values(self) -> Any:
        raise self._lacks_part("enumerate_support: it has more values than can be listed")

    def _family_mean(self) -> Any:
        raise self._lacks_part("mean")

    def _family_mode(self) -> Any:
        raise self._lacks_part("mode")

    def _family_variance(self) -> Any:
        raise self._lacks_part("variance")

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            value = self.__dict__.get(name)
            if isinstance(value, TensorBase):
                one = known(value) and value.numel() == 1
                shown.append(f"{name}: {value.item() if one else Size(value.shape)}")
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """Families whose density is the exponential of a product of natural parameters and statistics."""
