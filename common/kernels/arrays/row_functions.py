"""Functions of kernel source beyond scalar operations: sums, extremes and sums of columns.

Loaded when a kernel names one of these; others are in `common.kernels.arrays.array_functions`. Buffers are of float32,
float64 or int64, those of extremes also of bool and the smaller signed ints; offsets and sizes int64.
`common.kernels.arrays.sums` states the meaning of each. ``R`` rows, ``C`` columns.

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
``squares_of_differences``, ``add_slopes``   see `common.kernels.arrays.distance_code`
``fold_rows(acc, a, C)``                  fold LANES rows of C accumulators into the first row
========================================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from common.compiler.machine_functions import MachineFunction
from common.core.dtypes import SUPPORTED
from common.core.numerics import LANES

OF_FLOATS = "squares", "magnitudes", "cubes", "numbers"
"""Sums of functions of floats, see `common.kernels.arrays.fold_rows`."""

BITS = tuple(map(np.dtype, ("uint16", "uint32", "uint64")))
"""Dtypes of elements that are only moved."""

_SUMMED = tuple(map(np.dtype, ("float32", "float64", "int64")))
_ORDERED = (*_SUMMED, *map(np.dtype, ("int32", "int16", "int8", "bool")))


def made_in(module: str, name: str, how: str = "") -> Callable[..., Any]:
    """A function of a module of this folder, which is imported when that is called: kernels only name most of them.

    Parameters
    ----------
    how : the name of a `common.kernels.arrays.fold_rows.RowFold` that it takes.
    """

    def make(*arguments: Any, **options: Any) -> Any:
        if how:
            options["how"] = import_module("common.kernels.arrays.fold_rows").FOLDS[how]
        return getattr(import_module(f"common.kernels.arrays.{module}"), name)(*arguments, **options)

    return make


def define_rows(
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
        define_rows("block_sum", "bii", made_in("fold_rows", "fold_all"), result=True),
        *(
            define_rows(f"block_{name}", "bii", made_in("fold_rows", "fold_all", name), result=True)
            for name in OF_FLOATS
        ),
        define_rows("row_max", "bii", made_in("extremes", "maximum_all"), result=True, ordered=True),
        define_rows("row_min", "bii", made_in("extremes", "minimum_all"), result=True, ordered=True),
        define_rows("max_of_rows", "bibiii", made_in("extremes", "maximum_of_rows"), ordered=True),
        define_rows("min_of_rows", "bibiii", made_in("extremes", "minimum_of_rows"), ordered=True),
        define_rows("start_columns", "biii", made_in("fold_rows", "start_columns")),
        define_rows("carry_columns", "biii", made_in("fold_rows", "carry_columns")),
        define_rows("finish_columns", "biiibi", made_in("fold_rows", "finish_columns")),
        define_rows("whole_columns", "biiibi", made_in("fold_columns", "fold_columns")),
        define_rows("whole_products", "biiibi", made_in("fold_columns", "fold_columns", "product")),
        *(
            define_rows(f"whole_{name}", "biiibi", made_in("fold_columns", "fold_columns", name))
            for name in OF_FLOATS
        ),
        *(
            define_rows(f"{name}_of_differences", "bibibiii", made_in("distance_code", "sums_of_differences", name))
            for name in ("squares", "magnitudes", "largest")
        ),
        define_rows("add_slopes", "bibibibiii", made_in("distance_code", "add_slopes")),
        define_rows("fold_lanes", "bi", made_in("fold_rows", "fold_lanes"), result=True, apart=False),
        define_rows("short_sums", "bibiii", made_in("fold_short_rows", "fold_short_rows")),
        define_rows("short_products", "bibiii", made_in("fold_short_rows", "fold_short_rows", "product")),
        define_rows("fold_rows", "bii", made_in("fold_rows", "fold_rows"), extra=(LANES,)),
        define_rows("turn_rows", "bibiiiii", made_in("turned_rows", "turn_rows"))._replace(dtypes=(*SUPPORTED, *BITS)),
        define_rows("block_product", "bii", made_in("fold_rows", "fold_all", "product"), result=True),
        define_rows("start_products", "biii", made_in("fold_rows", "start_columns", "product")),
        define_rows("carry_products", "biii", made_in("fold_rows", "carry_columns", "product")),
        define_rows("finish_products", "biiibi", made_in("fold_rows", "finish_columns", "product")),
    )
}
