"""Kernels that read and write at places given by a tuple of indices, one per dimension, as ``x[i, j]`` does.

An array is seen as (outer, e0, ..., ek, inner). The index operands i0, ..., ik are int64 or int32 and broadcast to one
shape B of ``count`` elements; an index counts from the end where it is negative and `wrap` holds, else negative ones
are refused. The j-th place, j running over B in C order, is ``p[j] = (i0[j] * e1 + i1[j]) * e2 + ...``. Every index is
checked before anything is written; the status of a wrong one names it, see `describe`.

==========  ================  ========================================================================
kernel      buffers           result
==========  ================  ========================================================================
``get``     x, i..., out      out[o, j, c] = x[o, p[j], c]
``put``     v, i..., out      out = 0, then out[o, p[j], c] += v[o, j, c]
``add``     v, i..., out      out[o, p[j], c] += v[o, j, c]
``mul``     v, i..., out      out[o, p[j], c] *= v[o, j, c]
``max``     v, i..., out      out[o, p[j], c] = maximum(out[o, p[j], c], v[o, j, c])
``min``     v, i..., out      the same with the minimum
``set``     v, i..., out      out[o, p[j], c] = v[o, j, c]
``clear``   i..., out         out[o, p[j], c] = 0
``last``    i..., out         out[j] = whether no later place equals the j-th
==========  ================  ========================================================================

Writes happen one after the other in ascending C order of (o, j): additions to one place, and products, are made in that
order with what it holds, and of several values set at one place the last stays. `single` takes one element v[0] for
all of v. ``last`` has `scratch_bytes` of scratch behind its buffers. Kernels that only move elements keep NaN
payloads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.core.op import NativeCall
from common.core.polynomials import Atom, evaluate, render
from common.core.shapes import broadcast_shapes, contiguous_strides
from common.core.sizes import Dim
from common.core.spec import numel
from common.kernels.arrays.copying import bits_of, buffer_dtype, merge_dims

__all__ = ["WrongIndex", "check", "place_args", "position_of", "scratch_bytes", "source", "status_of", "telling"]

_FEW = 2, 3, 4
"""Elements of slices that are written out: a loop over so few takes longer than they do."""
_WHOLE = 8, 16, 32
"""Elements of slices that are whole vectors, which are added without a loop: one of any length takes long to begin."""
_DIMENSIONS = 32
_MOST = 1 << 24
"""Statuses have 31 bits: beyond this, the index itself is not told."""


class WrongIndex(Mapping[int, str]):
    """Messages of the statuses that stand for a wrong index: 1 + dimension + 32 (index + 2^24).

    Parameters
    ----------
    extents : sizes of the indexed dimensions.
    dim : the first of them; or all, where they are not neighbours.
    wrap : whether negative indices count from the end; of all, or of each.

    Examples
    --------
    >>> WrongIndex((5, 3), 0, True)[1 + 1 + 32 * (7 + (1 << 24))]
    'index 7 is out of bounds for dimension 1 with size 3'
    """

    def __init__(self, extents: Sequence[Any], dim: int | Sequence[int], wrap: bool | Sequence[bool]) -> None:
        # the hint of a size that is not known is that of one call only
        self.extents = tuple(n.terms if isinstance(n, Dim) else n for n in extents)
        self.dims = tuple(dim + i for i in range(len(extents))) if isinstance(dim, int) else tuple(dim)
        self.wraps = (wrap,) * len(self.extents) if isinstance(wrap, bool) else tuple(wrap)

    def __getitem__(self, status: int) -> str:
        return self.told(status, None)

    def told(self, status: int, env: Mapping[Atom, int] | None) -> str:
        """Return the message, with the sizes of a call whose dimensions are `env`.

        Raises
        ------
        KeyError : no index is wrong in this way.
        """
        position, index = (status - 1) % _DIMENSIONS, (status - 1) // _DIMENSIONS - _MOST
        if status <= 0 or position >= len(self.extents) or abs(index) > _MOST:
            raise KeyError(status)
        told = f"index {index}" if abs(index) < _MOST else f"an index beyond {index}"
        return self._refusal(told, position, env)

    def any(self, env: Mapping[Atom, int]) -> str:
        """Return the message where the status is not looked at."""
        return self._refusal("an index", 0, env)

    def _refusal(self, told: str, position: int, env: Mapping[Atom, int] | None) -> str:
        size = self.extents[position]
        if not isinstance(size, int):
            size = render(size) if env is None else evaluate(size, env)
        text = f"{told} is out of bounds for dimension {self.dims[position]} with size {size}"
        return text if self.wraps[position] else f"index out of range: {text}; indices must lie in [0, {size})"

    def __iter__(self) -> Any:
        return iter(range(1, 1 + len(self.extents)))

    def __len__(self) -> int:
        return len(self.extents)


def place_args(shape: Sequence[Any], dim: int, indices: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the args of every kernel: ``outer, inner, count, e..., ndim, B..., strides of each index``.

    Parameters
    ----------
    shape : of the array that is indexed.
    dim : its first indexed dimension.
    indices : shapes of the index operands, which are C-contiguous.
    """
    b = broadcast_shapes(*indices)
    strides = []
    for index in indices:
        own = contiguous_strides(index)
        lead = len(b) - len(index)
        strides.append([0] * lead + [0 if isinstance(n, int) and n == 1 else s for n, s in zip(index, own)])
    lengths, *steps = merge_dims(b, *strides)
    if not lengths:
        lengths, steps = [1], [[0] for _ in indices]
    count, k = numel(b), len(indices)
    heads = (numel(tuple(shape[:dim])), numel(tuple(shape[dim + k :])), count)
    return (*heads, *shape[dim : dim + k], len(lengths), *lengths, *(s for row in steps for s in row))


