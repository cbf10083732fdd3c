"""Compiled loops for ops on arrays, made when an op first meets a combination of dtypes and layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import combinations
from math import prod
from sys import byteorder
from types import MappingProxyType
from typing import Any

import numpy as np

from common.compiler.compile import add_namespace, compile_kernel
from common.compiler.loop_ir import Call, If, Kernel, Let, Loop, Place, Return, Store, replaced
from common.core.dtypes import number_spec
from common.core.op import REGISTRY
from common.core.spec import Spec
from common.kernels.arrays import copying
from common.runtime.builtins import make_call, make_elementwise, make_fixed
from common.runtime.call_text import MAX_INPUTS

Builtin = Callable[..., Any]
_empty = np.empty


def scalar_expression(name: str) -> Any:
    """The scalar expression behind a name in kernel source, None for unknown names."""
    op = REGISTRY.get(name)
    return op.scalar if op is not None and op.kind == "elementwise" and not op.attrs else None


add_namespace(scalar_expression)


def form_spec(form: Any) -> Spec:
    """The spec of an operand given as (shape, dtype), or as the type of a number."""
    return number_spec(form(0)) if isinstance(form, type) else Spec(*form)


@cache
def compiled(source: str, name: str, ready_made: bool = True) -> Builtin:
    """A kernel as a Python callable: arrays in, then ints; returns its status. `ready_made` as in `compile_kernel`."""
    return make_call(compile_kernel(source, name, ready_made=ready_made))


MANY = 4096
"""Elements from which on a kernel of ours fills memory faster than numpy's loop, also if it is the first to do so."""


@cache
def _filler(dtype: np.dtype) -> Builtin:
    return compiled(copying.fill_source(dtype), "fill")


def filled(target: np.ndarray, value: Any) -> bool:
    """Write a 0-d array of the same dtype everywhere in large contiguous memory; whether that was done."""
    if target.size < MANY or type(value) is not np.ndarray or value.ndim:
        return False
    if value.dtype != target.dtype or not target.flags.carray:
        return False
    bits = int.from_bytes(value.tobytes(), byteorder, signed=value.itemsize == 8)
    _filler(target.dtype)(target, target.size, bits)
    return True


def address(source: str, name: str, ready_made: bool = True) -> int:
    """The machine code of a kernel, which is the package's own, or made for one program."""
    return compile_kernel(source, name, ready_made=ready_made)


OWNED = 1 << 16
"""Bytes of scratch up to which a kernel for operands of known forms gets a builtin with scratch of its own."""


def fixed(
    kernel: int,
    dtypes: Sequence[np.dtype],
    shape: Any,
    dtype: np.dtype,
    ints: Sequence[int],
    scratch: int = 0,
    numbers: Sequence[int] = (),
    units: Sequence[int] = (),
) -> Builtin | None:
    """The builtin of a kernel for operands of known forms; it declines other layouts with None. Or None."""
    if scratch > OWNED or not 1 <= len(dtypes) <= MAX_INPUTS:
        return None
    return make_fixed(kernel, dtypes, shape, dtype, ints, scratch, numbers, units)


_HELD = 64 << 20
"""Bytes of scratch that stay allocated: touching fresh pages costs as much as many a kernel."""
_scratch = _empty(0, np.uint8)


def scratch(size: int) -> np.ndarray:
    """Scratch memory for one native call; all share it, as the builtin holds the GIL while a kernel runs."""
    global _scratch
    if size > _HELD:
        return _empty(size, np.uint8)
    if _scratch.size < size:
        _scratch = _empty(size, np.uint8)
    return _scratch


Dtypes = tuple[np.dtype, ...]


@cache
def fast(name: str, dtypes: Dtypes, out_dtype: np.dtype, wanted: Dtypes = ()) -> Builtin:
    """The builtin for operands of one shape, or of which one is 0-d; None as result means: take the general path."""
    layouts = ["f" * len(dtypes), *(("sf", "fs") if len(dtypes) == 2 else ())]
    return make_elementwise(dtypes, out_dtype, *[loop_address(name, dtypes, out_dtype, k, wanted) for k in layouts])


