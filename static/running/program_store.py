"""Compiled programs on disk, found by the traced graph.

A process that starts warm traces, and has its program: nothing is optimised, fused or lowered again. The trace cannot
be left out, because nothing else tells what a Python function does today. The key is everything from which a frame
follows: the traced nodes with their ids, what is known of sizes, the options, and the contents of the package's files;
ops that a user has defined come in by what they compute. Lines are not part of it: errors name nodes, and the trace has
them. Entries share the cache of machine code, and with it its size, checksums and rules (`common.compiler.disk_cache`).

Regions are part of the graph that is the key, and of the frame that is stored. A stored program calls the
`pure_callback` functions of the trace that loads it; it holds how they are called, not what they do. The form of a
program whose loops threads share is an entry of its own, made when there are threads. Programs of users' own passes are
not stored.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from common.compiler import disk_cache as disk
from common.compiler.compile import make_key
from common.compiler.environment_stamp import package_files, stamp
from common.control.callback import Callback
from common.core.numerics import flushes
from common.core.op import TRAITS, Op, Refusal
from common.core.polynomials import Atom
from common.core.python_numbers import Int, Number
from common.core.sizes import Dim, DimScope
from common.kernels.arrays.coordinates import WrongIndex
from static.graph import Graph, Value
from static.graph.patterns import Copy
from static.graph.side_effects import gives
from static.lowering.ir.control_steps import Act, LoopStep, SwitchStep
from static.lowering.ir.kernel_memory import ColumnScratch
from static.lowering.ir.options import CompileOptions
from static.lowering.memory.call_table import Frame, TableArgument, TableEntry, Temporary
from static.lowering.threads.work import SMALL_ELEMENTS
from static.running.executable import Executable, compile_graph

_CONSTRUCTS: dict[str, Any] = {kind.__name__: kind for kind in (Act, LoopStep, SwitchStep)}

_PLAIN = frozenset((bool, int, float, str, type(None)))
_REPEATABLE = 2
"""A version of marshal whose bytes do not depend on which objects are shared."""


class Key(NamedTuple):
    """Under what a program is stored.

    Attributes
    ----------
    text : of all from which it follows.
    callbacks : what it calls Python for, by number; not part of the text.
    """

    text: str
    callbacks: list[Callback]

    def part(self, name: str) -> Key:
        """The key of another program that follows from the same graph."""
        return Key(hashlib.sha256(f"{name} of {self.text}".encode()).hexdigest(), self.callbacks)


class Notes(Protocol):
    """Plain data beside a program: made with it, or taken over from where it was made."""

    @property
    def notes(self) -> Any:
        """The data."""

    def know(self, notes: Any) -> None:
        """Take over the data."""


class _Met(NamedTuple):
    """The ops met on the way through a graph, and the callbacks by id, in order."""

    ops: set[Op]
    callbacks: dict[int, Callback]

    def number(self, call: Callback) -> int:
        """The number of a callback; nodes that call the same one give the same number."""
        self.callbacks.setdefault(id(call), call)
        return list(self.callbacks).index(id(call))


def key_of(
    graph: Graph, dims: DimScope, options: tuple[Any, ...], copies: Mapping[int, Copy] | None = None
) -> Key | None:
    """The key of a traced graph; None if its program is not to be stored.

    Parameters
    ----------
    options : what else decides what is made of it; the processor's mode, in which constants are folded, always does.
    copies : see `static.tracing.trace.Trace`; what they say is not said again.
    """
    met = _Met(set(), {})
    try:
        renamed = sorted(dims.renamed.items(), key=repr)
        text = marshal.dumps((options, flushes(), renamed, _plain_graph(graph, met, copies or {})), _REPEATABLE)
    except ValueError:  # an attribute that is not plain data
        return None
    if not all(map(_is_fixed, met.ops)):
        return None
    meanings = " ".join(sorted(map(_meaning, met.ops)))
    key = make_key(f"program {_package().hex()} {hashlib.sha256(text).hexdigest()} {meanings}")
    return Key(key, list(met.callbacks.values()))


def load(key: Key, options: CompileOptions, make: Callable[[], Graph]) -> Executable | None:
    """The program stored under a key; None if there is none.

    Parameters
    ----------
    make : makes the graph that was lowered, when somebody asks for it.
    """
    entry = disk.read(key.text)
    if entry is None:
        return None
    kernels, frame, notes = marshal.loads(entry.code)
    found = Executable(_FrameReader(kernels, key.callbacks).frame(frame), options, make, notes)
    found.cutting, found.growing = partial(_cut, key), partial(_grown, key)
    return found


def program(
    make: Callable[[], Graph],
    key: Key | None,
    notes: Notes | None = None,
    *,
    options: CompileOptions,
    known: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Executable:
    """Load the program of a graph that is stored under a key, or make it and store it.

    Parameters
    ----------
    notes : what is stored beside it, and is told what was.
    known : see `static.tracing.optimised.Optimised`.
    """
    found = None if key is None else load(key, options, make)
    if found is not None:
        found.known = known
        if notes is not None:
            notes.know(found.notes)
        return found
    graph = make()
    with known():
        made = compile_graph(graph, *options)
    made.known = known
    if key is not None:
        save(key, made, None if notes is None else notes.notes)
    return made


def save(key: Key, program: Executable, notes: Any = None) -> None:
    """Store a program, and plain data beside it."""
    program.cutting, program.growing = partial(_cut, key), partial(_grown, key)
    kernels = dict.fromkeys((call.name, call.source) for call in program.frame.all_calls())
    numbers: dict[Any, int] = {kernel: i for i, kernel in enumerate(kernels)}
    numbers.update((id(call), i) for i, call in enumerate(key.callbacks))
    code = marshal.dumps((list(kernels), _written(program.frame, numbers), notes))
    disk.write(key.text, disk.Entry("program", (), code))


def _cut(key: Key, program: Executable) -> Executable:
    """A program with loops cut for several threads, which is stored under a key of its own."""
    own = key.part(f"for threads, with more than {SMALL_ELEMENTS} elements")
    found = load(own, program.options, program.make)
    if found is None:
        found = program.cut()
        save(own, found)
    return found


def _grown(key: Key, program: Executable, env: Mapping[Atom, int]) -> Executable:
    """A program with kernels shaped for larger sizes, which is stored under a key of its own."""
    own = key.part(f"for sizes {sorted(env.items(), key=repr)}")
    found = load(own, program.options, program.make)
    if found is None:
        found = program.grown(env)
        save(own, found)
    return found


# ------------------------------------------------------------------------------------------------- keys


def _is_fixed(op: Op) -> bool:
    """Whether the key covers what an op means, by the package's files or, of a scalar expression, by its code."""
    makers = (getattr(op, name, None) for name in ("native", "strided"))
    return all(make is None or str(getattr(make, "__module__", "")).startswith("common.") for make in makers)


