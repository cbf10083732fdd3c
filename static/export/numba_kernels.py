"""Kernel source as functions of arrays and ints that numba compiles without this library."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from common.compiler import compile as kernels
from common.compiler.expressions import buffer_of, number
from common.compiler.machine_functions import MachineFunction
from common.compiler.python_text import FunctionText, text_of
from common.compiler.registers import DTYPES
from common.compiler.text_steps import literal
from common.core.errors import ArgumentError
from static.export import numba_library, numba_windows

_INT64, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
_OF_BOOLS = {"row_max": "row_any", "row_min": "row_all", "max_of_rows": "any_of_rows", "min_of_rows": "all_of_rows"}
_SHORT = 60
"""Letters of a scalar definition up to which it is written where it is used."""

Typed = tuple[ast.expr, Any]
"""An expression of the new text, and its dtype; of a buffer, the buffer's name and ``[dtype]``."""


LIBRARY: dict[str, Any] = {**vars(numba_library), **vars(numba_windows)}
"""Functions that kernels may call."""


def form_of(name: str) -> tuple[str, list[int]]:
    """The name in `LIBRARY` of a function whose name may end in numbers, and those that become its first operands.

    Those of `put_at_maxima` are operands of the call already.
    """
    if found := re.fullmatch(r"(\w+_of_windows)_(\d+)_(\d+)", name):
        return found[1], [int(found[2]), int(found[3])]
    return re.sub(r"(_at_maxima)_\d+$", r"\1", name), []


class NumbaKernel(NamedTuple):
    """A kernel in a written file.

    Attributes
    ----------
    name : of the function.
    buffers : which of the call's buffers are its first arguments, and the dtypes that it sees them with.
    ints : which of the call's ints follow; None if it takes an array of all of them.
    """

    name: str
    buffers: list[tuple[int, np.dtype[Any]]]
    ints: list[int] | None


class KernelTexts:
    """The functions of a file, in the order in which they are defined.

    Attributes
    ----------
    scalars, library, kernels : what numba compiles, by name.
    copied : definitions that run in Python, by name.
    """

    def __init__(self) -> None:
        self.scalars = FunctionText()
        self.library: dict[str, str] = {}
        self.copied: dict[str, str] = {}
        self.kernels: dict[str, str] = {}
        self._made: dict[str, NumbaKernel] = {}

    def kernel(self, source: str, name: str) -> NumbaKernel:
        """The function that a kernel is.

        Raises
        ------
        ArgumentError : it uses what only machine code can be.
        """
        if source not in self._made:
            own = f"kernel{len(self._made)}" if name.startswith("k_") else f"{name}{len(self._made)}"
            self._made[source] = _Kernel(self, source, own).made
        return self._made[source]

    def from_library(self, name: str) -> str:
        """Copy a function of `LIBRARY`, with those that it calls; its name."""
        if name not in self.library:
            function = LIBRARY.get(name)
            if not isinstance(function, FunctionType):
                raise ArgumentError(f"export_numba(): the program needs {name}(), which has no form in Python")
            for used in function.__code__.co_names:
                if isinstance(LIBRARY.get(used), FunctionType):
                    self.from_library(used)
            self.library[name] = inspect.getsource(function)
        return name


