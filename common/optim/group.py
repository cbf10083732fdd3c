"""Groups of parameters with their options, which programs read as state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any
from weakref import ref

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError
from common.core.int_arguments import members
from common.optim.execution import DEFAULTS
from common.optim.member_changes import MemberList
from common.tensor import boundary
from common.tensor.base import TensorBase
from common.tensor.leaf import Buffer

#: New values of a parameter and of its state.
Update = tuple[Any, dict[str, Any]]


class ParameterGroup(MutableMapping[str, Any]):
    """Parameters and their options, as PyTorch's dicts of them.

    A number is read as the kind of number that was written, a tuple of numbers as a tuple, and held in 0-d float64
    buffers: a compiled step reads it anew. An option of 0 leaves a term out. Another number brings it in, which makes
    the state that it needs, and a new program; so does another truth value, or another structural option.

    Parameters
    ----------
    options : "params" and the options.
    optional : names of options that leave a term out where they are 0.
    structural : names of options that decide what the program is, such as a number of iterations.

    Attributes
    ----------
    numbers : the 0-d tensors behind each number that the program uses; a tensor given by the user is used itself.
    fixed : all other options.
    optimizer : weakly, the optimiser, which makes the state of what is new: a term, or other parameters.
    extra : further entries, which no update reads: those of `common.optim.execution`, and learning rate schedulers'.

    Raises
    ------
    ArgumentError : a negative learning rate, or one that is no number; an option that is an array of several.
    """

    def __init__(
        self, options: Mapping[str, Any], optional: tuple[str, ...] = (), structural: tuple[str, ...] = ()
    ) -> None:
        options = {name: _plain(value) for name, value in options.items()}
        lr = options.get("lr", 0.0)
        if isinstance(lr, (TensorBase, np.ndarray)) and lr.shape not in ((), (1,)):
            raise ArgumentError("Tensor lr must be 1-element")
        free = lr is None or isinstance(lr, TensorBase)  # a user's optimiser may have no rate
        if not free and not (isinstance(lr, (int, float, np.number)) and float(lr) >= 0):
            raise ArgumentError(f"Invalid learning rate: {lr}")
        self.numbers: dict[str, tuple[TensorBase, ...]] = {}
        self.fixed: dict[str, Any] = {}
        self._structural, self._optional = structural, optional
        self.optimizer: ref[Any] | None = None
        self._whole: dict[str, tuple[bool, ...]] = {}
        self.extra: dict[str, Any] = {name: options.pop(name) for name in DEFAULTS if name in options}
        for name, value in options.items():
            parts = value if isinstance(value, tuple) else (value,)
            for x in parts if name != "params" else ():
                if isinstance(x, np.ndarray):
                    raise ArgumentError(f"option {name!r} must be a number, not an array of shape {x.shape}")
            absent = name in optional and not isinstance(value, TensorBase) and value == 0
            if name == "params":
                self.fixed[name] = MemberList(value)
            elif name in structural or absent or not all(map(_is_number, parts)):
                self.fixed[name] = value
            else:
                self.numbers[name] = tuple(_number(name, x) for x in parts)
                self._note_kinds(name, parts)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "optimizer": None}  # a copy belongs to the copy of its optimiser

    def belong(self, optimizer: ref[Any]) -> None:
        """Give the group its optimiser."""
        self.optimizer = self.fixed["params"].owner = optimizer

    def _note_kinds(self, name: str, parts: Any) -> None:
        """Remember which numbers of an option are ints."""
        self._whole[name] = tuple([isinstance(x, (int, np.integer)) for x in parts])

    @property
    def params(self) -> list[TensorBase]:
        """The parameters."""
        return self.fixed["params"]

    def options(self, wrap: Callable[[TensorBase], Any] = lambda x: x) -> dict[str, Any]:
        """Options of an update: numbers as 0-d tensors, each passed through `wrap`; None for terms left out."""
        given = {name: tuple(map(wrap, parts)) for name, parts in self.numbers.items()}
        kept = self._structural
        plain = {name: x if name in kept or isinstance(x, (bool, tuple)) else None for name, x in self.fixed.items()}
        return {**plain, **{name: parts if len(parts) > 1 else parts[0] for name, parts in given.items()}}

    def __getitem__(self, key: str) -> Any:
        parts = self.numbers.get(key)
        if parts is None:
            return self.fixed[key] if key in self.fixed else self.extra[key]
        if mode.replayed():
            values: tuple[Any, ...] = parts
        else:
            values = tuple([_read(x, whole) for x, whole in zip(parts, self._whole[key], strict=True)])
        return values if len(values) > 1 else values[0]

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self.fixed and (key == "params" or value != self.fixed[key]):
            self._change_program(key, value)
            return
        parts = value if isinstance(value, (tuple, list)) else (value,)
        for x, new in zip(self.numbers.get(key, ()), parts):
            if isinstance(new, TensorBase):
                with mode.GradSwitch(False):
                    x.copy_(new)
            elif mode.replayed():
                raise ArgumentError(f"option {key!r} is set to a number inside a traced function, which would run once "
                                    "per trace: set it outside, or to a tensor")  # fmt: skip
            else:
                x.payload[...] = new
                self._note_kinds(key, parts)
        if key not in self.numbers and key not in self.fixed:
            self.extra[key] = value

    def _change_program(self, key: str, value: Any) -> None:
        """Take another value of an option that decides what the program is."""
        if mode.replayed():
            raise ArgumentError(f"option {key!r} is part of the program: set it outside of traced functions")
        if key == "params":
            self.fixed[key][:] = [value] if isinstance(value, TensorBase) else members(value, "ParameterGroup", key)
            return
        if key in self._optional and _is_number(value) and value != 0:
            self.numbers[key] = (_number(key, value),)
            del self.fixed[key]
            self._note_kinds(key, (value,))
        else:
            self.fixed[key] = value
        optimizer = None if self.optimizer is None else self.optimizer()
        if optimizer is not None:
            optimizer.make_state(self)

    def kept(self) -> Callable[[], None]:
        """A function that gives all options the values that they have now."""
        fixed, numbers, whole, extra = dict(self.fixed), dict(self.numbers), dict(self._whole), dict(self.extra)
        values = {name: [x.payload.copy() for x in parts] for name, parts in numbers.items()}

        def restore() -> None:
            self.fixed, self.numbers, self._whole, self.extra = fixed, numbers, whole, extra
            for name, parts in numbers.items():
                for x, value in zip(parts, values[name], strict=True):
                    x.payload[...] = value

        return restore

    def __delitem__(self, key: str) -> None:
        del self.extra[key]

    def __iter__(self) -> Iterator[str]:
        return iter((*self.fixed, *self.numbers, *self.extra))

    def __len__(self) -> int:
        return len(self.fixed) + len(self.numbers) + len(self.extra)

    def __repr__(self) -> str:
        return repr(dict(self))


boundary.guard_class(ParameterGroup)


def _read(x: TensorBase, whole: bool) -> int | float:
    """The number of an option; a tensor given by the user may have been written to since."""
    value: float = x.payload.item()
    return int(value) if whole and value == int(value) else value


def _plain(value: Any) -> Any:
    """An array of one number as that number."""
    plain = isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iuf"
    return value.item() if plain else value


def _is_number(x: Any) -> bool:
    return isinstance(x, (TensorBase, int, float, np.number)) and not isinstance(x, bool)


def _number(name: str, value: Any) -> TensorBase:
    if isinstance(value, TensorBase):
        return value
    buffer = Buffer(np.float64(value))
    buffer.name = name
    return buffer
