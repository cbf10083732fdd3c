"""Running a program's kernels as plain Python: breakpoints and prints work in them, and the bits are the same.

The generated source is executed as it is; what it calls are the scalar definitions on numpy scalars and the
oracles of sums. Kernels that are not generated (matrix products, gathers) run compiled. Slow: for small arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from common.compiler.compile import compile_kernel
from common.compiler.primitives import convert, evaluate
from common.core.numerics import BLOCK, LANES
from common.core.polynomials import Atom
from common.evaluate.kernels import scalar_expression
from common.kernels.arrays.sums import sum_oracle
from common.runtime.builtins import make_call

if TYPE_CHECKING:
    from static.lowering.lowered_program import LoweredProgram


def run_unjitted(program: LoweredProgram, env: Mapping[Atom, int], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a program on arrays in the order of the graph's inputs; state is written as by a plan.

    Parameters
    ----------
    env : size of every dimension that a Dim names.

    Raises
    ------
    RuntimeError : a kernel returned a status.
    """
    frame = program.frame
    values = frame.evaluate(env)
    memory: list[np.ndarray] = [np.asarray(x).reshape(-1) for x in arrays]
    outputs = []
    for output in frame.outputs:
        outputs.append(np.empty([values[i] for i in output.shape], output.dtype))
        memory.append(outputs[-1].reshape(-1))
    for t in frame.temporaries:
        nbytes = values[t.size[0]] if t.columns is None else t.columns.nbytes(*(values[i] for i in t.size))
        memory.append(np.empty(nbytes, np.uint8))
    for dtype, number, index in frame.constants:
        memory.append(np.array([number if index is None else values[index]], dtype))
    for step, call in zip(program.steps, frame.calls, strict=True):
        bufs, args = [memory[slot] for slot in call.slots], [values[i] for i in call.ints]
        if step.groups[0].native:
            status = make_call(compile_kernel(step.source, step.name))(*bufs, *args)
        else:
            status = python_kernel(step.source, step.name)(bufs, args)
        if status:
            raise RuntimeError(f"kernel {step.name} returned status {status}")
    return outputs


def python_kernel(source: str, name: str) -> Callable[[list[np.ndarray], list[int]], int]:
    """A generated kernel as a Python function of buffers (flat arrays or bytes) and ints."""
    namespace: dict[str, Any] = _Namespace()
    exec(compile(source, f"<kernel {name}>", "exec"), namespace)
    return namespace[name]


