"""States of names in converted code: unbound, data, or known by shape only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.control.body import leaf, tensor_of
from common.control.shape_trace import Abstract, AbstractTrace
from common.control.structures import tensors
from common.convert.written import BlockRun, Values, run
from common.core import mode
from common.core.errors import TraceError
from common.core.sizes import Dim
from common.core.source_lines import locate, user_frame
from common.core.tree import flatten, unflatten
from common.ops.create.creation import full_, made
from common.random.draw_counts import uncounted
from common.tensor.base import TensorBase, spec_of


class _Unset:
    """A mark for a name that has no value."""

    def __repr__(self) -> str:
        return "a name without a value"


UNSET: Any = _Unset()
INTERNAL = "tw__"
"""How names begin that a rewritten function has for itself: where they have no value they get zeros."""


class Lost:
    """A mark for a name that got a value in a branch that may not be taken, or in a loop that may not run."""

    def __init__(self, name: str, where: str) -> None:
        self.name, self.where = name, where

    def __repr__(self) -> str:
        return f"{self.name!r}, which gets its value at {self.where} on some paths only: give it one before"

    def __bool__(self) -> bool:
        raise TraceError(repr(self))

    def __getattr__(self, name: str) -> Any:
        raise TraceError(repr(self))


def values(scope: dict[str, Any], names: Sequence[str]) -> Values:
    """The values of names, `UNSET` where there is none."""
    return tuple(scope.get(name, UNSET) for name in names)


def decides(x: Any) -> bool:
    """Whether a test is a tensor whose elements decide; numbers that a trace knows are Python's."""
    if not isinstance(x, TensorBase):
        return False
    known = getattr(x, "known_number", None)
    return known is None or known(x) is None


class _WritesKnown(AbstractTrace):
    """Only shapes are known, and what is written."""

    def __init__(self) -> None:
        super().__init__("converted code")
        self.written: set[int] = set()
        self._views: dict[int, tuple[Any, Any]] = {}

    def note_views(self, op: Any, attrs: Any, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Views, and parts as of a split, show the first operand; where they may, they are taken to."""
        if op.kind == "view" or op.nout > 1:
            self._views |= {id(view): (view, self._base(operands[0])) for view in results}

    def set_elements(self, x: TensorBase, new: Any) -> None:
        """A write to a tensor is one to its base."""
        self.written.add(id(self._base(x)))

    def _base(self, x: Any) -> Any:
        return self._views[id(x)][1] if id(x) in self._views else x


class Learned(NamedTuple):
    """A run of a block of which shapes are known only.

    Attributes
    ----------
    given, ran : its arguments and what it did.
    writes : positions of the tensors that it writes in place.
    """

    given: Values
    ran: BlockRun
    writes: list[int]


def learned(block: Callable[..., Any], names: Sequence[str], state: Values, known: Collection[int] = ()) -> Learned:
    """What a block does with the values of names; nothing is recorded.

    Parameters
    ----------
    known : positions in the state of what will be tensors, also where it is numbers now.
    """
    trace = _WritesKnown()
    with mode.no_grad(), mode.activate_trace(trace), uncounted():
        given = tuple(_abstract(x) if i in known and x is not UNSET else x for i, x in enumerate(state))
        ran = run(block, names, given)
    return Learned(given, ran, [i for i, copy in ran.copies.items() if id(copy) in trace.written])


def _abstract(tree: Any) -> Any:
    leaves, structure = tensors(tree, "a state")
    return unflatten(structure, [leaf(Abstract(spec_of(x)), False) for x in leaves])


def _leaf_is_data(x: Any) -> bool:
    return isinstance(x, (TensorBase, np.ndarray, np.generic, bool, int, float, Dim)) or x is None


def is_data(x: Any) -> bool:
    """Whether all leaves of a tree are tensors and numbers."""
    return x is not UNSET and all(map(_leaf_is_data, flatten(x)[0]))


def same_numbers(a: Any, b: Any) -> bool:
    """Whether two values are the same number of Python, which then need not be carried."""
    numbers = (bool, int, float)
    return type(a) is type(b) and isinstance(a, numbers) and repr(a) == repr(b)


def full(shape: tuple[Any, ...], dtype: Any) -> Any:
    """Zeros."""
    return tensor_of(made(full_, shape=shape, value=0, dtype=dtype))


def zeros(like: Any) -> Any:
    """A tree of zeros like another tree, of which shapes and dtypes are known."""
    leaves, structure = flatten(like)
    return unflatten(structure, [full(tuple(x.shape), x.dtype) if hasattr(x, "shape") else type(x)(0) for x in leaves])


def where_now() -> str:
    """File and line of the statement that is running."""
    file, line, _ = locate(*user_frame(2))
    return f"{file}:{line}"


def not_data(where: str, name: str, x: Any) -> TraceError:
    """The error for a value that neither a branch nor a loop can pass on."""
    what = "no value" if x is UNSET else repr(x) if isinstance(x, Lost) else f"a {type(x).__name__}"
    return TraceError(
        f"{where}: a tensor decides here, so {name!r} must be made of tensors and numbers on every path, but on one "
        f"it is {what}"
    )
