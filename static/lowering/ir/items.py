"""The objects of lowering: buffers, accesses to them, and items of work.

A *buffer* is one C-contiguous array. Views have none: they are folded into the *accesses* of their consumers,
which say where element ``(i0, i1, ...)`` of an iteration space lies in a buffer. An *item* is one elementwise
node, reduction or kernel call. Sizes are ints or Dims and are only ever compared by `common.core.sizes.same`, which
adds no guard. Literal sizes of 1 do not count as dimensions here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from common.core.numerics import LANES
from common.core.shapes import contiguous_strides
from common.core.sizes import hint, key, same
from common.core.spec import numel
from static.graph import Node

Sizes = tuple[Any, ...]

ONE_OF_ROW = "one of row"
"""The function of a map whose second operand is an index per row: there is its first operand, elsewhere 0."""

REPEATED, MANY = 16, 4096
"""Rows that read the same elements, and elements of a loop over them, from which on a copy of these pays that lies
side by side.
"""


def is_literal(value: Any, number: int) -> bool:
    """Whether a size is the int `number` itself."""
    return type(value) is int and value == number


def strip_ones(shape: Sizes) -> Sizes:
    """The sizes that are not the literal 1."""
    return tuple(n for n in shape if not is_literal(n, 1))


def size_key(value: Any) -> Any:
    """A hashable name of a size: an int if it is known; equal names are equal sizes in every call."""
    if type(value) is int:
        return value
    name = key(value)
    if not any(atoms for atoms, _ in name):
        return name[0][1] if name else 0
    return name


def sizes_key(shape: Sizes) -> tuple[Any, ...]:
    """A hashable name of a tuple of sizes."""
    return tuple(size_key(n) for n in shape)


@dataclass(eq=False, slots=True)
class ArrayBuffer:
    """One C-contiguous array of the program.

    Attributes
    ----------
    id : position in the list of buffers.
    dtype, shape : of the array; sizes may be Dims.
    maker : the item that computes it; None for inputs and constants.
    position : of an input among the arguments, else None.
    constant : what to fill a constant with, else None.
    into : what it is a part of, or is written over: its memory lies there. None if it has memory of its own.
    """

    id: int
    dtype: np.dtype[Any]
    shape: Sizes
    maker: Item | None = None
    position: int | None = None
    constant: Any = None
    into: ArrayBuffer | None = None

    @property
    def storage(self) -> ArrayBuffer:
        """The buffer whose memory it uses, maybe its own."""
        owner = self
        while owner.into is not None:
            owner = owner.into
        return owner


@dataclass(eq=False, slots=True)
class Const:
    """A number as an operand: a literal, or a size that becomes an argument of the kernel.

    Attributes
    ----------
    value : a Python number or a Dim.
    dtype : in which the number is held, None for a number written in the program.
    """

    value: Any
    dtype: np.dtype[Any] | None = None


class Bounds(NamedTuple):
    """The part of a dimension of a space, from `start` to `stop`, in which an operand has elements."""

    dim: int
    start: Any
    stop: Any


class Jump(NamedTuple):
    """A dimension of a space from `start` of which on the elements of an operand lie `distance` further."""

    dim: int
    start: Any
    distance: Any


@dataclass(eq=False, slots=True)
class Access:
    """Where the elements of an operand lie.

    Attributes
    ----------
    offset, strides : in elements, for the dimensions of the item's space.
    breaks : bit i is set where dimensions i and i + 1 cannot be run through as one.
    prefix : k if this is element ``[i0..ik-1]`` of a contiguous buffer of the first k sizes, else None.
    within : of an operand that lies among equal numbers, where it has elements.
    outside : the number elsewhere.
    jump : of an operand in two pieces of one buffer, where the second one is.
    """

    buffer: ArrayBuffer
    offset: Any
    strides: Sizes
    breaks: int
    prefix: int | None
    within: tuple[Bounds, ...] = ()
    outside: Any = 0
    jump: Jump | None = None

    @property
    def parted(self) -> list[Bounds | Jump]:
        """Its conditions, of a dimension each."""
        return [*self.within, *([] if self.jump is None else [self.jump])]

    @property
    def in_pieces(self) -> bool:
        """Whether it has conditions."""
        return bool(self.within) or self.jump is not None


@dataclass(eq=False, slots=True)
class Operand:
    """An operand in the dtype in which its consumer computes."""

    source: Access | Const
    dtype: np.dtype[Any]


class AtIndex(NamedTuple):
    """Rows at an index.

    Attributes
    ----------
    extent, step : how many rows there are, and the stride from one to the next.
    wrap : whether negative indices count from the end.
    join : of what is put, the function that joins it with what is there; "" replaces that.
    further : of an element at several indices, extents and strides of the dimensions behind the first one.
    """

    extent: Any
    step: Any
    wrap: bool
    join: str = ""
    further: tuple[tuple[Any, Any], ...] = ()


@dataclass(eq=False, slots=True)
class Item:
    """One unit of work.

    Attributes
    ----------
    kind : "map", "rows" (reduction of trailing dimensions), "cols" (of others), "flat" (sums of
        blocks of all elements), "lookup" (one element per row, at an index that is data), "native".
    dims : the space it iterates over, literal ones stripped.
    split : number of leading dimensions that are rows, where the item asks for it.
    lead : of "cols", the number of leading dimensions that stay: the columns of each of these batches are reduced.
    function : map: name of the scalar function, "" for a copy; reduction: "sum", "prod", "max" or "min".
    dtype : in which it computes.
    inputs, results : buffers of a native item, in the order of the op.
    calls : the `NativeCall` sequence of a native item.
    apart : why it shares no kernel, where that is not obvious.
    at : of a map that takes from, or puts to, rows at indices, its operands behind the first, which is what it takes at
        index 0, or what it puts. It checks them itself if it has calls. Of one element per row, where the last of
        several indices is an operand, the others being those of the rows.
    copied, copies : of a native item an array of the size of its result, and which of its calls copy from there what
        lies at the same place: without them it may run in the memory of that array.
    after : results of acts, and of what prepares it, that come before it.
    window : of a map whose result is part of a larger buffer, where that lies in it; at index 0, if it puts.
    accesses, reads : its operands in buffers, and all buffers that it reads.
    """

    id: int
    node: Node
    kind: str
    dims: Sizes
    function: str
    dtype: np.dtype[Any]
    operands: list[Operand]
    results: list[ArrayBuffer]
    split: int | None = None
    lead: int = 0
    inputs: list[ArrayBuffer] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    apart: str = ""
    at: AtIndex | None = None
    copied: ArrayBuffer | None = None
    copies: frozenset[int] = frozenset()
    after: list[ArrayBuffer] = field(default_factory=list)
    window: Access | None = None
    accesses: list[Access] = field(init=False)
    reads: list[ArrayBuffer] = field(init=False)

    def __post_init__(self) -> None:
        self.collect()

    def collect(self) -> None:
        """Gather accesses and reads again after operands have changed."""
        self.accesses = [o.source for o in self.operands if isinstance(o.source, Access)]
        self.reads = [*(self.inputs or [access.buffer for access in self.accesses]), *self.after]

    @property
    def out(self) -> ArrayBuffer:
        """The buffer of a map or reduction."""
        return self.results[0]

    @property
    def puts(self) -> bool:
        """Whether it writes to places that are data: its result is complete only at the end."""
        return self.function == "put"

    @property
    def gathers(self) -> bool:
        """Whether it takes elements from places that do not follow each other."""
        index = self.operands[1].source if self.function == "take" else None
        return isinstance(index, Access) and not is_literal(index.strides[-1], 0)

    @property
    def prepares(self) -> bool:
        """Whether it only checks indices, or begins what another item completes."""
        return self.kind == "native" and self.function in ("check", "begin")

    @property
    def level(self) -> int:
        """Number of leading dimensions of the space over which its result varies."""
        return self.split or 0 if self.kind in ("rows", "lookup") else len(self.dims)

    @property
    def name(self) -> str:
        """The item's name for people: that of the op, or "copy" for a move of an input or a loop's value."""
        moves = self.kind == "map" and self.function == ""
        return "copy" if moves and (self.node.op is None or self.node.regions) else self.node.name

    @property
    def can_fail(self) -> bool:
        """Whether the item may end the program with a status."""
        return self.own or any(call.errors for call in self.calls)

    @property
    def own(self) -> bool:
        """Whether it is no kernel call, but control flow or an act."""
        return self.kind == "native" and self.node.op is not None and self.node.op.kind in ("control", "act")


@dataclass(slots=True)
class Layout:
    """A value that is not computed, as a place in a buffer (or a number): what views make."""

    root: ArrayBuffer | Const
    offset: Any
    shape: Sizes
    strides: Sizes
    dense: bool

    def access(self, dims: Sizes, strides: Sizes) -> Access | Const:
        """The operand that reads this value over a space."""
        if isinstance(self.root, Const):
            return self.root
        return make_access(self.root, self.offset, dims, strides)


def is_read_in_steps(layout: Layout, shape: Sizes) -> bool:
    """Whether a loop over `shape` reads the same elements, which do not lie side by side, in many rows."""
    if not layout.shape or isinstance(layout.root, Const) or hint(layout.strides[-1]) in (0, 1):
        return False
    own, rows = hint(numel(layout.shape)), hint(numel(shape))
    return hint(shape[-1]) >= LANES // 2 and same(layout.shape[-1], shape[-1]) and rows >= max(REPEATED * own, MANY)


def make_access(buffer: ArrayBuffer, offset: Any, dims: Sizes, strides: Sizes) -> Access:
    """An access with its derived facts."""
    breaks = 0
    read = not any(is_literal(n, 0) for n in dims)  # where nothing is read, strides are 0 and mean nothing
    for i in range(len(dims) - 1 if read else 0):
        outer, inner = strides[i], strides[i + 1]
        zero = is_literal(outer, 0), is_literal(inner, 0)
        if zero != (True, True) and (any(zero) or not same(outer, inner * dims[i + 1])):
            breaks |= 1 << i
    return Access(buffer, offset, strides, breaks, _prefix(offset, dims, strides))


def breaks_within(breaks: int, first: int, last: int) -> bool:
    """Whether dimensions first..last - 1 cannot be run through as one."""
    return bool(breaks & ((1 << max(last - 1, 0)) - 1) & -(1 << first))


def _prefix(offset: Any, dims: Sizes, strides: Sizes) -> int | None:
    count = len(dims)
    while count and is_literal(strides[count - 1], 0):
        count -= 1
    if not is_literal(offset, 0):
        return None
    step: Any = 1
    for i in reversed(range(count)):
        if not same(strides[i], step):
            return None
        step = step * dims[i]
    return count


def dense_layout(buffer: ArrayBuffer) -> Layout:
    """The whole buffer."""
    return Layout(buffer, 0, buffer.shape, contiguous_strides(buffer.shape), True)