def _meaning(op: Op) -> str:
    """The fields of an op that lowering reads besides its expression."""
    return ":".join(map(str, (op.name, op.kind, *(getattr(op, name) for name in TRAITS))))


def _plain_graph(graph: Graph, met: _Met, copies: Mapping[int, Copy]) -> list[Any]:
    """A graph as what marshal can write."""
    lines: list[Any] = []
    nodes, left = graph.nodes, 0
    for i, node in enumerate(nodes):
        if left:
            left -= 1
            continue
        if node.id in copies:
            pattern, given = copies[node.id]
            left = len(pattern.lines) - 1
            if len(nodes) > i + left and nodes[i + left].id == node.id + left:  # all of it is there
                lines.append((node.id, pattern.first, pattern.last, pattern.given, given))
                continue
            left = 0
        op = node.op
        if op is None:
            lines.append((node.id, _plain(node.outputs[0].spec, met)))
            continue
        met.ops.add(op)
        operands = [(x.node.id, x.index) if type(x) is Value else _plain(x, met) for x in node.operands]
        attrs = [(name, x if type(x) in _PLAIN else _plain(x, met)) for name, x in node.attrs.items()]
        if gives(node):  # what no rule tells
            attrs.append(("results", [_plain(x.spec, met) for x in node.outputs]))
        lines.append((node.id, op.name, operands, attrs))
    keys = [v.key for v in graph.inputs], [v.key for v in graph.outputs]
    return [*lines, *keys, [(effect.state.key, effect.value.key) for effect in graph.effects]]


