"""A program as one readable Python file that imports only numpy and numba."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common.compiler.registers import DTYPES
from common.compiler.text_steps import type_name
from common.core.errors import ArgumentError, file_error
from common.core.numerics import BLOCK, LANES
from static.export import copied_definitions
from static.export.compiled_call import CompiledCall, compiled_call
from static.export.numba_driver import JIT, ROOM, SIZES, NumbaDriver, runs_python, tuple_of
from static.export.numba_kernels import LIBRARY
from static.export.python_layout import WIDTH, clipped, laid_out, quoted
from static.graph.regions import FIRST_ROOM
from static.lowering.memory.call_table import TableArgument

_FMA = '''
@intrinsic
def fma(context, x, y, z):
    """x * y + z, rounded once."""

    def write(context, builder, signature, args):
        return builder.fma(*args)

    return x(x, x, x), write
'''
_FOLDS = "SUM, PRODUCT, SQUARES, MAGNITUDES, CUBES, NUMBERS = range(6)"
_COLUMNS = f'''
{JIT}def accumulators(rows, columns, tile, more):
    """How many numbers sums of columns need: {LANES} rows per level of blocks."""
    levels = 1 + more
    while rows > {BLOCK}:
        rows, levels = (rows + {BLOCK - 1}) // {BLOCK}, levels + 1
    return levels * {LANES} * (tile if 0 < tile < columns else columns)
'''
_TAKE = '''
def flattened(name, x, dtype, shape):
    """An argument as a flat array; what is written to must be one that is contiguous."""
    x = np.asarray(x)
    if x.dtype != dtype or x.ndim != len(shape) or any(n not in (m, None) for m, n in zip(x.shape, shape)):
        raise TypeError(f"{name} must be {dtype}{list(shape)}, not {x.dtype}{list(x.shape)}")
    return np.ascontiguousarray(x).reshape(-1)


def changed(name, x, dtype, shape):
    """The memory of an argument that the program changes."""
    flat = flattened(name, x, dtype, shape)
    if not np.shares_memory(x, flat) and flat.size:
        raise TypeError(f"{name} is changed by the program, so it must be a contiguous array")
    return flat
'''


_WORDS = {"np", "njit", "intrinsic", "compute", "accumulators", "flattened", "changed", "status", "args"}
_OWN = re.compile(rf"[A-Za-z_]+\d+(_\d+)?|\w+_({'|'.join(DTYPES)})(_\d+)?|\w+_flat")
"""Names that files make: of temporaries, kernels, sizes, scalar functions."""


class NumbaModule(NamedTuple):
    """The file that `export_numba` has written.

    Attributes
    ----------
    path : of the file.
    name : of the function in it.
    parameters : names of its arguments: those of the traced call, then the state.
    results : names of what it returns.
    state : what the state is now, by name: copies.
    """

    path: Path
    name: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    state: dict[str, np.ndarray]


def export_numba(f: Callable[..., Any], path: Any, *args: Any, name: str | None = None, **kwargs: Any) -> NumbaModule:
    """Write a function's program as a Python file that imports only numpy and numba.

    Parameters
    ----------
    f : a function of tensors or a module.
    path : of the file.
    args, kwargs : an example of its arguments; without any, `f` is a compiled function that has been called.
    name : of the function in the file; that of `f` by default.

    Raises
    ------
    ArgumentError : the program calls Python, or the name is none of Python.
    FileError : the file cannot be written.

    Notes
    -----
    docs/numba_module.md has an example.
    """
    program = compiled_call("export_numba", f, args, kwargs, name)
    if keyword.iskeyword(program.name):
        raise ArgumentError(f"export_numba(): {program.name!r} is a word of Python: give a name with name=")
    module = _Module(program)
    text = module.text()
    if len(re.findall(rf"^(?:def )?{program.name}\b", text, re.M)) > 1:
        raise ArgumentError(f"export_numba(): {program.name!r} is the name of what it needs: give another with name=")
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise file_error(error) from None
    names, first = [name for name, _ in module.inputs], len(program.inputs) - len(program.state)
    state = {name: np.array(x) for name, x in zip(names[first:], program.state, strict=True)}
    return NumbaModule(Path(path), program.name, tuple(names), tuple(name for name, _ in module.results), state)


class _Module:
    """A file, while it is written.

    Attributes
    ----------
    inputs, outputs, results : name and form of each argument of `compute`, and of what is returned.
    order : of what is returned, the outputs that they are.
    """

    def __init__(self, program: CompiledCall) -> None:
        self.program, frame = program, program.frame
        taken = {*_WORDS, ROOM, *copied_definitions.names(), *LIBRARY, *DTYPES, program.name}
        inputs, first = program.inputs, len(program.inputs) - len(program.state)
        names = [_identifier(x, taken, i >= first) for i, x in enumerate(inputs)]
        self.inputs = [*zip(names, frame.inputs, strict=True)]
        given = [(_identifier(x, taken), form) for x, form in zip(program.outputs, frame.outputs, strict=True)]
        made = [(x if form.over is None else self.inputs[form.over][0], form) for x, form in given]
        self.outputs, self.order = made, [*program.places, *range(len(set(program.places)), len(made))]
        self.results = [made[k] for k in self.order]
        self.driver = NumbaDriver(program, [name for name, _ in self.inputs])

    def text(self) -> str:
        """The whole file."""
        driver, kernels = self.driver, self.driver.kernels
        slots = [name for name, _ in (*self.inputs, *self.outputs)]
        body = driver.lines(self.program.frame, slots, self.program.steps)
        wrapper = self.wrapper()
        sizes = "".join(f", {size}" for size in driver.atoms.values())
        main = "\n    ".join([f"def compute({', '.join(dict.fromkeys(slots))}{SIZES}):", *body])
        main = main if runs_python(self.program.frame) else JIT + main
        compiled = [*kernels.library.values(), *kernels.scalars.functions.values(), *kernels.kernels.values()]
        texts = [*(JIT + text.rstrip() for text in compiled), *kernels.copied.values(), main, *driver.regions]
        whole = "\n".join(texts)
        names = self.types(whole)
        names += [_table(name, x) for x, name in kernels.scalars.tables.items()]
        names += [_FOLDS] * ("PRODUCT" in whole)
        imports = ["import numpy as np", "from numba import njit"]
        if "fma(" in whole:
            imports, texts = [*imports, "from numba.extending import intrinsic"], [_FMA.strip(), *texts]
        if "accumulators(" in whole:
            texts = [_COLUMNS.strip(), *texts]
        head = "\n".join([self.head(), "", *imports, "", *names])
        taken = _TAKE.strip() if "changed(" in wrapper else _TAKE.strip().partition("\n\n\n")[0]
        return (
            laid_out("\n\n\n".join([head, *texts, *[taken] * bool(self.inputs), wrapper]).replace(SIZES, sizes)) + "\n"
        )

    def head(self) -> str:
        """The head of the file, which describes it."""
        first = len(self.program.inputs) - len(self.program.state)
        told = [f"{name} : {_told(form)}{', changed' * form.written}" for name, form in self.inputs[:first]]
        told += [f"{name} : state, {_told(form)}{', changed' * form.written}" for name, form in self.inputs[first:]]
        told += [f"returns {name} : {_told(form)}" for name, form in self.results]
        lines = ["", *told] if told else []
        about = f'"""The program {self.program.name}, with its bits: written by Twingrad, needs numpy and numba.'
        return "\n".join([about, *lines, '"""'])

    def types(self, whole: str) -> list[str]:
        """The names of the dtypes that a text uses."""
        return [f"{name} = np.{name}" for name in DTYPES if re.search(rf"(?<![\w.]){name}\b", whole)]

    def wrapper(self) -> str:
        """The function that users call: it looks at its arguments, and makes the arrays of the results."""
        program, frame, driver = self.program, self.program.frame, self.driver
        guards = [(driver.size(g.left), driver.size(g.right), g) for g in program.guards]
        shapes = [[driver.size(frame.sizes[i]) for i in form.shape] for _, form in self.outputs]
        lines = [f"def {program.name}({', '.join(name for name, _ in self.inputs)}):"]
        lines += ['    """Run the program on arrays, or numbers, which the top of this file lists; its results."""']
        for p, (name, form) in enumerate(self.inputs):
            if form.number:
                lines.append(f"    {name}_flat = np.full(1, {name}, np.{form.dtype})")
                continue
            known = [frame.sizes[i] for i in form.shape]
            wanted = tuple_of([str(n if isinstance(n, int) else None) for n in known])
            look = "changed" if form.written else "flattened"
            lines.append(f'    {name}_flat = {look}("{name}", {name}, np.{type_name(form.dtype)}, {wanted})')
            own = [(k, driver.atoms["in", p, k]) for k in range(len(known)) if ("in", p, k) in driver.atoms]
            lines += [f"    {size} = np.shape({name})[{k}]" for k, size in own]
        for left, right, guard in guards:
            holds = f"{'' if guard.holds else 'not '}{left} {guard.relation} {right}"
            asked = f"not ({holds})" if guard.holds else holds.removeprefix("not ")
            raised = quoted(clipped(f"the sizes must fulfil: {holds}", WIDTH - 30))
            lines += [f"    if {asked}:", f"        raise ValueError({raised})"]
        given, returned = [f"{name}_flat" for name, _ in self.inputs], []
        for (name, form), sizes in zip(self.outputs, shapes, strict=True):
            returned.append(name if form.over is None else f"{name}_flat.reshape({tuple_of(sizes)})")
            if form.over is None:
                lines.append(f"    {name} = np.empty({tuple_of(sizes)}, np.{type_name(form.dtype)})")
                given.append(f"{name}.reshape(-1)")
        call = f"compute({', '.join([*given, *driver.atoms.values()])})"
        if ROOM in driver.atoms.values():
            lines += [f"    {ROOM} = {FIRST_ROOM}", "    while True:", "        try:", f"            {call}"]
            lines += ["            break", "        except BufferError:", f"            {ROOM} *= 4"]
        else:
            lines.append(f"    {call}")
        return "\n".join([*lines, f"    return {', '.join(returned[k] for k in self.order) or None}"])


def _identifier(title: str, taken: set[str], foreign: bool = False) -> str:
    """A name of Python that nothing else has; a `foreign` one is not of this package's giving."""
    own = re.sub(r"\W", "_", title if title[:1].isalpha() else f"p_{title}")
    if foreign and _OWN.fullmatch(own):
        own = f"p_{own}_"
    number = 1
    while own in taken or keyword.iskeyword(own):
        own, number = f"{own.rstrip('0123456789')}_{number}", number + 1
    taken.add(own)
    return own


def _told(form: TableArgument) -> str:
    kind = type_name(form.dtype)
    return f"a number, {kind}" if form.number else f"{kind}, {len(form.shape)} dimension{'s' * (len(form.shape) != 1)}"


def _table(name: str, numbers: Sequence[int]) -> str:
    """An array of numbers, many in a line."""
    lines = textwrap.wrap(", ".join(map(str, numbers)), WIDTH - 8)
    return "\n".join(
        ["# fmt: off", f"{name} = np.array([", *(f"    {line}" for line in lines), "], np.int64)", "# fmt: on"]
    )
