"""Divisions of integers by a number: shifts and multiplications wherever they are, as many as there may be."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import dynamic  # noqa: F401  provides the functions that kernels name
from common.compiler.compile import compile_kernel, meaning
from common.compiler.translate import translate
from tests.compiler.kernels import run_kernel

EDGES = [np.iinfo(np.int64).min, np.iinfo(np.int64).max - 9, -(2**32), 2**32, 2**53 + 1]


@pytest.mark.parametrize("divisor", [7, 4096, 1, -1, -3, 2**40, None])
@pytest.mark.parametrize("name", ["remainder", "floor_divide"])
def test_a_division_by_a_number_is_inlined_at_many_places(name, divisor):
    """What is left as a function divides one lane after the other; numpy gives the same quotients and remainders."""
    by = "y[i]" if divisor is None else f"int64({divisor})"
    terms = [f"{name}(x[i] + {k}, {by})" for k in range(4)]
    source = (
        "def k(bufs, args):\n    x = buffer(bufs, 0, int64)\n    y = buffer(bufs, 1, int64)\n    wide()\n"
        f"    for i in range(args[0]):\n        y[i] = {' + '.join(terms)}\n    return 0\n"
    )
    text, _ = translate(source, "k", partial(meaning, kernel="k"), True, True)
    assert ("noinline" in text) == (divisor is None)
    x, y = np.array([*range(-40, 41), *EDGES]), np.array([5, -5, 1, -1, 3, 2**35] * 14 + [2, 3])
    given = y.copy() if divisor is None else divisor
    with np.errstate(over="ignore"):
        expected = sum(getattr(np, name)(x + k, given) for k in range(4))
    assert run_kernel(compile_kernel(source, "k"), [x, y], [len(x)]) == 0
    assert y.tolist() == expected.tolist()
