"""Every elementwise op of the registry, compiled against eager: sizes, shapes, layouts, special values."""

from __future__ import annotations

import numpy as np
import pytest

import common.ops.functional
from common.core.dtypes import shown_name
from common.core.errors import DTypeError
from common.core.op import REGISTRY, Op
from static.jit.function import CompiledFunction
from tests.helpers import proofs
from tests.helpers.proofs import chosen, core, no, rotated, share
from tests.helpers.wrapped import wrap
from tests.parity.arrays import SIZES, mixed, normal, pairs, special, strided
from tests.parity.engines import Derivatives

assert common.ops.functional  # defines the ops
OPS = [op for op in REGISTRY.values() if op.kind == "elementwise" and not op.attrs]


def refused(op, *dtypes):
    """Whether an op has to refuse operands of these dtypes."""
    kinds = [np.dtype(dtype).kind for dtype in dtypes]
    refuses = "biu" if op.domain == "real" else op.refuses
    return all(kind in refuses for kind in kinds) or ("B" in refuses and "b" in kinds)


def said(op):
    """What an op is called where it refuses."""
    return shown_name(op) if op.domain == "real" else op.name


FLOATING = [op for op in OPS if "f" not in op.refuses]
BINARY = [op for op in FLOATING if len(op.inputs) == 2]
FLOATS = ("float32", "float64")
SHAPES = {
    1: [((),), ((5, 7),)],
    2: [((5, 7), (5, 7)), ((5, 7), (7,)), ((5, 1), (1, 7)), ((), (5, 7)), ((), ()), ((0, 3), (3,))],
    3: [((5, 7), (5, 7), (5, 7)), ((5, 7), (7,), (5, 1)), ((), (5, 7), ()), ((2, 1, 3), (4, 1), (1,))],
    4: [((5, 7), (5, 7), (5, 7), (5, 7)), ((5, 7), (7,), (), ()), ((5, 1), (), (1, 7), ())],
    5: [((5, 7),) * 5, ((5, 7), (7,), (), (), (5, 1))],
    7: [((5, 7),) * 7, ((), (5, 1), (1, 7), (), (7,), (5, 7), ())],
}
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")


def operands(op: Op, draw, shapes, dtype: str):
    """Operands of an op; the condition of `where` is bool."""
    return [draw(s, "bool" if n == "condition" else dtype) for n, s in zip(op.inputs, shapes, strict=True)]


@pytest.mark.parametrize(("op", "dtype"), rotated(FLOATING, FLOATS, core=lambda op: True))
def test_sizes_and_special_values(op, dtype):
    rng = np.random.default_rng(1)
    program = Derivatives(op)
    sizes = SIZES if dtype != chosen(op, FLOATS) else (0, *SIZES[share(op.name, 3) :: 3])
    for n in (33,) if proofs.quick else sizes:
        program.check(operands(op, lambda s, d: mixed(rng, s, d), [(n,)] * len(op.inputs), dtype), rng, op.name)
    values = pairs(rng, len(op.inputs), dtype)
    if "condition" in op.inputs:
        values[0] = rng.integers(0, 2, values[0].shape).astype(bool)
    program.check(values, rng, op.name, interpreter=True)


@pytest.mark.parametrize(("op", "dtype"), rotated(FLOATING, FLOATS, seldom=lambda op: share(op.name, 2) == 0))
def test_broadcasting(op, dtype):
    rng = np.random.default_rng(2)
    program = Derivatives(op, 1 if dtype == chosen(op, FLOATS) else 2, unfused=False)
    for shapes in SHAPES[len(op.inputs)]:
        program.check(operands(op, lambda s, d: mixed(rng, s, d), shapes, dtype), rng, op.name)


@pytest.mark.parametrize("op", core(OPS, no, seldom=lambda op: share(op.name, 2) == 1))
def test_memory_layouts(op):
    rng = np.random.default_rng(3)
    program = Derivatives(op, order=1, unfused=False)
    dtype = "int32" if "f" in op.refuses else "float32"
    dense = operands(op, lambda s, d: mixed(rng, s, d), [(5, 7)] * len(op.inputs), dtype)
    layouts = [list(strided(x)) for x in dense]
    for position in range(len(layouts[0])):
        program.check([x[position] for x in layouts], rng, f"{op.name}, layout {position}")
    for position, x in enumerate(dense):
        others = [next(iter(strided(x))) if i == position else y for i, y in enumerate(dense)]
        program.check(others, rng, f"{op.name}, operand {position} strided")


@pytest.mark.parametrize(("op", "taken"), rotated(OPS, ("bool, int32", "uint8, int64", "int8, int16")))
def test_integers_and_bools(op, taken):
    rng = np.random.default_rng(4)
    program = Derivatives(op, order=0, unfused=False)
    for dtype in INTEGERS:
        arrays = operands(op, lambda s, d: mixed(rng, s, d, 0.3), [(33,)] * len(op.inputs), dtype)
        if not refused(op, dtype):
            if dtype in taken.split(", "):
                program.check(arrays, rng, op.name)
            continue
        for run in (op, CompiledFunction(op)):
            with pytest.raises(DTypeError, match=f"{said(op)}.*not implemented for {dtype}"):
                run(*map(wrap, arrays))


MIXED = [("int32", "float32"), ("float64", "int8"), ("bool", "float32"), ("float32", "float64"), ("uint8", "int64")]


@pytest.mark.parametrize(("op", "dtypes"), rotated(BINARY, MIXED))
def test_promotion(op, dtypes):
    rng = np.random.default_rng(5)
    program = Derivatives(op, order=1, unfused=False)
    if refused(op, *dtypes):
        with pytest.raises(DTypeError, match=f"{said(op)}.*not implemented"):
            op(*(wrap(normal(rng, (9,), d)) for d in dtypes))
        return
    program.check([normal(rng, (9,), d) for d in dtypes], rng, op.name)
    program.check([normal(rng, (), dtypes[0]), normal(rng, (9,), dtypes[1])], rng, op.name)


@pytest.mark.parametrize(
    ("op", "dtype"), rotated(BINARY, FLOATS, core=lambda op: op.name in ("add", "sub", "mul", "div"))
)
def test_numbers(op, dtype):
    """A Python number is rounded once to the dtype of the other operand, written in the program or given to it."""
    rng = np.random.default_rng(6)
    numbers = (0.1, -2, 3, 0.5, 0, 1, *(() if "B" in op.refuses else (True,)))
    program = Derivatives(lambda x: tuple(op(x, n) for n in numbers), order=1, unfused=False)
    reflected = Derivatives(lambda x: tuple(op(n, x) for n in numbers), order=1, unfused=False)
    for p in (program, reflected):
        p.check([np.concatenate([special(dtype), normal(rng, (33,), dtype)])], rng, op.name)
