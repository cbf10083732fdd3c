"""Compiled loops for ops on arrays, made when an op first meets a combination of dtypes and layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import prod
from sys import byteorder
from types import MappingProxyType
from typing import Any

import numpy as np

from common.compiler.compile import add_namespace, compile_kernel
from common.compiler.loop_ir import Call, If, Kernel, Let, Loop, Place, Return, Store
from common.core.dtypes import number_spec
from common.core.op import REGISTRY
from common.core.spec import Spec
from common.kernels.arrays import copying, mapped_sums, sums
from common.kernels.arrays.reducers import REDUCERS
from common.kernels.arrays.shared_parts import PARTS, WHOLE
from common.runtime.builtins import make_call, make_elementwise, make_fixed
from common.runtime.call_text import MAX_INPUTS

Builtin = Callable[..., Any]
_dense = np.ascontiguousarray
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


@cache
def fast(name: str, dtypes: tuple[np.dtype, ...], out_dtype: np.dtype) -> Builtin:
    """The builtin for operands of one shape, or of which one is 0-d; None as result means: take the general path."""
    full = loop_address(name, dtypes, out_dtype, "f" * len(dtypes))
    if len(dtypes) != 2:
        return make_elementwise(dtypes, out_dtype, full)
    left = loop_address(name, dtypes, out_dtype, "sf")
    right = loop_address(name, dtypes, out_dtype, "fs")
    return make_elementwise(dtypes, out_dtype, full, left, right)


@cache
def same_shape(name: str, dtypes: tuple[np.dtype, ...], out_dtype: np.dtype) -> Builtin:
    """The builtin for operands of one shape only, so that its result needs no un-broadcasting."""
    return make_elementwise(dtypes, out_dtype, loop_address(name, dtypes, out_dtype, "f" * len(dtypes)))


@cache
def general(name: str, dtypes: tuple[np.dtype, ...], out_dtype: np.dtype, classes: str) -> Builtin:
    """The loop for operands of the given classes, called with operands, result, rows and columns."""
    return make_call(loop_address(name, dtypes, out_dtype, classes))


def loop_address(name: str, dtypes: tuple[np.dtype, ...], out_dtype: np.dtype, classes: str) -> int:
    return address(elementwise_source(name, dtypes, out_dtype, classes), f"loop_{name}")


_TILE = 64
"""Rows and columns handled together where an operand lies by columns, so that each of its cache lines is read once."""

_TURNED = 4096
"""Elements from which on a transposed operand is worth a loop of its own: a smaller one stays in the cache."""


def elementwise_source(name: str, dtypes: Sequence[np.dtype], out_dtype: np.dtype, classes: str) -> str:
    """Kernel source of one elementwise op over rows x columns, under the name ``loop_<name>``; see `loop_source`."""
    op, last = REGISTRY.get(name), dtypes[-1]
    operands = [f"x{i}" for i in range(len(dtypes))]
    known = {}
    if classes.endswith("s") and len(classes) > 1 and not set(classes) & set("rctpmhkw"):
        for value in op.versions if op is not None else ():
            if last.kind == "f" or (last.kind in "iu" and value == int(value) >= 0):
                number = f"{last.name}({float(value) if last.kind == 'f' else int(value)!r})"
                known[f"{operands[-1]} == {number}"] = [Let("t0", Call(name, [*operands[:-1], number]))]
    return loop_source(f"loop_{name}", [Let("t0", Call(name, operands))], dtypes, out_dtype, classes, known)


def loop_source(
    name: str,
    body: list[Let],
    dtypes: Sequence[np.dtype],
    out_dtype: np.dtype,
    classes: str,
    known: Mapping[str, list[Let]] = MappingProxyType({}),
) -> str:
    """Kernel source of a loop over rows x columns whose body computes ``t0``, ... of elements ``x0``, ...; the last
    one is the result.

    Parameters
    ----------
    classes : per operand "f" (all elements), "t" (all, column by column: a transposed matrix), "w" (all, in rows at a
        distance, which is a further int), "r" (one per row), "c" (one per column) or "s" (one). If rows form blocks of
        n2, which n0 counts then, also "p" (one per place of a row in its block), "h" (one per block), "m" (per block a
        row), "k" (a block).
    known : condition -> body for operands that make an op less work: the compiler knows their value there.
    """
    flat, blocks = not set(classes) & set("rctpmhkw"), bool(set(classes) & set("pmhk"))
    row = "(h * n2 + p)" if blocks else "r"
    full = ("", "c") if flat else (f"{row} * n1", "c")
    places = {
        "f": full, "t": ("c * n0", "r"), "r": ("", row), "c": ("", "c"), "s": ("", ""), "p": ("", "p"), "h": ("", "h"),
        "m": ("h * n1", "c"), "k": ("p * n1", "c"),
    }  # fmt: skip
    apart = [i for i, k in enumerate(classes) if k == "w"]
    at = [(f"r * n{2 + apart.index(i)}", "c") if k == "w" else places[k] for i, k in enumerate(classes)]
    lets = [(k, Let(f"x{i}", Place(f"b{i}", *at[i]))) for i, k in enumerate(classes)]
    reads, numbers = [let for k, let in lets if k != "s"], [let for k, let in lets if k == "s"]

    def columns(inner: list[Let], stop: str = "n0" if flat else "n1", start: str = "0") -> Loop:
        return Loop("c", stop, [*reads, *inner, Store(Place(f"b{len(classes)}", *full), inner[-1].name)], start)

    if "t" in classes:  # the transposed operand is walked through as it lies
        tile = Loop("r", f"min(r0 + {_TILE}, n0)", [columns(body, f"min(c0 + {_TILE}, n1)", "c0")], "r0")
        loop = Loop("c0", "n1", [Loop("r0", "n0", [tile], step=str(_TILE))], step=str(_TILE))
    elif blocks:
        loop = Loop("h", "n0", [Loop("p", "n2", [columns(body)])])
    else:
        loop = columns(body) if flat else Loop("r", "n0", [columns(body)])
    # an empty result must not read the scalar operands of a call that has nothing to compute
    head = [If("n0 == 0", [Return("0")]), *numbers] if numbers else []
    versions = [If(condition, [columns(inner), Return("0")]) for condition, inner in known.items()]
    count = 1 if flat else 3 if blocks else 2 + len(apart)
    return Kernel([*dtypes, out_dtype], count, [*head, *versions, loop]).source(name)


def may_turn(name: str, classes: Sequence[str | None], rows: int, shape: tuple[int, ...]) -> bool:
    """Whether a loop over a large matrix reads transposed operands where they lie, instead of copying them first."""
    op = REGISTRY.get(name)
    if (op is not None and op.costly) or len(shape) != 2 or prod(shape) < _TURNED:
        return False
    return None not in classes and rows in (shape[0], prod(shape))


def is_turned(x: np.ndarray) -> bool:
    """Whether an array is a contiguous matrix, transposed."""
    flags = x.flags
    return x.ndim == 2 and flags.f_contiguous and flags.aligned and not flags.c_contiguous


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


def reduced_dtype(kind: str, dtype: np.dtype) -> np.dtype:
    """The dtype in which a reduction with a result of `dtype` computes."""
    return dtype if REDUCERS[kind].columns else sums.extreme_dtype(dtype)


def reduction(
    kind: str, shape: Any, dtype: np.dtype, dims: tuple[int, ...], out_shape: Any
) -> tuple[Builtin | None, Builtin]:
    """A reduction over `dims` of arrays of one shape and dtype; several dims are flattened in C order.

    Returns
    -------
    The builtin, which declines what is not contiguous, or None; and a function of any layout.
    """
    if not dims or 0 in out_shape:
        return None, lambda x: _unreduced(kind, x, out_shape, dtype)
    first, last = dims[0], dims[-1]
    order = None
    if kind == "sum" and (parts := channels(shape, dims)) is not None:
        return sum_of_channels([Let("t0", "x0")], "f", shape, parts, dtype, out_shape)
    if last - first + 1 != len(dims):
        kept = tuple(i for i in range(len(shape)) if i not in dims)
        order = kept + dims
        shape, first, last = tuple(shape[i] for i in order), len(kept), len(shape) - 1
    batch, rows, columns = prod(shape[:first]), prod(shape[first : last + 1]), prod(shape[last + 1 :])
    by_rows = columns == 1 or rows == 0
    name = f"{kind}_rows" if by_rows else f"{kind}_cols"
    source = getattr(sums, f"{name}_source")(dtype)
    kernel = compiled(source, name)
    ints = (batch * columns, rows, WHOLE) if by_rows else (batch, rows, columns)
    in_lanes = REDUCERS[kind].columns and not by_rows
    lanes = dtype.itemsize * sums.sum_cols_scratch(rows, columns) if in_lanes else 0

    def run(x: np.ndarray) -> np.ndarray:
        if order is not None:
            x = x.transpose(order)
        out = _empty(out_shape, dtype)
        held = (scratch(lanes),) if lanes else ()
        kernel(_dense(x), out, *held, *ints)
        return out

    if order is not None:
        return None, run
    return fixed(address(source, name), (dtype,), out_shape, dtype, ints, lanes), run


def channels(shape: Any, dims: tuple[int, ...]) -> tuple[int, int] | None:
    """Where the dimensions that a reduction over the first and the last ones leaves begin and end; None for others, and
    for one channel, whose elements lie in order.
    """
    kept = [d for d in range(len(shape)) if d not in dims]
    if not kept or kept[-1] - kept[0] + 1 != len(kept) or kept[0] == 0 or kept[-1] == len(shape) - 1 or 0 in shape:
        return None
    if prod(shape[d] for d in kept) == 1:
        return None
    return kept[0], kept[-1] + 1


def sum_of_channels(
    body: list[Let], classes: str, shape: Any, parts: tuple[int, int], dtype: np.dtype, out_shape: Any
) -> tuple[Builtin | None, Builtin]:
    """S of an expression over all dimensions but those of `parts`, see `mapped_sums.channels_source`."""
    ints = prod(shape[: parts[0]]), prod(shape[parts[0] : parts[1]]), prod(shape[parts[1] :]), WHOLE
    source = mapped_sums.channels_source(body, dtype, classes)
    held = dtype.itemsize * ints[0] * ints[2] * PARTS
    return with_scratch(source, "expression_channels", (dtype,) * len(classes), out_shape, dtype, ints, held, False)


def mapped_sum(
    element: str, shape: Any, dtype: np.dtype, out_dtype: np.dtype, dims: tuple[int, ...], out_shape: Any
) -> tuple[Builtin | None, Builtin] | None:
    """S of a function of the elements, by name in `common.kernels.arrays.mapped_sums`, as `reduction`; None where it
    needs a copy in order.
    """
    if not dims or 0 in out_shape:
        return None
    if dtype == out_dtype and (parts := channels(shape, dims)) is not None:
        body = [Let("v", "x0"), Let("m", "x1"), Let("t0", mapped_sums.ELEMENTS[element].format(dtype=dtype))]
        of_two = element in mapped_sums.OF_TWO
        body = body if of_two else [body[0], body[2]]
        return sum_of_channels(body, "fp" if of_two else "f", shape, parts, dtype, out_shape)
    if dims[-1] - dims[0] + 1 != len(dims):
        return None
    batch, rows = prod(shape[: dims[0]]), prod(shape[dims[0] : dims[-1] + 1])
    columns = prod(shape[dims[-1] + 1 :])
    by_rows = columns == 1 or rows == 0
    make, end = (mapped_sums.rows_source, "rows") if by_rows else (mapped_sums.cols_source, "cols")
    source, name = make(element, dtype, out_dtype), f"{element}_{end}"
    ints = (batch * columns, rows) if by_rows else (batch, rows, columns)
    held = out_dtype.itemsize * mapped_sums.scratch(element, rows, 0 if by_rows else columns)
    inputs = 2 if element in mapped_sums.OF_TWO else 1
    return with_scratch(source, name, (dtype,) * inputs, out_shape, out_dtype, ints, held)


def with_scratch(
    source: str,
    name: str,
    dtypes: Sequence[np.dtype],
    shape: Any,
    dtype: np.dtype,
    ints: Sequence[int],
    held: int,
    ready_made: bool = True,
) -> tuple[Builtin | None, Builtin]:
    """A kernel that uses `held` bytes of scratch, as `reduction` returns it."""
    kernel = compiled(source, name, ready_made)

    def run(*operands: np.ndarray) -> np.ndarray:
        out = _empty(shape, dtype)
        kernel(*map(_dense, operands), out, scratch(held), *ints)
        return out

    return fixed(address(source, name, ready_made), dtypes, shape, dtype, ints, held), run


def _unreduced(kind: str, x: np.ndarray, out_shape: Any, dtype: np.dtype) -> np.ndarray:
    """A reduction over no dimensions, or with an empty result; a sum of one element starts from +0."""
    return np.array((x + dtype.type(0) if REDUCERS[kind].start == 0 else x), dtype).reshape(out_shape)


__all__ = [
    "arrange", "compiled", "fast", "form_spec", "general", "mapped_sum", "reduced_dtype", "reduction",
    "same_shape", "scratch", "unit_bytes",
]  # fmt: skip
