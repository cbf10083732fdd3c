"""`typing.NamedTuple`, whose classes are made in a sixth of the time: a first call makes a hundred of them."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

_kept = [namedtuple("_Places", [f"x{i}" for i in range(32)])]
_places = [vars(_kept[0])[f"x{i}"] for i in range(32)]
"""Properties: the first, the second, ... element. Their class is kept: a collection clears one without a name."""


class _Named(tuple[Any, ...]):
    """What all classes have, as those of `collections.namedtuple`."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    @classmethod
    def _make(cls, values: Any) -> Any:
        made: Any = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(made)}")
        return made

    def _replace(self, /, **changes: Any) -> Any:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"{type(self).__name__} has no fields {', '.join(changes)}")
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={x!r}' for name, x in self._asdict().items())})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


@cache
def _new_of(count: int) -> CodeType:
    """The code of ``__new__`` for so many fields, whose names are still to be given."""
    names = "".join(f"x{i}, " for i in range(count))
    made: FunctionType = eval(f"lambda cls, {names}: new(cls, ({names}))")
    return made.__code__


class _Making(type):
    def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
        fields = tuple(space.get("__annotations__", ()))
        defaults = {field: space.pop(field) for field in fields if field in space}
        if fields[len(fields) - len(defaults) :] != tuple(defaults):
            raise TypeError(f"{name}: a field without a default follows one that has one")
        code = _new_of(len(fields)).replace(co_varnames=("cls", *fields), co_name="__new__", co_qualname="__new__")
        new = FunctionType(code, {"new": tuple.__new__}, "__new__", tuple(defaults.values()))
        new.__annotations__ = space.get("__annotations__", {})
        space |= zip(fields, _places[: len(fields)], strict=True)
        space |= {"__slots__": (), "_fields": fields, "__match_args__": fields, "_field_defaults": defaults}
        return type(name, (_Named,), {**space, "__new__": new})


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    _root = type.__new__(_Making, "NamedTuple", (), {})

    class _NamedTuples:
        def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
            return (_root,)

    NamedTuple = _NamedTuples()
