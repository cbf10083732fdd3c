"""Special functions as SciPy computes them, in float64; SciPy is imported when one is first needed."""

from __future__ import annotations

import numpy as np


def compute(*operands_and_name: object) -> np.ndarray:
    """The function of `scipy.special` that the last argument names, of the arrays before it.

    Returns
    -------
    ndarray : of the dtype of the first array, rounded once.
    """
    from scipy import special

    *arrays, name = operands_and_name
    assert isinstance(name, str)
    assert isinstance(arrays[0], np.ndarray)
    wide = [np.asarray(x, np.float64) for x in arrays]
    with np.errstate(all="ignore"), special.errstate(all="ignore"):
        return np.asarray(getattr(special, name)(*wide)).astype(arrays[0].dtype)