def _plain(x: Any, met: _Met) -> Any:
    """A value as what marshal can write; the rest makes it raise.

    Raises
    ------
    ValueError : an array, of which marshal would write the bytes without shape and dtype.
    """
    if isinstance(x, Dim):
        return "dim", x.terms, x.hint
    if isinstance(x, (tuple, list)):
        return [v if type(v) in _PLAIN else _plain(v, met) for v in x]
    if isinstance(x, Graph):
        return "graph", _plain_graph(x, met, {})
    if isinstance(x, Callback):
        return "callback", met.number(x)
    if isinstance(x, (np.ndarray, np.generic)):
        raise ValueError(f"{type(x)} would be written without its dtype")
    if isinstance(x, (Int, Number)):  # what a rule has made of a Python number: marshal takes no subclasses
        return int(x) if isinstance(x, Int) else float(x)
    return ("dtype", x.str) if isinstance(x, np.dtype) else x


@cache
def _package() -> bytes:
    """The hash of the package's files, kept under a stamp of their sizes and times."""
    files = package_files()
    key = stamp(files)
    entry = None if key is None else disk.read(key, ready_made=True)
    if entry is None:
        digest = hashlib.sha256()
        for name, _, _ in files:
            path = Path(name)
            digest.update(f"{path.parent.name}/{path.name}".encode())
            digest.update(path.read_bytes())
        entry = disk.Entry("package", (), digest.digest())
        if key is not None:
            disk.write(key, entry, ready_made=True)
    return entry.code


# ------------------------------------------------------------------------------------------------- frames


def _written(frame: Frame, numbers: Mapping[Any, int]) -> tuple[Any, ...]:
    """A frame as plain data; kernels are named by their numbers."""
    calls = []
    for call in frame.calls:
        errors = [(status, str(text), type(text) is Refusal, node) for status, (text, node) in call.errors.items()]
        wrong, own = call.wrong_index, call.construct
        told = None if wrong is None else (wrong.extents, wrong.dims, wrong.wraps)
        kind = (
            None if own is None else (type(own).__name__, *(_named(getattr(own, f.name), numbers) for f in fields(own)))
        )
        regions = [(name, _written(region, numbers)) for name, region in call.regions.items()]
        number = numbers[call.name, call.source]
        shared = call.cut, call.work, call.beside, dict(call.first), call.longer
        calls.append((number, call.slots, call.ints, errors, shared, told, kind, regions))
    arguments = [
        [(x.dtype.str, x.shape, x.number, x.written, x.over) for x in part] for part in (frame.inputs, frame.outputs)
    ]
    temporaries = [
        (t.name, t.first, t.last, t.size, t.columns and (t.columns.itemsize, t.columns.tile, t.columns.more), t.block)
        for t in frame.temporaries
    ]
    constants = [(dtype.str, number, size) for dtype, number, size in frame.constants]
    return frame.sizes, *arguments, temporaries, constants, calls, frame.kept


def _named(x: Any, numbers: Mapping[Any, int]) -> Any:
    """The stored form of a construct: of a callback its number."""
    return {"call": numbers[id(x["call"])]} if isinstance(x, dict) and "call" in x else x


class _FrameReader:
    """Reads frames.

    Parameters
    ----------
    kernels : names and texts.
    callbacks : by number.
    """

    def __init__(
        self,
        kernels: Sequence[tuple[str, str]],
        callbacks: Sequence[Callback],
    ) -> None:
        self._kernels, self._callbacks = kernels, callbacks

    def frame(self, data: tuple[Any, ...]) -> Frame:
        """The frame that was written."""
        sizes, inputs, outputs, temporaries, constants, calls, kept = data
        return Frame(
            sizes,
            [TableArgument(np.dtype(dtype), *rest) for dtype, *rest in inputs],
            [TableArgument(np.dtype(dtype), *rest) for dtype, *rest in outputs],
            [
                Temporary(name, first, last, size, None if columns is None else ColumnScratch(None, None, *columns), at)
                for name, first, last, size, columns, at in temporaries
            ],
            [(np.dtype(dtype), number, size) for dtype, number, size in constants],
            [self._call(*call) for call in calls],
            kept,
        )

    def _call(
        self, number: int, slots: Any, ints: Any, errors: Any, shared: Any, told: Any, kind: Any, regions: Any
    ) -> TableEntry:
        statuses = {status: (Refusal(text) if refuses else text, node) for status, text, refuses, node in errors}
        call = TableEntry(*self._kernels[number], slots, ints, statuses, None, *shared)
        if told is not None:
            call.wrong_index = WrongIndex(*told)
        if kind is not None:
            name, *parts = kind
            call.construct = own = _CONSTRUCTS[name](*parts)
            if isinstance(own, Act) and own.kind == "callback":
                own.attrs = {"call": self._callbacks[own.attrs["call"]]}
            call.regions = {name: self.frame(region) for name, region in regions}
        return call
