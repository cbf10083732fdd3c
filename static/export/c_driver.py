"""The C around kernels: sizes, memory and calls in order, and a header that says what the arguments are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.numerics import BLOCK, LANES
from common.core.polynomials import Guard, Terms
from static.lowering.memory.call_table import Frame

ALIGNMENT = 64
_TYPES = {
    "float32": "float", "float64": "double", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t", "uint8": "uint8_t", "bool": "uint8_t",
}  # fmt: skip
BAD_SIZE, NO_MEMORY = -1, -2


class CParameter(NamedTuple):
    """An argument of the C function behind the sizes.

    Attributes
    ----------
    name, dtype : of the array, or of the number.
    shape : C expressions.
    written : whether the function writes to it.
    number : whether it is passed by value.
    """

    name: str
    dtype: str
    shape: tuple[str, ...]
    written: bool
    number: bool


class CDriver(NamedTuple):
    """The text of a library around its kernels; see `static.export.c_library.CLibrary`."""

    header: str
    source: str
    sizes: tuple[str, ...]
    parameters: tuple[CParameter, ...]


def driver_of(
    name: str, frame: Frame, inputs: Sequence[str], outputs: Sequence[str], guards: Sequence[Guard], header: str
) -> CDriver:
    """The C text for a program.

    Parameters
    ----------
    inputs, outputs : names, which are made names of C.
    guards : what sizes must fulfil.
    header : name of the header's file.
    """
    atoms: dict[Any, str] = {}
    for terms in (*(n for n in frame.sizes if type(n) is not int), *(t for g in guards for t in (g.left, g.right))):
        _collect(terms, atoms)
    sizes = [atoms[key] for key in sorted(atoms, key=repr)]
    values = [str(n) if type(n) is int else expression(n, atoms) for n in frame.sizes]
    parameters: list[CParameter] = []
    pointers: list[str] = []
    taken = {*sizes, "workspace", "v", "b", "offsets", "code", "base", "bytes", "own"}
    for title, argument in [*zip(inputs, frame.inputs, strict=True), *zip(outputs, frame.outputs, strict=True)]:
        if argument.over is not None:
            pointers.append(pointers[argument.over])
            continue
        own = re.sub(r"\W", "_", title if title[:1].isalpha() else f"p_{title}")
        own = own if own not in taken else f"{own}_{len(parameters)}"
        taken.add(own)
        shape = tuple(values[i] for i in argument.shape)
        parameters.append(CParameter(own, argument.dtype.name, shape, argument.written, argument.number))
        pointers.append(f"(int64_t)(intptr_t){'&' if argument.number else ''}{own}")
    declared = [*(f"int64_t {n}" for n in sizes), *map(_declared, parameters), "void *workspace"]
    asked = ", ".join(f"int64_t {n}" for n in sizes) or "void"
    signature = f"int {name}({', '.join(declared)})"
    query = f"int64_t {name}_workspace({asked})"
    text = f"const char *{name}_error(int code)"
    return CDriver(
        _header(name, header, parameters, sizes, guards, (query, signature, text)),
        _source(name, frame, header, atoms, sizes, values, guards, pointers, (query, signature, text)),
        tuple(sizes), tuple(parameters),
    )  # fmt: skip


def expression(terms: Terms, atoms: dict[Any, str]) -> str:
    """A polynomial of sizes in C."""
    if not terms:
        return "0"
    parts = []
    for factors, coefficient in terms:
        names = [_atom(atom, atoms) for atom in factors]
        if coefficient != 1 or not names:
            names.insert(0, f"INT64_C({coefficient})")
        parts.append(" * ".join(names))
    return parts[0] if len(parts) == 1 and len(terms[0][0]) == 1 and terms[0][1] == 1 else f"({' + '.join(parts)})"


def _atom(atom: Any, atoms: dict[Any, str]) -> str:
    if atom[0] in ("//", "%"):
        call = "divided" if atom[0] == "//" else "remainder_of"
        return f"{call}({expression(atom[1], atoms)}, {expression(atom[2], atoms)})"
    return atoms[atom]


def _collect(terms: Terms, atoms: dict[Any, str]) -> None:
    for factors, _ in terms:
        for atom in factors:
            if atom[0] in ("//", "%"):
                _collect(atom[1], atoms)
                _collect(atom[2], atoms)
            else:
                atoms.setdefault(atom, f"x{atom[1]}_{atom[2]}")


def _declared(x: CParameter) -> str:
    kind = _TYPES[x.dtype]
    return f"{kind} {x.name}" if x.number else f"{'' if x.written else 'const '}{kind} *{x.name}"


def _relation(guard: Guard, atoms: dict[Any, str]) -> str:
    holds = f"{expression(guard.left, atoms)} {guard.relation} {expression(guard.right, atoms)}"
    return f"({holds})" if guard.holds else f"!({holds})"


def _header(
    name: str, file: str, parameters: Sequence[CParameter], sizes: Sequence[str], guards: Any, lines: Sequence[str]
) -> str:
    mark = f"TWINGRAD_{re.sub(r'[^A-Z0-9]', '_', file.upper())}"
    query, signature, text = lines
    told = [f" *   {x.name}: {x.dtype}[{', '.join(x.shape)}]{', written' * x.written}" for x in parameters]
    told += [f" *   sizes must fulfil: {guard}" for guard in guards]
    return "\n".join([
        f"#ifndef {mark}", f"#define {mark}", "#include <stdint.h>", "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
        f"/* The bytes of memory that {name} needs for these sizes; negative if they do not fit the program. */",
        f"{query};", "",
        f"/* Run the program. Arrays are contiguous, the last dimension first to vary, and do not overlap. {name} is",
        " * thread-safe: calls that write to different arrays and have different workspaces may run at once.", *told,
        f" *   workspace: {name}_workspace({', '.join(sizes)}) bytes; NULL: the call allocates it",
        " * Returns 0, or an error code; nothing that is not a result has changed if it is negative. */",
        f"{signature};", "", "/* What an error code means. */", f"{text};", "",
        "#ifdef __cplusplus", "}", "#endif", "#endif", "",
    ])  # fmt: skip


def _source(
    name: str, frame: Frame, header: str, atoms: Any, sizes: Sequence[str], values: Sequence[str], guards: Any,
    pointers: Sequence[str], lines: Sequence[str],
) -> str:  # fmt: skip
    query, signature, text = lines
    kernels: dict[Any, int] = {}
    for call in frame.calls:
        kernels.setdefault((call.source, call.name), len(kernels))
    given = ", ".join(sizes)
    out = [
        f'#include "{header}"', "#include <stdlib.h>", "#include <string.h>", "",
        "#define API __attribute__((visibility(\"default\")))",
        "#define HIDDEN __attribute__((visibility(\"hidden\")))", "",
        "/* No threads share products here: these are where kernels look for them. */",
        *(f"HIDDEN int64_t {word} = 0;" for word in ("twingrad_share", "twingrad_sgemm_tile", "twingrad_dgemm_tile")),
        "",
        *(f"HIDDEN int32_t twingrad_kernel{i}(int64_t *, void **, int64_t *, int64_t *);" for i in kernels.values()),
        "",
        "static inline int64_t divided(int64_t a, int64_t b) {",
        "    return a / b - (a % b && (a < 0) != (b < 0));",
        "}",
        "static inline int64_t remainder_of(int64_t a, int64_t b) { return a - divided(a, b) * b; }",
        f"static inline int64_t aligned(int64_t n) {{ return (n + {ALIGNMENT - 1}) & ~INT64_C({ALIGNMENT - 1}); }}",
        "/* Accumulators of columns: one set of lanes per level of blocks. */",
        "static inline int64_t columns(int64_t rows, int64_t n, int64_t itemsize, int64_t tile, int64_t more) {",
        f"    int64_t levels = 1 + more; while (rows > {BLOCK}) {{ rows = (rows + {BLOCK - 1}) / {BLOCK}; levels++; }}",
        f"    return levels * {LANES} * (tile && n > tile ? tile : n) * itemsize;", "}", "",
    ]  # fmt: skip
    parameters = ", ".join(f"int64_t {n}" for n in sizes) or "void"
    out += [f"static int fits({parameters}) {{"]
    out += [f"    if ({n} < 0) return 0;" for n in sizes]
    out += [f"    if (!{_relation(guard, atoms)}) return 0;" for guard in guards]
    out += [
        "    return 1;",
        "}",
        "",
        f"static void measure({', '.join([*(f'int64_t {n}' for n in sizes), 'int64_t *v'])}) {{",
    ]
    out += [f"    v[{i}] = {value};" for i, value in enumerate(values)]
    out += ["}", "", "static int64_t place(const int64_t *v, int64_t *offsets) {", "    int64_t at = 0;"]
    for i, t in enumerate(frame.temporaries):
        c = t.columns
        nbytes = (
            f"v[{t.size[0]}]"
            if c is None
            else f"columns(v[{t.size[0]}], v[{t.size[1]}], {c.itemsize}, {c.tile or 0}, {c.more})"
        )
        out.append(f"    offsets[{i}] = at; at += aligned({nbytes});")
    first = len(frame.temporaries)
    out += [f"    offsets[{first + i}] = at; at += {ALIGNMENT};" for i in range(len(frame.constants))]
    slots, count = first + len(frame.constants), len(pointers)
    out += [f"    return at + {ALIGNMENT};", "}", ""]
    out += [
        f"API {query} {{", f"    int64_t v[{len(values) + 1}], offsets[{slots + 1}];",
        f"    if (!fits({given})) return {BAD_SIZE};",
        f"    measure({', '.join([*sizes, 'v'])});", "    return place(v, offsets);", "}", "",
        f"API {signature} {{", f"    int64_t v[{len(values) + 1}], offsets[{slots + 1}], b[{count + slots + 1}];",
        "    int code = 0;", f"    if (!fits({given})) return {BAD_SIZE};", f"    measure({', '.join([*sizes, 'v'])});",
        "    int64_t bytes = place(v, offsets);", "    void *own = workspace ? 0 : malloc((size_t)bytes);",
        f"    if (!workspace && !own) return {NO_MEMORY};",
        "    int64_t base = (int64_t)(intptr_t)(workspace ? workspace : own);",
        f"    base = (base + {ALIGNMENT - 1}) & ~INT64_C({ALIGNMENT - 1});",
    ]  # fmt: skip
    out += [f"    b[{i}] = {pointer};" for i, pointer in enumerate(pointers)]
    out += [f"    for (int i = 0; i < {slots}; i++) b[{count} + i] = base + offsets[i];"]
    for i, (dtype, number, size) in enumerate(frame.constants):
        place = f"(void *)(intptr_t)b[{count + first + i}]"
        if size is not None:
            kind = _TYPES[dtype.name]
            out.append(f"    {{ {kind} x = ({kind})v[{size}]; memcpy({place}, &x, sizeof x); }}")
        else:
            bits = ", ".join(f"0x{byte:02x}" for byte in np.asarray(number, dtype).tobytes())
            out.append(f"    {{ static const uint8_t x[] = {{{bits}}}; memcpy({place}, x, sizeof x); }}")
    for number, call in enumerate(frame.calls, 1):
        bufs = ", ".join(f"b[{slot}]" for slot in call.slots) or "0"
        ints = ", ".join(f"v[{i}]" for i in call.ints) or "0"
        kernel = kernels[call.source, call.name]
        out += [
            f"    {{ /* {call.name} */", f"        int64_t bufs[] = {{{bufs}}}, ints[] = {{{ints}}}, status = 0;",
            "        void *unused = 0;", f"        twingrad_kernel{kernel}(&status, &unused, bufs, ints);",
            f"        if (status) {{ code = {number}; goto end; }}", "    }",
        ]  # fmt: skip
    out += [
        "    goto end;",
        "end:",
        "    free(own);",
        "    return code;",
        "}",
        "",
        f"API {text} {{",
        "    switch (code) {",
    ]
    out += ['    case 0: return "no error";']
    out += [
        f'    case {BAD_SIZE}: return "the sizes do not fit the program";',
        f'    case {NO_MEMORY}: return "no memory";',
    ]
    for number, call in enumerate(frame.calls, 1):
        if call.may_fail or call.wrong_index is not None:
            told = (
                " or ".join(str(message) for message, _ in call.errors.values() if message) or "an index out of range"
            )
            plain = re.sub(r"[^ -~]|[\\\"]", " ", told)[:200]
            out.append(f'    case {number}: return "{plain}";')
    out += ['    default: return "unknown error";', "    }", "}", ""]
    return "\n".join(out)
