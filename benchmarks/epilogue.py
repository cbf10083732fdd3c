"""What bias and activation right behind each block of rows of a product would save: ``python -m benchmarks.epilogue``.

Times relative to what programs do, the product and then one fused loop over the whole output: the product alone, and
blocks of rows, each multiplied and passed through the loop while it is in the cache. Processor time, interleaved,
medians; `grid` is the height of the product's own tiles.
"""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import single_core

SIZES = [(4096, 512, 512), (8192, 1024, 256), (16384, 256, 256), (4096, 2048, 512), (16384, 1024, 128), (128, 784, 512)]
SECONDS = 3.0
LOOP = """def bias_{name}(bufs, args):
    x = buffer(bufs, 0, float32)
    b = buffer(bufs, 1, float32)
    y = buffer(bufs, 2, float32)
    for r in range(args[0]):
        o = r * args[1]
        for c in range(args[1]):
            y[o + c] = {name}(add(x[o + c], b[c]))
    return 0
"""


def measure(activation: str, m: int, n: int, k: int) -> dict[str, float]:
    """Return the time of each variant relative to product and loop one after the other."""
    from common.eager_kernels import compiled
    from common.kernels.gemm import gemm_source, tiles

    product = compiled(gemm_source("float32"), "gemm")
    loop = compiled(LOOP.format(name=activation), f"bias_{activation}")
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    h, y = np.empty((m, n), np.float32), np.empty((m, n), np.float32)

    def alone() -> None:
        product(x, w, h, 1, m, n, k, 0, 0, 0, 0)

    def whole() -> None:
        alone()
        loop(h, b, y, m, n)

    def blocks(height: int) -> Callable[[], None]:
        parts = [(x[i : i + height], y[i : i + height], len(x[i : i + height])) for i in range(0, m, height)]

        def run() -> None:
            for rows, out, count in parts:
                product(rows, w, h, 1, count, n, k, 0, 0, 0, 0)
                loop(h, b, out, count, n)

        return run

    variants = {"whole": whole, "product": alone, "grid": blocks(tiles(m, n, k)[0])}
    variants |= {str(height): blocks(height) for height in (512, 256, 128)}
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    whole()
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(seconds["whole"]) < 7:
        for name, run in variants.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    base = np.array(seconds["whole"])
    return {name: float(np.median(np.array(found) / base)) for name, found in seconds.items() if name != "whole"}


def main() -> None:
    """Print a line per activation and size."""
    import common.functional  # noqa: F401  kernels call ops by their names

    for activation in ("relu", "tanh"):
        for m, n, k in SIZES:
            shown = "  ".join(f"{name} {ratio:.3f}" for name, ratio in measure(activation, m, n, k).items())
            print(f"{activation}  {f'{m} x {n} x {k}':20}  {shown}")


if __name__ == "__main__":
    single_core()
    main()
