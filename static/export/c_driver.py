"""The C around kernels: sizes, memory and calls in order, and a header that describes the arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from common.core.dtypes import name_of
from common.core.polynomials import Guard
from common.kernels.arrays import attention_blocks, convolutions, gemm
from common.runtime import thread_pool
from static.export.c_frames import ALIGNMENT, HELPERS, MORE_ITERATIONS, ROOM, TYPES, CSizes, FrameTexts
from static.export.c_targets import CHOOSER, LEVELS
from static.lowering.memory.call_table import Frame

WITH_WORDS = attention_blocks, convolutions, gemm
"""Modules that name the words which their kernels look for."""

BAD_SIZE, NO_MEMORY = -1, -2
WORDS = frozenset((
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "class", "compl", "const", "constexpr", "continue", "decltype", "default", "delete", "do", "double", "else",
    "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
    "main", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq",
    "private", "protected", "public", "register", "restrict", "return", "short", "signed", "sizeof", "static",
    "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typeid", "typename", "union",
    "unsigned", "using", "virtual", "void", "volatile", "while", "xor", "xor_eq",
))  # fmt: skip
"""Words that are no names of functions and arguments in C or C++."""
_DIMENSION, _NAME = r"arg(\d+)\.shape\[(\d+)\]", r"x\1_\2"
MOST = "0x1p48"
"""Bytes that no array exceeds: more than a processor addresses. Sums of such sizes stay far below 2^63."""


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
    """The text of a library around its kernels; see `static.export.c_library.CLibrary`.

    Attributes
    ----------
    results : names of the parameters that hold what is returned.
    kernels : source and name of each kernel, in the order of their numbers.
    """

    header: str
    source: str
    sizes: tuple[str, ...]
    parameters: tuple[CParameter, ...]
    results: tuple[str, ...]
    kernels: tuple[tuple[str, str], ...]


def driver_of(
    name: str,
    frame: Frame,
    inputs: Sequence[str],
    outputs: Sequence[str],
    places: Sequence[int],
    guards: Sequence[Guard],
    header: str,
    targets: Mapping[str, str],
) -> CDriver:
    """The C text for a program.

    Parameters
    ----------
    inputs, outputs : names, which are made names of C.
    places : of the tensors that are returned, the outputs that they are.
    guards : what sizes must fulfil.
    header : name of the header's file.
    targets : the end of the kernels' names -> for which processors they are, see `static.export.c_targets`.
    """
    known = CSizes()
    known.note_frame(frame)
    for guard in guards:
        known.note(guard.left)
        known.note(guard.right)
    sizes, values = known.names, [str(n) if isinstance(n, int) else known.text(n) for n in frame.sizes]
    frames = FrameTexts(known)
    main = frames.write(frame)
    parameters: list[CParameter] = []
    pointers: list[str] = []
    named: list[str] = []
    taken = {*sizes, *WORDS, "workspace", "a", "code", "base", "bytes", "own", name}
    for title, argument in [*zip(inputs, frame.inputs, strict=True), *zip(outputs, frame.outputs, strict=True)]:
        if argument.over is not None:
            pointers.append(pointers[argument.over])
            named.append(named[argument.over])
            continue
        own = re.sub(r"\W", "_", title if title[:1].isalpha() else f"p_{title}")
        own = own if own not in taken else f"{own}_{len(parameters)}"
        taken.add(own)
        named.append(own)
        shape = tuple(values[i] for i in argument.shape)
        parameters.append(CParameter(own, name_of(argument.dtype), shape, argument.written, argument.number))
        pointers.append(f"(int64_t)(intptr_t){'&' if argument.number else ''}{own}")
    results = tuple(named[len(inputs) + k] for k in places)
    declared = [*(f"int64_t {n}" for n in sizes), *map(_declared, parameters), "void *workspace"]
    asked = ", ".join(f"int64_t {n}" for n in sizes) or "void"
    signature = f"int {name}({', '.join(declared)})"
    query = f"int64_t {name}_workspace({asked})"
    text, told = f"const char *{name}_error(int code)", f"const char *{name}_target(void)"
    return CDriver(
        _header(name, header, parameters, results, sizes, guards, (query, signature, text, told)),
        _source(header, frames, main, guards, pointers, (query, signature, text, told), frame, targets),
        tuple(sizes), tuple(parameters), results, tuple(frames.kernels),
    )  # fmt: skip


def _declared(x: CParameter) -> str:
    kind = TYPES[x.dtype]
    return f"{kind} {x.name}" if x.number else f"{'' if x.written else 'const '}{kind} *{x.name}"


def _relation(guard: Guard, sizes: CSizes) -> str:
    holds = f"{sizes.text(guard.left)} {guard.relation} {sizes.text(guard.right)}"
    return f"({holds})" if guard.holds else f"!({holds})"


def _header(
    name: str, file: str, parameters: Sequence[CParameter], results: Sequence[str], sizes: Sequence[str], guards: Any,
    lines: Sequence[str],
) -> str:  # fmt: skip
    mark = f"TWINGRAD_{re.sub(r'[^A-Z0-9]', '_', file.upper())}"
    query, signature, text, target = lines
    told = [f" *   {x.name}: {x.dtype}[{', '.join(x.shape)}]{', written' * x.written}" for x in parameters]
    told += [f" *   result{i} is {title}" for i, title in enumerate(results) if title != f"result{i}"]
    told += [f" *   sizes must fulfil: {re.sub(_DIMENSION, _NAME, str(guard))}" for guard in guards]
    if ROOM in sizes:
        told += [f" *   {ROOM}: as many of a while_loop fit into the workspace; {MORE_ITERATIONS}: it runs more often"]
    return "\n".join([
        f"#ifndef {mark}", f"#define {mark}", "#include <stdint.h>", "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
        f"/* The bytes of memory that {name} needs for these sizes; negative if they do not fit the program. */",
        f"{query};", "",
        f"/* Run the program. Arrays are contiguous, the last dimension first to vary, and do not overlap. {name} is",
        " * thread-safe: calls that write to different arrays and have different workspaces may run at once.", *told,
        f" *   workspace: {name}_workspace({', '.join(sizes)}) bytes; NULL: the call allocates it",
        " * Returns 0, or an error code; nothing that is not a result has changed if it is negative. */",
        f"{signature};", "", "/* What an error code means. */", f"{text};", "",
        "/* The processors that the code in use is for. */", f"{target};", "",
        "#ifdef __cplusplus", "}", "#endif", "#endif", "",
    ])  # fmt: skip


def _kinds(numbers: Sequence[int], targets: Mapping[str, str]) -> list[str]:
    """All kernels, once for each kind of code, and the kind that is called."""
    out = ["typedef int32_t kernel(int64_t *, void **, int64_t *, int64_t *);"]
    out += [f"HIDDEN kernel twingrad_kernel{i}{suffix};" for suffix in targets for i in numbers]
    rows = [", ".join(f"twingrad_kernel{i}{suffix}" for i in numbers) or "0" for suffix in targets]
    out.append(f"static kernel *const kinds[][{len(numbers) or 1}] = {{{', '.join(f'{{{row}}}' for row in rows)}}};")
    told = ", ".join(f'"{target}"' for target in targets.values())
    out.append(f"static const char *const targets[] = {{{told}}};")
    out += ["static kernel *const *kernels = kinds[0];", "static int kind = 0;"]
    return [*out, CHOOSER] if len(targets) == len(LEVELS) else out


def _measured(frame: Frame) -> list[Any]:
    """The sizes on which addresses depend, of a frame and of the regions in it."""
    own = {i for form in (*frame.inputs, *frame.outputs) for i in form.shape}
    own |= {i for t in frame.temporaries for i in t.size} | {i for call in frame.calls for i in call.ints}
    found = [frame.sizes[i] for i in sorted(own)]
    for call in frame.calls:
        for region in call.regions.values():
            found += _measured(region)
    return found


def _source(
    header: str, frames: FrameTexts, main: int, guards: Sequence[Guard], pointers: Sequence[str], lines: Sequence[str],
    frame: Frame, targets: Mapping[str, str],
) -> str:  # fmt: skip
    query, signature, text, told = lines
    names = frames.sizes.names
    given = "".join(f"{n}, " for n in names)
    out = [
        f'#include "{header}"', "#include <stdlib.h>", "#include <string.h>", "",
        "#define API __attribute__((visibility(\"default\")))",
        "#define HIDDEN __attribute__((visibility(\"hidden\")))", "",
        "/* No threads share products here: these are where kernels look for them. */",
        *(f"HIDDEN int64_t {word} = 0;" for word in thread_pool.late),
        "",
        *_kinds([*frames.kernels.values()], targets),
        "", *HELPERS, *frames.functions, "/* 0 if these sizes may be, otherwise an error code. */",
        f"static int misfit({', '.join(f'int64_t {n}' for n in names) or 'void'}) {{",
    ]  # fmt: skip
    out += [f"    if ({n} < 0) return {BAD_SIZE};" for n in names]
    for guard in guards:
        divisors = [*frames.sizes.divisors(guard.left), *frames.sizes.divisors(guard.right)]
        out += [f"    if (!{divisor}) return {BAD_SIZE};" for divisor in divisors]
        out.append(f"    if (!{_relation(guard, frames.sizes)}) return {BAD_SIZE};")
    bounds = dict.fromkeys(frames.sizes.bound(n) for n in _measured(frame) if not isinstance(n, int))
    out += [f"    if ({bound} > {MOST}) return {NO_MEMORY};" for bound in bounds]
    check = f"    if (misfit({', '.join(names)})) return misfit({', '.join(names)});"
    needed = f"needs{main}({given}0) + {ALIGNMENT}"
    out += [
        "    return 0;", "}", "",
        f"API {query} {{", check, f"    return {needed};", "}", "",
        f"API {signature} {{", check,
        f"    int64_t bytes = {needed};", "    void *own = workspace ? 0 : malloc((size_t)bytes);",
        f"    if (!workspace && !own) return {NO_MEMORY};",
        "    int64_t base = (int64_t)(intptr_t)(workspace ? workspace : own);",
        f"    base = (base + {ALIGNMENT - 1}) & ~INT64_C({ALIGNMENT - 1});",
        f"    const int64_t a[] = {{{', '.join(pointers) or '0'}}};",
        f"    int code = run{main}({given}a, base);", "    free(own);", "    return code;", "}", "",
        f"API {text} {{", "    switch (code) {", '    case 0: return "no error";',
        f'    case {BAD_SIZE}: return "the sizes do not fit the program";',
        f'    case {NO_MEMORY}: return "no memory";',
        f'    case {MORE_ITERATIONS}: return "a loop runs more often than there is room for: give more {ROOM}";',
        *(f'    case {number}: return "{told}";' for number, told in frames.told.items()),
        '    default: return "unknown error";', "    }", "}", "",
        f"API {told} {{ return targets[kind]; }}", "",
    ]  # fmt: skip
    return "\n".join(out)
