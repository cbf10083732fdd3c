"""Gates: first calls of MLP steps with an empty cache, beside jax.jit; equal layers are compiled once."""

from typing import Any

import pytest

from benchmarks.cold import MLPS, PARTS, beside_jax, in_new_process, ratio

BOUND = 1.0
LAYERS = 1.5


@pytest.mark.parametrize("name", MLPS)
def test_first_call(benchmark: Any, name: str) -> None:
    """Building and the first call take no longer than jax.jit's, imports aside, and with them, if JAX is installed."""
    found = benchmark.pedantic(beside_jax, (name,), rounds=1)
    if "jax.jit" not in found:
        return
    estimates = {"after imports": ratio(found, *PARTS[1:]), "with imports": ratio(found, *PARTS)}
    benchmark.extra_info.update({what: estimate.as_json() for what, estimate in estimates.items()})
    for what, estimate in estimates.items():
        assert estimate.high <= BOUND, (
            f"{what}: {estimate.value:.2f} of jax.jit [{estimate.low:.2f}, {estimate.high:.2f}]"
        )


def test_equal_layers_are_compiled_once(benchmark: Any) -> None:
    """Machine code of 50 layers costs at most 1.5 times that of one; everything else is linear in their number."""
    counts = (1, 50, 100)
    runs = [[in_new_process("--of-layers", str(count)) for count in counts] for _ in range(3)]
    best = [min((run[i] for run in runs), key=lambda times: times["first call"]) for i in range(len(counts))]
    benchmark.extra_info["seconds"] = dict(zip(map(str, counts), best, strict=True))
    benchmark.pedantic(in_new_process, ("--of-layers", "1"), rounds=1)
    one, fifty, hundred = best
    assert fifty["kernels"] <= LAYERS * one["kernels"]
    planning = [times["first call"] - times["kernels"] for times in (one, fifty, hundred)]
    assert planning[2] - planning[1] <= 1.5 * (planning[1] - planning[0])
