"""Gains of large products from threads, and the size from which loops gain: ``python -m benchmarks.threads [N]``.

Elapsed time per product with one thread and with N (2 by default), interleaved; bits are compared first. Then that of a
compiled tanh in so many parts as there are threads, called without a pause, and every 2 ms, when threads are asleep.
"""

import sys
import time

import numpy as np

import dynamic as tw
import static
from static.lowering.threads import sharing, work

SIZES = [(256, 256, 256), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 512, 512), (2700, 160, 160)]
ROUNDS = 15
ELEMENTS = (16384, 65536, 262144)


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
    tw.set_num_threads(1)
    hand_over(threads)


def hand_over(threads: int) -> None:
    """Print a line per size of a loop: the shortest call with one thread, with several, and with several that slept."""
    work.SMALL_ELEMENTS, sharing.PART_NS, sharing.PARTS_PER_THREAD = 0, 1, 1
    print("elements of tanh    1 thread   at once    after a pause")
    for n in ELEMENTS:
        x = np.linspace(-3, 3, n, dtype=np.float32)
        found: dict[tuple[int, float], float] = {}
        for way in ((1, 0.0), (threads, 0.0), (threads, 0.002)):
            count, pause = way
            static.set_num_threads(count)
            call = static.function(lambda x: static.tanh(x)).into(np.empty_like(x))
            call(x)
            times = []
            for _ in range(200):
                time.sleep(pause)
                start = time.perf_counter()
                call(x)
                times.append(time.perf_counter() - start)
            found[way] = min(times) if not pause else float(np.median(times))
        print(f"{n:16} " + " ".join(f"{seconds * 1e6:9.1f} us" for seconds in found.values()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