@cache
def same_shape(name: str, dtypes: Dtypes, out_dtype: np.dtype, wanted: Dtypes = ()) -> Builtin:
    """The builtin for operands of one shape only, so that its result needs no un-broadcasting."""
    return make_elementwise(dtypes, out_dtype, loop_address(name, dtypes, out_dtype, "f" * len(dtypes), wanted))


@cache
def general(*form: Any) -> Builtin:
    """The loop that `loop_address` finds, called with operands, result, rows and columns."""
    return make_call(loop_address(*form))


def loop_address(
    name: str,
    dtypes: Dtypes,
    out_dtype: np.dtype,
    classes: str,
    wanted: Dtypes = (),
    columns: int = 0,
    apart: bool = True,
) -> int:
    return address(elementwise_source(name, dtypes, out_dtype, classes, wanted, columns, apart), f"loop_{name}")


def elementwise_source(
    name: str,
    dtypes: Sequence[np.dtype],
    out_dtype: np.dtype,
    classes: str,
    wanted: Sequence[np.dtype] = (),
    columns: int = 0,
    apart: bool = True,
) -> str:
    """Kernel source of one elementwise op over rows x columns, under the name ``loop_<name>``; see `loop_source`.

    Parameters
    ----------
    wanted : the dtype to which each operand is converted first; by default its own.
    """
    body = body_of(name, dtypes, wanted)
    known = versions(name, dtypes, body) if classes.endswith("s") and set(classes) <= set("fs") else {}
    return loop_source(f"loop_{name}", body, dtypes, out_dtype, classes, known, columns, apart)


def body_of(name: str, dtypes: Sequence[np.dtype], wanted: Sequence[np.dtype] = ()) -> list[Let]:
    """``t0``, the op of elements ``x0``, ..., each converted to the dtype that is wanted of it."""
    given = enumerate(zip(dtypes, wanted or dtypes, strict=True))
    operands = [f"x{i}" if own == dtype else Call(f"to_{dtype.name}", [f"x{i}"]) for i, (own, dtype) in given]
    return [Let("t0", Call(name, operands))]


def versions(name: str, dtypes: Sequence[np.dtype], body: list[Let]) -> dict[str, list[Let]]:
    """Condition -> body, for values of the last operand, one number for all elements, that make an op less work."""
    op, last, known = REGISTRY.get(name), dtypes[-1], dict[str, list[Let]]()
    *operands, number = body[0].value.arguments
    for value in op.versions if op is not None and len(dtypes) > 1 and type(number) is str else ():
        if last.kind == "f" or (last.kind in "iu" and value == int(value) >= 0):
            text = f"{last.name}({float(value) if last.kind == 'f' else int(value)!r})"
            known[f"{number} == {text}"] = [Let("t0", Call(name, [*operands, text]))]
    return known


