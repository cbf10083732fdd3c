"""Columns that a loop over rows stores are written together; what lies between them is left as it is."""

import numpy as np
import pytest

import dynamic  # noqa: F401  provides the functions that kernels name
from common.compiler.compile import _translated, compile_kernel
from tests.compiler.kernels import run_kernel
from tests.helpers.python_kernels import python_kernel

HEAD = """def loop(bufs, args):
    wide()
    x = buffer(bufs, 0, float32)
    y = buffer(bufs, 1, float32)
    d = buffer(bufs, 2, float64)
    z = buffer(bufs, 3, bool_)
    k = buffer(bufs, 4, int64)
    n = args[0]
    m = args[1]
"""


def columns(step, which, slot="y", dtype="float32"):
    """Each of some columns of rows of a length is a multiple of x."""
    stores = [f"    {slot}[i * {step} + {j}] = mul({slot}[i * {step} + {j}], {dtype}({j}.5))" for j in which]
    return "\n".join(["for i in range(n):", *stores])


CASES = {
    **{f"{which} of {step}": columns(step, which) for step, which in [
        (2, (1, 0)), (2, (1,)), (3, (0, 1, 2)), (4, (0, 2, 1, 3)), (4, (1, 2)), (5, (4, 3, 2, 1, 0)), (6, range(6)),
        (7, (0, 1, 3, 4, 6)), (8, (7, 1, 2, 3, 0, 5, 6, 4)), (8, (5,)), (8, (0, 1, 2, 4, 5, 6)),
    ]},
    **{f"wide {which} of {step}": columns(step, which, "d", "float64") for step, which in [
        (2, (0, 1)), (3, (2, 1, 0)), (4, (0, 3)), (8, range(8)),
    ]},
    "integers": "for i in range(n):\n    k[i * 2] = to_int64(x[i])\n    k[i * 2 + 1] = k[i * 2 + 1] + 5",
    "bools": "for i in range(n):\n    z[i * 2] = gt(x[i], y[i])\n    z[i * 2 + 1] = lt(x[i], y[i])",
    "read again": "for i in range(n):\n    y[i * 2] = x[i]\n    t = y[i * 2]\n    y[i * 2 + 1] = add(t, t)",
    "stored twice": "for i in range(n):\n    y[i * 2] = x[i]\n    y[i * 2 + 1] = x[i]\n    y[i * 2] = neg(x[i])",
    "changing places": "for i in range(n):\n    t = y[i * 2]\n    y[i * 2] = y[i * 2 + 1]\n    y[i * 2 + 1] = t",
    "rows that meet": "for i in range(n):\n    y[i * 2 + 1] = x[i]\n    y[i * 2 + 2] = x[i]",
    "much to compute": "for i in range(n):\n    y[i * 2] = log1p(exp(x[i]))\n    y[i * 2 + 1] = sigmoid(exp(x[i]))",
    "much to compute, of three":
        "for i in range(n):\n    y[i * 3 + 1] = log1p(exp(x[i]))\n    y[i * 3 + 2] = sigmoid(exp(x[i]))",
    "a number": "for i in range(n):\n    y[i * 4 + 1] = float32(2.5)\n    y[i * 4 + 2] = x[i]\n    y[i * 4] = x[3]",
    "from a place on": "for i in range(n):\n    y[m + i * 2] = x[i]\n    y[m + i * 2 + 1] = neg(x[i])",
    "two rows of one": "for i in range(n):\n    y[i * 4 + 4] = x[i]\n    y[i * 4 + 3] = neg(x[i])",
}  # fmt: skip


def arrays():
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=600).astype(np.float32) for _ in range(2))
    return [x, y, rng.normal(size=600), rng.integers(0, 2, 600).astype(np.bool_), rng.integers(-9, 9, 600)]


def source_of(body):
    return HEAD + "".join(f"    {line}\n" for line in body.splitlines()) + "    return 0\n"


def same(source, counts):
    address, by_python = compile_kernel(source, "loop"), python_kernel(source, "loop")
    for n in counts:
        expected, found = arrays(), arrays()
        assert by_python(expected, [n, 3]) == run_kernel(address, found, [n, 3]) == 0
        for a, b in zip(expected, found, strict=True):
            assert a.tobytes() == b.tobytes(), n


@pytest.mark.parametrize("name", CASES)
def test_what_is_stored_in_steps_is_what_iterations_store(name):
    same(source_of(CASES[name]), (0, 1, 2, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 50, 64, 70))


@pytest.mark.parametrize("name", CASES)
def test_iterations_that_the_text_counts(name):
    for count in (1, 3, 8, 13, 16, 17, 32):
        same(source_of(CASES[name].replace("range(n)", f"range({count})")), (count,))


def test_columns_that_lie_side_by_side_are_stored_as_parts_of_rows():
    def text(which):
        return str(_translated(source_of(columns(8, which)), "loop", "loop")[0])

    assert text((1, 2)).count("store <2 x float>") == 16
    assert text((2, 4, 5, 3)).count("store <4 x float>") == 16
    assert text((7,)).count("extractelement") == 16
    three = text((1, 2, 3))
    assert three.count("store <2 x float>") == three.count("store float") == 16