def scratch_bytes(extents: Sequence[Any]) -> Any:
    """Return the bytes of scratch of ``last``, who wrote to each place; never 0, so that it always exists."""
    return 8 * numel(tuple(extents)) + 8


def position_of(status: int) -> int:
    """Return which of the indexed dimensions a status is about."""
    return (status - 1) % _DIMENSIONS


def status_of(index: str, position: int) -> str:
    """Return an expression for the status of a wrong index, an int64, into one of the dimensions."""
    return f"{1 + min(position, _DIMENSIONS - 1)} + {_DIMENSIONS} * (max(min({index}, {_MOST}), {-_MOST}) + {_MOST})"


def telling(count: str, extent: str, indent: str = "    ") -> str:
    """Return lines of a kernel that look for the first of the ints in ``index`` that is not in [0, extent)."""
    lines = [
        f"for i in range({count}):",
        "    a = to_int64(index[i])",
        f"    if a < 0 or a >= {extent}:",
        f"        return {status_of('a', 0)}",
    ]
    return "".join(f"{indent}{line}\n" for line in lines)


_STATEMENTS = {
    "get": "out[{q}] = x[{p}]",
    "put": "out[{p}] = {sum}",
    "add": "out[{p}] = {sum}",
    "mul": "out[{p}] = {product}",
    "max": "out[{p}] = maximum(out[{p}], {value})",
    "min": "out[{p}] = minimum(out[{p}], {value})",
    "set": "out[{p}] = {value}",
    "clear": "out[{p}] = {zero}",
}


COMPUTING = frozenset(("put", "add", "mul", "max", "min"))
"""Operations that compute with elements; the others move them."""


def source(operation: str, dtype: Any, index_dtypes: Sequence[Any], wrap: bool, single: bool = False) -> str:
    """Return the kernel of one operation of the table, named after it with its number of indices.

    Parameters
    ----------
    dtype : of the elements; that of "last" does not matter.
    index_dtypes : one per index operand.
    wrap, single : see above.
    """
    k = len(index_dtypes)
    reads = operation not in ("clear", "last")
    kind = buffer_dtype(dtype) if operation in COMPUTING else bits_of(dtype)
    lines = [f"def {operation}{k}(bufs, args):"]
    lines += [f"    x = buffer(bufs, 0, {kind})"] if reads else []
    lines += [f"    i{d} = buffer(bufs, {d + reads}, {np.dtype(t)})" for d, t in enumerate(index_dtypes)]
    lines.append(f"    out = buffer(bufs, {k + reads}, {'uint8' if operation == 'last' else kind})")
    lines += [f"    at = buffer(bufs, {k + reads + 1}, int64)"] if operation == "last" else []
    lines += ["    outer = args[0]", "    inner = args[1]", "    count = args[2]"]
    lines += [f"    e{d} = args[{3 + d}]" for d in range(k)]
    lines += [f"    low{d} = {f'-e{d}' if wrap else 0}" for d in range(k)]
    lines += [f"    extent = {' * '.join(f'e{d}' for d in range(k))}", "    signs = 0"]
    for d in range(k):
        lines += _check(k, d)
    tell = []
    for d in range(k):
        tell += [f"if a{d} < low{d} or a{d} >= e{d}:", f"    return {status_of(f'a{d}', d)}"]
    if operation == "last":
        lines += ["    if signs < 0:", *_walk(k, wrap, {"": tell}, "        "), *_last(k, wrap)]
    else:
        lines += _move(operation, k, wrap, single, dtype, kind, tell)
    return "\n".join([*lines, "    return 0", ""])


