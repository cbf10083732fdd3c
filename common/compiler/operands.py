"""Instructions on values: elements of buffers, vectors of values, calls of scalar definitions."""

from __future__ import annotations

from collections.abc import Callable
from operator import gt, lt
from typing import Any

import numpy as np

from common.compiler.control_flow import Flow
from common.compiler.definition_texts import ScalarText
from common.compiler.module_text import INVARIANT, ModuleText, scalar_text
from common.compiler.registers import (
    BOOL,
    INT64,
    WORDS,
    ArrayKind,
    OneByOne,
    Refused,
    Register,
    constant,
    llvm,
    storage,
)


def _wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


_ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: _wrapped(x + y),
    "sub": lambda x, y: _wrapped(x - y),
    "mul": lambda x, y: _wrapped(x * y),
    "icmp slt": lt,
    "icmp sgt": gt,
}
"""Instructions on int64 that are not written where the text says both operands."""
DOUBLES = "x double>"
"""In the text of a definition that computes vectors of float64."""
_WHOLE = frozenset(np.dtype(f"i{size}") for size in (1, 2, 4, 8))


class Operands(Flow):
    """Writes instructions.

    Parameters
    ----------
    module : the functions that the kernel calls.
    resolve : ``resolve(name)``: a scalar definition or a `MachineFunction`.
    scopes : per slot that is written, and None for the others, the metadata of its accesses.

    Attributes
    ----------
    whole : whether the processor has the instructions of `common.compiler.whole_vectors`.
    long : if loops over vectors have many iterations, the instructions of a definition that make several worth their
        code; else 0.
    doubles : instructions of the longest definition of vectors that computes float64.
    spans : how far it is at most from one register to another, as ``min(start + most, ...)`` says.
    """

    def __init__(self, module: ModuleText, resolve: Callable[[str], Any], scopes: dict[int | None, str]) -> None:
        super().__init__({"bufs": Register("%bufs", WORDS), "args": Register("%args", WORDS)})
        self.module, self.resolve, self.scopes = module, resolve, scopes
        self.attributes: set[str] = set()
        self.calls, self.cost, self.complete, self.whole, self.long, self.doubles = 0, 0, True, False, 0, 0
        self.apart = False
        self._scalars: dict[Any, tuple[str | ScalarText, np.dtype[Any], int, bool]] = {}
        self.spans: dict[tuple[str, str], int] = {}

    def span(self, start: Register, stop: Register) -> int | None:
        """How far it is at most from one number to another, if the text says so."""
        if start.literal is not None and stop.literal is not None:
            return stop.literal - start.literal
        return self.spans.get((start.text, stop.text))

    # ---------------------------------------------------------------- elements
    def element(self, container: Register, index: Register, inside: bool = True) -> str:
        """The address of an element; not `inside` is one that a mask may keep from being read."""
        if index.lanes > 1:
            raise OneByOne("an index")
        kind = storage(container.kind.dtype) if isinstance(container.kind, ArrayKind) else "i64"
        known = "inbounds " * inside
        return self.register(f"getelementptr {known}{kind}, ptr {container.text}, i64 {index.text}")

    def load(self, container: Register, index: Register) -> Register:
        """An element."""
        address, kind = self.element(container, index), container.kind
        if not isinstance(kind, ArrayKind):
            # without this a store to any buffer would make LLVM load the sizes again in every iteration
            return Register(self.register(f"load i64, ptr {address}, !invariant.load {INVARIANT}"), INT64)
        stored = storage(kind.dtype)
        loaded = self.register(f"load {stored}, ptr {address}{self._access(kind)}")
        if kind.dtype == BOOL:
            loaded = self.register(f"icmp ne i8 {loaded}, 0")
        return Register(loaded, kind.dtype)

    def store(self, container: Register, index: Register, value: Register) -> None:
        """Write an element; a value of another dtype is refused, never converted."""
        kind = container.kind
        if not isinstance(kind, ArrayKind):
            raise Refused("bufs and args are not written")
        if not isinstance(value.kind, np.dtype) or value.kind != kind.dtype:
            raise Refused(f"{value.kind} is stored as {kind.dtype}")
        if value.lanes > 1:
            raise OneByOne("a store")
        text = self.register(f"zext i1 {value.text} to i8") if kind.dtype == BOOL else value.text
        self.line(f"store {storage(kind.dtype)} {text}, ptr {self.element(container, index)}{self._access(kind)}")

    def _access(self, kind: ArrayKind) -> str:
        return f", align {kind.dtype.itemsize}{self.scopes.get(kind.slot, self.scopes[None])}"

    # ---------------------------------------------------------------- values
    def write(self, instruction: str, kind: np.dtype[Any], *operands: Register) -> Register:
        """An instruction on values of one kind; one that is the same in all lanes is spread over them."""
        numbers = [x.literal if x.lanes == 1 else None for x in operands]
        if instruction in _ON_NUMBERS and None not in numbers:
            return constant(_ON_NUMBERS[instruction](*numbers), kind)
        first, *others = self.alike(*operands)
        texts = [first.typed, *(value.text for value in others)]
        return Register(self.register(f"{instruction} {', '.join(texts)}"), kind, None, first.lanes)

    def alike(self, *values: Register) -> list[Register]:
        """Values with equally many lanes."""
        lanes = max(value.lanes for value in values)
        return [value if value.lanes == lanes else self.spread(value, lanes) for value in values]

    def spread(self, value: Register, lanes: int) -> Register:
        """A value in every lane of a vector."""
        kind = llvm(value.kind, lanes)
        if not value.text.startswith("%"):
            return Register(f"splat ({value.typed})", value.kind, value.literal, lanes)
        one = self.register(f"insertelement {kind} poison, {value.typed}, i64 0")
        text = self.register(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer")
        return Register(text, value.kind, None, lanes)

    def scalar(self, name: str, definition: Callable[..., Any], operands: list[Register]) -> Register:
        """A scalar definition of operands: a few instructions, or a function of the module that LLVM inlines."""
        if operands:
            operands = self.alike(*operands)
        kinds, lanes = [value.kind for value in operands], max((value.lanes for value in operands), default=1)
        known = tuple(value.kind in _WHOLE and value.text[0] != "%" for value in operands)
        key = definition, lanes, known, *kinds
        if key not in self._scalars:
            if not all(isinstance(kind, np.dtype) for kind in kinds):
                raise Refused(f"{name} of {kinds}")
            try:
                self._scalars[key] = self._define(f"{name}.{len(self._scalars)}", definition, kinds, lanes, known)
            except TypeError as error:
                raise Refused(f"{name}: {error}") from error
        found, dtype, cost, doubles = self._scalars[key]
        self.cost += cost
        self.doubles = max(self.doubles, cost * doubles)
        if isinstance(found, ScalarText):
            return Register(found.write(self.register, [value.text for value in operands]), dtype, None, lanes)
        arguments = ", ".join(value.typed for value in operands)
        return Register(self.register(f'call {llvm(dtype, lanes)} @"{found}"({arguments})'), dtype, None, lanes)

    def _define(
        self, name: str, definition: Callable[..., Any], dtypes: Any, lanes: int, numbers: tuple[bool, ...]
    ) -> tuple[str | ScalarText, np.dtype[Any], int, bool]:
        """A definition by the name of a function of the module, or its few instructions; its dtype, and its cost.

        The last says whether it computes vectors of float64.
        """
        known = scalar_text(definition, dtypes, lanes, numbers, self.whole, self.module.texts)
        if known is None:
            from common.compiler.definition_code import define

            module = self.module.instructions
            function, dtype = define(module, name, definition, dtypes, lanes, numbers, self.whole)
            cost = sum(len(block.instructions) for block in function.blocks)
            return name, dtype, cost, DOUBLES in str(function)
        self.module.define(name, known)
        found = name if known.lines is None else known
        return found, np.dtype(known.dtype), known.cost, DOUBLES in known.text
