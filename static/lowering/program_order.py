"""What one kernel per node would take for temporaries, in program order: fused kernels are not to take more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from common.dim import hint
from static.lowering.arena import Arena, aligned
from static.lowering.columns import COLUMN_TILE, LANED
from static.lowering.items import Buffer, Item
from static.lowering.layout import lay_out
from static.lowering.memory import ColumnScratch

if TYPE_CHECKING:
    from static.lowering.program import Program


def in_program_order(program: Program) -> int:
    """Bytes for the temporaries of one kernel per node, in program order.

    Those that only write state come last there too, and what is written to a part of an array, into its memory, if
    nothing needs the old one afterwards.
    """
    work, alone = program.work, _of_kernels(program)
    given = {b.id for b, _ in work.outputs} | {value.id for _, value in work.writes}
    written, read = {value.id for _, value in work.writes}, {b.id for item in work.items for b in item.reads}
    late = [any(b.id in written and b.id not in read for b in item.results) for item in work.items]
    items = [item for when in (False, True) for item, last in zip(work.items, late, strict=True) if last is when]
    last = {b.id: item for item in items for b in item.reads}
    windows = ((item.out.id, item.window.buffer.id) for item in items if item.window is not None)
    places = {out: whole for out, whole in windows if out != whole}  # writes at indices have the whole as their window
    places |= {b.id: item.out.id for item in items if (b := item.copied) and last[b.id] is item and b.id not in given}
    spans: dict[int, list[int]] = {}
    for i, item in enumerate(items):
        for buffer in (*item.reads, *item.results):
            number = buffer.id
            while number in places:
                number = places[number]
            spans.setdefault(number, [i, i])[1] = i
    made = [b for b in map(work.buffers.__getitem__, spans) if b.maker is not None and b.storage.position is None]
    found = [(*spans[b.id], nbytes(b)) for b in made if b.id not in given]
    found += [(i, i, size) for i, item in enumerate(items) if (size := alone.get(item.id, 0) + _scratch(item))]
    return Arena([(first, last) for first, last, _ in found]).place([size for *_, size in found])[1]


def _of_kernels(program: Program) -> dict[int, int]:
    """Bytes of scratch memory, and of regions, of the items that are kernels of their own."""
    found: dict[int, int] = {}
    for temporary, size in zip(program.frame.temporaries, lay_out(program, None).nbytes, strict=True):
        item = program.steps[temporary.first].groups[0].items[0]
        if item.kind == "native" and temporary.name in ("scratch", "regions"):
            found[item.id] = max(found.get(item.id, 0), aligned(size))
    return found


def _scratch(item: Item) -> int:
    """Bytes of accumulators of a reduction of columns that is a kernel of its own."""
    if item.kind != "cols" or item.function not in LANED:
        return 0
    sizes = [hint(n) for n in item.dims]
    rows, columns = (math.prod(part) for part in (sizes[item.lead : item.split], sizes[item.split :]))
    return aligned(ColumnScratch(rows, columns, item.dtype.itemsize, COLUMN_TILE).nbytes(rows, columns))


def nbytes(buffer: Buffer) -> int:
    """Bytes of a buffer, up to where other memory may begin."""
    return aligned(math.prod(map(hint, buffer.shape)) * buffer.dtype.itemsize)


__all__ = ["in_program_order", "nbytes"]
