"""Values for memory of another dtype: converted, if that loses nothing but a float's last digits."""

from __future__ import annotations

import numpy as np


def converted(array: np.ndarray, dtype: np.dtype, exactly: bool = False) -> np.ndarray | None:
    """`array` in a dtype; None if its elements do not fit.

    A float is rounded to a shorter one, as in PyTorch, but a finite one does not become infinite. Between ints, bools
    and floats the value stays what it is: a fraction is no int, 2 is no bool, and 2**53 + 1 is no float64.

    Parameters
    ----------
    exactly : a float has to stay what it is, too.

    Examples
    --------
    >>> converted(np.array([1.0, 2.0]), np.dtype("int64"))
    array([1, 2])
    >>> converted(np.array([1e300]), np.dtype("float32")) is None
    True
    """
    if array.dtype == dtype:
        return array
    if array.dtype.kind not in "biuf":
        return None
    with np.errstate(all="ignore"):
        result = array.astype(dtype)
        if array.dtype.kind == "f" and dtype.kind == "f":
            fits = (result == array) | np.isnan(array) if exactly else np.isfinite(result) | ~np.isfinite(array)
        elif array.dtype.kind == "f" and dtype.kind in "iu":
            info = np.iinfo(dtype)  # its bounds are powers of two, or one less
            fits = (array >= float(info.min)) & (array < float(info.max // 2 + 1) * 2) & (array == np.trunc(array))
        elif array.dtype.kind in "iu" and dtype.kind == "f":
            limit = float(np.iinfo(array.dtype).max // 2 + 1) * 2
            fits = (result < limit) & (np.where(result < limit, result, 0).astype(array.dtype) == array)
        else:
            fits = result == array
    return result if bool(np.all(fits)) else None


def misfit(array: np.ndarray, dtype: np.dtype, exactly: bool = False) -> str:
    """The message about an array that `converted` refuses."""
    if array.dtype.kind not in "biuf":
        return f"{array.dtype} cannot be converted to {dtype}"
    flat = array.reshape(-1)
    position = next((i for i in range(flat.size) if converted(flat[i : i + 1], dtype, exactly) is None), 0)
    index = ", ".join(str(int(i)) for i in np.unravel_index(position, array.shape))
    return f"{array.dtype} {flat[position]} at index [{index}] does not fit into {dtype}{' exactly' * exactly}"
