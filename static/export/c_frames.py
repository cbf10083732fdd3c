"""The calls of a program in C: memory and kernels in order, and control flow with its regions as functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from common.compiler.host_kernels import MARK
from common.core.dtypes import name_of
from common.core.errors import ArgumentError
from common.core.numerics import BLOCK, LANES
from common.core.polynomials import Terms
from static.lowering.ir.control_steps import ITERATIONS, PROGRESS, LoopStep, SwitchStep
from static.lowering.memory.call_table import Frame, TableEntry

ALIGNMENT = 64
MORE_ITERATIONS = -3
ROOM = "iterations"
"""The name of the size that bounds the iterations of a loop whose number data decide."""
TYPES = {
    "float32": "float", "float64": "double", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t", "uint8": "uint8_t", "bool": "uint8_t",
}  # fmt: skip
HELPERS = [
    "static inline int64_t divided(int64_t a, int64_t b) {",
    "    return b ? a / b - (a % b && (a < 0) != (b < 0)) : 0;",
    "}",
    "static inline int64_t remainder_of(int64_t a, int64_t b) { return a - divided(a, b) * b; }",
    f"static inline int64_t aligned(int64_t n) {{ return (n + {ALIGNMENT - 1}) & ~INT64_C({ALIGNMENT - 1}); }}",
    "static inline void copied(int64_t to, int64_t from, int64_t n) {",
    "    if (to != from) memmove((void *)(intptr_t)to, (void *)(intptr_t)from, (size_t)n);",
    "}",
    "/* Accumulators of columns: one set of lanes per level of blocks. */",
    "static inline int64_t columns(int64_t rows, int64_t n, int64_t itemsize, int64_t tile, int64_t more) {",
    f"    int64_t levels = 1 + more; while (rows > {BLOCK}) {{ rows = (rows + {BLOCK - 1}) / {BLOCK}; levels++; }}",
    f"    return levels * {LANES} * (tile && n > tile ? tile : n) * itemsize;", "}", "",
]  # fmt: skip
"""The beginning of every library's text."""


class CSizes:
    """Sizes that may change, as names of C."""

    def __init__(self) -> None:
        self.atoms: dict[Any, str] = {}

    def note(self, terms: Terms | int) -> None:
        """Name the sizes in a polynomial."""
        for factors, _ in () if isinstance(terms, int) else terms:
            for atom in factors:
                if atom[0] in ("//", "%"):
                    self.note(atom[1])
                    self.note(atom[2])
                elif atom[0] == "in":
                    self.atoms.setdefault(atom, f"x{atom[1]}_{atom[2]}")

    @property
    def room(self) -> str:
        """The iterations for which there is room; without loops that stack, nothing depends on them."""
        return self.atoms.get((ROOM,), "0")

    def note_frame(self, frame: Frame) -> None:
        """Name the sizes of a frame and of the regions in it."""
        for terms in frame.sizes:
            self.note(terms)
        for call in frame.calls:
            if isinstance(call.construct, LoopStep) and call.construct.asks and call.construct.stacked:
                self.atoms[ROOM,] = ROOM
            for region in call.regions.values():
                self.note_frame(region)

    def text(self, terms: Terms | int) -> str:
        """A polynomial in C."""
        if isinstance(terms, int):
            return f"INT64_C({terms})"
        parts = []
        for factors, coefficient in terms:
            names = [self._atom(atom) for atom in factors]
            if coefficient != 1 or not names:
                names.insert(0, f"INT64_C({coefficient})")
            parts.append(" * ".join(names))
        if not parts:
            return "0"
        return parts[0] if len(parts) == 1 and len(terms[0][0]) == 1 and terms[0][1] == 1 else f"({' + '.join(parts)})"

    def _atom(self, atom: Any) -> str:
        if atom[0] in ("//", "%"):
            call = "divided" if atom[0] == "//" else "remainder_of"
            return f"{call}({self.text(atom[1])}, {self.text(atom[2])})"
        return self.atoms[atom] if atom[0] == "in" else self.room

    def bound(self, terms: Terms | int) -> str:
        """An upper bound of a polynomial, as a double of C."""
        if isinstance(terms, int):
            return f"{abs(terms)}.0"
        parts = [
            " * ".join([f"{abs(coefficient)}.0", *(self._bound(atom) for atom in factors)])
            for factors, coefficient in terms
        ]
        return " + ".join(parts) or "0.0"

    def _bound(self, atom: Any) -> str:
        if atom[0] in ("//", "%"):
            return f"({self.bound(atom[1 if atom[0] == '//' else 2])})"
        return f"(double){self.atoms[atom] if atom[0] == 'in' else self.room}"

    def divisors(self, terms: Terms | int) -> list[str]:
        """The divisors in a polynomial, in C."""
        found = []
        for factors, _ in () if isinstance(terms, int) else terms:
            for atom in factors:
                if atom[0] in ("//", "%"):
                    found += [*self.divisors(atom[1]), self.text(atom[2])]
        return found

    @property
    def names(self) -> list[str]:
        """The names, in the order in which they are arguments."""
        return [self.atoms[key] for key in sorted(self.atoms, key=repr)]


