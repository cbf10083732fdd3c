"""The same workloads in other frameworks, imported only when installed and asked for."""

import importlib
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from benchmarks.workload import Array, Workload

Built = tuple[Any, list[tuple[Any, ...]]]  # a callable that returns finished results, and its input sets


@dataclass(frozen=True)
class Peer:
    """A framework, in one of its ways of running a program.

    Attributes
    ----------
    package : what is imported, and what pip calls it.
    adapter : the module of `benchmarks.peers` that holds its programs.
    eager : the name of the way that runs op by op, for one that compiles.
    program : what must be installed beside it.
    """

    package: str
    adapter: str
    eager: str = ""
    program: str = ""


PEERS = {
    "torch": Peer("torch", "with_torch"),
    "torch.compile": Peer("torch", "with_torch", eager="torch"),
    "jax": Peer("jax", "with_jax"),
    "jax.jit": Peer("jax", "with_jax", eager="jax"),
    "pytensor.python": Peer("pytensor", "with_pytensor"),
    "pytensor": Peer("pytensor", "with_pytensor", eager="pytensor.python"),
    "tinygrad": Peer("tinygrad", "with_tinygrad", program="clang"),
    "tinygrad.jit": Peer("tinygrad", "with_tinygrad", eager="tinygrad", program="clang"),
    "autograd": Peer("autograd", "with_autograd"),
    "numba": Peer("numba", "with_numba"),
}


def installed() -> list[str]:
    """Return the names of the peers whose packages and programs are installed, without importing them."""
    return [name for name, peer in PEERS.items() if not lacks(peer)]


def lacks(peer: Peer) -> str:
    """Return what a peer lacks, and how it is installed; empty if it can run."""
    if find_spec(peer.package) is None:
        return f"{peer.package} is not installed (pip install {peer.package})"
    if peer.program and shutil.which(peer.program) is None:
        return f"{peer.package} compiles with {peer.program}, which is not installed (apt-get install {peer.program})"
    return ""


def chosen(text: str | None) -> tuple[list[str], list[str]]:
    """Return the peers that are asked for and installed, and a line per package that is not.

    Parameters
    ----------
    text : str or None
        Names between commas, "all", or None for no peers.

    Raises
    ------
    LookupError
        If there is no such peer; the message lists those there are.
    """
    if text is None:
        return [], []
    wanted = list(PEERS) if text == "all" else [name.strip() for name in text.split(",")]
    for name in wanted:
        if name not in PEERS:
            raise LookupError(f"there is no peer {name!r}; there are: {', '.join(PEERS)}")
    known = installed()
    lacking: dict[str, list[str]] = {}
    for name in wanted:
        if name not in known:
            lacking.setdefault(lacks(PEERS[name]), []).append(name)
    lines = [f"without {' and '.join(names)}: {reason}" for reason, names in lacking.items()]
    return [name for name in wanted if name in known], lines


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
    own = workload.peer(peer, initial)
    if own is not None:
        return own
    made: Built | None = importlib.import_module(f"{__name__}.{PEERS[peer].adapter}").build(peer, workload, initial)
    return made
