"""Where masks are slow, a loop over a row ends with a vector that begins before its rest."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import dynamic  # noqa: F401  provides the functions that kernels name
from common.compiler import llvm_engine
from common.compiler.compile import externals, meaning
from common.compiler.translate import translate
from tests.compiler.kernels import run_kernel
from tests.compiler.test_vectors import BUFFERS, arrays
from tests.helpers.python_kernels import python_kernel

AGAIN = {
    "elements": "y[q + i] = mul(x[q + i], float32(0.5))",
    "of places ahead": "y[q + i] = add(x[q + 1 + i], x[q + i])",
    "into two": "y[q + i] = x[i]\n        d[q + i] = to_float64(x[q + i])",
    "within bounds": "y[q + i] = x[q + i - 1] if i >= 1 and i < n - 1 else float32(-0.0)",
    "the index": "k[q + i] = i * 3 - n",
    "truth values": "z[q + i] = x[q + i] < x[i]",
    "rows of two": "y[q + i] = add(x[q + i * 2], x[q + i * 2 + 1])",
    "rows of two that it writes": "d[q + i * 2] = to_float64(x[i])\n        d[q + i * 2 + 1] = to_float64(x[q + i])",
    "parts of rows of three": "y[i * 3] = x[q + i]",
}
ONCE = {
    "over what it reads": "y[q + i] = add(y[q + i], x[i])",
    "written twice": "y[q + i] = x[i]\n        y[q + i] += y[q + i]",
    "added": "y[i & 15] = add(y[i & 15], x[q + i])",
}


def source_of(body, loops="for r in range(2):\n        q = r * n\n        for i in range(n)"):
    lines = f"    {loops}:\n            " + body.replace("\n", "\n    ")
    return BUFFERS + lines + "\n    return 0\n"


@pytest.fixture
def written(monkeypatch):
    monkeypatch.setattr("common.compiler.translate.cpu", lambda: ("", "+avx2"))
    return lambda source: translate(source, "loop", partial(meaning, kernel="loop"), True, True)[0]


def assert_as_python(text, source, most):
    module = llvm_engine.parse(text)
    llvm_engine.tidy(module)
    address = llvm_engine.load(llvm_engine.emit(module, "loop"), "loop", externals(module))
    by_python = python_kernel(source, "loop")
    for n in range(most):
        expected, found = arrays(), arrays()
        assert by_python(expected, [n]) == run_kernel(address, found, [n]) == 0
        for a, b in zip(expected, found, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), n


@pytest.mark.parametrize("name", [*AGAIN, *ONCE])
def test_rows_of_all_lengths_are_what_python_gives(written, name):
    source = source_of({**AGAIN, **ONCE}[name])
    assert_as_python(written(source), source, 25)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 8, 9, 11, 13, 15, 17, 19, 20, 23, 25, 31])
@pytest.mark.parametrize("name", ["elements", "into two", "over what it reads", "truth values"])
def test_iterations_that_the_text_counts(written, name, count):
    source = source_of({**AGAIN, **ONCE}[name]).replace("in range(n)", f"in range({count})")
    text = written(source)
    if name == "elements":
        assert ("masked.store" in text) == (count == 1)
    assert_as_python(text, source, 20)


def test_what_is_computed_twice_is_not_read_again(written):
    def halves(source):
        return len(re.findall(r"store <8 x float>", written(source)))

    rows = "for r in range(2):\n        q = r * n\n        for i in range(n)"
    for body in AGAIN:
        if "y[q + i]" in AGAIN[body] and "two" not in body:
            assert halves(source_of(AGAIN[body], rows)) == 1, body
    for body in ONCE.values():
        assert halves(source_of(body, rows)) == 0, body
    flat = "q = 0\n    for k in range(1):\n        pass\n    for i in range(n)"
    alone = source_of(AGAIN["elements"], flat).replace("            y", "        y")
    assert halves(alone) == 0
