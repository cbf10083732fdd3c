"""The calls of a program as Python that numba compiles: memory, kernels in order, and control flow as functions."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common.compiler import host_kernels
from common.compiler.text_steps import literal, type_name
from common.core.errors import ArgumentError
from common.core.polynomials import Terms
from static.export.compiled_call import CompiledCall
from static.export.copied_definitions import copy_definitions
from static.export.numba_kernels import KernelTexts
from static.export.python_layout import WIDTH, clipped, quoted
from static.lowering.ir.control_steps import ITERATIONS, PROGRESS, LoopStep, SwitchStep
from static.lowering.ir.step import Step
from static.lowering.memory.call_table import Frame, TableEntry, Temporary

SIZES = ", @SIZES@"
"""Stands for all sizes behind other arguments, until the last of them is known."""
JIT = '@njit(cache=True, error_model="numpy")\n'
ROOM = "room"
"""The name of the size that bounds the iterations of a loop whose number data decide."""


def runs_python(frame: Frame) -> bool:
    """Whether a frame calls functions of numpy's and SciPy's, which numba does not compile."""
    return any(call.source.startswith(host_kernels.MARK) for call in frame.all_calls())


class NumbaDriver:
    """Writes what calls kernels.

    Parameters
    ----------
    inputs : names of the program's arguments.

    Attributes
    ----------
    kernels : the functions that it calls.
    regions : functions of its control flow.
    atoms : sizes that may change -> their names.
    """

    def __init__(self, program: CompiledCall, inputs: Sequence[str]) -> None:
        self.program, self.inputs, self.kernels = program, inputs, KernelTexts()
        self.regions: list[str] = []
        self._steps: dict[int, Step] = {}
        self.atoms: dict[Any, str] = {}

    # ---------------------------------------------------------------- sizes
    def size(self, terms: Terms | int) -> str:
        """A polynomial of sizes."""
        if isinstance(terms, int):
            return str(terms)
        text = ""
        for factors, coefficient in terms:
            names = [self._atom(atom) for atom in factors]
            sign = (" - " if coefficient < 0 else " + ") if text else "-" * (coefficient < 0)
            size = [str(abs(coefficient))] if abs(coefficient) != 1 or not names else []
            text += sign + " * ".join([*size, *names])
        return f"({text})" if len(terms) > 1 else text or "0"

    def _atom(self, atom: Any) -> str:
        if atom[0] in ("//", "%"):
            return f"({self.size(atom[1])} {atom[0]} {self._divisor(atom[2])})"
        if atom[0] != "in":
            return ROOM
        return self.atoms.setdefault(atom, f"{self.inputs[atom[1]]}_{atom[2]}")

    def _divisor(self, terms: Terms | int) -> str:
        text = self.size(terms)
        return text if text.isalnum() else f"({text})"

    # ---------------------------------------------------------------- calls
    def lines(self, frame: Frame, slots: Sequence[str], steps: Sequence[Step]) -> list[str]:
        """Lines that compute a frame, whose arguments are these arrays."""
        for call, step in zip(frame.calls, steps, strict=True):
            self._steps[id(call)] = step
        self._refuse(frame)
        values = [self.size(n) for n in frame.sizes]
        names, kinds, out = [*slots], self.kinds(frame), list[str]()
        for i, temporary in enumerate(frame.temporaries):
            kind = kinds.get(len(names))
            names.append(f"t{i}")
            if kind is not None:
                out.append(f"t{i} = np.empty({self._count(frame, temporary, kind, values)}, {type_name(kind)})")
        for i, (dtype, number, index) in enumerate(frame.constants):
            kinds[len(names)] = dtype
            names.append(f"c{i}")
            value = literal(number, dtype) if index is None else f"{type_name(dtype)}({values[index]})"
            out.append(f"c{i} = np.full(1, {value}, {type_name(dtype)})")
        shown = None
        for call in frame.calls:
            told = self.comments(call)
            out += [f"# {clipped(line, WIDTH - 6)}" for line in told] if told != shown else []
            shown = told
            own = [names[slot] for slot in call.slots]
            for place, dtype in self._seen(call) if call.construct is not None else ():
                own[place] = _viewed(names[call.slots[place]], kinds[call.slots[place]], dtype)
            if isinstance(call.construct, LoopStep):
                out += self.loop(frame, call, call.construct, own, values)
            elif isinstance(call.construct, SwitchStep):
                out += self.switch(call, call.construct, own)
            else:
                out += self.call(call, own, [kinds[slot] for slot in call.slots], values)
        return out or ["return"]

    def _count(self, frame: Frame, temporary: Temporary, kind: np.dtype[Any], values: Sequence[str]) -> str:
        """The elements of a temporary array."""
        form = temporary.columns
        if form is not None:
            rows, columns = (values[i] for i in temporary.size)
            return f"accumulators({rows}, {columns}, {form.tile or 0}, {int(form.more)})"
        return self._elements(frame, temporary.size[0], kind)

    def _refuse(self, frame: Frame) -> None:
        for call in frame.calls:
            known = isinstance(call.construct, (LoopStep, SwitchStep))
            if not known and not call.source:
                raise ArgumentError(
                    f"export_numba(): the program has a {type(call.construct).__name__} ({self.comments(call)[0]}): "
                    "what calls Python cannot run without this library"
                )

    def call(self, call: TableEntry, names: Sequence[str], kinds: Sequence[Any], values: Sequence[str]) -> list[str]:
        """A call of a kernel."""
        if call.source.startswith(host_kernels.MARK):
            return [self.python_call(call, names, kinds, values)]
        kernel = self.kernels.kernel(call.source, call.name)
        given = [_viewed(names[place], kinds[place], dtype) for place, dtype in kernel.buffers]
        ints = [values[i] for i in call.ints]
        given += [f"np.array([{', '.join(ints)}], int64)"] if kernel.ints is None else [ints[i] for i in kernel.ints]
        text = f"{kernel.name}({', '.join(given)})"
        if not call.may_fail and call.wrong_index is None:
            return [text]
        listed = {} if call.wrong_index is not None else call.errors
        messages = {str(message) for message, _ in listed.values() if message}
        kind = "ZeroDivisionError" if any("division" in message for message in messages) else "IndexError"
        told = " or ".join(sorted(messages)) or "an index is out of range"
        raised = quoted(clipped(f"{told} ({self.comments(call)[0].partition(': ')[0]})", WIDTH - 40))
        return [f"status = {text}", "if status != 0:", f"    raise {kind}({raised})"]

    def python_call(self, call: TableEntry, names: Sequence[str], kinds: Sequence[Any], values: Sequence[str]) -> str:
        """A call of a function of numpy's or SciPy's, which gets the arrays in their shapes."""
        kernel, sizes = host_kernels.parse(call.source), iter([values[i] for i in call.ints])
        copy_definitions(kernel.name, self.kernels.copied)
        shaped = [
            f"{_viewed(name, kind, dtype)}.reshape({tuple_of([next(sizes) for _ in range(ndim)])})"
            for name, kind, (dtype, ndim) in zip(names, kinds, kernel.buffers, strict=True)
        ]
        given = shaped[: kernel.operands]
        given += [next(sizes) if x is ... else quoted(x) if isinstance(x, str) else repr(x) for x in kernel.words]
        results = ", ".join(f"{x}[...]" for x in shaped[kernel.operands :])
        return f"{results} = {kernel.name}({', '.join(given)})"

    def comments(self, call: TableEntry) -> list[str]:
        """The user's lines that a call is for."""
        nodes = (item.node for group in self._steps[id(call)].groups for item in group.items)
        places = dict.fromkeys((Path(file).name, line, file) for file, line, _ in (node.source for node in nodes))
        return [f"{name}:{line}: {linecache.getline(file, line).strip()}".rstrip(": ") for name, line, file in places]

    # ---------------------------------------------------------------- control flow
    def region(self, name: str, call: TableEntry, key: str) -> str:
        """Write a region of a call as a function of its arrays and of all sizes; its name."""
        frame, steps = call.regions[key], self._steps[id(call)].regions[key].steps
        own = f"{name}{len(self.regions)}"
        place = len(self.regions)
        self.regions.append("")
        slots = [f"a{i}" for i in range(len(frame.inputs) + len(frame.outputs))]
        bound = [*slots]
        for i, argument in enumerate(frame.outputs, len(frame.inputs)):
            bound[i] = slots[i] if argument.over is None else slots[argument.over]
        body = "\n".join(f"    {line}" for line in self.lines(frame, bound, steps))
        jit = "" if runs_python(frame) else JIT
        self.regions[place] = f"{jit}def {own}({', '.join(slots)}{SIZES}):\n{body}"
        return own

    def switch(self, call: TableEntry, switch: SwitchStep, names: Sequence[str]) -> list[str]:
        """Branches."""
        results, out = names[switch.results : -1], list[str]()
        for i, uses in enumerate(switch.uses):
            branch = self.region("branch", call, f"branch{i}")
            last = i == len(switch.uses) - 1
            word = "else" if last and i else "if True" if last else f"{'el' * bool(i)}if {names[0]}[0] == {i}"
            out += [f"{word}:", f"    {branch}({', '.join([*(names[j] for j in uses), *results])}{SIZES})"]
        return out

    def loop(
        self, outer: Frame, call: TableEntry, loop: LoopStep, names: Sequence[str], values: Sequence[str]
    ) -> list[str]:
        """A loop: what is carried changes places with its other array after each iteration, if it has one."""
        if loop.asks and loop.stacked:
            self.atoms.setdefault((ROOM,), ROOM)
        if ITERATIONS in call.regions:
            return self.iterations(outer, call, loop, names, values)
        body_frame, body = call.regions["body"], self.region("body", call, "body")
        n, mark = len(loop.carried), len(self.regions)
        now, then = [f"now{mark}_{k}" for k in range(n)], [f"then{mark}_{k}" for k in range(n)]
        done, row = f"done{mark}", f"row{mark}"
        out, inner, ends = list[str](), list[str](), list[str]()
        for k, (start, result, size) in enumerate(loop.carried):
            length = self._elements(outer, size, body_frame.inputs[k].dtype)
            part = _up_to(length)
            out += [f"{now[k]} = {names[result]}{part}", f"{now[k]}[:] = {names[start]}{part}"]
            out += [f"{then[k]} = np.empty_like({now[k]})"]
            ends.append(f"{names[result]}{part} = {now[k]}")
        count = f"{names[0]}[0]" if loop.counted else values[loop.length]
        out += [f"{done} = 0"]
        if loop.asks:
            asked = self.region("condition", call, "condition")
            tests = ", ".join([*now, *(names[i] for i in loop.tests)])
            question = [f"answer{mark} = np.empty(1, bool_)", f"{asked}({tests}, answer{mark}{SIZES})"]
            out += [*question, f"while answer{mark}[0]:"]
            inner += [f"if {done} == {ROOM}:", "    raise BufferError"] * bool(loop.stacked)
        else:
            out += [f"for {done} in range({count}):"]
        place = f"{count} - 1 - {done}" if loop.backwards else done
        inner += [f"{row} = {place}"] * bool(loop.rows or loop.stacked)
        rows, stacks = (
            [self._row(names[i], self._elements(outer, size, x.dtype), row) for (i, size), x in zip(own, arguments[n:])]
            for own, arguments in ((loop.rows, body_frame.inputs), (loop.stacked, body_frame.outputs))
        )
        given = [*now, *rows, *(names[i] for i in loop.constants), *then, *stacks]
        inner.append(f"{body}({', '.join(given)}{SIZES})")
        for output, a, b in zip(body_frame.outputs, now, then, strict=False):
            inner += [f"{a}, {b} = {b}, {a}"] if output.over is None else []
        if loop.asks:
            inner += [f"{done} += 1", question[1]]
        out += [f"    {line}" for line in inner]
        return [*out, *ends] + ([f"{names[-2]}[0] = {done}"] if loop.asks else [])

    def iterations(
        self, outer: Frame, call: TableEntry, loop: LoopStep, names: Sequence[str], values: Sequence[str]
    ) -> list[str]:
        """A loop that is one kernel: it is called until it has done all iterations."""
        body, mark = self.region("iterations", call, ITERATIONS), len(self.regions)
        out = []
        for (start, result, size), x in zip(loop.carried, call.regions[ITERATIONS].inputs, strict=False):
            part = _up_to(self._elements(outer, size, x.dtype))
            part = "[0]" if part == "[:1]" else part
            out.append(f"{names[result]}{part} = {names[start]}{part}")
        progress = [f"{name}{mark}" for name in PROGRESS]
        done, limit, asking, more = progress
        count = f"{names[0]}[0]" if loop.counted else values[loop.length]
        count = count if loop.stacked or not loop.asks else "0"
        out += [f"{name} = np.{'ones' if name == asking else 'zeros'}(1, int64)" for name in progress]
        out += [f"{limit}[0] = {count}", f"while {asking}[0]:" if loop.asks else f"while {done}[0] < {limit}[0]:"]
        out.append(f"    {body}({', '.join([*(names[i] for i in loop.bound), *progress])}{SIZES})")
        out += [f"    if {more}[0]:", "        raise BufferError"] * bool(loop.asks and loop.stacked)
        return [*out, *([f"{names[-2]}[0] = {done}[0]"] if loop.asks else [])]

    def _row(self, stack: str, length: str, row: str) -> str:
        return f"{stack}[{row} * {length} : ({row} + 1) * {length}]"

    def _elements(self, frame: Frame, index: int, dtype: np.dtype[Any]) -> str:
        """A size of a frame in elements, where it has that in bytes."""
        terms = frame.sizes[index]
        parts = [n for _, n in terms] if not isinstance(terms, int) else [terms]
        if any(n % dtype.itemsize for n in parts):
            return f"(({self.size(terms)}) // {dtype.itemsize} + 1)"
        if isinstance(terms, int):
            return str(terms // dtype.itemsize)
        text = self.size(tuple((factors, n // dtype.itemsize) for factors, n in terms))
        return text if text.isalnum() or text.startswith("(") else f"({text})"

    def kinds(self, frame: Frame) -> dict[int, np.dtype[Any]]:
        """The dtypes of slots: as arguments have them, or as what first uses them sees them."""
        found: dict[int, np.dtype[Any]] = dict(enumerate(x.dtype for x in (*frame.inputs, *frame.outputs)))
        for call in frame.calls:
            for place, dtype in self._seen(call):
                found.setdefault(call.slots[place], dtype)
        return found

    def _seen(self, call: TableEntry) -> _Seen:
        if isinstance(call.construct, LoopStep):
            return _of_loop(call, call.construct)
        if isinstance(call.construct, SwitchStep):
            return _of_switch(call, call.construct)
        if call.source.startswith(host_kernels.MARK):
            return [(i, dtype) for i, (dtype, _) in enumerate(host_kernels.parse(call.source).buffers)]
        return self.kernels.kernel(call.source, call.name).buffers


_Seen = list[tuple[int, np.dtype[Any]]]
"""Positions among the slots of a call, and the dtypes of the arrays there."""


def tuple_of(parts: Sequence[str]) -> str:
    """The text of a tuple."""
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def _up_to(length: str) -> str:
    """A slice of the first elements."""
    bare = length.removeprefix("(").removesuffix(")") if length.startswith("(") and "(" not in length[1:] else length
    return f"[:{bare}]" if bare.isalnum() or bare.isidentifier() else f"[: {bare}]"


def _viewed(name: str, kind: np.dtype[Any], dtype: np.dtype[Any]) -> str:
    """An array as somebody sees it: a gather, for example, moves floats as words."""
    return name if kind == dtype else f"{name}.view({type_name(dtype)})"


def _of_loop(call: TableEntry, loop: LoopStep) -> _Seen:
    counts = [*([len(call.slots) - 2] if loop.asks else ()), *([0] if loop.counted else ())]
    known = [(i, np.dtype(np.int64)) for i in counts]
    whole = call.regions.get(ITERATIONS)
    if whole is not None:
        known += [(start, x.dtype) for (start, _, _), x in zip(loop.carried, whole.inputs, strict=False)]
        return known + [(i, x.dtype) for i, x in zip(loop.bound, whole.inputs, strict=False)]
    body, n = call.regions["body"], len(loop.carried)
    known += [(i, x.dtype) for (*pair, _), x in zip(loop.carried, body.inputs, strict=False) for i in pair]
    read = [*(i for i, _ in loop.rows), *loop.constants]
    known += [(i, x.dtype) for i, x in zip(read, body.inputs[n:], strict=True)]
    known += [(i, x.dtype) for (i, _), x in zip(loop.stacked, body.outputs[n:], strict=True)]
    if loop.asks:
        known += [(i, x.dtype) for i, x in zip(loop.tests, call.regions["condition"].inputs[n:], strict=True)]
    return known


def _of_switch(call: TableEntry, switch: SwitchStep) -> _Seen:
    known: _Seen = [(0, np.dtype(np.int64))]
    for i, uses in enumerate(switch.uses):
        region = call.regions[f"branch{i}"]
        known += [(place, x.dtype) for place, x in zip(uses, region.inputs, strict=True)]
        known += [(switch.results + k, x.dtype) for k, x in enumerate(region.outputs)]
    return known
