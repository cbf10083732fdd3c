"""Groups: the items that become one kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from static.lowering.ir.items import ArrayBuffer, Item, Sizes, sizes_key


@dataclass(eq=False, slots=True)
class Group:
    """Items that run in one kernel, over one space.

    Attributes
    ----------
    items : in program order.
    dims, name : sizes of the space, literal ones stripped, and what identifies them.
    split : number of leading dimensions that are rows, where that is decided.
    breaks : union of the accesses' breaks.
    why_not : refused merges: (item here, item elsewhere, reason).
    runs : how often a call of the program runs it, as far as is known: the iterations of a loop around it.
    """

    items: list[Item]
    dims: Sizes
    name: tuple[Any, ...]
    split: int | None
    breaks: int
    why_not: list[tuple[Item, Item, str]] = field(default_factory=list)
    runs: int = 1

    @property
    def id(self) -> int:
        """Position of its first item."""
        return self.items[0].id

    @property
    def native(self) -> bool:
        """Whether it is one kernel op."""
        return self.items[0].kind == "native"

    @property
    def lead(self) -> int:
        """Number of leading dimensions whose columns are reduced one batch after the other."""
        return max((item.lead for item in self.items), default=0)

    @property
    def reads(self) -> list[ArrayBuffer]:
        """Buffers made elsewhere that it reads, each once."""
        own = {item.id for item in self.items}
        return list(
            dict.fromkeys(b for item in self.items for b in item.reads if b.maker is None or b.maker.id not in own)
        )

    @property
    def read_again(self) -> set[int]:
        """Ids of the arrays of which it makes indices that it checks: to tell a wrong one it reads them again."""
        waiting = [item for item in self.items if item.calls and item.gathers]
        own = {item.id for item in self.items} if waiting else set()
        seen, found = set[int](), set[int]()
        while waiting:
            item = waiting.pop()
            for access in item.accesses[1:] if item.gathers and item.id not in seen else item.accesses:
                found.add(access.buffer.id)
                maker = access.buffer.maker
                if maker is not None and maker.id in own and maker.id not in seen:
                    seen.add(maker.id)
                    waiting.append(maker)
        return found

    @property
    def lines(self) -> list[str]:
        """The user's lines it stems from."""
        return sorted({f"{item.node.source[0]}:{item.node.source[1]}" for item in self.items})


def single(item: Item) -> Group:
    """The group of one item."""
    breaks = 0
    for access in item.accesses if item.window is None else [*item.accesses, item.window]:
        breaks |= access.breaks
    return Group([item], item.dims, sizes_key(item.dims), item.split, breaks)
