"""Special functions as SciPy computes them, in float64; SciPy is imported when one is first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np


@cache
def _named(name: str) -> Callable[..., Any]:
    """The function of a name; those of several results or orders have one here for each."""
    from scipy import special

    several: dict[str, Callable[..., Any]] = {
        # AMOS has no argument where Ai and its slope are no longer numbers but 0: nan from 2.1e9 on
        "airy_ai": lambda x: special.airy(np.minimum(x, 200.0))[0],
        "airy_slope": lambda x: special.airy(np.minimum(x, 200.0))[1],
        "spherical_bessel_j1": lambda x: special.spherical_jn(1, x),
    }
    function: Callable[..., Any] = several[name] if name in several else getattr(special, name)
    return function


def special_function(*operands_and_name: object) -> np.ndarray:
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
    with np.errstate(all="ignore"):
        try:
            found = _named(name)(*wide)
        except (special.SpecialFunctionError, special.SpecialFunctionWarning):  # the user wants them from SciPy's calls
            with special.errstate(all="ignore"):  # takes as long as a thousand elements
                found = _named(name)(*wide)
        return np.asarray(found).astype(arrays[0].dtype)