class _Namespace(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        if name.startswith("to_"):
            target = np.dtype(name[3:])
            return lambda x: _scalar(lambda v: convert(v, target), x)
        definition = scalar_expression(name)
        if definition is not None:
            return lambda *operands: _scalar(definition, *operands)
        if hasattr(np, name):
            return getattr(np, name)
        raise KeyError(name)


def _scalar(definition: Callable[..., Any], *operands: Any) -> Any:
    typed: list[Any] = [np.int64(x) if type(x) is int else np.bool_(x) if type(x) is bool else x for x in operands]
    return np.asarray(evaluate(definition, *typed))[()]


def _buffer(bufs: list[np.ndarray], slot: int, dtype: Any) -> np.ndarray:
    memory = bufs[slot]
    return memory if memory.dtype == dtype else memory.view(dtype)


def _block_sum(x: np.ndarray, offset: int, n: int) -> Any:
    return sum_oracle(x[offset : offset + n])


def _block_of(name: str) -> Callable[[np.ndarray, int, int], Any]:
    def block(x: np.ndarray, offset: int, n: int) -> Any:
        part = x[offset : offset + n]
        size = np.abs(part)
        with np.errstate(all="ignore"):
            of = {"squares": part * part, "magnitudes": size, "cubes": size * size * size}
        return sum_oracle(of[name] if name in of else np.where(np.isnan(part), part.dtype.type(0), part))

    return block


def _block_product(x: np.ndarray, offset: int, n: int) -> Any:
    return sum_oracle(x[offset : offset + n], product=True)


def _whole(block: Callable[[np.ndarray, int, int], Any]) -> Callable[..., None]:
    def columns_of(x: np.ndarray, offset: int, rows: int, columns: int, out: np.ndarray, start: int) -> None:
        table = x[offset : offset + rows * columns].reshape(rows, columns)
        for i in range(columns):
            out[start + i] = block(np.ascontiguousarray(table[:, i]), 0, rows)

    return columns_of


def _extreme(name: str) -> Callable[[np.ndarray, int, int], Any]:
    def row(x: np.ndarray, offset: int, n: int) -> Any:
        if n == 0:
            return np.bool_(name == "minimum")  # only truth values have an extreme of none
        best = x[offset]
        for i in range(1, n):
            best = _scalar(scalar_expression(name), best, x[offset + i])
        return best

    return row


def _extreme_of_rows(name: str) -> Callable[..., None]:
    def rows_of(to: np.ndarray, start: int, x: np.ndarray, offset: int, columns: int, rows: int) -> None:
        for i in range(columns):
            for row in range(rows):
                to[start + i] = _scalar(scalar_expression(name), to[start + i], x[offset + row * columns + i])

    return rows_of


def _turn_rows(
    to: np.ndarray, start: int, x: np.ndarray, offset: int, row: int, step: int, rows: int, columns: int
) -> None:
    for c in range(columns):
        for r in range(rows):
            to[start + r * row + c] = x[offset + c * step + r]


class _ColumnLanes:
    """Accumulators of columns, for sums or for products."""

    def __init__(self, product: bool) -> None:
        self.product = product
        self.combine = np.multiply if product else np.add

    def start(self, acc: np.ndarray, offset: int, columns: int, rows: int) -> None:
        acc[:] = self.product

    def fold(self, acc: np.ndarray, level: int, columns: int) -> np.ndarray:
        size = LANES * columns
        lanes = acc[level * size : (level + 1) * size].reshape(LANES, columns)
        total = np.ascontiguousarray(sum_oracle(np.ascontiguousarray(lanes.T), self.product))
        lanes[:] = self.product
        return total

    def lift(self, acc: np.ndarray, level: int, columns: int, number: int) -> None:
        """The fold of a level as one row of the next."""
        total = self.fold(acc, level, columns)
        lane = (level + 1) * LANES * columns + (number & (LANES - 1)) * columns
        acc[lane : lane + columns] = self.combine(acc[lane : lane + columns], total)

    def carry(self, acc: np.ndarray, offset: int, columns: int, block: int) -> None:
        level = 0
        while True:
            self.lift(acc, level, columns, block)
            if block & (BLOCK - 1) != BLOCK - 1:
                return
            level, block = level + 1, block // BLOCK

    def finish(self, acc: np.ndarray, offset: int, columns: int, rows: int, out: np.ndarray, start: int) -> None:
        level, number = 0, (rows - 1) // BLOCK
        while rows > BLOCK:
            self.lift(acc, level, columns, number)
            level, number, rows = level + 1, number // BLOCK, -(-rows // BLOCK)
        out[start : start + columns] = self.fold(acc, level, columns)


_OF_FLOATS = "squares", "magnitudes", "cubes", "numbers"
_SUMS, _PRODUCTS = _ColumnLanes(False), _ColumnLanes(True)
_FUNCTIONS: dict[str, Any] = {
    "wide": lambda *_: None,
    "buffer": _buffer,
    "range": range,
    "min": min,
    "bool_": np.bool_,
    "block_sum": _block_sum,
    "fold_lanes": lambda x, offset: _block_sum(x, offset, LANES),
    **{f"block_{name}": _block_of(name) for name in _OF_FLOATS},
    "whole_columns": _whole(_block_sum),
    "whole_products": _whole(_block_product),
    **{f"whole_{name}": _whole(_block_of(name)) for name in _OF_FLOATS},
    "turn_rows": _turn_rows,
    "row_max": _extreme("maximum"),
    "row_min": _extreme("minimum"),
    "max_of_rows": _extreme_of_rows("maximum"),
    "min_of_rows": _extreme_of_rows("minimum"),
    "block_product": _block_product,
    "start_columns": _SUMS.start,
    "carry_columns": _SUMS.carry,
    "finish_columns": _SUMS.finish,
    "start_products": _PRODUCTS.start,
    "carry_products": _PRODUCTS.carry,
    "finish_products": _PRODUCTS.finish,
}
