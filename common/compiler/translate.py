"""Kernel source -> LLVM IR: a strict little language with Python's syntax.

Grammar (expressions: `common.compiler.expressions`)::

    kernel     ::= def name(bufs, args): statement*
    statement  ::= name = expression | buffer[index] = expression | either with += -= *= //= %= &= |= ^= <<= >>=
                 | name, ... = expression, ... | for name in range(...): statement* | while condition: statement*
                 | if condition: statement* else: statement* | break | continue | pass | return status | call

What a text means is what Python would compute with 64-bit integers that wrap, and with elements of exactly their
dtypes. Nothing is checked when it runs: neither indices nor sizes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from common.compiler.expressions import buffer_of
from common.compiler.inner_loops import FEW, inner_loop
from common.compiler.known_texts import KnownTexts
from common.compiler.lane_memory import lane_of
from common.compiler.llvm_engine import IN_ORDER, NO_GATHERS, NOTHING, PIPELINE, TIDYING, cpu
from common.compiler.module_text import INVARIANT, ModuleText
from common.compiler.registers import BOOL, INT64, WORDS, Refused, Register, constant
from common.compiler.syntax_tree import names, parts
from common.compiler.vectors import Vectors


def translate(
    source: str,
    symbol: str,
    resolve: Callable[[str], Any],
    one_program: bool = False,
    here: bool = False,
    texts: KnownTexts | None = None,
) -> tuple[str, int]:
    """Return the text of an LLVM module that defines a kernel, and what LLVM has to do to it.

    That is `NOTHING`, only `TIDYING` if its loops are vectors or gain nothing, or LLVM's `PIPELINE`.

    Parameters
    ----------
    source : one function ``def name(bufs, args)``.
    symbol : name of the only exported function of the module.
    resolve : ``resolve(name)``: the scalar definition or `common.compiler.machine_functions.MachineFunction` of that
        name.
    one_program : whether the kernel was written for one program. The iterations of such a loop under a
        condition depend on each other: LLVM's pipeline takes more than half of the time to compile it, for code that
        is as fast.
    here : whether it will run on this machine, and may have any of its instructions.
    texts : what is known of definitions, see `common.compiler.known_texts`; what was not known is added.

    Raises
    ------
    Refused
        The text is no kernel source; the message begins with its line.
    """
    tree, texts = ast.parse(source), texts or KnownTexts()
    match tree.body:
        case [ast.FunctionDef(args=ast.arguments(args=[ast.arg(arg="bufs"), ast.arg(arg="args")])) as function]:
            kernel = _KernelWriter(function, symbol, resolve, texts, vectors=True)
            features = cpu()[1] if here else ""
            kernel.whole, masks = "+avx512vl" in features, "+avx2" in features
            kernel.gathers = kernel.whole and NO_GATHERS not in features
            kernel.one_program, kernel.has_masks = one_program, one_program and masks
            kernel.sixteen = masks and not kernel.whole
            text = kernel.text(function, symbol)
            if not kernel.complete:
                return _KernelWriter(function, symbol, resolve, texts, vectors=False).text(function, symbol), PIPELINE
            plain = one_program and text.count("define ") == 1 and all(map(_is_plain, parts(function)))
            return text, NOTHING if plain else TIDYING
    raise Refused("kernel source is one function of bufs and args")


_FIRST_SCOPE = 500_000
"""The least number of metadata of accesses, above those of `llvmlite.ir` and below those of loops."""


class Statements(Vectors):
    """Writes statements; `vectors` says whether loops are written with vectors where that is possible."""

    def __init__(
        self, module: ModuleText, resolve: Callable[[str], Any], scopes: dict[int | None, str], vectors: bool
    ) -> None:
        super().__init__(module, resolve, scopes)
        self._loop_number = 0
        self.vectors = vectors

    def statements(self, nodes: list[ast.stmt]) -> None:
        """Write statements; those behind a return are never reached."""
        for node in nodes:
            if self.here is None:
                return
            try:
                _STATEMENTS.get(type(node), Statements._other)(self, node)
            except Refused as error:
                if str(error).startswith("line "):
                    raise
                raise Refused(f"line {node.lineno}: {error}") from error

    def _other(self, node: ast.stmt) -> None:
        raise Refused(f"{type(node).__name__} is not part of kernel source")

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _call(self, node: ast.Expr) -> None:
        self.call(node.value)

    def _assign(self, node: ast.Assign) -> None:
        if self.waits(node) or self.adds_by_parts(node) or self.joins_rows(node):
            return
        (target,) = node.targets
        match target, node.value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                for one, value in zip(targets, [self.expression(value) for value in values], strict=True):
                    self._set(one, value)
            case _:
                self._set(target, self.expression(node.value))

    def _set(self, target: ast.expr, value: Register) -> None:
        match target:
            case ast.Name(id=name) if name not in self.variables or self.variables[name].kind is not WORDS:
                self.variables[name] = value
            case ast.Subscript(value=container, slice=index):
                self.put(self.container(container), index, value)
            case _:
                raise Refused("only names and elements of buffers are assigned")

    def _augment(self, node: ast.AugAssign) -> None:
        match node.target:
            case ast.Name(id=name):
                self.variables[name] = self.operate(node.op, self.expression(node.target), self.expression(node.value))
            case ast.Subscript(value=buffer, slice=place):
                container = self.container(buffer)
                value = self.operate(node.op, self.read(container, place), self.expression(node.value))
                self.put(container, place, value)

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            raise Refused("a value is returned")
        self.give(node.value)
        self.here = None

    def give(self, node: ast.expr) -> None:
        """End the function with a value."""
        raise Refused("nothing is returned here")

    def _if(self, node: ast.If) -> None:
        ends = []
        for edge, statements in zip(self.branch(self.decision(node.test)), (node.body, node.orelse), strict=True):
            self.enter(edge)
            self.statements(statements)
            ends += self.leave()
        self.join(ends)

    def _while(self, node: ast.While) -> None:
        _refuse_else(node)
        self.complete &= self.one_program
        self.loop(_assigned(node), lambda: self.decision(node.test), lambda: self.statements(node.body))

    def _for(self, node: ast.For) -> None:
        _refuse_else(node)
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=arguments)):
                bounds = [self.integer(argument) for argument in arguments]
            case _:
                raise Refused("for goes over range(...)")
        zero, one = constant(0, INT64), constant(1, INT64)
        match bounds:
            case [stop]:
                start, step = zero, one
            case [start, stop]:
                step = one
            case [start, stop, step]:
                pass
            case _:
                raise Refused("range takes one to three integers")
        if self.vectors and step.literal == 1 and self._by_vectors(node, name, start, stop):
            return
        self._loop_number += 1
        counter = f"(counter {self._loop_number})"
        self.variables[counter] = start

        def body() -> None:
            self.variables[name] = self.variables[counter]
            before = self.calls
            self.statements(node.body)
            # a loop that may end the kernel is made for what is rare
            inner = any(isinstance(part, (ast.For, ast.While, ast.Return)) for part in parts(node) if part is not node)
            self.complete &= inner or self.calls > before

        def advance() -> None:
            # a count by one stays below stop, so it does not wrap
            exact = " nsw" if step.literal in (1, -1) else ""
            now = self.variables[counter].text
            self.variables[counter] = Register(self.register(f"add{exact} i64 {now}, {step.text}"), INT64)

        short = stop.literal is None and _is_of_sizes(node)
        self.loop([counter, *_assigned(node)], lambda: self._goes_on(counter, stop, step), body, advance, short)
        for gone in (counter, name):  # after the loop it would depend on whether there was an iteration
            self.variables.pop(gone, None)

    def _goes_on(self, counter: str, stop: Register, step: Register) -> str:
        now = self.variables[counter].text
        if step.literal is not None:
            if step.literal == 0:
                raise Refused("the step of a range is 0")
            return self.register(f"icmp {'slt' if step.literal > 0 else 'sgt'} i64 {now}, {stop.text}")
        below, above = (self.register(f"icmp {order} i64 {now}, {stop.text}") for order in ("slt", "sgt"))
        up, down = (self.register(f"icmp {order} i64 {step.text}, 0") for order in ("sgt", "slt"))
        rising, falling = self.register(f"and i1 {up}, {below}"), self.register(f"and i1 {down}, {above}")
        return self.register(f"or i1 {rising}, {falling}")

    def _by_vectors(self, node: ast.For, name: str, start: Register, stop: Register) -> bool:
        """Write a loop with vectors; apart where all that it reads is inside, see `common.compiler.inner_loops`."""
        inner = inner_loop(node, name) if self.one_program else None
        if inner is None or any(lane_of(x.slice, name) for x in parts(node) if isinstance(x, ast.Subscript)):
            return self.vector_loop(node, name, start, stop)
        mark, low, high = self.mark(), start, stop
        for bound in inner.lows:
            low = self.extreme("sgt", low, self.variables[bound])
        for bound in inner.highs:
            high = self.extreme("slt", high, self.variables[bound])
        few = self.write("icmp slt", BOOL, self.write("sub", INT64, stop, start), constant(FEW, INT64))
        low = Register(self.register(f"select {few.typed}, {stop.typed}, {low.typed}"), INT64)
        behind = self.extreme("sgt", low, high)
        for loop, first, end, few_come in (
            (node, start, self.extreme("slt", low, stop), False),
            (inner.loop, low, high, False),
            (node, behind, stop, True),
        ):
            self.rare = few_come
            done = self.vector_loop(loop, name, first, end)
            self.rare = False
            if not done:
                self.back(mark)
                return self.vector_loop(node, name, start, stop)
        return True

    def _break(self, node: ast.Break) -> None:
        self.end_iteration(leaving=True)

    def _continue(self, node: ast.Continue) -> None:
        self.end_iteration(leaving=False)


_INDICES, _UNFORESEEN = re.compile(r"(?m)( = select +i1 [^,\n]+, i64 .*)$"), rf"\1, !unpredictable {INVARIANT}"
"""Which of two indices is taken, nobody foretells: with branches for it a binary search takes six times as long."""


class _KernelWriter(Statements):
    def __init__(
        self, function: ast.FunctionDef, symbol: str, resolve: Callable[[str], Any], texts: KnownTexts, vectors: bool
    ) -> None:
        scopes, lines = _scopes(symbol, _written(function))
        super().__init__(ModuleText(symbol, texts), resolve, scopes, vectors)
        self.notes += lines

    def text(self, function: ast.FunctionDef, symbol: str) -> str:
        """The module."""
        self.statements(function.body)
        if self.here is not None:
            raise Refused("the kernel does not return a status at its end")
        parameters = "ptr noalias %status, ptr noalias %exception, ptr noalias %bufs, ptr noalias %args"
        self.attributes |= {"nounwind", *([IN_ORDER] if self.in_order else [])}
        head = f"define i32 @{symbol}({parameters}) {' '.join(sorted(self.attributes))} {{"
        body = _INDICES.sub(_UNFORESEEN, str(self))
        if self.vectors:
            self.module.call_often(body)
        return "\n".join([str(self.module), head, body, "}", *self.notes, ""])

    def give(self, node: ast.expr) -> None:
        """Store the status."""
        self.line(f"store i64 {self.integer(node).text}, ptr %status")
        self.line("ret i32 0")


_STATEMENTS: dict[type[ast.stmt], Callable[[Statements, Any], None]] = {
    ast.Pass: Statements._pass,
    ast.Expr: Statements._call,
    ast.Assign: Statements._assign,
    ast.AugAssign: Statements._augment,
    ast.Return: Statements._return,
    ast.If: Statements._if,
    ast.While: Statements._while,
    ast.For: Statements._for,
    ast.Break: Statements._break,
    ast.Continue: Statements._continue,
}


def _is_plain(node: ast.AST) -> bool:
    """Whether LLVM finds nothing to simplify: floats, and places that are sums and products, without conditions."""
    match node:
        case ast.BinOp(op=op):
            return isinstance(op, (ast.Add, ast.Sub, ast.Mult))
        case ast.Call(func=ast.Name(id="buffer"), args=arguments):
            return buffer_of(arguments)[1].kind == "f"
    return not isinstance(node, (ast.IfExp, ast.BoolOp, ast.While))


def _refuse_else(node: ast.For | ast.While) -> None:
    if node.orelse:
        raise Refused("a loop has no else")


def _is_of_sizes(node: ast.For) -> bool:
    """Whether a loop reads and writes no buffers: it goes over dimensions, of which there are few."""
    arguments = all(
        isinstance(part.value, ast.Name) and part.value.id == "args"
        for part in parts(node) if isinstance(part, ast.Subscript)
    )  # fmt: skip
    return arguments and not any(isinstance(part, (ast.For, ast.While)) for part in parts(node) if part is not node)


def _assigned(node: ast.stmt) -> list[str]:
    """The names that are assigned inside a statement, in the order of the text."""
    return list(dict.fromkeys(name.id for name in names(node) if isinstance(name.ctx, ast.Store)))


def _written(function: ast.FunctionDef) -> list[int]:
    """The slots of buffers to whose elements something is assigned, in order."""
    slots: dict[str, set[int]] = {}
    stored = set[str]()
    for node in parts(function):
        if type(node) is ast.Subscript:
            if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                stored.add(node.value.id)
        elif type(node) is ast.Assign:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="buffer"), args=nodes)):
                    slots.setdefault(name, set()).add(buffer_of(nodes)[0])
    return sorted({slot for name in stored for slot in slots.get(name, ())})


def _scopes(symbol: str, written: list[int]) -> tuple[dict[int | None, str], list[str]]:
    """Metadata that tells LLVM that an access cannot overlap one to another slot that is written somewhere.

    All slots that are only read share one scope: nothing has to be known between two loads, and the metadata
    grows with (slots written) instead of (slots)**2. Returns it per slot, and the lines that define it.
    """
    slots: list[int | None] = [None, *written]
    scopes = {slot: f"!{_FIRST_SCOPE + i}" for i, slot in enumerate(slots, 1)}
    lines = [f'!{_FIRST_SCOPE} = !{{!"{symbol}"}}']
    lines += [f'{scope} = !{{!"{symbol}:{slot}", !{_FIRST_SCOPE}}}' for slot, scope in scopes.items()]
    found: dict[int | None, str] = {}
    for i, (slot, scope) in enumerate(scopes.items()):
        own = _FIRST_SCOPE + len(slots) + 1 + 2 * i
        others = ", ".join(other for key, other in scopes.items() if key != slot)
        lines += [f"!{own} = !{{{scope}}}", f"!{own + 1} = !{{{others}}}"]
        found[slot] = f", !alias.scope !{own}, !noalias !{own + 1}"
    return found, lines
