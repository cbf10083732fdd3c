"""Sequences of many lengths: training steps of the LSTM of `lstm` on real text, each batch as long as it is.

``python -m benchmarks.lengths [lengths]`` prints, per engine and peer, the seconds of a first pass over all lengths,
with what has to be compiled for them, and the median of the seconds of later passes, interleaved. Bits of the two
engines are compared first. A new length needs a plan here, and a compilation in JAX.
"""

import sys
import time
from typing import Any

import numpy as np

from benchmarks.measure import single_core
from benchmarks.workload import Inputs, to_array
from benchmarks.workloads.charlm import corpus
from benchmarks.workloads.lstm import BATCH, RecurrentModel

SHORTEST, STEP, ROUNDS = 8, 3, 5


def batches(count: int) -> list[Inputs]:
    """Return batches of `count` different lengths, in random order: characters (n, 32), successors (n * 32,)."""
    text, rng = corpus(), np.random.default_rng(98)
    sets: list[Inputs] = []
    for n in rng.permutation(np.arange(count) * STEP + SHORTEST):
        at = rng.integers(0, len(text) - n - 1, size=BATCH) + np.arange(n)[:, None]
        sets.append((text[at], text[at + 1].flatten()))
    return sets


class ManyLengths(RecurrentModel):
    """The LSTM of `lstm` on batches of different lengths."""

    def __init__(self, count: int) -> None:
        self.count = count

    def inputs(self) -> list[Inputs]:
        """Return one batch per length."""
        return batches(self.count)


def programs(workload: ManyLengths) -> dict[str, tuple[Any, list[Any]]]:
    """Return the training step of each engine, and of the peers that are installed, and its batches."""
    import dynamic
    import static
    from benchmarks import peers

    built = {tw.__name__: workload.make(tw) for tw in (static, dynamic)}
    initial, sets = built["static"].parameters(), workload.inputs()
    calls: dict[str, tuple[Any, list[Any]]] = {name: (program.call, sets) for name, program in built.items()}
    for peer in ("torch", "jax.jit"):
        made = peers.build(peer, workload, initial) if peer in peers.installed() else None
        if made is not None:
            calls[peer] = made
    return calls


def main(count: int) -> None:
    """Compare bits, then print the table."""
    single_core()
    calls = programs(ManyLengths(count))
    losses = {}
    first: dict[str, float] = {}
    later: dict[str, list[float]] = {name: [] for name in calls}
    for name, (call, sets) in calls.items():
        start = time.perf_counter()
        losses[name] = [call(*batch) for batch in sets]
        first[name] = time.perf_counter() - start
    ours, theirs = ([to_array(y).tobytes() for y in losses[name]] for name in ("static", "dynamic"))
    if ours != theirs:
        raise SystemExit("the losses of the two engines differ")
    for _ in range(ROUNDS):
        for name, (call, sets) in calls.items():
            start = time.perf_counter()
            for batch in sets:
                call(*batch)
            later[name].append(time.perf_counter() - start)
    best = float(np.median(later["static"]))
    lengths = f"{SHORTEST} to {SHORTEST + STEP * (count - 1)} characters"
    print(f"{count} lengths, {lengths}: a first pass over them with what it compiles; later passes; relative to static")
    for name in calls:
        again = float(np.median(later[name]))
        print(f"{name:10} {first[name]:7.2f} s {again:8.3f} s {again / best:6.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
