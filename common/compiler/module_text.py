"""What a kernel's module holds beside the kernel, as text; texts of definitions are made once per machine.

A definition of a few instructions is written where it is called; one of more is a function that LLVM inlines. One that
depends on the module, as those with constants in memory do, is made by `common.compiler.definition_code` for each
kernel. All others are looked up among the texts that this machine has made before: a program that calls what is known
loads neither llvmlite's instructions nor the modules that write them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.compiler.definition_texts import FUNCTION, KERNEL, MachineText, ScalarText
from common.compiler.fingerprint import package_fingerprint
from common.compiler.known_texts import KnownTexts
from common.compiler.machine_functions import MachineFunction
from common.compiler.registers import OneByOne

INVARIANT = "!0"
"""The metadata of loads whose memory nothing changes."""


LONG, OFTEN = 20, 4
"""Instructions of a function that is not inlined, and the places that call it, at least."""


class ModuleText:
    """The functions and variables of a module.

    Parameters
    ----------
    name : of the kernel.
    texts : what is known of definitions; what was not known is added.

    Attributes
    ----------
    symbols : texts of functions and variables by their names.
    """

    def __init__(self, name: str, texts: KnownTexts) -> None:
        self.name, self.texts, self.symbols = name, texts, dict[str, str]()
        self._costs = dict[str, int]()
        self._instructions: Any = None

    def add(self, symbols: Sequence[tuple[str, str]]) -> None:
        """Add what is not there yet; equal names are equal texts."""
        for name, text in symbols:
            self.symbols.setdefault(name, text.replace(KERNEL, self.name))

    def define(self, name: str, text: ScalarText) -> None:
        """Add what a definition calls; unless its instructions are few, define it as a function."""
        self.add(text.symbols)
        if text.lines is None:
            self.symbols[name] = text.text.replace(FUNCTION, name, 1)
            self._costs[name] = text.cost

    def call_often(self, body: str) -> None:
        """Leave the functions that a kernel's body calls at many places as functions; LLVM inlines all others.

        Twenty columns written out call `exp` at twenty places: inlined they take three times as long to compile, and
        fill the processor's cache of instructions. A call of a few instructions costs more than it saves. A division by
        a number is a shift or a multiplication where it is inlined, and one of each lane where it is not.
        """
        for name, cost in self._costs.items():
            if cost < LONG or body.count(f'@"{name}"(') < OFTEN:
                continue
            if not (" sdiv " in self.symbols[name] and all(map(_last_is_number, body.split(f'@"{name}"(')[1:]))):
                self.symbols[name] = self.symbols[name].replace("alwaysinline", "noinline", 1)

    @property
    def instructions(self) -> Any:
        """The `llvmlite.ir.Module` of what has no text of its own."""
        if self._instructions is None:
            from llvmlite import ir

            self._instructions = ir.Module(self.name)
            assert self._instructions.add_metadata([]).get_reference() == INVARIANT
        return self._instructions

    def __str__(self) -> str:
        if self._instructions is None:
            return "\n".join([*self.symbols.values(), f"{INVARIANT} = !{{}}"])
        own = self._instructions.globals
        return "\n".join([str(self._instructions), *(text for name, text in self.symbols.items() if name not in own)])


def _last_is_number(arguments: str) -> bool:
    """Whether a call, of which this is the text from its arguments on, has a number as the last of them."""
    return "%" not in arguments.partition("\n")[0].rpartition(", ")[2]


_scalars: dict[Any, ScalarText | str | None] = {}
_machines: dict[Any, MachineText | None] = {}
_prints: dict[Any, str | None] = {}


def scalar_text(
    definition: Callable[..., Any],
    kinds: Sequence[np.dtype[Any]],
    lanes: int,
    known: tuple[bool, ...],
    whole: bool,
    texts: KnownTexts,
) -> ScalarText | None:
    """The text of a definition; None of one that depends on a module.

    Parameters
    ----------
    definition, kinds, lanes, known, whole : as in `common.compiler.definition_code.define`.
    texts : what is known; the text is added if it is not.

    Raises
    ------
    OneByOne : it has no form for vectors.
    TypeError : it is no scalar definition of these dtypes.
    """
    key = definition, lanes, known, whole, *kinds
    if key not in _scalars:

        def write() -> ScalarText | str | None:
            from common.compiler.definition_code import scalar_code

            try:
                return scalar_code(definition, kinds, lanes, known, whole)
            except OneByOne as error:
                return str(error)

        form = lanes, known, whole, *map(str, kinds)
        _scalars[key] = _looked_up(definition, form, texts, ScalarText, write)
    found = _scalars[key]
    if isinstance(found, str):
        raise OneByOne(found)
    return found


def machine_text(function: MachineFunction, dtype: np.dtype[Any] | None, texts: KnownTexts) -> MachineText | None:
    """The text of a machine function for buffers of a dtype; None of one that depends on a module. Adds to `texts`."""
    if function.apart:
        symbol, result, declaration = function.declaration(dtype)
        return MachineText(symbol, result, ((symbol, declaration),))
    if (function, dtype) not in _machines:

        def write() -> MachineText | None:
            from common.compiler.definition_code import machine_code

            return machine_code(function, dtype)

        form = function.name, str(dtype)
        _machines[function, dtype] = _looked_up(function.make, form, texts, MachineText, write)
    return _machines[function, dtype]


def _looked_up(
    definition: Callable[..., Any], form: tuple[Any, ...], texts: KnownTexts, kind: Any, write: Callable[[], Any]
) -> Any:
    """What `write` gives: from `texts` if it is known there, else it is added; a user's own definition never is."""
    if definition not in _prints:
        _prints[definition] = package_fingerprint(definition)
    print_ = _prints[definition]
    if print_ is None:
        return write()
    known = texts.of(print_)
    if form not in known:
        made = write()
        texts.add(print_, form, tuple(made) if isinstance(made, tuple) else made)
        return made
    found = known[form]
    return kind(*found) if isinstance(found, tuple) else found
