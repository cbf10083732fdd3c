"""Dispatch: one call, three readings.

``apply(op, operands, attrs)`` runs `op` on whatever its operands are: plain arrays meet the eager kernels,
tensors (eager or traced) are recorded for gradients, values of a trace append a node to its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from common.op import Op


class Attrs(dict[str, Any]):
    """Attributes that are made once and then passed again: as part of a key they are themselves."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]


NO_ATTRS = Attrs()


#: Per type of operand its priority and how it is applied to.
_kinds: dict[type, tuple[int, Any]] = {}


def apply(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any] = NO_ATTRS) -> Any:
    """Run `op` by the engine of its operands; a tensor's engine goes before a value's, that before arrays'."""
    handler, priority = None, 0
    for operand in operands:
        rank, found = _kinds.get(type(operand)) or _kind(type(operand))
        if rank > 1:  # tensors of all engines are applied to alike
            return found(op, operands, attrs)
        if rank > priority:
            handler, priority = found, rank
    return (handler or run)(op, operands, attrs)


def apply_at_home(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """`apply` in the `static.Graph` to which an operand belongs; raises again what says that there is none."""
    for x in operands:
        if (home := getattr(x, "home", None)) is not None:
            with home:
                return apply(op, operands, attrs)
    raise  # noqa: PLE0704  called where an exception is handled


def _kind(kind: type) -> tuple[int, Any]:
    entry = _kinds[kind] = (getattr(kind, "__op_priority__", 0), getattr(kind, "__apply_op__", None))
    return entry


def _load(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    from common import eager

    return eager.run(op, operands, attrs)


#: Runs ops on arrays; `common.eager` puts itself here.
run: Callable[..., Any] = _load
