"""How large products gain from threads: ``python -m benchmarks.threads [N]``.

Elapsed time per product with one thread and with N (2 by default), interleaved; bits are compared first.
"""

import sys
import time

import numpy as np

import dynamic as tw

SIZES = [(256, 256, 256), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 512, 512), (2700, 160, 160)]
ROUNDS = 15


def main(threads: int) -> None:
    """Print a line per size and dtype."""
    print(f"rows x columns x inner    dtype     1 thread    {threads} threads    ratio")
    for dtype in (np.float32, np.float64):
        for m, n, k in SIZES:
            rng = np.random.default_rng(0)
            a, b = (tw.tensor(rng.standard_normal(s).astype(dtype)) for s in ((m, k), (k, n)))
            found: dict[int, list[float]] = {1: [], threads: []}
            bits = set()
            for _ in range(ROUNDS):
                for count, times in found.items():
                    tw.set_num_threads(count)
                    start = time.perf_counter()
                    y = a @ b
                    times.append(time.perf_counter() - start)
                    bits.add(y.numpy().tobytes())
            assert len(bits) == 1, f"bits differ between 1 and {threads} threads"
            one, many = (float(np.median(found[count])) for count in (1, threads))
            size = f"{m} x {n} x {k}"
            print(f"{size:24}  {np.dtype(dtype).name:8} {one * 1e3:9.2f} ms {many * 1e3:9.2f} ms    {many / one:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
