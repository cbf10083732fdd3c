"""Flush to zero: both engines compute in it with the same bits, and leave it again.

The mode belongs to a thread, and threads of the pool keep the one they were started in: each test is a process.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAMS = """
import numpy as np
import dynamic, static
from tests.bits import assert_same_bits

rng = np.random.default_rng(5)


def program(tw, choices):
    def f(x, w):
        for kind, k in choices:
            x = (
                lambda: x * w * 1e-12, lambda: x / 3e9, lambda: x * x * 1e-9, lambda: tw.exp(x * 1e-3 - 85.0) * x,
                lambda: (x - w * 1e-38) * 1.0, lambda: tw.where(x > 0, x, -x) - x * 0.25,
                lambda: tw.cumsum(x, 0) * 1e-6, lambda: x @ (w * 1e-14), lambda: tw.sigmoid(x * 1e-6 - 88.0) + x,
                lambda: tw.scan(lambda c, _: (c * 0.25 + x * 1e-30, None), x, None, length=40)[0],
            )[kind]()
            x = x * float(k)
        return x
    return f


def values_and_gradients(tw, choices, x, w):
    return tw.function(tw.value_and_grad(lambda x, w: program(tw, choices)(x, w).sum(), (0, 1)))(x, w)


kept = small = 0
assert dynamic.set_flush_denormal(True) and static.set_flush_denormal(True)
for _ in range(30):
    dtype = [np.float32, np.float64][rng.integers(2)]
    choices = [(int(rng.integers(10)), rng.choice([1, -1, 1e-5])) for _ in range(6)]
    x, w = (rng.standard_normal((9, 9)).astype(dtype) for _ in range(2))
    flat = lambda r: [np.asarray(y) for y in (r[0], *r[1])]
    eager, compiled = (flat(values_and_gradients(tw, choices, x, w)) for tw in (dynamic, static))
    for a, b in zip(eager, compiled, strict=True):
        assert_same_bits(a, b, str(choices))
        word, digits = (np.uint32, 23) if dtype is np.float32 else (np.uint64, 52)
        rest = (1 << digits) - 1
        exponent = (1 << 8 * a.itemsize - 1) - 1 - rest
        bits = a.view(word)  # compared as floats, subnormal numbers are zero in this mode
        kept += int(((bits & word(exponent) == 0) & (bits & word(rest) != 0)).sum())
        small += int((bits & word(exponent | rest) == 0).sum())
assert kept == 0
assert small > 50
"""

ORACLE = """
import numpy as np
import dynamic, static

def halved(x):
    return x * 0.5 ** 10

smallest = np.float32(np.finfo(np.float32).tiny)
x = smallest * np.float32(2.0) ** np.arange(20, dtype=np.float32)
exact = x.astype(np.float64) * 0.5 ** 10
expected = np.where(exact < float(smallest), 0.0, exact).astype(np.float32)
f = static.function(halved)
assert f(x).numpy().tobytes() == halved(dynamic.tensor(x)).numpy().tobytes() == exact.astype(np.float32).tobytes()
assert static.set_flush_denormal(True)
assert f(x).numpy().tobytes() == halved(dynamic.tensor(x)).numpy().tobytes() == expected.tobytes()
assert [reason for reason in map(str, f.retraces) if "flushed to zero now" in reason], f.retraces

tiny = static.function(lambda x: x + static.full((1,), 1e-30) * 1e-10)  # a constant that is folded
folded = tiny(np.zeros(1, np.float32)).item()
assert folded == 0.0
assert static.set_flush_denormal(False)
assert tiny(np.zeros(1, np.float32)).item() > 0
assert f(x).numpy().tobytes() == exact.astype(np.float32).tobytes()
"""

THREADS = """
import dynamic
dynamic.set_num_threads(2)
assert dynamic.set_flush_denormal(True) is False and dynamic.set_flush_denormal(False) is True
assert (dynamic.tensor(1e-30) * 1e-10).item() > 0
dynamic.set_num_threads(1)
assert dynamic.set_flush_denormal(True)
try:
    dynamic.set_num_threads(2)
except RuntimeError as error:
    assert "set_flush_denormal was not on" in str(error)
else:
    raise AssertionError("threads of the other mode are used")
assert dynamic.get_num_threads() == 1 and dynamic.set_flush_denormal(False)
dynamic.set_num_threads(2)
"""


@pytest.mark.parametrize("script", [PROGRAMS, ORACLE, THREADS], ids=["programs", "oracle", "threads"])
def test_both_engines_flush(script):
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
