"""Control flow of kernel source as basic blocks of LLVM IR text, in static single assignment form.

A variable is a name in `Flow.variables`; where paths meet, names that differ become phi nodes. A loop must know the
kinds of its variables before its body has been seen: it is written again with wider ones where the body widens them.
A name that has no one kind on all paths to a place, or no value on some, has no meaning there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from common.compiler.registers import Kind, Register, common_kind, llvm

Variables: TypeAlias = dict[str, Register]
Kinds: TypeAlias = dict[str, Kind | None]


class BasicBlock:
    """A basic block; it is open until its last line is a branch or a return.

    Attributes
    ----------
    known : registers of instructions that give the same wherever they stand in it.
    """

    def __init__(self, label: str) -> None:
        self.label, self.phis, self.lines = label, list[str](), list[str]()
        self.known: dict[str, str] = {}

    def __str__(self) -> str:
        return "\n  ".join([f"{self.label}:", *self.phis, *self.lines])


_EACH_TIME = ("load", "call", "alloca", "atomicrmw", "cmpxchg", "add", "getelementptr")
"""What depends on where it stands, and parts of addresses, which LLVM splits as it suits each access."""

_AS_IT_IS = '!{!"llvm.loop.unroll.disable"}, !{!"llvm.loop.vectorize.enable", i1 false}'
_FIRST_NOTE = 1_000_000
"""Metadata that tells LLVM to leave a loop as it is, and its least number, above those of `llvmlite.ir`."""

Edge: TypeAlias = tuple[BasicBlock, Variables]
Mark: TypeAlias = tuple[int, BasicBlock, int, int, Variables]


class Flow:
    """Writes the blocks of one function.

    Attributes
    ----------
    here : the open block that is being written; None where nothing can be reached.
    variables : what names mean here.
    notes : lines of metadata that stand after the function.
    """

    def __init__(self, variables: Variables) -> None:
        self._blocks: list[BasicBlock] = []
        self._count = 0
        self._loops: list[tuple[list[Edge], list[Edge]]] = []
        self.variables = variables
        self.notes: list[str] = []
        self.here: BasicBlock | None = self.block()

    def __str__(self) -> str:
        return "\n".join(map(str, self._blocks))

    @property
    def inside(self) -> bool:
        """Whether a loop is being written."""
        return bool(self._loops)

    # ---------------------------------------------------------------- lines
    def block(self) -> BasicBlock:
        """A new open block, after all others."""
        self._count += 1
        self._blocks.append(BasicBlock(f"l{self._count}"))
        return self._blocks[-1]

    def line(self, text: str) -> None:
        """Append a line to the current block."""
        assert self.here is not None
        self.here.lines.append(text)

    def register(self, text: str) -> str:
        """Append an instruction with a result, unless the block has it already; return the result."""
        assert self.here is not None
        known = self.here.known
        if text in known:
            return known[text]
        self._count += 1
        self.line(f"%v{self._count} = {text}")
        if not text.startswith(_EACH_TIME):
            known[text] = f"%v{self._count}"
        return f"%v{self._count}"

    def convert(self, value: Register, kind: Kind) -> Register:
        """A value as one of a common kind."""
        if type(value.kind) is type(kind) and value.kind == kind:
            return value
        widen = "zext" if value.kind.kind == "u" else "sext"  # type: ignore[union-attr]
        return Register(self.register(f"{widen} {value.typed} to {llvm(kind, value.lanes)}"), kind, None, value.lanes)

    # ---------------------------------------------------------------- going back
    def mark(self) -> Mark:
        """Where the text ends now."""
        assert self.here is not None
        return len(self._blocks), self.here, len(self.here.lines), len(self.notes), dict(self.variables)

    def back(self, mark: Mark) -> None:
        """Forget the lines written since."""
        count, self.here, lines, notes, variables = mark
        del self._blocks[count:], self.here.lines[lines:], self.notes[notes:]
        self.here.known.clear()
        self.variables = dict(variables)

    # ---------------------------------------------------------------- paths
    def branch(self, condition: str) -> tuple[Edge, Edge]:
        """Two new blocks: the first follows if the condition holds, else the second."""
        then, other = self.block(), self.block()
        self.line(f"br i1 {condition}, label %{then.label}, label %{other.label}")
        self.here = None
        return (then, self.variables), (other, dict(self.variables))

    def enter(self, edge: Edge) -> None:
        """Go on at the end of a path."""
        self.here, self.variables = edge

    def leave(self) -> list[Edge]:
        """The path that has been written, if it reaches its end."""
        return [] if self.here is None else [(self.here, self.variables)]

    def join(self, edges: list[Edge]) -> None:
        """Go on where paths meet."""
        if len(edges) < 2:
            self.here, self.variables = edges[0] if edges else (None, {})
            return
        first, *others = (variables for _, variables in edges)
        joined, differing = Variables(), dict[str, Kind]()
        for name, value in first.items():
            if all(name in other for other in others):
                if all(other[name] is value or other[name].text == value.text for other in others):
                    joined[name] = value
                    continue
                kind = _common(variables[name].kind for _, variables in edges)
                if kind is not None:
                    differing[name] = kind
        target, incoming = self.block(), {name: list[str]() for name in differing}
        for block, variables in edges:
            self.here = block
            for name, kind in differing.items():
                incoming[name].append(f"[{self.convert(variables[name], kind).text}, %{block.label}]")
            self.line(f"br label %{target.label}")
        self.here, self.variables = target, joined
        for name, kind in differing.items():
            joined[name] = self._phi(target, kind, first[name].lanes, incoming[name])

    def _phi(self, block: BasicBlock, kind: Kind, lanes: int, incoming: list[str]) -> Register:
        self._count += 1
        block.phis.append(f"%v{self._count} = phi {llvm(kind, lanes)} {', '.join(incoming)}")
        return Register(f"%v{self._count}", kind, None, lanes)

    def choose(self, condition: str, then: Callable[[], Register], other: Callable[[], Register]) -> Register | None:
        """One of two values, of which the other is not computed; None if they have no common kind."""
        name, ends = "(chosen)", list[Edge]()
        for edge, compute in zip(self.branch(condition), (then, other), strict=True):
            self.enter(edge)
            value = compute()
            self.variables = self.variables | {name: value}
            ends += self.leave()
        self.join(ends)
        return self.variables.pop(name, None)

    # ---------------------------------------------------------------- loops
    def loop(
        self,
        changing: Iterable[str],
        test: Callable[[], str],
        body: Callable[[], None],
        advance: Callable[[], None] = lambda: None,
        short: bool = False,
    ) -> None:
        """Write ``while test: body; advance``.

        Parameters
        ----------
        changing : names that body or advance assign.
        test : writes the condition and returns it.
        short : whether it has so few iterations that LLVM leaves it as it is.
        """
        mark, outer = self.mark(), self.variables
        kinds: Kinds = {name: outer[name].kind for name in changing if name in outer}
        while True:
            needed = self._try(outer, kinds, test, body, advance, short)
            if needed == kinds:
                return
            self.back(mark)
            kinds = needed

    def _try(
        self, outer: Variables, kinds: Kinds, test: Callable[[], str], body: Callable[[], None],
        advance: Callable[[], None], short: bool,
    ) -> Kinds:  # fmt: skip
        """Write the loop with variables of these kinds; return those that it needs, None for what has no kind."""
        before = self.here
        assert before is not None
        inside = {name: value for name, value in outer.items() if name not in kinds}
        incoming: dict[str, list[str]] = {}
        for name, kind in kinds.items():
            if kind is not None:
                incoming[name] = [f"[{self.convert(outer[name], kind).text}, %{before.label}]"]
                self._count += 1
                inside[name] = Register(f"%v{self._count}", kind, None, outer[name].lanes)
        head = self.block()
        self.line(f"br label %{head.label}")
        self.here, self.variables = head, dict(inside)
        start, end = self.branch(test())
        self._loops.append(([], []))
        self.enter(start)
        body()
        left, repeated = self._loops.pop()
        repeated += self.leave()
        needed = {
            name: _common([kind, *(v[name].kind if name in v else None for _, v in repeated)])
            for name, kind in kinds.items()
        }
        if needed != kinds:
            return needed
        self.join(repeated)
        if self.here is not None:
            advance()
            for name, texts in incoming.items():
                value = self.convert(self.variables[name], inside[name].kind)
                texts.append(f"[{value.text}, %{self.here.label}]")
            self.line(f"br label %{head.label}{self._as_it_is() if short else ''}")
        for name, texts in incoming.items():
            value = inside[name]
            head.phis.append(f"{value.text} = phi {llvm(value.kind, value.lanes)} {', '.join(texts)}")
        self.join([end, *left])
        return kinds

    def _as_it_is(self) -> str:
        """The metadata of a loop that LLVM neither unrolls nor vectorises."""
        self._count += 1
        name = f"!{_FIRST_NOTE + self._count}"
        self.notes.append(f"{name} = distinct !{{{name}, {_AS_IT_IS}}}")
        return f", !llvm.loop {name}"

    def end_iteration(self, leaving: bool) -> None:
        """``break`` or ``continue``."""
        self._loops[-1][0 if leaving else 1].extend(self.leave())
        self.here = None


def _common(kinds: Iterable[Kind | None]) -> Kind | None:
    found, *others = kinds
    for kind in others:
        found = None if found is None or kind is None else common_kind(found, kind)
    return found
