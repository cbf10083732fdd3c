"""Dispatch: one call, three readings.

``apply(op, operands, attrs)`` runs `op` on whatever its operands are: plain arrays meet the eager kernels,
tensors (eager or traced) are recorded for gradients, values of a trace append a node to its graph. What a class of
operands means by an op is its *interpreter*: a static method `__apply_op__`, or a function that stands in a higher room
and says `interprets`. Of several operands that of the highest `__op_priority__` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from common.core.interpretation import Interpreter
from common.core.plain_data import NotPlainError, identity


class Attrs(dict[str, Any]):
    """Attributes that are made once and then passed again: as part of a key they are themselves.

    Attributes
    ----------
    node_name : of nodes that have them, where one op stands for several functions of PyTorch; None for the op's own.
    """

    __slots__ = ("node_name",)
    __hash__ = object.__hash__  # type: ignore[assignment]
    node_name: str | None

    def __init__(self, *, node_name: str | None = None, **values: Any) -> None:
        super().__init__(values)
        self.node_name = node_name


NO_ATTRS = Attrs()


@lru_cache(maxsize=4096)
def known_attrs(node_name: str | None, **values: Any) -> Attrs:
    """Attributes by name and values, which are plain data: the same object every time."""
    return Attrs(node_name=node_name, **values)


_interned: dict[tuple[Any, ...], Attrs] = {}


def interned(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Attributes of equal plain data as one object, by which recipes are found.

    Others come back as they are: a size of one trace is equal to the same size of another trace, and yet another.
    """
    try:
        key = (*attrs, *[identity(x) for x in attrs.values()])
    except NotPlainError:
        return attrs
    found = _interned.get(key)
    if found is None:
        if len(_interned) >= 4096:
            _interned.clear()
        found = _interned[key] = Attrs(**attrs)
    return found


def called(y: Any, node_name: str, *operands: Any) -> Any:
    """`y`, a function's result, with its node shown under the name of the function; nothing if it is an operand."""
    node = getattr(y, "grad_fn", None)
    if node is not None and not any(y is x for x in operands):
        node.attrs = Attrs(node_name=node_name, **node.attrs) if node.attrs else known_attrs(node_name)
    return y


I = TypeVar("I", bound=Interpreter)

#: Interpreters of classes that have no `__apply_op__` of their own.
_interpreters: dict[type, Interpreter] = {}


def interprets(kind: type) -> Callable[[I], I]:
    """Decorator: the function is the interpreter of `kind`, which a lower room defines."""

    def register(interpreter: I) -> I:
        _interpreters[kind] = interpreter
        return interpreter

    return register


class _Kinds(dict[type, tuple[int, Any]]):
    """Per type of operand its priority and its interpreter."""

    def __missing__(self, kind: type) -> tuple[int, Any]:
        found: Any = None
        for cls in kind.__mro__:
            found = _interpreters.get(cls) or getattr(cls.__dict__.get("__apply_op__"), "__func__", None)
            if found is not None:
                break
        entry = self[kind] = (getattr(kind, "__op_priority__", 0), found)
        return entry


_kinds = _Kinds()


def apply(op: Any, operands: Sequence[Any], attrs: Mapping[str, Any] = NO_ATTRS) -> Any:
    """Run `op` by the engine of its operands; a tensor's engine goes before a value's, that before arrays'."""
    handler, priority = None, 0
    for operand in operands:
        rank, found = _kinds[type(operand)]
        if rank > 1:  # tensors of all engines are applied to alike
            return found(op, operands, attrs)
        if rank > priority:
            handler, priority = found, rank
    return (handler or _interpreters[np.ndarray])(op, operands, attrs)


def apply_at_home(op: Any, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """`apply` in the `static.Graph` to which an operand belongs, or by the class of one that takes tensors along.

    Raises
    ------
    EscapedTracerError : again, if there is neither.
    """
    for x in operands:
        if (home := getattr(x, "home", None)) is not None:
            with home:
                return apply(op, operands, attrs)
        if getattr(type(x), "__takes_tensors__", False):
            return _kinds[type(x)][1](op, operands, attrs)
    raise  # noqa: PLE0704  called where an exception is handled
