"""Functions of kernel source beyond scalar operations: sums, extremes and sums of columns.

Needs llvmlite; loaded when a kernel names one of these. Buffers are of float32, float64 or int64, those of extremes
also of bool and the smaller signed ints; offsets and sizes int64. `common.kernels.arrays.sums` states the meaning of
each. ``R`` rows, ``C`` columns.

========================================  ==========================================================
call                                      meaning
========================================  ==========================================================
``block_sum(buf, offset, n)``             S of ``buf[offset : offset + n]``, any n >= 0
``row_max(buf, offset, n)``               maximum of n >= 1 elements (n >= 0 bools); NaN if any is
``row_min(buf, offset, n)``               minimum, likewise
``max_of_rows(to, t, x, o, C, R)``         to[t + i] = max(to[t + i], x[o + i], x[o + C + i], ...); two buffers
``min_of_rows(to, t, x, o, C, R)``         minimum, likewise
``start_columns(acc, a, C, R)``           zero the accumulators for R rows
``carry_columns(acc, a, C, block)``       close block number ``block`` when a row follows it
``finish_columns(acc, a, C, R, out, o)``  write the C sums to ``out[o:]``
``whole_columns(x, a, R, C, out, o)``     the C sums of R rows to ``out[o:]``; R <= BLOCK, C >= a vector's
``block_squares(buf, offset, n)``, ...    S of a function of floats: squares, magnitudes, cubes, numbers
``short_sums(x, o, out, a, R, C)``          ``out[a + r] = S(x[o + r C : o + (r + 1) C])``, R a multiple of LANES
``short_products(x, o, out, a, R, C)``     the same of products
``fold_lanes(acc, a)``                    S of LANES accumulators
``turn_rows(to, t, x, o, lt, lx, R, C)``   to[t + r lt + c] = x[o + c lx + r], a copy transposed
``block_product(buf, offset, n)``         the product, in the order of S
``start_products``, ``carry_products``,   as for sums
``finish_products``, ``whole_products``
``whole_squares``, ...                    as ``whole_columns``
``fold_rows(acc, a, C)``                  fold LANES rows of C accumulators into the first row
``uniform_float32(seed, index)``, ...     see `common.kernels.arrays.philox`
``float_of_bits(word)``                    the float64 whose bit pattern is an int64 arg
``sort_key(x)``                            see `common.kernels.arrays.sorting`
``rising_key(x)``, ``falling_key(x)``      see `common.kernels.arrays.arg_extremes`
``multiply(a, i, b, j, c, l, ...)``       a product of matrices, see `common.kernels.arrays.gemm_code`
``multiply_vector(a, i, b, j, ...)``      one of a matrix and a vector
``multiply_panel(a, i, ...)``              one of a panel of the right operand, which `pack_left` and others make
``multiply_windows(a, i, ...)``            one of windows of an image, where they lie
``panel_width(a)``, ``panel_height(a)``    how many columns and rows panels have here; no bit depends on it
``first_maximum(buf, offset, n)``          where the maximum is: the first one, or the last NaN
``sums_of_windows_1_2``, ...                 see `common.kernels.arrays.window_rows_code`
``copy_windows``, ``copy_places``, ...      see `common.kernels.arrays.window_code`
``there_are_threads(a)``                   whether `share_tiles` may be called; 0 or 1
``share_tiles(bufs, args, a, n, tasks)``  all tiles of a product of a's dtype, by threads; n args
``there_are_helpers(a)``                   whether `share_parts` may be called
``share_parts(bufs, args, a, n, tasks)``  parts of the kernel that calls it, see `common.kernels.arrays.shared_parts`
``share_attention(bufs, args, ...)``, ...  the items of another kernel
========================================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from common.compiler.machine_functions import MachineFunction
from common.compiler.primitives import from_bits
from common.core.dtypes import SUPPORTED
from common.core.numerics import LANES
from common.kernels.arrays import (
    arg_extremes,
    attention_blocks,
    fold_rows,
    philox,
)
from common.kernels.arrays.convolutions import KERNELS
from common.kernels.arrays.sorting import sort_key
from common.kernels.arrays.window_maxima import WIDTHS
from common.kernels.arrays.window_rows import NEAR

_SUMMED = tuple(map(np.dtype, ("float32", "float64", "int64")))
_BITS = tuple(map(np.dtype, ("uint16", "uint32", "uint64")))  # of elements that are only moved
_ORDERED = (*_SUMMED, *map(np.dtype, ("int32", "int16", "int8", "bool")))


def _of_products(make: Callable[..., Any]) -> Callable[..., Any]:
    return partial(make, how=fold_rows.PRODUCT)


def _in(module: str, name: str) -> Callable[..., Any]:
    """A function of a module of this folder, which is imported when that is called: kernels only name most of them."""

    def make(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(f"common.kernels.arrays.{module}"), name)(*arguments, **options)

    return make


def _define(
    name: str,
    pattern: str,
    make: Callable[..., Any],
    result: bool = False,
    ordered: bool = False,
    apart: bool = True,
    **more: Any,
) -> MachineFunction:
    """A function of buffers that perhaps returns an element; an `ordered` one takes more dtypes."""
    returned, dtypes = "element" if result else "", _ORDERED if ordered else _SUMMED
    return MachineFunction(name, pattern, make, returned, dtypes=dtypes, apart=apart, **more)


NAMESPACE: dict[str, Any] = {
    function.name: function
    for function in (
        _define("block_sum", "bii", fold_rows.fold_all, result=True),
        *(
            _define(f"block_{name}", "bii", partial(fold_rows.fold_all, how=how), result=True)
            for name, how in fold_rows.OF_FLOATS.items()
        ),
        _define("row_max", "bii", _in("extremes", "maximum_all"), result=True, ordered=True),
        _define("row_min", "bii", _in("extremes", "minimum_all"), result=True, ordered=True),
        _define("max_of_rows", "bibiii", _in("extremes", "maximum_of_rows"), ordered=True),
        _define("min_of_rows", "bibiii", _in("extremes", "minimum_of_rows"), ordered=True),
        _define("start_columns", "biii", fold_rows.start_columns),
        _define("carry_columns", "biii", fold_rows.carry_columns),
        _define("finish_columns", "biiibi", fold_rows.finish_columns),
        _define("whole_columns", "biiibi", _in("fold_columns", "fold_columns")),
        _define("whole_products", "biiibi", _of_products(_in("fold_columns", "fold_columns"))),
        *(
            _define(f"whole_{name}", "biiibi", partial(_in("fold_columns", "fold_columns"), how=how))
            for name, how in fold_rows.OF_FLOATS.items()
        ),
        _define("fold_lanes", "bi", fold_rows.fold_lanes, result=True, apart=False),
        _define("short_sums", "bibiii", _in("fold_short_rows", "fold_short_rows")),
        _define("short_products", "bibiii", _of_products(_in("fold_short_rows", "fold_short_rows"))),
        _define("fold_rows", "bii", fold_rows.fold_rows, extra=(LANES,)),
        _define("turn_rows", "bibiiiii", _in("turned_rows", "turn_rows"))._replace(dtypes=(*SUPPORTED, *_BITS)),
        *(
            _define(f"huge_{name}", "ibibi", partial(_in("huge_angles", "take_each"), function=f"huge_{name}"))
            for name in ("sin", "cos", "tan")
        ),
        _define("block_product", "bii", _of_products(fold_rows.fold_all), result=True),
        _define("start_products", "biii", _of_products(fold_rows.start_columns)),
        _define("carry_products", "biii", _of_products(fold_rows.carry_columns)),
        _define("finish_products", "biiibi", _of_products(fold_rows.finish_columns)),
        _define("multiply", "bibibiiiiiiiii", _in("gemm_code", "multiply")),
        _define("multiply_vector", "bibibiiiii", _in("gemv_code", "multiply_vector")),
        _define("multiply_panel", "biiiiibiiibiii", _in("gemm_code", "multiply_panel")),
        _define("multiply_windows", "biiiiibiiibiiiiiiiiii", _in("gemm_code", "multiply_windows")),
        _define("pack_left", "biiiibi", _in("gemm_code", "pack_left")),
        _define("pack_left_turned", "biiiibi", _in("gemm_code", "pack_left_turned")),
        _define("pack_right_turned", "biiiibi", _in("gemm_code", "pack_right_turned")),
        _define("panel_width", "t", _in("gemm_code", "panel_width"), apart=False)._replace(result="word"),
        _define("panel_height", "t", _in("gemm_code", "panel_height"), apart=False)._replace(result="word"),
        _define("copy_windows", "bibiiiiiiii", _in("window_code", "copy_windows")),
        _define("copy_places", "bibibiiii", _in("window_code", "copy_places")),
        _define("add_windows", "bibiiiiiii", _in("window_code", "add_windows")),
        _define("add_products", "bibibiiiiiii", _in("window_code", "add_products")),
        _define("fuse_windows", "bibibiiiiiiii", _in("window_code", "fuse_windows")),
        _define("sum_windows", "bibibiiiiiiiiiiii", _in("window_code", "sum_windows")),
        *(
            _define(f"{name}_of_windows_{step}_{size}", "bibi" + 13 * "i",
                    partial(_in("window_rows_code", f"{name}_of_windows"), step=step, size=size))
            for name, step, size in product(("sums", "maxima"), NEAR, NEAR)
        ),
        _define("first_maximum", "bii", _in("first_maximum_code", "first_maximum"))._replace(result="word"),
        *(
            _define(f"put_at_maxima_{size}", "bibibi" + 8 * "i",
                    partial(_in("window_maxima_code", "put_at_maxima"), size=size))
            for size in WIDTHS
        ),
        _define("fuse_lanes", "bibibiii", _in("window_chains", "fuse_lanes")),
        _define("add_places", "bibibiiiiiiiiiii", _in("window_chains", "add_places")),
        _define("fuse_places", "bibibiiiiiiiiiiii", _in("window_chains", "fuse_places")),
        _define("there_are_threads", "t", _in("gemm_threads", "there_are_threads"), apart=False)._replace(
            result="word"
        ),
        _define("share_tiles", "wwtii", _in("gemm_threads", "share_tiles"), apart=False),
        _define("there_are_helpers", "t", _in("gemm_threads", "there_are_helpers"), apart=False)._replace(
            result="word", dtypes=(*SUPPORTED, *_BITS)
        ),
        _define("share_parts", "wwtii", _in("gemm_threads", "share_parts"), apart=False)._replace(
            dtypes=(*SUPPORTED, *_BITS)
        ),
        *(
            _define(f"share_{kernel}", "wwtii", partial(_in("gemm_threads", "share_items"), kernel=kernel), apart=False)
            for kernel in (*attention_blocks.KERNELS, *KERNELS)
        ),
    )
}
NAMESPACE |= {"float_of_bits": from_bits, "sort_key": sort_key, **philox.SCALARS, **arg_extremes.SCALARS}
