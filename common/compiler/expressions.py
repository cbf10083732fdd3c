"""Expressions of kernel source as LLVM IR text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from common.compiler import primitives
from common.compiler.machine_functions import MachineFunction
from common.compiler.module_text import INVARIANT, machine_text
from common.compiler.operands import Operands
from common.compiler.registers import (
    BOOL,
    DTYPES,
    INT64,
    WORDS,
    ArrayKind,
    OneByOne,
    Refused,
    Register,
    constant,
    widens,
)

_FLOAT = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_WHOLE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.LShift: "shl", ast.RShift: "ashr"}
_BITS = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_DIVISIONS = {ast.FloorDiv: primitives.floor_divide, ast.Mod: primitives.remainder}
_ORDER = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}


class Expressions(Operands):
    """Writes expressions."""

    def expression(self, node: ast.expr) -> Register:
        """The value of an expression."""
        write = _EXPRESSIONS.get(type(node))
        if write is None:
            raise Refused(f"{type(node).__name__} is not part of kernel source")
        value = write(self, node)
        if value is None:
            raise Refused("nothing is returned where a value is needed")
        return value

    # ---------------------------------------------------------------- names, numbers, elements
    def _name(self, node: ast.Name) -> Register:
        value = self.variables.get(node.id) or self.late(node.id)
        if value is None:
            raise Refused(f"{node.id!r} has no value here")
        return value

    def late(self, name: str) -> Register | None:
        """The value of a name that has none before it is needed; None of others."""

    def _constant(self, node: ast.Constant) -> Register:
        if type(node.value) is bool:
            return constant(node.value, BOOL)
        if type(node.value) is int:
            return constant(node.value, INT64)
        raise Refused(f"{node.value!r} has no dtype: write float32({node.value!r}) or float64({node.value!r})")

    def integer(self, node: ast.expr) -> Register:
        """An integer, as int64."""
        value = self.expression(node)
        if not widens(value.kind):
            raise Refused(f"an integer is needed, not {value.kind}")
        return self.convert(value, INT64)

    def container(self, node: ast.expr) -> Register:
        """A buffer, or words."""
        value = self.expression(node)
        if isinstance(value.kind, np.dtype):
            raise Refused(f"{value.kind} has no elements")
        return value

    def _subscript(self, node: ast.Subscript) -> Register:
        return self.read(self.container(node.value), node.slice)

    def read(self, container: Register, index: ast.expr) -> Register:
        """The element at an index."""
        return self.load(container, self.integer(index))

    def put(self, container: Register, index: ast.expr, value: Register) -> None:
        """Write the element at an index."""
        self.store(container, self.integer(index), value)

    # ---------------------------------------------------------------- operations
    def _binary(self, node: ast.BinOp) -> Register:
        return self.operate(node.op, self.expression(node.left), self.expression(node.right))

    def operate(self, op: ast.operator, x: Register, y: Register) -> Register:
        """An operation on two values of one dtype, or on integers as int64."""
        kind = type(op)
        if isinstance(x.kind, np.dtype) and isinstance(y.kind, np.dtype):
            if x.kind == y.kind and x.kind.kind == "f" and kind in _FLOAT:
                return self.write(_FLOAT[kind], x.kind, x, y)
            if x.kind == y.kind == BOOL and kind in _BITS:
                return self.write(_BITS[kind], BOOL, x, y)
            if widens(x.kind) and widens(y.kind):
                x, y = self.convert(x, INT64), self.convert(y, INT64)
                instruction = _WHOLE.get(kind) or _BITS.get(kind)
                if instruction:
                    return self.write(instruction, INT64, x, y)
                if kind in _DIVISIONS:
                    return self._divide(kind, x, y)
        raise Refused(f"{kind.__name__} of {x.kind} and {y.kind}")

    def _divide(self, kind: type[ast.operator], x: Register, y: Register) -> Register:
        if y.literal is not None and y.literal > 0 and y.literal & (y.literal - 1) == 0:
            if kind is ast.FloorDiv:
                return self.write("ashr", INT64, x, constant(y.literal.bit_length() - 1, INT64))
            return self.write("and", INT64, x, constant(y.literal - 1, INT64))
        return self.scalar(kind.__name__, _DIVISIONS[kind], [x, y])

    def _unary(self, node: ast.UnaryOp) -> Register:
        if isinstance(node.op, ast.Not):
            return self.write("xor", BOOL, self.truth(node.operand), constant(True, BOOL))
        value = self.expression(node.operand)
        if isinstance(node.op, ast.USub) and value.literal is not None:
            return constant(-value.literal, INT64)
        if isinstance(node.op, ast.USub) and isinstance(value.kind, np.dtype) and value.kind.kind == "f":
            return self.write("fneg", value.kind, value)
        if isinstance(node.op, ast.USub):
            return self.operate(ast.Sub(), constant(0, INT64), value)
        if isinstance(node.op, ast.Invert):
            return self.operate(ast.BitXor(), value, constant(-1, INT64))
        raise Refused(f"{type(node.op).__name__} is not part of kernel source")

    def _compare(self, node: ast.Compare) -> Register:
        if len(node.ops) != 1 or type(node.ops[0]) not in _ORDER:
            raise Refused("a comparison has two operands and one of < <= > >= == !=")
        x, y = self.expression(node.left), self.expression(node.comparators[0])
        order, x, y = _ORDER[type(node.ops[0])], _as_float(x, y), _as_float(y, x)
        if isinstance(x.kind, np.dtype) and isinstance(y.kind, np.dtype):
            if x.kind != y.kind and widens(x.kind) and widens(y.kind):
                x, y = self.convert(x, INT64), self.convert(y, INT64)
            if x.kind == y.kind:
                assert isinstance(x.kind, np.dtype)
                if x.kind.kind == "f":  # != holds for NaN, every other comparison with NaN is false
                    order = f"fcmp {'u' if order == 'ne' else 'o'}{order}"
                else:
                    order = f"icmp {'' if order in ('eq', 'ne') else 's' if x.kind.kind == 'i' else 'u'}{order}"
                return self.order(order, x, y)
        raise Refused(f"{x.kind} is compared with {y.kind}")

    # ---------------------------------------------------------------- conditions
    def truth(self, node: ast.expr) -> Register:
        """Whether a condition holds: a bool, or an integer that is not 0."""
        value = self.expression(node)
        if isinstance(value.kind, np.dtype) and value.kind.kind in "iu":
            return self.write("icmp ne", BOOL, value, constant(0, value.kind))
        if value.kind != BOOL:
            raise Refused(f"{value.kind} is no condition")
        return value

    def decision(self, node: ast.expr) -> str:
        """A condition by which the program goes on."""
        value = self.truth(node)
        if value.lanes > 1:
            raise OneByOne("a branch")
        return value.text

    def _boolean(self, node: ast.BoolOp) -> Register:
        """The first operand decides, or the others do, which are not computed otherwise."""
        instruction = "and" if isinstance(node.op, ast.And) else "or"
        result, known = self.truth(node.values[0]), _reads(node.values[0])
        for other in node.values[1:]:
            if is_plain(other, known):
                result = self.write(instruction, BOOL, result, self.truth(other))
                continue
            asked, decided = partial(self.truth, other), partial(constant, instruction == "or", BOOL)
            chosen = self.choose(result.text, *((asked, decided) if instruction == "and" else (decided, asked)))
            assert chosen is not None
            result = chosen
        return result

    def _conditional(self, node: ast.IfExp) -> Register:
        condition, known = self.truth(node.test), _reads(node.test)
        if not (is_plain(node.body, known) and is_plain(node.orelse, known)):
            if isinstance(node.body, ast.Subscript) and (
                isinstance(node.orelse, ast.Subscript) or is_plain(node.orelse, known)
            ):
                chosen = self.read_where(condition, node.body, node.orelse)
                if chosen is not None:
                    return chosen
            chosen = self.choose(
                condition.text, lambda: self.expression(node.body), lambda: self.expression(node.orelse)
            )
            if chosen is None:
                raise Refused("the two values of a condition have no common dtype")
            return chosen
        x, y = self.expression(node.body), self.expression(node.orelse)
        if x.kind != y.kind:
            if not (widens(x.kind) and widens(y.kind)):
                raise Refused(f"{x.kind} or {y.kind}")
            x, y = self.convert(x, INT64), self.convert(y, INT64)
        assert isinstance(x.kind, np.dtype)
        condition, x, y = self.alike(condition, x, y)
        text = self.register(f"select {condition.typed}, {x.typed}, {y.typed}")
        return Register(text, x.kind, None, x.lanes)

    def read_where(self, condition: Register, element: ast.Subscript, other: ast.expr) -> Register | None:
        """An element where a condition holds, elsewhere another value; None if that takes a branch."""

    def order(self, order: str, x: Register, y: Register) -> Register:
        """How two values of one dtype compare, by LLVM's name of the comparison."""
        return self.write(order, BOOL, x, y)

    # ---------------------------------------------------------------- calls
    def call(self, node: ast.expr) -> Register | None:
        """Write a call; None for a function without a result."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            raise Refused("only functions are called, by their names and without keywords")
        name = node.func.id
        if name in self.variables:
            raise Refused(f"{name!r} is a variable")
        if name in DTYPES:
            if len(node.args) != 1:
                raise Refused(f"{name} takes one number")
            return constant(number(node.args[0]), DTYPES[name])
        if name in _FORMS:
            return _FORMS[name](self, node.args)
        function = self.resolve(name)
        if isinstance(function, MachineFunction):
            return self.machine(function, node.args)
        function = _by_number(function, node.args)
        return self.scalar(name, function, [self.expression(argument) for argument in node.args])

    def machine(self, function: MachineFunction, nodes: list[ast.expr]) -> Register | None:
        """A call of machine code."""
        self.calls += 1
        if len(nodes) != len(function.pattern):
            raise Refused(f"{function.name} takes {len(function.pattern)} arguments")
        passed, dtypes, waiting = list[str](), set[np.dtype[Any]](), iter(nodes)
        for letter in function.pattern.replace("bi", "p"):
            if letter == "i":
                count = self.integer(next(waiting))
                if count.lanes > 1:
                    raise OneByOne(function.name)
                passed.append(count.typed)
                continue
            value = self.container(next(waiting))
            if isinstance(value.kind, ArrayKind) is (letter == "w"):
                raise Refused(f"{function.name} of {value.kind}")
            if isinstance(value.kind, ArrayKind):
                dtypes.add(value.kind.dtype)
            if letter == "p":
                value = Register(self.element(value, self.integer(next(waiting))), WORDS)
            if letter != "t":
                passed.append(f"ptr {value.text}")
        if len(dtypes) > 1 or not dtypes <= {*function.dtypes}:
            raise Refused(f"{function.name} of {', '.join(sorted(map(str, dtypes)))}")
        dtype = next(iter(dtypes), None)
        made = machine_text(function, dtype, self.module.texts)
        if made is not None:
            self.module.add(made.symbols)
            called, returned = made.name, made.result
        else:
            defined = function.in_module(self.module.instructions, dtype)
            called, returned = defined.name, defined.ftype.return_type
        passed += [f"i64 {number}" for number in function.extra]
        call = f'call {returned} @"{called}"({", ".join(passed)})'
        if not function.result:
            self.line(call)
            return None
        result = self.register(call)
        if function.result == "word":
            return Register(result, INT64)
        assert dtype is not None
        return Register(self.register(f"trunc i8 {result} to i1") if dtype == BOOL else result, dtype)

    def _buffer(self, nodes: list[ast.expr]) -> Register:
        self.calls += 1
        slot, dtype = buffer_of(nodes)
        table = self.container(nodes[0])
        if isinstance(table.kind, ArrayKind):
            raise Refused("the addresses of buffers are in bufs")
        address = self.element(table, constant(slot, INT64))
        return Register(self.register(f"load ptr, ptr {address}, !invariant.load {INVARIANT}"), ArrayKind(dtype, slot))

    def _address(self, nodes: list[ast.expr]) -> Register:
        buffer, index = nodes
        element = self.element(self.container(buffer), self.integer(index))
        return Register(self.register(f"ptrtoint ptr {element} to i64"), INT64)

    def _wide(self, nodes: list[ast.expr]) -> None:
        self.attributes.add('"prefer-vector-width"="512"')
        self.long, self.apart = number(nodes[0]) if nodes else 0, len(nodes) > 1

    def extreme(self, order: str, result: Register, other: Register) -> Register:
        """The larger or smaller one of two integers."""
        if result.literal is not None and other.literal is not None:
            return result if self.write(f"icmp {order}", BOOL, result, other).text == "true" else other
        first, x, y = self.alike(self.write(f"icmp {order}", BOOL, result, other), result, other)
        return Register(self.register(f"select {first.typed}, {x.typed}, {y.typed}"), INT64, None, x.lanes)

    def _extreme(self, order: str, nodes: list[ast.expr]) -> Register:
        # only sizes: what the extreme of floats is (NaN, signed zeros) is for the op registry to say
        result, *others = [self.integer(node) for node in nodes]
        for other in others:
            result = self.extreme(order, result, other)
        match nodes[0]:
            case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=int() as most)):
                if order == "slt":
                    self.spans[self.variables[name].text, result.text] = most
        return result


def number(node: ast.expr) -> Any:
    """The number that a constant expression is."""
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -number(operand)
        case ast.BinOp(op=ast.Sub(), left=left, right=right):
            return number(left) - number(right)
    raise Refused("a dtype makes constants; to_float32(x) and the like convert")


def _by_number(definition: Callable[..., Any], nodes: list[ast.expr]) -> Callable[..., Any]:
    """A scalar definition, or what it says that it is if the last operand is this number: what LLVM need not find."""
    known = getattr(definition, "by_number", None)
    match nodes[-1:]:
        case [ast.Call(func=ast.Name(id=name), args=[value])] if known is not None and name in DTYPES:
            return known(number(value)) or definition
    return definition


def buffer_of(nodes: list[ast.expr]) -> tuple[int, np.dtype[Any]]:
    """Slot and dtype in a call of ``buffer``."""
    match nodes:
        case [_, ast.Constant(value=int() as slot), ast.Name(id=name)] if name in DTYPES:
            return slot, DTYPES[name]
    raise Refused("buffer takes bufs, a number and the name of a dtype")


def _as_float(x: Register, y: Register) -> Register:
    """A literal integer as the float with which it is compared."""
    if x.literal is not None and isinstance(y.kind, np.dtype) and y.kind.kind == "f":
        if abs(x.literal) < 1 << 24:
            return constant(x.literal, y.kind)
    return x


_PLAIN = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop, ast.Load)
_COSTLY = (ast.FloorDiv, ast.Mod, ast.Div)


def is_plain(node: ast.expr, known: Iterable[str] = ()) -> bool:
    """Whether an expression may be computed although it is not needed: it is cheap, and reads only known elements."""
    if isinstance(node, ast.Subscript):
        return ast.dump(node) in known
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in DTYPES  # a number
    if not isinstance(node, _PLAIN) or isinstance(node, _COSTLY):
        return False
    return all(is_plain(part, known) for part in ast.iter_child_nodes(node))  # type: ignore[arg-type]


def _reads(node: ast.expr) -> list[str]:
    """The elements that are always read where an expression is computed."""
    if isinstance(node, ast.BoolOp):
        return _reads(node.values[0])
    if isinstance(node, ast.IfExp):
        return _reads(node.test)
    own = [ast.dump(node)] if isinstance(node, ast.Subscript) else []
    return own + [text for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr) for text in _reads(part)]


_FORMS: dict[str, Callable[[Expressions, list[ast.expr]], Register | None]] = {
    "buffer": Expressions._buffer,
    "address": Expressions._address,
    "wide": Expressions._wide,
    "min": lambda self, nodes: self._extreme("slt", nodes),
    "max": lambda self, nodes: self._extreme("sgt", nodes),
}
_EXPRESSIONS: dict[type[ast.expr], Callable[[Expressions, Any], Register | None]] = {
    ast.Name: Expressions._name,
    ast.Constant: Expressions._constant,
    ast.Subscript: Expressions._subscript,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._boolean,
    ast.IfExp: Expressions._conditional,
    ast.Call: lambda self, node: self.call(node),
}
