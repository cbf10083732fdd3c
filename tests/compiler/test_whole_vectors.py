"""Instructions of AVX-512 give the bits of the operations that they replace, and rare branches those of choices."""

import contextlib
from functools import partial

import numpy as np
import pytest

import dynamic as tw
from common.compiler import llvm_engine
from common.compiler.compile import define_scalar, externals, meaning
from common.compiler.primitives import rarely, select
from common.compiler.translate import translate
from tests.compiler.kernels import run_kernel

WHOLE = (
    "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sigmoid", "logsigmoid", "silu", "mish", "cosh", "lgamma",
    "digamma",
)  # fmt: skip
PAIRS = "pow", "logaddexp", "logaddexp2"
LOOPS = {
    "vectors": "for i in range(n):\n        y[i] = {call}",
    "numbers": "while n > 0:\n        n -= 1\n        i = n\n        y[i] = {call}",
    "wide lanes": (
        "for i in range(n):\n        y[i] = {call}\n"
        "        s[i & 15] = {call}"  # sixteen lanes of float64 are two registers
    ),
}


def loop(name, dtype, form, number):
    call = f"{name}(x[i], z[i])" if name in PAIRS else f"{name}(x[i])"
    return f"""def whole_{number}(bufs, args):
    x = buffer(bufs, 0, {dtype})
    z = buffer(bufs, 1, {dtype})
    y = buffer(bufs, 2, {dtype})
    s = buffer(bufs, 3, {dtype})
    n = args[0]
    {LOOPS[form].format(call=call)}
    return 0
"""


def compiled(source, name, here):
    """The address and the text of a kernel, for this processor or for any."""
    symbol = f"{name}_{here}"
    text, complete = translate(source, symbol, partial(meaning, kernel=name), True, here)
    assert complete
    module = llvm_engine.parse(text)
    llvm_engine.tidy(module)
    return llvm_engine.load(llvm_engine.emit(module, symbol, True), symbol, externals(module)), text


def numbers(dtype):
    """Every exponent with random signs and fractions, ordinary numbers, and borders; a length that fills no vector."""
    rng, info = np.random.default_rng(0), np.finfo(dtype)
    word = np.dtype(f"u{info.dtype.itemsize}")
    patterns = rng.integers(0, 2 ** (8 * word.itemsize), 20_000, dtype=word).view(dtype)
    borders = [0, info.tiny, info.max, info.smallest_subnormal, info.tiny / 3, np.inf, 1, 88.7, 89, 104, 151, 710, 746]
    borders = np.array([*borders, *np.negative(borders), np.nan, np.sqrt(0.5), np.sqrt(2)], dtype)
    ordinary = [rng.normal(0, size, 10_000).astype(dtype) for size in (1e-3, 1, 40)]
    return np.concatenate([borders, np.nextafter(borders, dtype(0)), patterns, *ordinary])


@contextlib.contextmanager
def flushing(flushes):
    tw.set_flush_denormal(flushes)
    try:
        yield
    finally:
        tw.set_flush_denormal(False)


def same(one, other):
    """Equal bits; all NaNs are one value, and so are two zeros."""
    word = np.dtype(f"i{one.itemsize}")
    return (one.view(word) == other.view(word)) | (np.isnan(one) & np.isnan(other)) | ((one == 0) & (other == 0))


@pytest.mark.parametrize("flushes", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", LOOPS)
@pytest.mark.parametrize("name", WHOLE + PAIRS)
def test_instructions_of_this_processor_give_the_same_bits(name, form, dtype, flushes):
    source = loop(name, np.dtype(dtype).name, form, name)
    x = numbers(dtype)
    if flushes:  # of subnormal arguments nothing is promised
        x = np.where(np.abs(x) < np.finfo(dtype).tiny, dtype(0), x)
    z, found = np.random.default_rng(1).permutation(x), []
    for here in (True, False):
        address, text = compiled(source, f"whole_{name}", here)
        has = here and "+avx512vl" in llvm_engine.cpu()[1]
        assert name == "pow" or ("avx512" in text or "llvm.fma." in text) == has  # power of float32 has no use for them
        y, sums = np.zeros_like(x), np.zeros(16, dtype)
        with flushing(flushes):
            assert run_kernel(address, [x, z, y, sums], [len(x)]) == 0
        found.append(y)
    assert same(*found).all(), (x[~same(*found)][:5], z[~same(*found)][:5])


define_scalar("halved_where_negative", lambda x: rarely(x + x, x < 0.0, lambda: x * 0.5))
define_scalar("chosen_where_negative", lambda x: select(x < 0.0, x * 0.5, x + x))


def test_a_rare_branch_is_a_choice_that_vectors_skip():
    x = np.random.default_rng(2).normal(size=70).astype(np.float32)
    x[16:48] = np.abs(x[16:48])  # whole vectors without it
    found = []
    for name in ("halved_where_negative", "chosen_where_negative"):
        address, text = compiled(loop(name, "float32", "vectors", name), f"whole_{name}", False)
        assert ("rarely.some" in text) == (name == "halved_where_negative")
        y = np.zeros_like(x)
        assert run_kernel(address, [x, x, y, y], [len(x)]) == 0
        found.append(y)
    assert found[0].tolist() == found[1].tolist() == np.where(x < 0, x / 2, x + x).tolist()
