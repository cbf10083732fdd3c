"""Memory that a recorded graph keeps for backward: bytes by op, by module, and by line of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from common.autograd.backward_pass import collect
from common.autograd.recorded_graph import edges_of
from common.autograd.region import Recorded
from common.tensor.base import TensorBase
from common.tensor.node import Node
from common.tensor.packed_values import Packed


class SavedStorage(NamedTuple):
    """One piece of memory that a graph keeps for backward.

    Attributes
    ----------
    node : the earliest node that has saved it; its op and line answer for it.
    op : the node's name.
    module : qualified name of the module one of whose parameters meets the value in a node that has saved it; ""
        where none is known.
    line : file and line of the program, ``file:line``.
    shape, dtype : of the saved value; the storage of a view can be larger.
    nbytes : bytes of the storage.
    nodes : how many nodes have saved it.
    leaf : whether it is a leaf's own memory, which lives on without the graph.
    """

    node: Node
    op: str
    module: str
    line: str
    shape: tuple[int, ...]
    dtype: np.dtype
    nbytes: int
    nodes: int
    leaf: bool


class SavedReport:
    """The storages that a graph keeps; `print` it for a table.

    Attributes
    ----------
    storages : in program order, each once.
    """

    def __init__(self, storages: list[SavedStorage]) -> None:
        self.storages = storages

    @property
    def total(self) -> int:
        """Bytes that are kept because of the graph: all but the leaves' own."""
        return sum(s.nbytes for s in self.storages if not s.leaf)

    @property
    def leaves(self) -> int:
        """Bytes of leaves that the graph refers to."""
        return sum(s.nbytes for s in self.storages if s.leaf)

    @property
    def by_op(self) -> dict[str, int]:
        """Bytes by name of the node, largest first; without the leaves' own."""
        return self._by(lambda s: s.op)

    @property
    def by_module(self) -> dict[str, int]:
        """Bytes by module, largest first; without the leaves' own."""
        return self._by(lambda s: s.module)

    @property
    def by_line(self) -> dict[str, int]:
        """Bytes by ``file:line``, largest first; without the leaves' own."""
        return self._by(lambda s: s.line)

    def _by(self, key: Callable[[SavedStorage], str]) -> dict[str, int]:
        sums: dict[str, int] = {}
        for s in self.storages:
            if not s.leaf:
                sums[key(s)] = sums.get(key(s), 0) + s.nbytes
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        lines = [f"saved for backward: {self.total:,} bytes, and {self.leaves:,} bytes of leaves"]
        for title, sums in (("op", self.by_op), ("module", self.by_module), ("line", self.by_line)):
            if set(sums) != {""}:
                lines += [f"{'bytes':>15}  {title}", *(f"{n:>15,}  {key or '-'}" for key, n in sums.items())]
        return "\n".join(lines)

    __repr__ = __str__


def saved_report(roots: Any) -> SavedReport:
    """Report the memory that the graph of `roots` keeps for backward; storages that several nodes share count once.

    Parameters
    ----------
    roots : a tensor or a sequence of them.

    Returns
    -------
    SavedReport
        Sizes in bytes. The inside of a `function` is part of it; what pack hooks have packed is not.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.zeros(1000).requires_grad_()
    >>> y = x.exp() * 3.0
    >>> report = saved_report(y.sum())
    >>> report.by_op
    {'ExpBackward0': 4000}
    """
    nodes = list(_all_nodes(collect(edges_of(roots))))
    leaves = {id(_storage(e.payload)) for n in nodes for e in n.edges if isinstance(e, TensorBase)}
    found: dict[int, SavedStorage] = {}
    for node in sorted(nodes, key=lambda n: n.number):
        for array in {id(_storage(x)): x for x in _arrays(node.saved)}.values():
            storage = _storage(array)
            earlier = found.get(id(storage))
            if earlier is not None:
                module = earlier.module or _module(node)
                found[id(storage)] = earlier._replace(nodes=earlier.nodes + 1, module=module)
                continue
            file, line, _ = node.source
            found[id(storage)] = SavedStorage(
                node, node.name(), _module(node), f"{file}:{line}", array.shape, array.dtype, storage.nbytes, 1,
                id(storage) in leaves,
            )  # fmt: skip
    return SavedReport(list(found.values()))


def _all_nodes(nodes: list[Node]) -> Iterator[Node]:
    """The nodes, and those inside their regions."""
    waiting, seen = list(nodes), set(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for x in node.saved if type(node.saved) is tuple else ():
            if isinstance(x, Recorded):
                inner = [n for n in collect(x.outputs, x.start) if n not in seen]
                seen.update(inner)
                waiting += inner


def _arrays(x: Any) -> Iterator[np.ndarray]:
    """The arrays among the saved values of a node of any kind."""
    if isinstance(x, Packed):
        x = x.unpacked
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(getattr(x, "payload", None), np.ndarray):  # what a Function has saved, or a checkpoint has kept
        yield x.payload
    elif isinstance(x, (tuple, list)) and not isinstance(x, Recorded):
        for part in x:
            yield from _arrays(part)
    elif hasattr(x, "leaves"):
        yield from _arrays(x.leaves)


def _storage(array: Any) -> Any:
    """The array that owns the memory."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def _module(node: Node) -> str:
    """The module that holds a parameter among the operands, or among what they are views of; or ""."""
    for edge in node.edges:
        while isinstance(edge, Node) and edge.op.kind == "view":
            edge = edge.edges[0]
        name = getattr(edge, "name", "") if isinstance(edge, TensorBase) else ""
        if name:
            return str(name).rpartition(".")[0]
    return ""
