"""Lazy modules: their first input says how many features they have."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from common.core import mode
from common.core.devices import on_cpu
from common.core.dtypes import default_float
from common.core.errors import ShapeError, TraceError
from common.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from common.nn.layers import Linear
from common.nn.module import Module
from common.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from common.random.generator import default_generator
from common.tensor.leaf import Parameter


class UninitializedParameter(Parameter):
    """A parameter of a lazy module before its first call: of no elements yet.

    Raises
    ------
    DeviceError : `device` is not the CPU.
    """

    __slots__ = ()

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        on_cpu(device, "UninitializedParameter")
        super().__init__(np.zeros(0, default_float() if dtype is None else dtype), requires_grad)


class LazyModule(Module):
    """A module without the size of its input: the first call makes it a `cls_to_become` of that size, in place.

    Its parameters stay the same objects, so an optimiser may be given them before. Which values they get, the first
    call draws.

    Parameters
    ----------
    args, kwargs : those of `cls_to_become` behind its first.

    Attributes
    ----------
    cls_to_become : class whose first parameter is the number of features.
    channel_axis : of the features in an input with a batch.
    ranks : numbers of dimensions of an input with a batch; empty for any.
    defaults : of arguments, where they are not those of `cls_to_become`.

    Raises
    ------
    ArgumentError : as `cls_to_become`.
    ShapeError : an input of another number of dimensions.
    TraceError : a first call inside a traced function.
    """

    cls_to_become: Any
    channel_axis = 1
    ranks: tuple[int, ...] = ()
    unbatched = True
    defaults: dict[str, Any] = {}
    _shown: str

    def __init_subclass__(cls) -> None:
        """Give the class the parameters of `cls_to_become` behind its first, documented."""
        super().__init_subclass__()
        first, *rest = inspect.signature(cls.cls_to_become).parameters.values()
        changed = [p.replace(default=cls.defaults.get(p.name, p.default)) for p in rest]
        cls.__signature__ = inspect.Signature(changed)  # type: ignore[attr-defined]
        page = inspect.getdoc(cls.cls_to_become) or ""
        section = page.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        lines = [
            line.removeprefix(f"{first.name}, ")
            for line in section.splitlines()
            if not line.startswith(f"{first.name} :")
        ]
        head, found, examples = inspect.cleandoc(cls.__doc__ or "").partition("\n\nExamples")
        cls.__doc__ = "\n".join([f"{head}\n\nParameters\n----------", *lines]) + found + examples

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        given = inspect.signature(self.cls_to_become).bind(1, *args, **kwargs)
        kwargs = {**{name: value for name, value in self.defaults.items() if name not in given.arguments}, **kwargs}
        object.__setattr__(self, "_behind_first", (args, kwargs))
        given = inspect.signature(self.cls_to_become).bind(1, *args, **kwargs)
        given.apply_defaults()
        self._take_arguments(given.arguments.get("groups", 1), *args, **kwargs)
        affine = given.arguments.get("affine", True)
        for name, wanted in (("weight", affine), ("bias", affine and given.arguments.get("bias", True))):
            made = UninitializedParameter(dtype=given.arguments.get("dtype")) if wanted else None
            self.register_parameter(name, made)
        if not affine:  # conversions of the module change its dtype
            marker = np.zeros(0, given.arguments.get("dtype") or default_float())
            self.register_buffer("uninitialized", marker, persistent=False)

    def _take_arguments(self, features: Any, *args: Any, **kwargs: Any) -> None:
        """Have the attributes of a `cls_to_become` without features; its first values are not drawn yet."""
        state = default_generator.get_state()
        try:
            made = self.cls_to_become(features, *args, **kwargs)
        finally:
            default_generator.set_state(state)
        first, *rest = inspect.signature(self.cls_to_become).parameters
        setattr(made, first, 0)
        for name in (first, *rest):
            if name in made.__dict__ and name != "bias":
                object.__setattr__(self, name, made.__dict__[name])
        object.__setattr__(self, "_shown", made.extra_repr())

    def has_uninitialized_params(self) -> bool:
        """Whether the first call is still to come: True."""
        return True

    def features(self, x: Any) -> int:
        """The number of features of an input."""
        rank = len(x.shape)
        if not self.ranks or rank in self.ranks:
            return int(x.shape[self.channel_axis])
        if self.unbatched and rank + 1 in self.ranks:
            return int(x.shape[self.channel_axis - 1])
        raise ShapeError(
            f"{type(self).__name__}: expected input of {' or '.join(map(str, self.ranks))} dimensions"
            f"{', or one less without a batch' if self.unbatched else ''}, but got {rank}"
        )

    def initialize_parameters(self, x: Any) -> None:
        """Become a `cls_to_become` that fits an input.

        Raises
        ------
        TraceError : inside a traced function, which must not make parameters.
        """
        if mode.current_trace() is not None:
            raise TraceError(
                f"{type(self).__name__} meets its first input inside a traced function: call it once before, on an "
                "input of that size"
            )
        self._become(self.features(x))

    def _become(self, features: int) -> None:
        """Become a `cls_to_become` of so many features."""
        args, kwargs = self._behind_first
        before = {name: p for name, p in self._parameters.items() if p is not None}
        (dtype,) = {x.dtype for x in (*before.values(), *self._buffers.values())}
        made = self.cls_to_become(features, *args, **{**kwargs, "dtype": dtype})
        del self.__dict__["_behind_first"], self.__dict__["_shown"]
        self.__class__ = self.cls_to_become
        for name, value in made.__dict__.items():
            if name not in ("training", "_module_hooks"):
                object.__setattr__(self, name, value)
        for name, p in before.items():
            p.payload = made._parameters[name].payload
            p.__class__ = Parameter
            self._parameters[name] = p
        self._rename_leaves("")

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """State of a module that has met its input says of how many features: become that one, and load."""
        for name, axis, count in self._followed_by_features():
            saved = state_dict.get(prefix + name)
            if saved is not None and len(saved.shape) > axis and 0 not in saved.shape:
                self._become(saved.shape[axis] * count)
                self._load_from_state_dict(state_dict, prefix, *rest)  # of the other class
                return
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _followed_by_features(self) -> Iterator[tuple[str, int, int]]:
        """State whose shape tells the number of features: its name, the dimension, and how many each element is."""
        args, kwargs = self._behind_first
        groups = inspect.signature(self.cls_to_become).bind(1, *args, **kwargs).arguments.get("groups", 1)
        generator = default_generator.get_state()
        one, two = (self.cls_to_become(n * groups, *args, **kwargs).state_dict() for n in (1, 2))
        default_generator.set_state(generator)
        for name in one:
            for axis, (m, n) in enumerate(zip(one[name].shape, two[name].shape, strict=True)):
                if m != n:
                    yield name, axis, groups // m

    def forward(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        """Take the size of the first input, and compute."""
        self.initialize_parameters(input)
        return self.forward(input, *args, **kwargs)

    def extra_repr(self) -> str:
        """The arguments, without features yet."""
        return self._shown


class LazyLinear(LazyModule):
    """`Linear` that takes `in_features` from its first input.

    Examples
    --------
    >>> import dynamic as tw
    >>> layer = tw.nn.LazyLinear(4)
    >>> layer(tw.ones(2, 3)).shape, layer
    (torch.Size([2, 4]), Linear(in_features=3, out_features=4, bias=True))
    """

    cls_to_become, channel_axis = Linear, -1


class LazyConv1d(LazyModule):
    """`Conv1d` that takes `in_channels` from its first input."""

    cls_to_become, ranks = Conv1d, (3,)


class LazyConv2d(LazyModule):
    """`Conv2d` that takes `in_channels` from its first input."""

    cls_to_become, ranks = Conv2d, (4,)


class LazyConv3d(LazyModule):
    """`Conv3d` that takes `in_channels` from its first input."""

    cls_to_become, ranks = Conv3d, (5,)


class LazyConvTranspose1d(LazyModule):
    """`ConvTranspose1d` that takes `in_channels` from its first input."""

    cls_to_become, ranks = ConvTranspose1d, (3,)


class LazyConvTranspose2d(LazyModule):
    """`ConvTranspose2d` that takes `in_channels` from its first input."""

    cls_to_become, ranks = ConvTranspose2d, (4,)


class LazyConvTranspose3d(LazyModule):
    """`ConvTranspose3d` that takes `in_channels` from its first input."""

    cls_to_become, ranks = ConvTranspose3d, (5,)


class LazyBatchNorm1d(LazyModule):
    """`BatchNorm1d` that takes `num_features` from its first input."""

    cls_to_become, ranks, unbatched = BatchNorm1d, (2, 3), False


class LazyBatchNorm2d(LazyModule):
    """`BatchNorm2d` that takes `num_features` from its first input."""

    cls_to_become, ranks, unbatched = BatchNorm2d, (4,), False


class LazyBatchNorm3d(LazyModule):
    """`BatchNorm3d` that takes `num_features` from its first input."""

    cls_to_become, ranks, unbatched = BatchNorm3d, (5,), False


#: PyTorch's lazy ones have what the others have on demand only.
_INSTANCE_NORM = {"affine": True, "track_running_stats": True}


class LazyInstanceNorm1d(LazyModule):
    """`InstanceNorm1d` that takes `num_features` from its first input."""

    cls_to_become, ranks = InstanceNorm1d, (3,)
    defaults = _INSTANCE_NORM


class LazyInstanceNorm2d(LazyModule):
    """`InstanceNorm2d` that takes `num_features` from its first input."""

    cls_to_become, ranks = InstanceNorm2d, (4,)
    defaults = _INSTANCE_NORM


class LazyInstanceNorm3d(LazyModule):
    """`InstanceNorm3d` that takes `num_features` from its first input."""

    cls_to_become, ranks = InstanceNorm3d, (5,)
    defaults = _INSTANCE_NORM
