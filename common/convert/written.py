"""Tensors that a branch or an iteration of converted code writes in place.

It works on copies of them, since it may not run. Afterwards the statement writes what became of a copy into the tensor
itself, so that all who hold the tensor see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from common.core.errors import TraceError
from common.tensor.base import TensorBase

Values = tuple[Any, ...]


class BlockRun(NamedTuple):
    """One run of a block.

    Attributes
    ----------
    out : values of what it sets, with a tensor itself where its copy would be.
    raw : the same with the copies.
    copies : by position, the copies of what it may write.
    """

    out: Values
    raw: Any
    copies: dict[int, TensorBase]


def run(block: Callable[..., Any], names: Sequence[str], given: Sequence[Any]) -> BlockRun:
    """Run a block on copies of the tensors that it writes by name."""
    places = [names.index(name) for name in _names(block)[0]]
    copies = {i: given[i].clone() for i in places if isinstance(given[i], TensorBase)}
    raw = block(*(copies.get(i, x) for i, x in enumerate(given)))
    return BlockRun(_themselves(raw, copies, given), raw, copies)


def require_alone(
    written: Iterable[str], blocks: Sequence[Callable[..., Any]], scope: dict[str, Any], where: str
) -> None:
    """Refuse to write to tensors that blocks also know by another name.

    Parameters
    ----------
    written : the names by which the blocks write to them.
    scope : the values of names before the statement.

    Raises
    ------
    TraceError : names both.
    """
    known = {name for block in blocks for names in _names(block) for name in names}
    for name in written:
        memory = _base(scope[name])
        for other in sorted(known - {name}):
            if _base(scope.get(other)) is memory:
                raise TraceError(
                    f"{where}: a tensor decides here, where {name!r} is written in place and {other!r} shows the same "
                    f"memory: write {name} = {name}.clone() before, or set {name} to a new tensor instead"
                )


def _names(block: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a block writes in place, and those that it reads."""
    names: tuple[tuple[str, ...], tuple[str, ...]] = getattr(block, "names", ((), ()))
    return names


def _base(x: Any) -> Any:
    """The tensor whose memory a tensor shows."""
    if not isinstance(x, TensorBase):
        return None
    base = getattr(x, "_base", None)
    return x if base is None else base


def _themselves(out: Any, copies: dict[int, TensorBase], given: Sequence[Any]) -> Any:
    if not copies or type(out) is not tuple:
        return out
    back = {id(copy): given[i] for i, copy in copies.items()}
    return tuple([back.get(id(x), x) for x in out])
