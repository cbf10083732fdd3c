"""Column reductions of a kernel whose rows are shared among threads: by lanes.

Row r of a block of 1024 belongs to lane r & 15 (see `common.core.numerics`), and lanes meet only when a block ends. So
each thread takes whole blocks, or some lanes of a block, into accumulators of their own, and a second kernel folds
lanes and blocks as the kernel of one thread does: the same additions in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from common.compiler.loop_ir import Call, Constant, If, Kernel, Let, Loop, Place, Run, Store
from common.core.numerics import BLOCK, LANES
from common.kernels.arrays.reducers import REDUCERS
from static.lowering.codegen.column_reductions import COLUMN_TILE, ColumnReductions
from static.lowering.ir.items import Item
from static.lowering.ir.kernel_memory import ColumnScratch, Scratch

_SHIFT = BLOCK.bit_length() - 1


class LaneFold(NamedTuple):
    """A kernel that runs after another one.

    Attributes
    ----------
    things, ints : what its slots and arguments are.
    cut : the variable of its outermost loop, if that can be cut.
    """

    kernel: Kernel
    things: list[Any]
    ints: list[Any]
    cut: str = ""


class LaneColumns(ColumnReductions):
    """Accumulators per block and lane, of which those from `low` to `high`, the last two arguments, are taken in."""

    low, high = "low", "high"

    @property
    def first(self) -> str:
        """Where the accumulators of an extreme begin: they are those of a lane, too."""
        return "lane"

    def scratch(self, item: Item) -> Any:
        """Memory for one row of accumulators per block and lane."""
        blocks = (self.nest.rows[-1] + BLOCK - 1) // BLOCK
        return self.nest.scratch(item.dtype, blocks * LANES * self.nest.inner)

    def start(self) -> list[Any]:
        """Nothing: each block begins with its own accumulators."""
        return []

    def finish(self) -> list[Any]:
        """Nothing: `fold` does it."""
        return []

    def loop(self, body: list[Any]) -> list[Any]:
        """The loop over blocks, in them over the rows of the lanes."""
        rows, width = self.nest.size(self.nest.rows[-1]), self.width
        start = []
        for item in self.items:
            value = Constant(REDUCERS[item.function].first(item.dtype), item.dtype)
            start.append(Loop("i", width, [Store(Place(self.accumulators[item.id], "lane", "i"), value)]))
        inside = [
            Let("g0", f"block * {BLOCK}"),
            Let("g1", f"min(g0 + {BLOCK}, {rows})"),
            Let("first", f"block * {LANES}"),
            Let("l0", f"0 - min(first - {self.low}, 0)"),
            Let("l1", f"min({self.high} - first, {LANES})"),
            Let("l2", "min(l1, g1 - g0)"),
            Loop("l", "l2", [Let("lane", f"(first + l) * {width}"), *start], "l0"),
            Loop("g", "g1", [
                Let("r_low", "g + l0"),
                Let("r_high", "min(g + l1, g1)"),
                Loop(self.row_name, "r_high",
                     [Let("lane", f"(first + ({self.row_name} & {LANES - 1})) * {width}"), *body], "r_low"),
            ], "g0", str(LANES)),
        ]  # fmt: skip
        stop = Let("blocks", f"({self.high} + {LANES - 1}) >> {LANES.bit_length() - 1}")
        return [stop, Loop("block", "blocks", inside, f"{self.low} >> {LANES.bit_length() - 1}")]


def fold(item: Item, lanes: Any, rows: Any, columns: Any) -> LaneFold:
    """The kernel that makes a result of the lanes of all blocks: a 64th of the elements, or 16 rows."""
    begin: list[Any] = [Let("c1", f"min(c0 + {COLUMN_TILE}, n0)"), Let("width", "c1 - c0")]
    last = Let("k2", f"min({LANES}, n1 - k0)")
    source = Let("source", f"((k0 >> {_SHIFT}) * {LANES} + l) * n0 + c0")
    reducer = REDUCERS[item.function]
    if name := reducer.columns:
        acc = ColumnScratch(rows, columns, item.dtype.itemsize, COLUMN_TILE)
        carry = If("k0 > 0", [Run(Call(f"carry_{name}", ("b1", "0", "width", f"(k0 >> {_SHIFT}) - 1")))])
        copy = Loop("i", "width", [Store(Place("b1", "target", "i"), Place("b0", "source", "i"))])
        begin.append(Run(Call(f"start_{name}", ("b1", "0", "width", "n1"))))
        inside = [carry, last, Loop("l", "k2", [source, Let("target", "l * width"), copy])]
        end: Any = Run(Call(f"finish_{name}", ("b1", "0", "width", "n1", "b2", "c0")))
        memory: Any = acc
    else:
        memory = COLUMN_TILE * item.dtype.itemsize
        begin.append(
            Loop(
                "i",
                "width",
                [Store(Place("b1", "", "i"), Constant(REDUCERS[item.function].first(item.dtype), item.dtype))],
            )
        )
        value = Call(reducer.join, (Place("b1", "", "i"), Place("b0", "source", "i")))
        inside = [last, Loop("l", "k2", [source, Loop("i", "width", [Store(Place("b1", "", "i"), value)])])]
        result: Any = Place("b1", "", "i")
        if item.dtype != item.out.dtype:
            result = Call(f"to_{item.out.dtype.name}", (result,))
        end = Loop("i", "width", [Store(Place("b2", "c0", "i"), result)])
    body = [*begin, Loop("k0", "n1", inside, step=str(BLOCK)), end]
    kernel = Kernel([item.dtype, item.dtype, item.out.dtype], 2, [Loop("c0", "n0", body, step=str(COLUMN_TILE))])
    return LaneFold(kernel, [lanes, Scratch(item.dtype, memory), item.out], [columns, rows])
