"""Products of matrices beside numpy's, which are OpenBLAS' in its wheels: microseconds of one thread, in turns.

``python -m benchmarks.products [float64]`` prints a row per shape: rows x columns x inner size, with a T behind what is
stored transposed. numpy is given the transposed view, which it passes to BLAS as a flag.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is imported

import numpy as np

from benchmarks.measure import single_core

SECONDS, ROUNDS = 0.002, 40

SHAPES = (
    (8, 8, 8, "", ""), (64, 64, 64, "", ""), (32, 512, 160, "", "T"), (32, 160, 512, "", ""), (512, 160, 32, "T", ""),
    (64, 256, 784, "", "T"), (256, 784, 64, "T", ""), (64, 10, 128, "", "T"), (1024, 96, 128, "", "T"),
    (96, 128, 1024, "T", ""), (256, 256, 256, "", ""), (1024, 1024, 1024, "", ""), (2048, 2048, 512, "", "T"),
    (64, 10000, 800, "", ""), (1, 1000, 1000, "", ""), (1, 1000, 1000, "", "T"), (1000, 1, 1000, "T", ""),
    (1, 1, 1000, "", ""),
)  # fmt: skip


def calls(m: int, n: int, k: int, trans_a: str, trans_b: str, dtype: Any) -> dict[str, Callable[[], Any]]:
    """Return our product and numpy's of one pair of matrices, compared up to rounding, without their allocations."""
    from common.compiler.compile import compile_kernel
    from common.kernels.arrays import gemm
    from common.runtime.builtins import make_call

    rng = np.random.default_rng(0)
    stored = (k, m) if trans_a else (m, k), (n, k) if trans_b else (k, n)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in stored)
    ours, theirs = np.empty((m, n), dtype), np.empty((m, n), dtype)
    kernel = make_call(compile_kernel(gemm.gemm_source(dtype), "gemm"))
    ints = (1, m, n, k, int(bool(trans_a)), int(bool(trans_b)), 0, 0)
    x, y = a.T if trans_a else a, b.T if trans_b else b
    found: dict[str, Callable[[], Any]] = {
        "ours": lambda: kernel(a, b, ours, *ints),
        "numpy": lambda: np.matmul(x, y, out=theirs),
    }
    for make in found.values():
        make()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=100 * np.finfo(dtype).eps * k**0.5)
    return found


def microseconds(found: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the processor time of each call: medians of batches, one of each in turn."""
    rounds: dict[str, list[float]] = {name: [] for name in found}
    repeats = 1
    for _ in range(ROUNDS):
        for name, call in found.items():
            start = time.process_time()
            for _ in range(repeats):
                call()
            rounds[name].append((time.process_time() - start) / repeats)
        repeats = max(1, round(SECONDS / max(np.median(rounds["ours"]), 1e-7)))
    return {name: float(np.median(times[1:])) * 1e6 for name, times in rounds.items()}


def main(dtype: str) -> None:
    """Print the table."""
    single_core()
    print(f"{'rows x columns x inner size':30} {'ours':>10} {'numpy':>10} {'ours/numpy':>10}")
    for m, n, k, trans_a, trans_b in SHAPES:
        times = microseconds(calls(m, n, k, trans_a, trans_b, dtype))
        ratio = times["ours"] / times["numpy"]
        print(f"{f'{m}{trans_a} x {n}{trans_b} x {k}':30} {times['ours']:10.2f} {times['numpy']:10.2f} {ratio:10.2f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "float32")
