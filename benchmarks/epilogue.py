"""Bias and activation after a product, fused or not: ``python -m benchmarks.epilogue``.

Times relative to a product and one fused loop that writes its result beside the product: the product alone; the loop
in place, over the product, as programs do it; and in place on each block of rows right after its product, `grid` being
the height of the product's own tiles. Processor time of every second run, interleaved, medians.
"""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import single_core

SIZES = [(4096, 512, 512), (8192, 1024, 256), (16384, 256, 256), (4096, 2048, 512), (16384, 1024, 128),
         (16384, 1024, 64), (65536, 64, 64), (2048, 2048, 128), (1024, 1024, 64), (128, 784, 512)]  # fmt: skip
SECONDS = 3.0
LOOP = """def bias_{name}_{place}(bufs, args):
    wide()
    y = buffer(bufs, 0, float32)
    b = buffer(bufs, 1, float32)
    x = buffer(bufs, {place}, float32)
    for r in range(args[0]):
        o = r * args[1]
        for c in range(args[1]):
            y[o + c] = {name}(add(x[o + c], b[c]))
    return 0
"""


def measure(activation: str, m: int, n: int, k: int) -> dict[str, float]:
    """Return the time of each variant relative to a product and a loop that writes its result beside it."""
    from common.evaluate.kernels import compiled
    from common.kernels.arrays.gemm import gemm_source, tiles

    product = compiled(gemm_source("float32"), "gemm")
    in_place, beside = (
        compiled(LOOP.format(name=activation, place=place), f"bias_{activation}_{place}") for place in (0, 2)
    )
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    h, y = np.empty((m, n), np.float32), np.empty((m, n), np.float32)

    def alone() -> None:
        product(x, w, h, 1, m, n, k, 0, 0, 0, 0)

    def apart() -> None:
        alone()
        beside(y, b, h, m, n)

    def blocks(height: int) -> Callable[[], None]:
        parts = [(x[i : i + height], y[i : i + height], len(x[i : i + height])) for i in range(0, m, height)]

        def run() -> None:
            for rows, out, count in parts:
                product(rows, w, out, 1, count, n, k, 0, 0, 0, 0)
                in_place(out, b, count, n)

        return run

    variants = {"apart": apart, "product": alone, "in place": blocks(m), "grid": blocks(tiles(m, n, k)[0])}
    variants |= {str(height): blocks(height) for height in (512, 256)}
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(seconds["apart"]) < 7:
        for name, run in variants.items():
            run()  # so that the caches hold what this variant leaves there, not what another one does
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    base = np.array(seconds["apart"])
    return {name: float(np.median(np.array(found) / base)) for name, found in seconds.items() if name != "apart"}


def main() -> None:
    """Print a line per activation and size."""
    import common.ops.functional  # noqa: F401  kernels call ops by their names

    for activation in ("relu", "tanh"):
        for m, n, k in SIZES:
            shown = "  ".join(f"{name} {ratio:.3f}" for name, ratio in measure(activation, m, n, k).items())
            print(f"{activation}  {f'{m} x {n} x {k}':20}  {shown}", flush=True)


if __name__ == "__main__":
    single_core()
    main()