def loop_source(
    name: str,
    body: list[Let],
    dtypes: Sequence[np.dtype],
    out_dtype: np.dtype,
    classes: str,
    known: Mapping[str, list[Let]] = MappingProxyType({}),
    columns: int = 0,
    apart: bool = True,
) -> str:
    """Kernel source of a loop over rows x columns whose body computes ``t0``, ... of elements ``x0``, ...; the last
    one is the result.

    Parameters
    ----------
    classes : per operand "f" (all elements), "r" (one per row), "c" (one per column) or "s" (one). If rows form blocks
        of n2, which n0 counts then, also "p" (one per place of a row in its block), "h" (one per block), "m" (per block
        a row), "k" (a block).
    known : condition -> body for operands that make an op less work: the compiler knows their value there.
    columns : of each row, all of which are written out, so that vectors go down the rows; see `short_columns`.
    apart : whether the result lies in no operand's memory, so that rows may end with elements written twice.
    """
    if columns:
        return _short_source(name, body, dtypes, out_dtype, classes, columns)
    flat, blocks = not set(classes) & set("rcpmhk"), bool(set(classes) & set("pmhk"))
    row = "(h * n2 + p)" if blocks else "r"
    full = ("", "c") if flat else (f"{row} * n1", "c")
    places = {
        "f": full, "r": ("", row), "c": ("", "c"), "s": ("", ""), "p": ("", "p"), "h": ("", "h"),
        "m": ("h * n1", "c"), "k": ("p * n1", "c"),
    }  # fmt: skip
    lets = [(k, Let(f"x{i}", Place(f"b{i}", *places[k]))) for i, k in enumerate(classes)]
    reads, numbers = [let for k, let in lets if k != "s"], [let for k, let in lets if k == "s"]

    def row_of(inner: list[Let]) -> Loop:
        stored = Store(Place(f"b{len(classes)}", *full), inner[-1].name)
        return Loop("c", "n0" if flat else "n1", [*reads, *inner, stored])

    if blocks:
        loop = Loop("h", "n0", [Loop("p", "n2", [row_of(body)])])
    else:
        loop = row_of(body) if flat else Loop("r", "n0", [row_of(body)])
    # an empty result must not read the scalar operands of a call that has nothing to compute
    head = [If("n0 == 0", [Return("0")]), *numbers] if numbers else []
    forms = [If(condition, [row_of(inner), Return("0")]) for condition, inner in known.items()]
    count = 1 if flat else 3 if blocks else 2
    return Kernel([*dtypes, out_dtype], count, [*head, *forms, loop], 1, apart and not flat).source(name)


_SHORT, _MANY_ROWS = 8, 16
"""Columns up to which a row is written out, so that vectors go down the rows; and the rows from which that pays."""


def short_columns(names: Iterable[str], classes: Sequence[str | None], ints: Sequence[int], most: int = _SHORT) -> int:
    """How many columns of each row a loop of these ops writes out, by `arrange`: all where they are few, rows are many
    and the ops cheap; else 0.
    """
    rows, columns = ints[-1] if len(ints) > 2 else ints[0], ints[1]
    few = 2 <= columns <= most and rows >= _MANY_ROWS and bool(set(classes) & set("rcpmhk"))
    return columns if few and not any((op := REGISTRY.get(name)) is not None and op.costly for name in names) else 0


def _short_source(
    name: str, body: list[Let], dtypes: Sequence[np.dtype], out_dtype: np.dtype, classes: str, columns: int
) -> str:
    """The source where a row has few columns: a loop over rows does all of them."""
    blocks, width = bool(set(classes) & set("pmhk")), str(columns)
    row, whole, first = ("p", f"h * n2 * {width}", "h * n2") if blocks else ("r", "", "")
    places = {
        "f": (whole, row, width), "r": (first, row, ""), "c": ("", "", ""), "s": ("", "", ""),
        "p": ("", row, ""), "h": ("h", "", ""), "m": (f"h * {width}", "", ""), "k": ("", row, width),
    }  # fmt: skip
    before: list[Any] = []
    of_block: list[Any] = []
    of_row: list[Any] = []
    for column in range(columns):
        beside = str(column or "")
        names = {let.name: f"{let.name}_{column}" for let in body}
        for i, letter in enumerate(classes):
            alike = letter in "rphs"
            names[f"x{i}"] = x = f"x{i}" if alike else f"x{i}_{column}"
            if column == 0 or not alike:
                read = Let(x, Place(f"b{i}", *places[letter], "" if alike else beside))
                (before if letter in "cs" else of_block if letter in "hm" else of_row).append(read)
        named = partial(lambda names, z: names.get(z, z), names)
        of_row += [Let(names[let.name], replaced(let.value, named, named)) for let in body]
        of_row.append(Store(Place(f"b{len(classes)}", whole, row, width, beside), names[body[-1].name]))
    loop = Loop("h", "n0", [*of_block, Loop("p", "n2", of_row)]) if blocks else Loop("r", "n0", of_row)
    head = [If("n0 == 0", [Return("0")]), *before] if before else []
    return Kernel([*dtypes, out_dtype], 3 if blocks else 2, [*head, loop], long=1).source(name)


