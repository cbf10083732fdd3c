"""Functions of kernel source beyond scalar operations and rows: products, windows, shares of threads, draws, keys.

Loaded when a kernel names one that `common.kernels.arrays.row_functions` does not have, which says what is the same.

========================================  ==========================================================
call                                      meaning
========================================  ==========================================================
``uniform_float32(seed, index)``, ...     see `common.kernels.arrays.philox`
``float_of_bits(word)``                    the float64 whose bit pattern is an int64 arg
``sort_key(x)``                            see `common.kernels.arrays.sorting`
``rising_key(x)``, ``falling_key(x)``      see `common.kernels.arrays.arg_extremes`
``multiply(a, i, b, j, c, l, ...)``       a product of matrices, see `common.kernels.arrays.gemm_code`
``multiply_vector(a, i, b, j, ...)``      one of a matrix and a vector
``multiply_panel(a, i, ...)``              one of a panel of the right operand, which `pack_left` and others make
``multiply_windows(a, i, ...)``            one of windows of an image, where they lie
``multiply_places(a, i, ...)``             one of rows of them, see `common.kernels.arrays.places_code`
``panel_width(a)``, ``panel_height(a)``    how many columns and rows panels have here; no bit depends on it
``first_maximum(buf, offset, n)``          where the maximum is: the first one, or the last NaN
``sums_of_windows_1_2``, ...                 see `common.kernels.arrays.window_rows_code`
``copy_windows``, ``lay_windows``, ...      see `common.kernels.arrays.window_code`
``there_are_threads(a)``                   whether `share_tiles` may be called; 0 or 1
``share_tiles(bufs, args, a, n, tasks)``  all tiles of a product of a's dtype, by threads; n args
``there_are_helpers(a)``                   whether `share_parts` may be called
``share_parts(bufs, args, a, n, tasks)``  parts of the kernel that calls it, see `common.kernels.arrays.shared_parts`
``share_attention(bufs, args, ...)``, ...  the items of another kernel
========================================  ==========================================================
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from common.compiler.primitives import from_bits
from common.core.dtypes import SUPPORTED
from common.kernels.arrays import arg_extremes, attention_blocks, philox
from common.kernels.arrays.convolutions import KERNELS
from common.kernels.arrays.row_functions import BITS, define_rows, made_in
from common.kernels.arrays.sorting import sort_key
from common.kernels.arrays.window_maxima import WIDTHS
from common.kernels.arrays.window_rows import NEAR

NAMESPACE: dict[str, Any] = {
    function.name: function
    for function in (
        *(
            define_rows(f"huge_{name}", "ibibi", partial(made_in("huge_angles", "take_each"), function=f"huge_{name}"))
            for name in ("sin", "cos", "tan")
        ),
        define_rows("multiply", "bibibiiiiiiiii", made_in("small_products", "multiply")),
        define_rows("multiply_vector", "bibibiiiii", made_in("gemv_code", "multiply_vector")),
        define_rows("multiply_panel", "biiiiibiiibiii", made_in("gemm_code", "multiply_panel")),
        define_rows("multiply_windows", "biiiiibibiiibiiiiii", made_in("gemm_code", "multiply_windows")),
        define_rows("multiply_places", "biiiibibiiiiibiiii", made_in("places_code", "multiply_places")),
        define_rows("pack_left", "biiiibi", made_in("gemm_code", "pack_left")),
        define_rows("pack_left_turned", "biiiibi", made_in("gemm_code", "pack_left_turned")),
        define_rows("pack_right_turned", "biiiibi", made_in("gemm_code", "pack_right_turned")),
        define_rows("panel_width", "t", made_in("gemm_code", "panel_width"), apart=False)._replace(result="word"),
        define_rows("panel_height", "t", made_in("gemm_code", "panel_height"), apart=False)._replace(result="word"),
        define_rows("copy_windows", "bibiiiiiiii", made_in("window_code", "copy_windows")),
        define_rows("lay_windows", "bibiiiiiiiiiiiiii", made_in("window_code", "lay_windows")),
        define_rows("add_windows", "bibiiiiiii", made_in("window_code", "add_windows")),
        define_rows("add_products", "bibibiiiiiii", made_in("window_code", "add_products")),
        define_rows("fuse_windows", "bibibiiiiiiii", made_in("window_code", "fuse_windows")),
        define_rows("sum_windows", "bibibiiiiiiiiiiii", made_in("window_code", "sum_windows")),
        *(
            define_rows(f"{name}_of_windows_{step}_{size}", "bibi" + 12 * "i",
                    partial(made_in("window_rows_code", f"{name}_of_windows"), step=step, size=size))
            for name, step, size in product(("sums", "maxima"), NEAR, NEAR)
        ),
        define_rows("first_maximum", "bii", made_in("first_maximum_code", "first_maximum"))._replace(result="word"),
        *(
            define_rows(f"put_at_maxima_{size}", "bibibi" + 8 * "i",
                    partial(made_in("window_maxima_code", "put_at_maxima"), size=size))
            for size in WIDTHS
        ),
        define_rows("fuse_lanes", "bibibiii", made_in("window_chains", "fuse_lanes")),
        define_rows("add_places", "bibibiiiiiiiiiii", made_in("window_chains", "add_places")),
        define_rows("fuse_places", "bibibiiiiiiiiiiii", made_in("window_chains", "fuse_places")),
        define_rows("there_are_threads", "t", made_in("gemm_threads", "there_are_threads"), apart=False)._replace(
            result="word"
        ),
        define_rows("share_tiles", "wwtii", made_in("gemm_threads", "share_tiles"), apart=False),
        define_rows("there_are_helpers", "t", made_in("gemm_threads", "there_are_helpers"), apart=False)._replace(
            result="word", dtypes=(*SUPPORTED, *BITS)
        ),
        define_rows("share_parts", "wwtii", made_in("gemm_threads", "share_parts"), apart=False)._replace(
            dtypes=(*SUPPORTED, *BITS)
        ),
        *(
            define_rows(f"share_{name}", "wwtii", partial(made_in("gemm_threads", "share_items"), kernel=name),
                        apart=False)
            for name in (*attention_blocks.KERNELS, *KERNELS)
        ),
    )
}
NAMESPACE |= {"float_of_bits": from_bits, "sort_key": sort_key, **philox.SCALARS, **arg_extremes.SCALARS}
