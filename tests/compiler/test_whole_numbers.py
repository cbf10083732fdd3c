"""Vectors of int64 are converted and divided as numbers are, by instructions of processors without AVX-512."""

from functools import partial

import numpy as np
import pytest

import dynamic  # noqa: F401  provides the functions that kernels name
from common.compiler import llvm_engine
from common.compiler.compile import externals, meaning
from common.compiler.primitives import convert, evaluate, floor_divide, remainder
from common.compiler.translate import translate
from tests.compiler.kernels import run_kernel

RNG = np.random.default_rng(0)
EDGES = [s * (1 << e) + d for e in (0, 31, 32, 50, 51, 52, 53, 62) for d in (-1, 0, 1) for s in (-1, 1)]
WHOLE = np.array([*EDGES, -(2**63), 2**63 - 1, *(int(x) >> int(e) for x, e in RNG.integers(0, 63, (4000, 2)))])
WHOLE = np.concatenate(
    [WHOLE, RNG.integers(-(2**63), 2**63 - 1, 4000) >> RNG.integers(0, 63, 4000), np.arange(-40, 40)]
)
FLOATS = np.concatenate([WHOLE + 0.5, WHOLE - 0.25, RNG.normal(size=100), [np.nan, np.inf, -np.inf, -0.0, 1e30]])
OPERATIONS = {
    "to_float64(x[i])": (WHOLE, None, np.float64, lambda x, _: convert(x, np.float64)),
    "to_float32(x[i])": (WHOLE, None, np.float32, lambda x, _: convert(x, np.float32)),
    "to_int64(x[i])": (FLOATS, None, np.int64, lambda x, _: convert(x, np.int64)),
    "to_int64(x[i]) ": (FLOATS.astype(np.float32), None, np.int64, lambda x, _: convert(x, np.int64)),
    "x[i] // z[i]": (WHOLE, WHOLE[::-1].copy(), np.int64, floor_divide),
    "x[i] // z[i] ": (WHOLE, RNG.permutation(WHOLE), np.int64, floor_divide),
    "x[i] % z[i]": (WHOLE, RNG.permutation(WHOLE), np.int64, remainder),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_vectors_are_what_numbers_are(monkeypatch, operation):
    monkeypatch.setattr("common.compiler.translate.cpu", lambda: ("", "+avx2"))
    x, z, dtype, definition = OPERATIONS[operation]
    z = x if z is None else z
    source = f"""def loop(bufs, args):
    x = buffer(bufs, 0, {x.dtype})
    z = buffer(bufs, 1, {z.dtype})
    y = buffer(bufs, 2, {np.dtype(dtype)})
    for i in range(args[0]):
        y[i] = {operation.strip()}
    return 0
"""
    text, left = translate(source, "loop", partial(meaning, kernel="loop"), True, True)
    assert left != llvm_engine.PIPELINE
    assert " x i64>" in text
    module = llvm_engine.parse(text)
    llvm_engine.tidy(module)
    address = llvm_engine.load(llvm_engine.emit(module, "loop"), "loop", externals(module))
    for order in (slice(None), np.argsort(np.abs(x), kind="stable")):  # vectors of all sizes, and of similar ones
        a, b = x[order], z[order]
        y = np.empty(len(x), dtype)
        assert run_kernel(address, [a, b, y], [len(x)]) == 0
        expected = np.asarray(evaluate(definition, a, b))
        assert y.tobytes() == expected.astype(dtype).tobytes()