class _Kernel:
    """One kernel, while it is written."""

    def __init__(self, home: KernelTexts, source: str, name: str) -> None:
        self.home, self.name = home, name
        self.kinds: dict[str, Any] = {"args": [_INT64]}
        (tree,) = ast.parse(source).body
        assert isinstance(tree, ast.FunctionDef)
        self.buffers: dict[str, tuple[int, np.dtype[Any]]] = {}
        self.heads: dict[str, int] = {}
        body = [node for node in tree.body if not self._is_head(node)]
        written = _without_unread([new for node in body for new in self.statement(node)])
        whole = any(isinstance(x, ast.Name) and x.id == "args" for node in written for x in ast.walk(node))
        parameters, ints = [*self.buffers], list(self.heads.values())
        text = [ast.unparse(ast.fix_missing_locations(node)) for node in written]
        if whole:
            text = [*(f"{own} = args[{place}]" for own, place in self.heads.items()), *text]
        parameters += ["args"] if whole else [*self.heads]
        lines = [
            f"def {name}({', '.join(parameters)}):",
            *(f"    {line}" for part in text for line in part.split("\n")),
        ]
        home.kernels[name] = "\n".join(lines) + "\n"
        self.made = NumbaKernel(name, [*self.buffers.values()], None if whole else ints)

    def _is_head(self, node: ast.stmt) -> bool:
        """Whether a statement names a buffer or an int, which becomes a parameter, or says nothing here."""
        match node:
            case ast.Assign(
                targets=[ast.Name(id=own)],
                value=ast.Call(func=ast.Name(id="buffer"), args=[ast.Name(id="bufs"), *_] as given),
            ):
                self.buffers[own] = buffer_of(given)
                self.kinds[own] = [self.buffers[own][1]]
                return True
            case ast.Assign(
                targets=[ast.Name(id=own)],
                value=ast.Subscript(value=ast.Name(id="args"), slice=ast.Constant(value=int() as place)),
            ):
                self.heads[own], self.kinds[own] = place, _INT64
                return True
            case ast.Expr(value=ast.Call(func=ast.Name(id="wide"))):
                return True
        return False

    # ---------------------------------------------------------------- statements
    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """Translate a statement."""
        match node:
            case ast.If() if _asks_for_threads(node.test):
                return [new for x in node.orelse for new in self.statement(x)]
            case ast.If():
                return [ast.If(self.expression(node.test)[0], self.block(node.body), self.block(node.orelse))]
            case ast.While():
                return [ast.While(self.expression(node.test)[0], self.block(node.body), [])]
            case ast.For(target=ast.Name(id=own), iter=ast.Call(func=func, args=given)):
                self.kinds[own] = _INT64
                bounds = [self.expression(x)[0] for x in given]
                return [ast.For(node.target, ast.Call(func, bounds, []), self.block(node.body), [])]
            case ast.Assign(targets=[target]):
                return [ast.Assign([self.target(target, node.value)], self.value(node.value))]
            case ast.AugAssign():
                whole = ast.BinOp(_loaded(node.target), node.op, node.value)
                return self.statement(ast.Assign([node.target], whole))
            case ast.Return(value=value) if value is not None:
                return [ast.Return(self.expression(value)[0])]
            case ast.Expr(value=value):
                return [ast.Expr(self.expression(value)[0])]
        return [node]

    def block(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a body."""
        return [new for node in nodes for new in self.statement(node)]

    def value(self, node: ast.expr) -> ast.expr:
        """The assigned value."""
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self.expression(x)[0] for x in node.elts], ast.Load())
        return self.expression(node)[0]

    def target(self, node: ast.expr, value: ast.expr) -> ast.expr:
        """The target of an assignment."""
        match node, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values):
                return ast.Tuple([self.target(a, b) for a, b in zip(targets, values, strict=True)], ast.Store())
            case ast.Name(id=own), _:
                self.kinds.setdefault(own, self.expression(value)[1])
            case ast.Subscript(value=container, slice=index), _:
                return ast.Subscript(self.expression(container)[0], self.expression(index)[0], ast.Store())
        return node

    # ---------------------------------------------------------------- expressions
    def expression(self, node: ast.expr) -> Typed:
        """Translate an expression; returns its dtype too."""
        match node:
            case ast.Name(id=own):
                return node, self.kinds[own]
            case ast.Constant(value=value):
                return node, _BOOL if type(value) is bool else _INT64
            case ast.Subscript(value=container, slice=index):
                array, kind = self.expression(container)
                return ast.Subscript(array, self.expression(index)[0], ast.Load()), kind[0]
            case ast.BinOp(left=left, op=op, right=right):
                (x, kind), (y, other) = self.expression(left), self.expression(right)
                return ast.BinOp(x, op, y), kind if kind == other and kind.kind in "fb" else _INT64
            case ast.UnaryOp(op=op, operand=operand):
                x, kind = self.expression(operand)
                return ast.UnaryOp(op, x), _BOOL if isinstance(op, ast.Not) else kind
            case ast.Compare(left=left, ops=ops, comparators=[right]):
                return ast.Compare(self.expression(left)[0], ops, [self.expression(right)[0]]), _BOOL
            case ast.BoolOp(op=op, values=values):
                return ast.BoolOp(op, [self.expression(x)[0] for x in values]), _BOOL
            case ast.IfExp(test=test, body=body, orelse=orelse):
                (x, kind), (y, other) = self.expression(body), self.expression(orelse)
                return ast.IfExp(self.expression(test)[0], x, y), kind if kind == other else _INT64
            case ast.Call(func=ast.Name(id=name), args=given):
                return self.call(name, given)
        raise ArgumentError(f"export_numba(): {ast.unparse(node)!r} in a kernel has no form in Python")

    def call(self, name: str, given: list[ast.expr]) -> Typed:
        """A call in kernel source."""
        if name in DTYPES:
            return _parsed(literal(number(given[0]), DTYPES[name])), DTYPES[name]
        operands = [self.expression(x) for x in given]
        nodes, dtypes = [x for x, _ in operands], [kind for _, kind in operands]
        if name in ("min", "max"):
            return ast.Call(ast.Name(name, ast.Load()), nodes, []), _INT64
        meaning = kernels.meaning(name, self.name)
        if isinstance(meaning, MachineFunction):
            kind = next((kind[0] for kind in dtypes if isinstance(kind, list)), None)
            name, numbers = form_of(name)
            own = self.home.from_library(_OF_BOOLS.get(name, name) if kind == _BOOL else name)
            result = {"": None, "word": _INT64, "element": kind}[meaning.result]
            return ast.Call(ast.Name(own, ast.Load()), [*map(ast.Constant, numbers), *nodes], []), result
        return self.scalar(name, meaning, nodes, dtypes)

    def scalar(self, name: str, meaning: Callable[..., Any], nodes: list[ast.expr], dtypes: list[Any]) -> Typed:
        """A scalar definition: written here if it is short, else called."""
        texts = [x.id if isinstance(x, ast.Name) else f"({ast.unparse(x)})" for x in nodes]
        lines, dtype = text_of(self.home.scalars, meaning, list(zip(texts, dtypes, strict=True)))
        if len(lines) == 1 and len(lines[0]) <= _SHORT + len("".join(texts)):
            return _parsed(lines[0].removeprefix("return ")), dtype
        own, dtype = self.home.scalars.scalar(name, meaning, dtypes)
        return ast.Call(ast.Name(own, ast.Load()), nodes, []), dtype


class _Read(ast.NodeTransformer):
    """Leaves out assignments to names that nothing reads."""

    def __init__(self, nodes: list[ast.stmt]) -> None:
        inside = [x for node in nodes for x in ast.walk(node) if isinstance(x, ast.Name)]
        self.names = {x.id for x in inside if isinstance(x.ctx, ast.Load)}

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        """None for one that is left out: what is assigned has no effect of its own."""
        (target,) = node.targets
        return None if isinstance(target, ast.Name) and target.id not in self.names else node


def _without_unread(nodes: list[ast.stmt]) -> list[ast.stmt]:
    read = _Read(nodes)
    return [left for node in nodes if (left := read.visit(node)) is not None]


def _asks_for_threads(node: ast.expr) -> bool:
    return any(isinstance(x, ast.Name) and x.id in ("there_are_threads", "there_are_helpers") for x in ast.walk(node))


def _loaded(node: ast.expr) -> ast.expr:
    """The target of a write, as an expression that reads it."""
    return _parsed(ast.unparse(node))


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
