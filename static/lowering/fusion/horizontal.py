"""Equal kernels that do not depend on each other as one: a pass over all parameters of an optimiser, for example.

Such kernels differ in addresses and sizes only, so one kernel can run over a table of them. What that saves is not the
calls, which cost 10 ns each, but what a kernel computes before its loop: Adam's corrections of a new average are two
powers per parameter, 70 ns one by one. Here all of them are computed side by side, in the lanes of one loop::

    for i in range(padded):  # numbers that the kernels start from, gathered
        s0[i] = b0[0]
    for i in range(padded):  # what they compute before their loops: contiguous, so it is vectorised
        s1[i] = pow(..., s0[i])
    for i in range(count):   # their stores and loops
        ...

The operations on each element stay what they were, and so do the bits. The text of the kernel does not depend on how
many there are. Kernels without costly operations before the loop gain nothing and stay apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from common.compiler.literals import dtype_name
from common.core.op import REGISTRY
from static.lowering.codegen.build import Built
from static.lowering.ir.items import ArrayBuffer
from static.lowering.ir.kernel_memory import Scratch
from static.lowering.ir.loop_ir import Call, Kernel, Let, Loop, Place, Store

WIDTH = 8
"""The middle loop runs over a multiple of this many kernels, so that it has no remainder: the last ones again."""


@dataclass(slots=True)
class Stack:
    """One kernel for several equal ones, and what its slots and arguments are."""

    kernel: Kernel
    things: list[ArrayBuffer | Scratch]
    ints: list[Any]


def runs(built: Sequence[Built | None]) -> Iterator[int]:
    """Lengths of the runs of neighbours that can become one kernel each; None stands for what never can."""
    length, text, written, touched = 0, "", set[int](), set[int]()
    for one in built:
        source = one.kernel.source("k") if one is not None and _is_worthwhile(one) else ""
        things = [] if one is None else [id(thing) for thing in one.nest.bound]
        stores = {things[slot] for slot in _written(one.kernel.body)} if source and one is not None else set[int]()
        apart = written.isdisjoint(things) and stores.isdisjoint(touched)
        if length and not (source and source == text and apart):
            yield length
            length, written, touched = 0, set(), set()
        length, text = length + 1, source
        written |= stores
        touched |= set(things)
    if length:
        yield length


def stack(parts: Sequence[Built]) -> Stack:
    """One kernel that does what equal ones do, all of which `runs` has found to be independent."""
    kernel, head = parts[0].kernel, parts[0].kernel.body[: parts[0].head]
    loads = {s.name: s for s in head if isinstance(s, Let) and isinstance(s.value, Place)}
    calls = [s for s in head if isinstance(s, Let) and isinstance(s.value, Call)]
    rest = [*(s for s in head if isinstance(s, Store)), *kernel.body[parts[0].head :]]
    inside, outside = _names(calls), _names(rest)
    gathered = [s for s in loads.values() if s.name in inside]
    kept = [s for s in calls if s.name in outside]
    later = [s for s in loads.values() if s.name in outside]

    slots = {s.name: f"s{k}" for k, s in enumerate([*gathered, *kept])}
    dtypes = [kernel.buffers[int(s.value.buffer[1:])] for s in gathered] + [s.dtype for s in kept]
    count = len(parts)
    scratch = [Scratch(d, (count + WIDTH - 1) // WIDTH * WIDTH * d.itemsize) for d in dtypes if d is not None]
    own = _Own(kernel, len(scratch))
    body = [
        Let("count", "args[0]"),
        Let("padded", f"(count + {WIDTH - 1}) & -{WIDTH}"),
        *(Let(f"s{k}", f"buffer(bufs, {k}, {dtype_name(s.dtype)})") for k, s in enumerate(scratch)),
        Loop("i", "padded", [*own.names(gathered, "min(i, count - 1)"), *(_save(s, slots, s.value) for s in gathered)]),
        Loop("i", "padded", [*own.names(calls, "min(i, count - 1)"), *(_load(s, slots) for s in gathered), *calls,
                             *(_save(s, slots, s.name) for s in kept)]),
        Loop("i", "count", [*own.names([*later, *rest], "i"), *later, *(_load(s, slots) for s in kept), *rest]),
    ]  # fmt: skip
    ints = [count, *(n for part in parts for n in part.nest.ints)]
    return Stack(Kernel([], 0, body), [*scratch, *(x for part in parts for x in part.nest.bound)], ints)


class _Own:
    """Where the addresses and arguments of kernel i lie in the tables of all."""

    def __init__(self, kernel: Kernel, first: int) -> None:
        self.kernel, self.first = kernel, first

    def names(self, statements: Sequence[Any], i: str) -> list[Let]:
        """The buffers and arguments of kernel i that statements use."""
        used = _names(statements)
        buffers, ints = self.kernel.buffers, self.kernel.arguments
        # A slot is an alias scope: the slots of all kernels follow those of scratch.
        lets = [
            Let(f"b{k}", f"buffer(own, {self.first + k}, {dtype_name(d)})")
            for k, d in enumerate(buffers)
            if f"b{k}" in used
        ]
        if lets:
            lets.insert(0, Let("own", f"skip(bufs, {i} * {len(buffers)})"))
        return [*lets, *(Let(f"n{k}", f"args[{i} * {ints} + {k + 1}]") for k in range(ints) if f"n{k}" in used)]


def _save(let: Let, slots: dict[str, str], value: Any) -> Store:
    return Store(Place(slots[let.name], "", "i"), value)


def _load(let: Let, slots: dict[str, str]) -> Let:
    return Let(let.name, Place(slots[let.name], "", "i"))


def _names(statements: Sequence[Any]) -> set[str]:
    return set(re.findall(r"\w+", "\n".join(line for s in statements for line in s.lines())))


def _is_worthwhile(built: Built) -> bool:
    """Whether a kernel that only loads, computes and stores begins with something costly, of numbers alone."""
    head = built.kernel.body[: built.head]
    calls = [s for s in head if isinstance(s, Let) and isinstance(s.value, Call)]
    if not any((op := REGISTRY.get(s.value.function)) is not None and op.costly for s in calls):
        return False
    known = all(isinstance(s, Store) or isinstance(s.value, Place) or s.dtype is not None for s in head)
    simple = all(isinstance(s, (Let, Store, Loop)) for s in _all(built.kernel.body))
    return known and simple and not any(isinstance(thing, Scratch) for thing in built.nest.bound)


def _all(statements: Sequence[Any]) -> Iterator[Any]:
    for s in statements:
        yield s
        if isinstance(s, Loop):
            yield from _all(s.body)


def _written(statements: Sequence[Any]) -> set[int]:
    return {int(s.place.buffer[1:]) for s in _all(statements) if isinstance(s, Store)}


__all__ = ["Stack", "runs", "stack"]