class FrameTexts:
    """Writes a pair of functions per frame: the bytes that it works in, and what it does.

    Parameters
    ----------
    sizes : names of all sizes of the program.

    Attributes
    ----------
    functions : what is written.
    kernels : source and name of each kernel that is called -> its number.
    told : code of an error -> what it means.
    """

    def __init__(self, sizes: CSizes) -> None:
        self.sizes = sizes
        self.functions: list[str] = []
        self.kernels: dict[tuple[str, str], int] = {}
        self.told: dict[int, str] = {}
        self._codes = 0
        self._frames = 0

    def write(self, frame: Frame) -> int:
        """Write a frame, after its regions; its number."""
        _refuse(frame)
        regions = [{name: self.write(x) for name, x in call.regions.items()} for call in frame.calls]
        number, self._frames = self._frames, self._frames + 1
        names = self.sizes.names
        values = [self.sizes.text(n) for n in frame.sizes]
        given = "".join(f"int64_t {n}, " for n in names)
        measured = [f"    int64_t v[{len(values) + 1}];", *(f"    v[{i}] = {x};" for i, x in enumerate(values))]
        unused = [*(f"    (void){n};" for n in names), "    (void)v;"]
        count = len(frame.inputs) + len(frame.outputs)
        first, slots = len(frame.temporaries), len(frame.temporaries) + len(frame.constants)
        lines = ["    int64_t at = 0;"]
        for i, t in enumerate(frame.temporaries):
            c = t.columns
            nbytes = (
                "0" if t.block is not None
                else f"v[{t.size[0]}]" if c is None
                else f"columns(v[{t.size[0]}], v[{t.size[1]}], {c.itemsize}, {c.tile or 0}, {c.more})"
            )  # fmt: skip
            lines.append(f"    offsets[{i}] = at; at += aligned({nbytes});")
        lines += [f"    offsets[{first + i}] = at; at += {ALIGNMENT};" for i in range(len(frame.constants))]
        lines.append("    int64_t inner = 0, most = 0, own = 0;")
        for call, own in zip(frame.calls, regions, strict=True):
            if own:
                lines.append("    inner = 0;")
                lines += [f"    own = {self._needs(x)}; inner = own > inner ? own : inner;" for x in own.values()]
                if isinstance(call.construct, LoopStep) and ITERATIONS not in own:
                    lines += [f"    inner += aligned(v[{size}]);" for _, _, size in call.construct.carried]
                lines.append("    most = inner > most ? inner : most;")
        lines += [f"    offsets[{slots}] = at;", "    (void)inner; (void)own;", "    return at + most;"]
        self.functions += [
            f"static int64_t place{number}({given}int64_t *offsets) {{", *measured, *unused, *lines, "}", "",
            f"static int64_t needs{number}({given}int unused) {{", f"    int64_t offsets[{slots + 1}];",
            "    (void)unused;", f"    return place{number}({''.join(f'{n}, ' for n in names)}offsets);", "}", "",
            f"static int run{number}({given}const int64_t *a, int64_t base) {{", *measured, *unused,
            f"    int64_t offsets[{slots + 1}], b[{count + slots + 1}];", "    int code = 0;",
            f"    place{number}({''.join(f'{n}, ' for n in names)}offsets);",
        ]  # fmt: skip
        for i, argument in enumerate([*frame.inputs, *frame.outputs]):
            over = argument.over if i >= len(frame.inputs) else None
            self.functions.append(f"    b[{i}] = a[{i}];" if over is None else f"    b[{i}] = b[{over}];")
        self.functions += [
            f"    for (int i = 0; i <= {slots}; i++) b[{count} + i] = base + offsets[i];",
            f"    const int64_t inner = b[{count + slots}];", "    (void)inner;",
        ]  # fmt: skip
        self.functions += self._constants(frame, count + first)
        for call, own in zip(frame.calls, regions, strict=True):
            self.functions += ["    " + line for line in self._call(call, own)]
        self.functions += ["    return code;", "}", ""]
        return number

    def _needs(self, region: int) -> str:
        return f"needs{region}({''.join(f'{n}, ' for n in self.sizes.names)}0)"

    def _constants(self, frame: Frame, first: int) -> list[str]:
        out = []
        for i, (dtype, number, size) in enumerate(frame.constants):
            place = f"(void *)(intptr_t)b[{first + i}]"
            if size is not None:
                kind = TYPES[name_of(dtype)]
                out.append(f"    {{ {kind} x = ({kind})v[{size}]; memcpy({place}, &x, sizeof x); }}")
            else:
                bits = ", ".join(f"0x{byte:02x}" for byte in np.asarray(number, dtype).tobytes())
                out.append(f"    {{ static const uint8_t x[] = {{{bits}}}; memcpy({place}, x, sizeof x); }}")
        return out

    def _call(self, call: TableEntry, regions: dict[str, int]) -> list[str]:
        if isinstance(call.construct, LoopStep):
            return self._loop(call, call.construct, regions)
        if isinstance(call.construct, SwitchStep):
            return self._switch(call, call.construct, regions)
        self._codes += 1
        if call.may_fail or call.wrong_index is not None:
            told = (
                " or ".join(str(message) for message, _ in call.errors.values() if message) or "an index out of range"
            )
            self.told[self._codes] = re.sub(r"[^ -~]|[\\\"]", " ", told)[:200]
        kernel = self.kernels.setdefault((call.source, call.name), len(self.kernels))
        bufs = ", ".join(f"b[{slot}]" for slot in call.slots) or "0"
        ints = ", ".join(f"v[{i}]" for i in call.ints) or "0"
        return [
            f"{{ /* {call.name} */", f"    int64_t bufs[] = {{{bufs}}}, ints[] = {{{ints}}}, status = 0;",
            "    void *unused = 0;", f"    kernels[{kernel}](&status, &unused, bufs, ints);",
            f"    if (status) return {self._codes};", "}",
        ]  # fmt: skip

    def _run(self, region: int, arguments: Sequence[str], base: str) -> list[str]:
        """Call a region with the addresses of what it reads, then of what it writes."""
        given = "".join(f"{n}, " for n in self.sizes.names)
        return [
            f"{{ const int64_t a{region}[] = {{{', '.join(arguments) or '0'}}};",
            f"  if ((code = run{region}({given}a{region}, {base}))) return code; }}",
        ]

    def _switch(self, call: TableEntry, switch: SwitchStep, regions: dict[str, int]) -> list[str]:
        names = [f"b[{slot}]" for slot in call.slots]
        results, last = names[switch.results : -1], len(switch.uses) - 1
        out = [f"switch (*(const int64_t *)(intptr_t){names[0]}) {{"]
        for i, uses in enumerate(switch.uses):
            label = "default" if i == last else f"case {i}"
            inside = self._run(regions[f"branch{i}"], [*(names[j] for j in uses), *results], "inner")
            out += [f"{label}: {{", *(f"    {line}" for line in inside), "    break;", "}"]
        return [*out, "}"]

    def _loop(self, call: TableEntry, loop: LoopStep, regions: dict[str, int]) -> list[str]:
        """Write a loop: after each iteration the carry changes places with its other array, if the body has one."""
        names, n = [f"b[{slot}]" for slot in call.slots], len(loop.carried)
        count = f"*(const int64_t *)(intptr_t){names[0]}" if loop.counted else f"v[{loop.length}]"
        bounded = loop.asks and bool(loop.stacked)
        if ITERATIONS in regions:
            count = count if bounded or not loop.asks else "0"
            return self._iterations(loop, regions[ITERATIONS], names, count, bounded)
        out = ["{", f"    int64_t now[{n + 1}], then[{n + 1}], free_at = inner, done = 0, swapped = 0;"]
        for k, (start, result, size) in enumerate(loop.carried):
            out += [
                f"    now[{k}] = {names[result]}; then[{k}] = free_at; free_at += aligned(v[{size}]);",
                f"    copied(now[{k}], {names[start]}, v[{size}]);",
            ]
        body_frame = call.regions["body"]
        tests: list[str] = []
        if loop.asks:
            out.append("    uint8_t answer = 0;")
            asked = [*(f"now[{k}]" for k in range(n)), *(names[i] for i in loop.tests), "(int64_t)(intptr_t)&answer"]
            tests = self._run(regions["condition"], asked, "free_at")
            out += [f"    {line}" for line in tests] + ["    while (answer) {"]
        else:
            out += [f"    const int64_t count = {count};", "    for (done = 0; done < count; done++) {"]
        row = "(count - 1 - done)" if loop.backwards else "done"
        rows = [f"{names[i]} + {row} * v[{size}]" for i, size in loop.rows]
        stacks = [f"{names[i]} + {row} * v[{size}]" for i, size in loop.stacked]
        given = [*(f"now[{k}]" for k in range(n)), *rows, *(names[i] for i in loop.constants)]
        given += [*(f"then[{k}]" for k in range(n)), *stacks]
        inside = [f"if (done == {count}) return {MORE_ITERATIONS};"] * bounded
        inside += self._run(regions["body"], given, "free_at")
        for k, output in enumerate(body_frame.outputs[:n]):
            if output.over is None:
                inside.append(f"swapped = now[{k}]; now[{k}] = then[{k}]; then[{k}] = swapped;")
        if loop.asks:
            inside += ["done++;", *tests]
        out += [f"        {line}" for line in inside] + ["    }"]
        out += [f"    copied({names[r]}, now[{k}], v[{size}]);" for k, (_, r, size) in enumerate(loop.carried)]
        if loop.asks:
            out.append(f"    *(int64_t *)(intptr_t){names[-2]} = done;")
        return [*out, "    (void)swapped;", "}"]

    def _iterations(self, loop: LoopStep, region: int, names: Sequence[str], count: str, bounded: bool) -> list[str]:
        """A loop that is one kernel: it is called until it has done all iterations."""
        out = ["{", f"    int64_t progress[] = {{0, {count}, 1, 0}};"]
        out += [f"    copied({names[result]}, {names[start]}, v[{size}]);" for start, result, size in loop.carried]
        out.append("    while (progress[2]) {" if loop.asks else "    while (progress[0] < progress[1]) {")
        given = [names[i] for i in loop.bound] + [f"(int64_t)(intptr_t)&progress[{i}]" for i in range(len(PROGRESS))]
        out += [f"        {line}" for line in self._run(region, given, "inner")]
        out += [f"        if (progress[3]) return {MORE_ITERATIONS};"] * bounded
        stored = [f"    *(int64_t *)(intptr_t){names[-2]} = progress[0];"] * loop.asks
        return [*out, "    }", *stored, "}"]


def _refuse(frame: Frame) -> None:
    for call in frame.calls:
        loop = call.construct
        known = isinstance(loop, (LoopStep, SwitchStep))
        if not known and (not call.source or call.source.startswith(MARK)):
            what = call.name if loop is None else type(loop).__name__
            raise ArgumentError(
                f"export_library(): the program has a {what}: what calls Python or LAPACK cannot run in a C library"
            )