def check(index_dtype: Any, count: Any, extent: Any, wrap: bool, used: Any, errors: Mapping[int, str]) -> NativeCall:
    """Only look at indices, before the loops of a program that use them.

    Parameters
    ----------
    count : of the indices, which are contiguous.
    used : the number of elements per index; if it is 0, no index is looked at.
    errors : messages, of `WrongIndex` or for the status 1.
    """
    ints = count, 0 - extent if wrap else 0, extent, used, int(isinstance(errors, WrongIndex))
    return NativeCall(_check_source(index_dtype), "check", ints, (0,), errors=errors)


def _check_source(index_dtype: Any) -> str:
    return f"""def check(bufs, args):
    index = buffer(bufs, 0, {np.dtype(index_dtype)})
    low = args[1]
    extent = args[2]
    signs = 0
    for i in range(args[0]):
        a = to_int64(index[i])
        signs |= (a - low) | (extent - 1 - a)
    if signs >= 0 or args[3] == 0:
        return 0
    for i in range(args[0]):
        a = to_int64(index[i])
        if a < low or a >= extent:
            return 1 + args[4] * {_DIMENSIONS} * (max(min(a, {_MOST}), {-_MOST}) + {_MOST})
    return 0
"""


def _check(k: int, d: int) -> list[str]:
    """Whether an index operand has a wrong element: once over its own memory, not over all that it broadcasts to."""
    stride = f"args[{4 + k} + d + args[{3 + k}] * {d + 1}]"
    lines = [
        "own = min(count, 1)",
        f"for d in range(args[{3 + k}]):",
        f"    own *= args[{4 + k} + d] if {stride} != 0 else 1",
        # the signs of all distances to both ends, which takes a third of comparisons; a second loop finds what is wrong
        "for j in range(own):",
        f"    a{d} = to_int64(i{d}[j])",
        f"    signs |= (a{d} - low{d}) | (e{d} - 1 - a{d})",
    ]
    return ["    " + line for line in lines]


def _walk(k: int, wrap: bool, cases: Mapping[str, Sequence[str]], indent: str, lean: Sequence[str] = ()) -> list[str]:
    """Loops over B: at column j of a row there are the elements a0, a1, ... of the indices.

    Parameters
    ----------
    cases : condition -> what a column does; the last one is what remains.
    lean : of the last case, where only the last index varies along a row: `scatter` along the last dimension. There
        `base` is the place of the others, and the element of the last index is read from neighbouring memory. Rows
        along which all vary, as for the first of two dimensions, have a loop without strides, too.
    """
    reads = [f"a{d} = to_int64(i{d}[p{d} + j * s{d}])" for d in range(k)]
    rows = [_columns([*reads, *body]) for body in cases.values()]
    if lean:
        rows[-1] = _lean(k, wrap, lean, [*cases.values()][-1], rows[-1])
    loop = rows[0]
    if len(rows) > 1:
        heads = [*(f"{'el' * (n > 0)}if {case}:" for n, case in enumerate([*cases][:-1])), "else:"]
        loop = [line for head, row in zip(heads, rows, strict=True) for line in (head, *("    " + x for x in row))]
    lines = [
        f"ndim = args[{3 + k}]",
        f"last = args[{3 + k} + ndim]",
        "rows = 1",
        "for d in range(ndim - 1):",
        f"    rows *= args[{4 + k} + d]",
        "for row in range(rows):",
        "    rest = row",
        *(f"    p{d} = 0" for d in range(k)),
        "    for d in range(ndim - 2, -1, -1):",
        f"        length = args[{4 + k} + d]",
        *(f"        p{d} += rest % length * args[{4 + k} + d + ndim * {d + 1}]" for d in range(k)),
        "        rest //= length",
        *(f"    s{d} = args[{3 + k} + ndim * {d + 2}]" for d in range(k)),
        *("    " + line for line in loop),
    ]
    return [indent + line for line in lines]


def _columns(body: Sequence[str]) -> list[str]:
    return ["for j in range(last):", *("    " + line for line in body)]


