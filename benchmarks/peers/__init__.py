"""The same workloads in other frameworks, imported only when installed and asked for."""

import importlib
from importlib.util import find_spec
from typing import Any

from benchmarks.workload import Array, Workload

Built = tuple[Any, list[tuple[Any, ...]]]  # a callable that returns finished results, and its input sets

PEERS = {
    "torch": ("torch", "benchmarks.peers.with_torch"),
    "torch.compile": ("torch", "benchmarks.peers.with_torch"),
    "jax.jit": ("jax", "benchmarks.peers.with_jax"),
}


def installed() -> list[str]:
    """Return the names of the peers whose packages are installed, without importing them."""
    return [name for name, (package, _) in PEERS.items() if find_spec(package) is not None]


def build(peer: str, workload: Workload, initial: dict[str, Array]) -> Built | None:
    """Return a peer's version of a workload.

    Parameters
    ----------
    peer : str
        A name in `PEERS`.
    workload : Workload
        Its inputs are handed over as the peer's own arrays, converted once.
    initial : dict of arrays
        Parameters by PyTorch's names; the peer starts from a copy.

    Returns
    -------
    Built or None
        None if the peer has no version of this workload.
    """
    made: Built | None = importlib.import_module(PEERS[peer][1]).build(peer, workload, initial)
    return made
