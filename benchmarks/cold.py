"""First calls in a new process with an empty cache, beside jax.jit: ``python -m benchmarks.cold [NAME]``.

Both engines in turns, one core, one thread. Import: the package, and for JAX its backend. Build: parameters, optimiser
state, inputs (JAX gets parameters as arrays, so it draws none). First call: tracing, compiling and one step.

``--layers`` shows instead what a residual MLP of 1, 50 and 100 equal layers costs.
"""

import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bootstrap import ROOT
from benchmarks.measure import single_core
from benchmarks.oneoff import child_environment
from benchmarks.peers import build, installed
from benchmarks.stats import Estimate, Samples, bootstrap
from benchmarks.workload import discover

MLPS = ("f-mlp", "digits", "d-mlp-adam")
PARTS = ("import", "build", "first call")
ROUNDS = 7


def child(engine: str, name: str, parameters: str) -> dict[str, float]:
    """Return the seconds of each part in this process; `parameters` is a file for JAX."""
    workload = next(w for w in discover() if w.name == name)
    inputs = workload.inputs()
    initial = dict(np.load(parameters)) if parameters else {}
    start = time.perf_counter()
    if engine == "static":
        tw = importlib.import_module(engine)
        imported = time.perf_counter()
        call, arguments = workload.make(tw).call, inputs[0]
    else:
        importlib.import_module("jax").devices()
        imported = time.perf_counter()
        made = build(engine, workload, initial)
        assert made is not None
        call, arguments = made[0], made[1][0]
    built = time.perf_counter()
    call(*arguments)
    called = time.perf_counter()
    return dict(zip(PARTS, (imported - start, built - imported, called - built), strict=True))


def layers(count: int) -> dict[str, float]:
    """Return processor seconds of the first call of `count` equal layers and, of these, of machine code."""
    from benchmarks.workloads import deep
    from common.compiler import compile as kernels

    vars(kernels)["perf_counter"] = time.process_time  # other processes do not count
    deep.LAYERS = count
    workload = deep.Deep()
    inputs = workload.inputs()
    program = workload.make(importlib.import_module("static"))
    start = time.process_time()
    program.call(*inputs[0])
    total = time.process_time() - start
    explained: Any = program.call.explain()  # type: ignore[attr-defined]
    return {"first call": total, "kernels": explained.seconds["kernels"]}


def in_new_process(*arguments: str) -> dict[str, float]:
    """Run `main` in a new process with an empty cache."""
    with tempfile.TemporaryDirectory(prefix="twingrad-") as cache:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.cold", *arguments],
            env={**child_environment(), "TWINGRAD_CACHE": cache}, cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def beside_jax(name: str, rounds: int = ROUNDS) -> dict[str, dict[str, Samples]]:
    """Return per engine and part the seconds of a workload's first call, measured in turns."""
    import dynamic

    engines = ["static", *(["jax.jit"] if "jax.jit" in installed() else [])]
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    with tempfile.TemporaryDirectory(prefix="twingrad-") as folder:
        file = Path(folder) / "parameters.npz"
        workload = next(w for w in discover() if w.name == name)
        parameters: dict[str, Any] = dict(workload.make(dynamic).parameters())
        np.savez(file, **parameters)
        for _ in range(rounds):
            for engine in engines:
                found[engine].append(in_new_process("--child", engine, name, str(file)))
    return {engine: {part: np.array([r[part] for r in runs]) for part in PARTS} for engine, runs in found.items()}


def ratio(found: dict[str, dict[str, Samples]], *parts: str) -> Estimate:
    """Seconds of these parts relative to jax.jit, of each round, with the 95 % interval of the median."""
    ours, theirs = (sum(found[engine][part] for part in parts) for engine in ("static", "jax.jit"))
    return bootstrap(lambda x: np.median(x, axis=-1), np.asarray(ours / theirs))


def main(arguments: list[str]) -> None:
    """Print a table, or as a child one line of JSON."""
    if arguments[:1] == ["--child"]:
        single_core()
        print(json.dumps(child(*arguments[1:])))
    elif arguments[:1] == ["--of-layers"]:
        single_core()
        print(json.dumps(layers(int(arguments[1]))))
    elif arguments == ["--layers"]:
        for count in (1, 50, 100):
            times = in_new_process("--of-layers", str(count))
            print(f"{count:4d} layers: " + ", ".join(f"{part} {1e3 * t:.0f} ms" for part, t in times.items()))
    else:
        for name in arguments or MLPS:
            _print(name, beside_jax(name))


def _print(name: str, found: dict[str, dict[str, Samples]]) -> None:
    for engine, parts in found.items():
        times = ", ".join(f"{part} {1e3 * float(np.median(samples)):.0f}" for part, samples in parts.items())
        print(f"{name:12} {engine:8} {times} ms")
    if len(found) > 1:
        for what, counted in (("after imports", PARTS[1:]), ("first call", PARTS[2:]), ("with imports", PARTS)):
            estimate = ratio(found, *counted)
            print(f"{'':12} static/jax.jit {what}: {estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]")


if __name__ == "__main__":
    main(sys.argv[1:])