def _lean(k: int, wrap: bool, lean: Sequence[str], body: Sequence[str], strided: Sequence[str]) -> list[str]:
    """The loops over the columns of a row, by whether its indices lie side by side."""
    side_by_side = [f"a{d} = to_int64(i{d}[p{d} + j])" for d in range(k)]
    neighbours = [
        f"elif {' and '.join(f's{d} == 1' for d in range(k))}:",
        *("    " + line for line in _columns([*side_by_side, *body])),
    ]
    constant = "".join(f"s{d} == 0 and " for d in range(k - 1))
    return [
        f"if {constant}s{k - 1} == 1 and last > 0:",
        *(f"    a{d} = to_int64(i{d}[p{d}])" for d in range(k - 1)),
        f"    base = {f'{_place(k - 1, wrap)} * e{k - 1}' if k > 1 else '0'}",
        *("    " + line for line in _columns([side_by_side[k - 1], *lean])),
        *(neighbours if k > 1 else ()),
        "else:",
        *("    " + line for line in strided),
    ]


def _at(d: int, wrap: bool) -> str:
    """The place along a dimension that a valid index names."""
    return f"(a{d} + e{d} if a{d} < 0 else a{d})" if wrap else f"a{d}"


def _place(k: int, wrap: bool) -> str:
    """The place that valid indices a0, a1, ... name."""
    place = _at(0, wrap)
    for d in range(1, k):
        place = f"({place} * e{d} + {_at(d, wrap)})"
    return place


def _move(operation: str, k: int, wrap: bool, single: bool, dtype: Any, kind: str, tell: Sequence[str]) -> list[str]:
    """Loops in which element q of (outer, count, inner) meets element p of (outer, extent, inner).

    Where an index is wrong, their first pass does what `tell` says instead.
    """
    made = _STATEMENTS[operation]
    total, product = "out[{p}] + {value}", "out[{p}] * {value}"
    if np.dtype(dtype).kind == "b":
        total, product = total.replace("+", "|"), product.replace("*", "&")
    elif np.dtype(dtype).kind != "f":
        total, product = f"to_{kind}({total})", f"to_{kind}({product})"
    words = {"sum": total, "product": product, "zero": f"{kind}(0)", "value": "x[0]" if single else "x[{q}]"}

    def statement(p: str, q: str) -> str:
        text = made
        for name, meaning in (*words.items(), ("p", p), ("q", q)):
            text = text.replace(f"{{{name}}}", meaning)
        return text

    one = [statement(f"o * extent + {_place(k, wrap)}", "o * count + row * last + j")]
    lean = [statement(f"o * extent + base + {_at(k - 1, wrap)}", "o * count + row * last + j")]
    begin = [f"p = (o * extent + {_place(k, wrap)}) * inner", "q = (o * count + row * last + j) * inner"]
    slices = [*begin, "for c in range(inner):", f"    {statement('p + c', 'q + c')}"]
    few = {f"inner == {n}": [*begin, *(statement(f"p + {c}", f"q + {c}") for c in range(n))] for n in _FEW}
    few[""] = few.popitem()[1]
    zeros = ["    for i in range(outer * extent * inner if signs >= 0 else 0):", f"        out[i] = {_zero(kind)}"]
    whole = {f"inner == {n}": [*begin, f"for c in range({n}):", *slices[-1:]] for n in _WHOLE if "{sum}" in made}
    cases = {"signs < 0": tell, **whole, "inner != 1": slices, "": one}
    return [
        *(zeros if operation == "put" else []),
        # a nest of its own: LLVM makes a loop per case of small ones only
        f"    few = signs >= 0 and inner >= {_FEW[0]} and inner <= {_FEW[-1]}",
        "    for o in range(outer if few else 0):",
        *_walk(k, wrap, few, "        "),
        "    for o in range(0 if few else outer if signs >= 0 else 1):",
        *_walk(k, wrap, cases, "        ", lean),
    ]


def _zero(kind: str) -> str:
    return "False" if kind == "bool_" else f"{kind}(0)"


def _last(k: int, wrap: bool) -> list[str]:
    writes = [f"at[{_place(k, wrap)}] = row * last + j"]
    reads = ["n = row * last + j", f"out[n] = to_uint8(1 if at[{_place(k, wrap)}] == n else 0)"]
    return [*_walk(k, wrap, {"": writes}, "    "), *_walk(k, wrap, {"": reads}, "    ")]
