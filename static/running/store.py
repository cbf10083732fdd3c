"""Compiled programs on disk: what plans need of one is found by the graph as it was traced.

A process that starts warm traces, and has its program: nothing is optimised, fused or lowered again. The trace cannot
be left out, because nothing else tells what a Python function does today. The key is everything from which a frame
follows: the traced nodes with their ids, what is known of sizes, the options, and the contents of the package's files;
ops that a user has defined come in by what they compute. Lines are not part of it: errors name nodes, and the trace has
them. Entries share the cache of machine code, and with it its size, checksums and rules (`common.native.cache`).

Programs with control flow or acts are not stored, nor are those of users' own passes.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from common.dim import Dim, DimScope
from common.kernels.places import WrongIndex
from common.native import cache as disk
from common.native.compile import make_key
from common.native.stamp import package_files, stamp
from common.op import Op, Refusal
from static.graph import Graph, Value
from static.lowering.frame import Argument, Call, Frame, Temporary
from static.lowering.memory import ColumnScratch

_REPEATABLE = 2
"""A version of marshal whose bytes do not depend on which objects are shared."""


def key_of(graph: Graph, dims: DimScope, fuse: bool) -> str | None:
    """The key of a traced graph; None if its program is not to be stored."""
    ops = {node.op for node in graph.nodes if node.op is not None}
    if not all(map(_is_fixed, ops)):
        return None
    try:
        renamed = sorted(dims.renamed.items(), key=repr)
        text = marshal.dumps((fuse, renamed, *_plain_graph(graph)), _REPEATABLE)
    except ValueError:  # an attribute that is not plain data
        return None
    meanings = " ".join(sorted(f"{op.name}:{op.kind}:{op.reduce}:{op.domain}:{op.result}:{op.costly}" for op in ops))
    return make_key(f"program {_package().hex()} {hashlib.sha256(text).hexdigest()} {meanings}")


def load(key: str) -> Frame | None:
    """The frame stored under a key; None if there is none."""
    entry = disk.read(key)
    return None if entry is None else _read(marshal.loads(entry.code))


def save(key: str, frame: Frame) -> None:
    """Store a frame, unless it holds what only its own process knows."""
    if all(call.node is None for call in frame.calls):
        disk.write(key, disk.Entry("program", (), marshal.dumps(_written(frame))))


# ------------------------------------------------------------------------------------------------- keys


def _is_fixed(op: Op) -> bool:
    """Whether the key covers what an op means, by the package's files or, of a scalar expression, by its code."""
    makers = (getattr(op, name, None) for name in ("native", "strided"))
    return op.kind not in ("control", "act") and all(
        make is None or str(getattr(make, "__module__", "")).startswith("common.") for make in makers
    )


def _plain_graph(graph: Graph) -> Iterator[Any]:
    for node in graph.nodes:
        if node.op is None:
            (value,) = node.outputs
            yield node.id, _plain(value.spec)
        else:
            operands = [(x.node.id, x.index) if type(x) is Value else _plain(x) for x in node.operands]
            yield node.id, node.op.name, operands, [(name, _plain(x)) for name, x in node.attrs.items()]
    yield [v.key for v in graph.inputs], [v.key for v in graph.outputs]
    yield [(effect.state.key, effect.value.key) for effect in graph.effects]


def _plain(x: Any) -> Any:
    """A value as what marshal can write; the rest makes it raise."""
    if isinstance(x, Dim):
        return "dim", x.terms, x.hint
    if isinstance(x, (tuple, list)):
        return [_plain(v) for v in x]
    return ("dtype", x.str) if isinstance(x, np.dtype) else x


@cache
def _package() -> bytes:
    """The hash of the package's files, kept under a stamp of their sizes and times."""
    files = package_files()
    key = stamp(files)
    entry = None if key is None else disk.read(key)
    if entry is None:
        digest = hashlib.sha256()
        for path in files:
            digest.update(f"{Path(path).parent.name}/{Path(path).name}".encode())
            digest.update(Path(path).read_bytes())
        entry = disk.Entry("package", (), digest.digest())
        if key is not None:
            disk.write(key, entry)
    return entry.code


# ------------------------------------------------------------------------------------------------- frames


def _written(frame: Frame) -> tuple[Any, ...]:
    """A frame as plain data; each kernel's text once."""
    kernels = list(dict.fromkeys((call.name, call.source) for call in frame.calls))
    number = {kernel: i for i, kernel in enumerate(kernels)}
    calls = []
    for call in frame.calls:
        errors = [(status, str(text), type(text) is Refusal, node) for status, (text, node) in call.errors.items()]
        wrong = call.wrong_index
        told = None if wrong is None else (wrong.extents, wrong.dim, wrong.wrap)
        calls.append((number[call.name, call.source], call.slots, call.ints, errors, call.sure_below, told))
    arguments = [[(x.dtype.str, x.shape, x.number, x.written) for x in part] for part in (frame.inputs, frame.outputs)]
    temporaries = [
        (t.name, t.first, t.last, t.size, None if t.columns is None else (t.columns.itemsize, t.columns.tile))
        for t in frame.temporaries
    ]
    constants = [(dtype.str, number, size) for dtype, number, size in frame.constants]
    return frame.sizes, *arguments, temporaries, constants, kernels, calls


def _read(data: tuple[Any, ...]) -> Frame:
    def errors_of(listed: Any) -> dict[int, tuple[str, int]]:
        return {status: (Refusal(text) if refuses else text, node) for status, text, refuses, node in listed}

    sizes, inputs, outputs, temporaries, constants, kernels, calls = data
    return Frame(
        sizes,
        [Argument(np.dtype(dtype), *rest) for dtype, *rest in inputs],
        [Argument(np.dtype(dtype), *rest) for dtype, *rest in outputs],
        [
            Temporary(name, first, last, size, None if columns is None else ColumnScratch(None, None, *columns))
            for name, first, last, size, columns in temporaries
        ],
        [(np.dtype(dtype), number, size) for dtype, number, size in constants],
        [
            Call(
                kernels[i][0],
                kernels[i][1],
                slots,
                ints,
                errors_of(errors),
                sure,
                None if told is None else WrongIndex(*told),
            )
            for i, slots, ints, errors, sure, told in calls
        ],
    )
