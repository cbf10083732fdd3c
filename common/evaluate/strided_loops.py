"""Loops over large operands that are read where they lie: transposed, in rows at a distance, repeated, in any order.

The result is in order. Its dimensions are merged where all operands walk them in one stride; the last one is that of
the columns, and another one that of the rows. Rows that lie side by side, with their columns far apart, are turned some
at a time into memory that stays in the cache, as a copy in order would turn all of them. There they follow each other:
where all other operands and the result lie in order, too, all rows of a tile are one (n4 is 1)::

    for m0 in range(0, n0, n3):
        m1 = min(m0 + n3, n0)
        more = n4 * (m1 - m0 - 1)
        for c0 in range(0, n1, n2):
            w = min(n2, n1 - c0)
            turn_rows(b2, 0, b0, p0 + m0 + c0 * e0, w, e0, m1 - m0, w)
            for r in range(m0, m1 - more):
                s0 = (r - m0) * w
                for c in range(w + w * more):
                    x0 = b2[s0 + c]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from common.compiler.literals import dtype_name
from common.compiler.loop_ir import STEP, Let, Loop, Place, Store
from common.core.shapes import contiguous_strides
from common.evaluate import kernels
from common.evaluate.layouts import FEW, WORTH, all_dense
from common.kernels.arrays.copying import LONG, merge_dims

_LIMIT = 8192
_WHOLE, _COLUMNS, _TILE = 256, 64, 4096
"""Columns up to which a tile of turned rows has all of them; how many it has otherwise, and how many elements."""
_TILED = "tg"
"""Operands of which parts are moved to a tile."""
_SHORT, _VECTORS = 128, 64
"""Columns below which a costly function waits longer for its last vectors than rows take to be gathered, unless they
fill all that it computes side by side.
"""
_MOST = 48
"""Ints of a kernel at most: the builtin takes 64 arguments."""


class Reading(NamedTuple):
    """How a loop reads its operands.

    Attributes
    ----------
    letters : per operand "f" (columns follow each other), "s" (one element per row), "t" (rows are turned), "g" (rows
        are gathered, as a loop over all rows of a tile takes less time than one over each).
    copied : per operand whether it is copied in order first.
    outer : how many dimensions lie around those of rows and columns.
    ints : the arguments of the kernel.
    """

    letters: str
    copied: tuple[bool, ...]
    outer: int
    ints: tuple[int, ...]

    def run(
        self, loop: Callable[..., Any], dtypes: Sequence[np.dtype], shape: tuple[int, ...], out_dtype: np.dtype
    ) -> Callable[..., np.ndarray]:
        """The kernel on operands that lie so."""
        write = self.writing(loop, dtypes)

        def on(*arrays: np.ndarray) -> np.ndarray:
            out = np.empty(shape, out_dtype)
            write(out, *arrays)
            return out

        return on

    def writing(self, loop: Callable[..., Any], dtypes: Sequence[np.dtype]) -> Callable[..., None]:
        """``write(out, *arrays)``: the kernel on operands, and a result, that lie so."""
        turned = [d for k, d in zip(self.letters, dtypes, strict=True) if k in _TILED]
        ends = np.cumsum([_TILE * d.itemsize for d in turned]).tolist()
        places = [(slice(e - _TILE * d.itemsize, e), d) for e, d in zip(ends, turned, strict=True)]
        copied, ints = self.copied if any(self.copied) else None, self.ints

        def write(out: np.ndarray, *arrays: np.ndarray) -> None:
            if copied is not None:
                made = iter(all_dense([x for x, c in zip(arrays, copied, strict=True) if c]))
                arrays = tuple([next(made) if c else x for x, c in zip(arrays, copied, strict=True)])
            if not places:
                loop(*arrays, out, *ints)
            else:
                held = kernels.scratch(ends[-1])
                loop(*arrays, out, *[held[part].view(d) for part, d in places], *ints)

        return write


def reading(arrays: Sequence[Any], shape: tuple[int, ...], out: Any = None, costly: bool = False) -> Reading | None:
    """How a loop over `shape` reads operands that broadcast to it; None where copies in order serve as well.

    Parameters
    ----------
    out : where it writes, whose last dimension is in order; in order by default.
    costly : whether much is computed per element.
    """
    if prod(shape) < WORTH or not all(type(x) is np.ndarray for x in arrays):
        return None
    layouts = tuple([(x.shape, x.strides, x.itemsize if x.flags.aligned else 0) for x in arrays])
    to = contiguous_strides(shape) if out is None else _steps(shape, out.strides, out.itemsize, shape)
    return None if to is None else _reading(layouts, shape, to, costly)


@lru_cache(maxsize=_LIMIT)
def _reading(layouts: tuple[Any, ...], shape: tuple[int, ...], to: tuple[int, ...], costly: bool) -> Reading | None:
    steps: list[Any] = [_steps(own, strides, size, shape) for own, strides, size in layouts]
    copied = [s is None for s in steps]
    while True:
        for i, (own, *_) in enumerate(layouts):
            steps[i] = _steps(own, contiguous_strides(own), 1, shape) if steps[i] is None else steps[i]
        lengths, *merged = merge_dims(shape, *steps, to)
        if not lengths or lengths[-1] < LONG or merged[-1][-1] != 1:
            return None
        across = [d.index(1) if d[-1] not in (0, 1) and 1 in d and lengths[d.index(1)] >= FEW else None
                  for d in merged[:-1]]  # fmt: skip
        found = Counter(d for d in across if d is not None).most_common(1)
        down = found[0][0] if found else len(lengths) - 2
        unfit = [i for i, d in enumerate(merged[:-1]) if d[-1] not in (0, 1) and across[i] != down]
        if not unfit:
            break
        for i in unfit:
            steps[i], copied[i] = None, True
    letters = "".join("f" if d[-1] == 1 else "s" if d[-1] == 0 else "t" for d in merged[:-1])
    outer = [d for d in range(len(lengths) - 1) if d != down]
    rows, columns = lengths[down] if down >= 0 else 1, lengths[-1]
    tiles = 1 if columns <= _WHOLE else -(-columns // _COLUMNS)
    width = min(-(-columns // tiles) + 15 & -16, columns)
    places = [(*(d[o] for o in outer), d[down] if down >= 0 else 0, d[-1]) for d in merged]
    in_order, operands = ((columns, 1), (0, 0)), places[:-1]
    if costly and columns < _SHORT and columns % _VECTORS:
        gathered = "".join("g" if k == "f" and p[-2] != columns else k for k, p in zip(letters, operands, strict=True))
        letters = letters if any(k == "s" and p[-2] for k, p in zip(letters, operands, strict=True)) else gathered
    joined = tiles == 1 and all(k in _TILED or p[-2:] in in_order for k, p in zip((*letters, "f"), places, strict=True))
    ints = (rows, columns, width, _TILE // width & -16, int(joined), *(lengths[o] for o in outer))
    ints = (*ints, *(n for p in places for n in p))
    return Reading(letters, tuple(copied), len(outer), ints) if len(ints) <= _MOST else None


def _steps(own: tuple[int, ...], strides: tuple[int, ...], size: int, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """How many elements further the next one is in each dimension of `shape`; None where these are no whole ones."""
    if not size or any(s % size for s in strides):
        return None
    missing = len(shape) - len(own)
    inner = [0 if n == 1 else s // size for n, s in zip(own, strides, strict=True)]
    return (*[0] * missing, *inner)


def source(
    name: str,
    body: Sequence[Let],
    dtypes: Sequence[np.dtype],
    out_dtype: np.dtype,
    letters: str,
    outer: int,
    known: Mapping[str, list[Let]] = MappingProxyType({}),
    apart: bool = True,
) -> str:
    """Kernel source of a loop whose body computes ``t0``, ... of elements ``x0``, ...; the last one is the result.

    Buffers are the operands, the result, and a tile for each turned operand; args those of `reading`. `known` and
    `apart` as in `common.evaluate.kernels.loop_source`.
    """
    count, own = len(letters), f"{{}} = args[{5 + outer} + {{}} * {outer + 2} + {{}}]".format
    tiles = {i: f"b{count + 1 + j}" for j, i in enumerate(i for i, k in enumerate(letters) if k in _TILED)}
    kinds, every = [*dtypes, out_dtype, *(dtypes[i] for i in tiles)], [*range(count + 1)]
    lines = [
        "wide(1, True)" if apart else "wide(1)",
        *[f"b{i} = buffer(bufs, {i}, {dtype_name(d)})" for i, d in enumerate(kinds)],
    ]
    lines += [f"n{i} = args[{i}]" for i in range(5 + outer)]
    lines += [own(f"f{i}_{d}", i, d) for i in every for d in range(outer)]
    lines += [*[own(f"d{i}", i, outer) for i in every], *[own(f"e{i}", i, outer + 1) for i in tiles]]

    def nest(body: Sequence[Let]) -> list[str]:
        begin, columns = (" + c0", "w + w * more") if tiles else ("", "n1")
        row = [f"s{i} = (r - m0) * w" for i in tiles]
        row += [f"s{i} = p{i} + r * d{i}{begin}" for i in every if i not in tiles and letters[i : i + 1] != "s"]
        row += [f"x{i} = b{i}[p{i} + r * d{i}]" for i, k in enumerate(letters) if k == "s"]
        reads = [Let(f"x{i}", Place(tiles.get(i, f"b{i}"), f"s{i}", "c")) for i, k in enumerate(letters) if k != "s"]
        row += Loop("c", columns, [*reads, *body, Store(Place(f"b{count}", f"s{count}", "c"), body[-1].name)]).lines()
        if not tiles:
            return _block("for r in range(n0):", row)
        moves = [line for i, tile in tiles.items() for line in _moved(i, tile, letters[i])]
        tile = ["w = min(n2, n1 - c0)", *moves, *_block("for r in range(m0, m1 - more):", row)]
        rows = ["m1 = min(m0 + n3, n0)", "more = n4 * (m1 - m0 - 1)", *_block("for c0 in range(0, n1, n2):", tile)]
        return _block("for m0 in range(0, n0, n3):", rows)

    def planes(body: Sequence[Let]) -> list[str]:
        at = [" + ".join(["0", *[f"o{d} * f{i}_{d}" for d in range(outer)]]) for i in every]
        text = [*[f"p{i} = {place}" for i, place in enumerate(at)], *nest(body)]
        for d in reversed(range(outer)):
            text = _block(f"for o{d} in range(n{5 + d}):", text)
        return text

    if known:
        lines.append(f"x{count - 1} = b{count - 1}[0]")
    for condition, inner in known.items():
        lines += _block(f"if {condition}:", [*planes(inner), "return 0"])
    lines += [*planes(body), "return 0"]
    return "\n".join([f"def {name}(bufs, args):", *[STEP + line for line in lines], ""])


def _moved(i: int, tile: str, letter: str) -> list[str]:
    """Statements that move rows of an operand to a tile, where they follow each other."""
    if letter == "t":
        return [f"turn_rows({tile}, 0, b{i}, p{i} + m0 + c0 * e{i}, w, e{i}, m1 - m0, w)"]
    element = [Let(f"y{i}", Place(f"b{i}", f"q{i}", "c")), Store(Place(tile, f"s{i}", "c"), f"y{i}")]
    row = [f"q{i} = p{i} + r * d{i} + c0", f"s{i} = (r - m0) * w", *Loop("c", "w", element).lines()]
    return _block("for r in range(m0, m1):", row)


def _block(head: str, lines: Sequence[str]) -> list[str]:
    return [head, *[STEP + line for line in lines]]
