"""One engine, one workload, one fresh process: the seconds of the first call and the peak of memory.

``python -m benchmarks.child ENGINE WORKLOAD STEPS`` prints a line of JSON; :mod:`benchmarks.oneoff` runs it.
"""

import importlib
import json
import sys
import time
from itertools import cycle, islice
from typing import Any

from benchmarks.measure import single_core


def main(engine: str, name: str, steps: int) -> dict[str, float]:
    """Return seconds of import, building and first call, and peak bytes before and after `steps` calls.

    The processor seconds are those of building and first call together.
    """
    single_core()
    import numpy  # noqa: F401  is imported before the clock starts

    from benchmarks.peak_memory import peak

    before = peak()
    start = time.perf_counter()
    tw = importlib.import_module(engine)
    imported = time.perf_counter()
    from benchmarks.lab.target import find

    workload = find(name, tw)
    inputs = workload.inputs()
    building = time.perf_counter()
    program = workload.make(tw)
    built = time.perf_counter()
    program.call(*inputs[0])
    called = time.perf_counter()
    program.call(*inputs[1])
    again = time.perf_counter()
    for arguments in islice(cycle(inputs), steps):
        program.call(*arguments)
    return {
        "import_seconds": imported - start,
        "build_seconds": built - building,
        "first_call_seconds": called - built,
        "second_call_seconds": again - called,
        "peak_bytes_before": before,
        "peak_bytes": peak(),
        **phases(program.call),
    }


def phases(call: Any) -> dict[str, float]:
    """Return the seconds of each phase of a compiled function's newest trace, as ``phase_trace`` and so on."""
    explain = getattr(call, "explain", None)
    if explain is None or not getattr(call, "traces", None):
        return {}
    return {f"phase_{name}": seconds for name, seconds in explain().seconds.items()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
