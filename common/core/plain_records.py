"""`dataclasses.dataclass` of what the engines use of it, whose classes are made in a tenth of the time."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from common.core.named_tuples import NamedTuple

__all__ = ["field", "names", "record"]


class _Field(NamedTuple):
    default_factory: Callable[[], Any] | None
    init: bool


if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import field as field
else:

    def field(*, default_factory: Callable[[], Any] | None = None, init: bool = True) -> Any:
        """A field with a value of its own in each object, or that `__init__` does not take."""
        return _Field(default_factory, init)

    def record(cls: type | None = None, *, eq: bool = True, slots: bool = False) -> Any:
        """Give a class `__init__`, `__repr__` and, with `eq`, `__eq__` over its annotated names and those of its bases.

        Parameters
        ----------
        slots : objects have these attributes only; the class is made anew.
        """
        return _made(cls, eq, slots) if cls is not None else lambda cls: _made(cls, eq, slots)


def _made(cls: type, eq: bool, slots: bool) -> type:
    own = {name: vars(cls).get(name, _NONE) for name in vars(cls).get("__annotations__", ())}
    known = {**getattr(cls, "__record_fields__", {}), **own}
    space = {k: x for k, x in vars(cls).items() if k not in own and k not in ("__dict__", "__weakref__")}
    space |= {"__record_fields__": known, "__init__": _init(known, hasattr(cls, "__post_init__"))}
    space["__match_args__"] = tuple(name for name, given in known.items() if _taken(given))
    space.setdefault("__repr__", _repr)
    if eq:
        space |= {"__eq__": _equal, "__hash__": None}
    if slots:
        return type(cls)(cls.__name__, cls.__bases__, {**space, "__slots__": (*own,), "__qualname__": cls.__qualname__})
    for name, value in space.items():
        if vars(cls).get(name, _NONE) is not value:
            setattr(cls, name, value)
    return cls


_NONE = object()


def _taken(given: Any) -> bool:
    return type(given) is not _Field or given.init


def _init(known: dict[str, Any], post: bool) -> Callable[..., None]:
    """The function that dataclasses write: an argument per field, of which some have defaults."""
    scope: dict[str, Any] = {"none": _NONE}
    parameters, lines = [], []
    for name, given in known.items():
        if not _taken(given):
            continue
        made = type(given) is _Field
        scope[f"of_{name}"] = given.default_factory if made else given
        parameters.append(name if given is _NONE else f"{name}={'none' if made else f'of_{name}'}")
        lines.append(f"self.{name} = " + (f"of_{name}() if {name} is none else {name}" if made else name))
    lines += ["self.__post_init__()"] * post or ["pass"]
    exec(f"def __init__(self, {', '.join(parameters)}):\n " + "\n ".join(lines), scope)
    init: Callable[..., None] = scope["__init__"]
    return init


def names(kind: Any) -> tuple[str, ...]:
    """The fields of a record or its class, in order."""
    return tuple(kind.__record_fields__)


def _repr(self: Any) -> str:
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names(self))})"


def _equal(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    values = attrgetter(*names(self))
    return self is other or values(self) == values(other)
