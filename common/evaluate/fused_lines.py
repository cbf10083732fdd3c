"""Elementwise ops of a rule or composite as one kernel, without storing intermediates (benchmarks/backward_passes.py).

Every op of the kernel is the scalar expression of its record, rounded as if it were stored: the bits are those of the
ops one by one. Fused are ops with results of one shape, conversions, comparisons and choices among them, each of
operands of one dtype; an op whose result something else has needed before is read from memory, as are ints that
several need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.compiler.loop_ir import Call, Let
from common.core.op import Op
from common.core.python_numbers import check_range
from common.evaluate import kernels as eager_kernels
from common.evaluate import specialise as eager
from common.kernels.arrays import mapped_sums
from common.runtime.builtins import make_call, make_elementwise
from common.runtime.call_text import MAX_INPUTS

NUMBERS = (int, float)
bool_ = np.dtype(np.bool_)

#: Ops and their operands: ("t", position of an op), ("x", position of an input), ("n", number).
Program = Sequence[tuple[Any, Sequence[tuple[str, Any]]]]
_WHOLE = 1 << 53
"""Whole numbers of a smaller size are written into kernels of ints."""


class Conversion(NamedTuple):
    """An op that converts, where a program has an op: with the name of its scalar function."""

    op: Op
    attrs: Any
    name: str
    costly: bool = False


class TypedNumber(NamedTuple):
    """A number of another dtype than that of most of a program."""

    value: int | float
    dtype: np.dtype[Any]


class DelayedOp(NamedTuple):
    """An elementwise op on terms and numbers, and how it runs alone: the builtin, and what takes any layout.

    Attributes
    ----------
    dtype : in which it computes.
    attrs : of a conversion.
    """

    op: Op
    operands: tuple[Any, ...]
    builtin: Any
    otherwise: Any
    dtype: Any
    attrs: Any = None

    def is_fusible(self, spec: Any) -> bool:
        """Whether it may be part of a kernel: operands have one dtype, as the result if it is no conversion, or are
        truth values; numbers are finite.
        """
        if spec.dtype not in (self.dtype, bool_) and not self.attrs:
            return False
        return all(map(self._fits, self.op.inputs, self.operands))

    def _fits(self, name: str, x: Any) -> bool:
        wanted = bool_ if name == "condition" else self.dtype
        if type(x) in NUMBERS:
            if wanted.kind in "iu":
                return type(x) is int and abs(x) < _WHOLE
            return wanted.kind == "f" and math.isfinite(_rounded(x, wanted))
        return hasattr(x, "spec") and not isinstance(x.spec, type) and bool(x.spec.dtype == wanted)

    def is_of_floats(self) -> bool:
        """Whether no operand is a truth value, nor the result, and nothing is converted."""
        if self.attrs:
            return False
        floats = all(x.spec.dtype == self.dtype for x in self.operands if type(x) not in NUMBERS)
        return self.dtype.kind == "f" and self.op.result != "bool" and floats

    def step(self) -> Op | Conversion:
        """The op as it stands in a program."""
        return Conversion(self.op, self.attrs, f"to_{np.dtype(self.attrs['dtype']).name}") if self.attrs else self.op

    def number(self, x: int | float, dtype: np.dtype) -> tuple[str, Any]:
        """The place of an operand that is a number, in a program of which most has one dtype."""
        return "n", x if self.dtype in (dtype, bool_) else TypedNumber(x, self.dtype)


_NARROW = 16
"""Rows with fewer elements fill no vector; costly functions of such are computed from a result that lies flat."""

_FEW = 4
"""Columns that a kernel of one program writes out: it is compiled when it first runs."""


class Fused(NamedTuple):
    """A kernel: its builtin, which declines what is not contiguous, what takes any layout, and the terms they read."""

    builtin: Any
    otherwise: Callable[..., Any]
    inputs: list[Any]


def _rounded(x: float, dtype: np.dtype) -> float:
    if type(x) is int:
        check_range(x)
    with np.errstate(all="ignore"):
        return float(np.array(x).astype(dtype))


def fused(root: Any) -> Fused | None:
    """A delayed term as one kernel with all that it alone is made of; None if nothing can be fused with it."""
    program, inputs, _ = collected(root)
    if len(program) < 2 or len(inputs) > MAX_INPUTS:
        return None
    shape, dtype = root.spec.shape, root.spec.dtype
    dtypes = tuple(x.spec.dtype for x in inputs)
    if shape is None:
        kernel = eager_kernels.address(_source(program, dtypes, root, "f" * len(inputs)), "fused", False)
        return Fused(make_elementwise(dtypes, dtype, kernel), _one_by_one(program), inputs)
    classes, ints = eager_kernels.arrange([x.spec.shape for x in inputs], shape)
    costly = any(op.costly for op, _ in program)
    if None in classes or (len(ints) > 1 and ints[1] < _NARROW and costly):
        return None
    short = eager_kernels.short_columns([op.name for op, _ in program], classes, ints, _FEW)
    kernel = eager_kernels.address(_source(program, dtypes, root, "".join(map(str, classes)), short), "fused", False)
    units = eager_kernels.unit_bytes(classes, ints, (*dtypes, dtype))
    builtin = eager_kernels.fixed(kernel, dtypes, shape, dtype, ints, units=units)
    body = expressions(program, _float_dtype(root) or bool_)

    def way_of(arrays: Sequence[Any]) -> Any:
        from common.evaluate import strided_loops
        from common.evaluate.layouts import all_dense

        if (how := strided_loops.reading(arrays, shape, costly=costly)) is not None:
            source = strided_loops.source("fused", body, dtypes, dtype, how.letters, how.outer)
            return how.run(eager_kernels.compiled(source, "fused", False), dtypes, shape, dtype)
        loop = make_call(kernel)

        def of_copies(*arrays: Any) -> Any:
            out = np.empty(shape, dtype)
            loop(*all_dense(arrays), out, *ints)
            return out

        return of_copies

    return Fused(builtin, eager_kernels.by_layout(way_of), inputs)


def fused_sum(root: Any, dims: tuple[int, ...], spec: Any) -> Fused | None:
    """The sum of a delayed term over its first or last dimensions, or both, without storing the term; None where that
    is not possible.

    Not where it costs more than memory: an expensive function is computed once, for all who need it.

    Parameters
    ----------
    spec : of the result.
    """
    if root.written or type(root.made) is not DelayedOp or not dims or root.spec.shape is None:
        return None
    if root.spec.dtype != spec.dtype:
        return None
    from common.evaluate import reduction_kernels

    shape, dtype = root.spec.shape, spec.dtype
    by_rows, by_columns = dims == tuple(range(dims[0], len(shape))), dims == tuple(range(len(dims)))
    parts = None if by_rows or by_columns else reduction_kernels.channels(shape, dims)
    if not (by_rows or by_columns or parts) or 0 in shape:
        return None
    program, inputs, _ = collected(root)
    if parts is not None:
        classes = [eager_kernels.class_in_blocks(x.spec.shape, shape, *parts) for x in inputs]
    else:
        split = dims[0] if by_rows else len(dims)
        classes = [eager_kernels.class_of(x.spec.shape, shape, split) for x in inputs]
    if len(inputs) > MAX_INPUTS or None in classes or is_costly(root):
        return None
    if any(x.spec.dtype != dtype for x in inputs):
        return None
    body, letters = expressions(program, dtype), "".join(map(str, classes))
    if parts is not None:
        builtin, run = reduction_kernels.sum_of_channels(body, letters, shape, parts, dtype, spec.shape)
        return Fused(builtin or run, run, inputs)
    ints: tuple[int, ...]
    summed = math.prod(shape[d] for d in dims)
    others = math.prod(shape) // summed
    if by_rows:
        source, name, ints = mapped_sums.expression_source(body, dtype, letters), "expression_rows", (others, summed)
    else:
        source, name = mapped_sums.expression_columns_source(body, dtype, letters), "expression_cols"
        ints = (1, summed, others)
    held = dtype.itemsize * mapped_sums.scratch("expression", summed, 0 if by_rows else others)
    builtin, run = reduction_kernels.with_scratch(
        source, name, (dtype,) * len(inputs), spec.shape, dtype, ints, held, False
    )
    return Fused(builtin or run, run, inputs)


def is_costly(x: Any) -> bool:
    """Whether a term is delayed and made with an expensive function."""
    return not x.written and type(x.made) is DelayedOp and any(op.costly for op, _ in collected(x)[0])


def collected(*roots: Any) -> tuple[Program, list[Any], list[tuple[str, Any]]]:
    """The ops that delayed terms of one shape are made of, up to what is written or has another shape; what they read;
    and where the terms are.
    """
    program: list[tuple[Any, list[tuple[str, Any]]]] = []
    places: dict[int, tuple[str, Any]] = {}
    inputs: list[Any] = []
    dtype = next(filter(None, map(_float_dtype, roots)), bool_)

    def place(x: Any) -> tuple[str, Any]:
        if id(x) not in places:
            made = None if x.written or x.spec.shape != roots[0].spec.shape else x.made
            if type(made) is not DelayedOp or (x.uses > 1 and x.spec.dtype.kind in "iu" and x is not roots[0]):
                places[id(x)] = "x", len(inputs)
                inputs.append(x)
            else:
                operands = [made.number(z, dtype) if type(z) in NUMBERS else place(z) for z in made.operands]
                places[id(x)] = "t", len(program)
                program.append((made.step(), operands))
        return places[id(x)]

    return program, inputs, list(map(place, roots))


def _float_dtype(x: Any) -> np.dtype | None:
    """The dtype in which a delayed term is computed; of truth values that of what they are made of, if there is one."""
    if x.written or type(x.made) is not DelayedOp:
        return x.spec.dtype if x.spec.dtype.kind == "f" else None
    if x.made.dtype.kind == "f":
        return x.made.dtype
    return next(filter(None, (_float_dtype(z) for z in x.made.operands if type(z) not in NUMBERS)), None)


def _source(program: Program, dtypes: Sequence[np.dtype], root: Any, classes: str, short: int = 0) -> str:
    """Kernel source of the ops over rows x columns; classes of operands as in `eager_kernels.loop_source`, and of each
    row that many columns written out.
    """
    body = expressions(program, _float_dtype(root) or bool_)
    return eager_kernels.loop_source("fused", body, dtypes, root.spec.dtype, classes, columns=short)


def expressions(program: Program, dtype: np.dtype) -> list[Let]:
    """Assignments to ``t0``, ``t1``, ... of elements ``x0``, ``x1``, ..."""
    return [
        Let(f"t{i}", Call(op.name, [argument(*x, dtype) for x in operands])) for i, (op, operands) in enumerate(program)
    ]


def argument(kind: str, value: Any, dtype: np.dtype) -> str:
    """An operand in a kernel's text."""
    if type(value) is TypedNumber:
        return argument(kind, *value)
    if kind == "n" and dtype.kind in "iu":
        return f"{dtype.name}({int(np.array(value).astype(dtype))!r})"
    return f"{dtype.name}({_rounded(value, dtype)!r})" if kind == "n" else f"{kind}{value}"


def _number(x: Any) -> int | float:
    return x.value if type(x) is TypedNumber else x


def _one_by_one(program: Program) -> Callable[..., Any]:
    """The ops one after the other, for operands of any layout."""

    def run(*inputs: Any) -> Any:
        done: list[Any] = []
        for op, operands in program:
            values = [done[v] if kind == "t" else inputs[v] if kind == "x" else _number(v) for kind, v in operands]
            done.append(eager.run(*((op.op, values, op.attrs) if type(op) is Conversion else (op, values, {}))))
        return done[-1]

    return run
