"""Values and modules that are made when first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """A property whose value is kept in the object's dictionary, where it may also be set or deleted.

    As `functools.cached_property`, but without the lock that Python 3.11 has in it: one for all objects of a class,
    which two threads may take in another order than locks of ours, and which a forked process could not take again.
    Threads that ask at once may work the value out twice.

    Parameters
    ----------
    function : of the object.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value


class Late(Mapping[str, Any]):
    """Objects by name, of which each is loaded with its module when it is first asked for.

    Parameters
    ----------
    homes : module -> the names, separated by spaces, under which it has the objects; ``name=attribute`` where its own
        name is another.
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._places: dict[str, tuple[str, str]] = {}
        for module, words in homes.items():
            for word in words.split():
                name, _, attribute = word.partition("=")
                self._places[name] = module, attribute or name

    def only(self, names: Iterable[str]) -> Late:
        """Some of them."""
        chosen = Late({})
        chosen._places = {name: self._places[name] for name in names}
        return chosen

    def loaded(self) -> dict[str, Any]:
        """Those whose modules are loaded by now."""
        return {
            name: vars(sys.modules[module])[attribute]
            for name, (module, attribute) in self._places.items()
            if module in sys.modules and attribute in vars(sys.modules[module])
        }

    def __getitem__(self, name: str) -> Any:
        module, attribute = self._places[name]
        return getattr(import_module(module), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