_WAYS = 64


def by_layout(way_of: Callable[[Sequence[Any]], Callable[..., Any]]) -> Callable[..., Any]:
    """A function of arrays that runs what `way_of` gives for arrays which lie so; the last ways are kept."""
    ways: dict[Any, Any] = {}

    def run(*arrays: Any) -> Any:
        key = tuple([(x.__class__, x.strides, x.flags.aligned) for x in arrays])
        way = ways.get(key)
        if way is None:
            if len(ways) >= _WAYS:
                ways.clear()
            way = ways[key] = way_of(arrays)
        return way(*arrays)

    return run


def arrange(shapes: Sequence[Any], shape: tuple[int, ...]) -> tuple[list[str | None], tuple[int, ...]]:
    """Access classes of operands over the best split of `shape` into rows x columns, or blocks x rows x columns, and
    the ints of the kernel: rows and columns; or blocks, columns, and the rows of each.

    An operand that no class fits has None: it is copied to the full shape.
    """
    misses = [sum(class_of(have, shape, s) is None for have in shapes) for s in range(len(shape) + 1)]
    split = misses.index(min(misses))
    classes = [class_of(have, shape, split) for have in shapes]
    if None in classes:
        for first, last in combinations(range(1, len(shape)), 2):
            found = [class_in_blocks(have, shape, first, last) for have in shapes]
            if None not in found:
                return found, (prod(shape[:first]), prod(shape[last:]), prod(shape[first:last]))
    rows, columns = prod(shape[:split]), prod(shape[split:])
    return classes, ((rows if {"r", "c"} & set(classes) else rows * columns), columns)


def unit_bytes(classes: Sequence[str | None], ints: Sequence[int], dtypes: Sequence[np.dtype]) -> list[int]:
    """How far the next row, block or element of a flat loop is in each operand and in the result, by `arrange`."""
    rows = ints[2] if len(ints) > 2 else 1
    columns = ints[1] if set(classes) & set("rcpmhk") else 1
    elements = {"f": rows * columns, "r": rows, "m": columns, "h": 1}
    return [elements.get(k or "f", 0) * dtype.itemsize for k, dtype in zip((*classes, "f"), dtypes, strict=True)]


def class_of(have: tuple[int, ...], shape: tuple[int, ...], split: int) -> str | None:
    """The access class of an operand under a split, None if no class fits."""
    padded = (1,) * (len(shape) - len(have)) + have
    varies = [m == n for m, n in zip(padded, shape, strict=True)]
    head = [v for v, n in zip(varies[:split], shape[:split], strict=True) if n != 1]
    tail = [v for v, n in zip(varies[split:], shape[split:], strict=True) if n != 1]
    if all(head) and all(tail):
        return "f"
    if not any(head) and not any(tail):
        return "s"
    if all(head) and not any(tail):
        return "r"
    if not any(head) and all(tail):
        return "c"
    return None


_IN_BLOCKS: dict[tuple[bool, ...], str] = {
    (True, True, True): "f", (True, True, False): "r", (True, False, True): "m", (True, False, False): "h",
    (False, True, True): "k", (False, True, False): "p", (False, False, True): "c", (False, False, False): "s",
}  # fmt: skip


def class_in_blocks(have: tuple[int, ...], shape: tuple[int, ...], first: int, last: int) -> str | None:
    """The access class of an operand where the dimensions from `first` to `last` are those of the rows of a block."""
    padded = (1,) * (len(shape) - len(have)) + have
    varies = [(m == n, n) for m, n in zip(padded, shape, strict=True)]
    parts = [{v for v, n in part if n != 1} or {True} for part in (varies[:first], varies[first:last], varies[last:])]
    return _IN_BLOCKS[tuple(part.pop() for part in parts)] if all(len(part) == 1 for part in parts) else None


__all__ = [
    "arrange", "compiled", "fast", "form_spec", "general", "same_shape", "scratch", "unit_bytes",
]  # fmt: skip
