"""Python's control flow, rewritten to calls of `common.convert.runtime`.

::

    if test:             def true(y):             # y: names that are set in one of the two
        y = a                y = a
    else:                    return tw__.values(locals(), ("y",))
        y = b            def false(y): ...
                         (y,) = tw__.if_(test, true, false, ("y",), locals(), line)

The functions keep the lines of what they are made of, so everything recorded in them has the user's own. Whether a
test is a tensor is known when it runs: if it is not, one of the functions is called, as Python would do it.

`return`, `break` and `continue` are taken out first: what follows an `if` that leaves becomes part of its other branch,
``break`` sets a flag that the loop's test asks, ``return`` in a loop a flag and the value.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from common.convert.names import LOOPS, SCOPES, always_leaves, assigned, leaves, obstacle, read, written
from common.convert.syntax import RUNTIME, Fill, place, runtime, sets_names
from common.core.errors import TraceError

MOST_NODES = 20_000
"""Nodes of a converted function, beyond which it is refused: what follows several `if` with returns is repeated."""


class Rewriter(ast.NodeTransformer):
    """Rewrites the body of one function; inner functions by rewriters of their own.

    Parameters
    ----------
    outer : names that are declared global or nonlocal.
    first : name of the first parameter, for ``super()``.
    private : name of the class whose private names are to be mangled, or "".
    """

    def __init__(self, file: str, outer: frozenset[str], first: str, private: str) -> None:
        self.file, self.outer, self.first, self.private = file, outer, first, private
        self.count, self.testing = 0, False

    # ------------------------------------------------------------------ blocks

    def function(self, block: list[ast.stmt]) -> list[ast.stmt]:
        """The body of a function."""
        return self.block(block, returns=True)

    def block(self, block: Sequence[ast.stmt], *, returns: bool = False) -> list[ast.stmt]:
        """Rewritten statements.

        Parameters
        ----------
        returns : whether the end of the block is the end of the function, so that `return` may stay.
        """
        out: list[ast.stmt] = []
        block = list(block)
        for i, node in enumerate(block):
            rest = block[i + 1 :]
            kind = (ast.Return,)
            if returns and isinstance(node, ast.If) and leaves([node], kind) and not self._kept(node):
                return [*out, *self._if_return(node, rest)]
            if returns and isinstance(node, LOOPS) and leaves([node], kind) and not self._kept(node):
                loop, after = self._without_return(node)
                return [*out, *self.block([*loop, after, *rest], returns=True)]
            made = self.visit(node)
            out += made if isinstance(made, list) else [made]
            if isinstance(node, (ast.Return, ast.Raise)):
                break
        return out or [ast.Pass()]

    def _kept(self, node: ast.stmt) -> bool:
        """Whether a statement stays as Python has it: its test must not be a tensor then."""
        return self._obstacle(node) is not None

    def _obstacle(self, node: ast.stmt) -> tuple[int, str] | None:
        if isinstance(node, LOOPS) and node.orelse:
            return node.lineno, "the loop has an else"
        return obstacle(list(ast.iter_child_nodes(node)), self.outer)

    def _leaving(self, node: ast.stmt, kinds: tuple[type, ...]) -> tuple[int, str] | None:
        """The obstacle of a statement that still leaves what is around it, since that stays as it is."""
        left = (node.lineno, "it leaves a with, a try, a match or a loop that is not converted")
        return self._obstacle(node) or (left if leaves([node], kinds) else None)

    def _name(self, what: str) -> str:
        self.count += 1
        return f"tw__{what}_{self.count}"

    # ------------------------------------------------------------------ branches

    def visit_If(self, node: ast.If) -> Any:
        """Branches."""
        found = self._leaving(node, (ast.Return,)) or self._leaving(node, (ast.Break, ast.Continue))
        if found:
            return self._keep(node, found)
        names = assigned([*node.body, *node.orelse])
        return self._branches(node, names, node.body, node.orelse, self._assign(names, "if_"), returns=False)

    def _if_return(self, node: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
        """An `if` of which a branch returns: what follows it belongs to the branches that go on."""
        kind = (ast.Return,)
        one, two = (
            [*part] if always_leaves(part, kind) else [*part, *deepcopy(rest)] for part in (node.body, node.orelse)
        )
        names = assigned([*one, *two])
        return self._branches(node, names, one, two, f"return {RUNTIME}.if_return", returns=True)

    def _branches(
        self, node: ast.If, names: list[str], one: Sequence[ast.stmt], two: Sequence[ast.stmt], call: str, returns: bool
    ) -> list[ast.stmt]:
        parts, functions = [], []
        for what, block in (("true", one), ("false", two)):
            name = self._name(what)
            parts.append(name)
            functions += self._function(name, names, block or [ast.Pass()], returns=returns, at=node)
        line = f"{call}(TEST, {parts[0]}, {parts[1]}, {tuple(names)!r}, locals())"
        return [*functions, *self._call(line, node, names if not returns else [], TEST=self.test(node.test))]

    def _function(
        self,
        name: str,
        names: Sequence[str],
        block: Sequence[ast.stmt],
        *,
        returns: bool,
        at: ast.AST,
        first: str = "",
        also: Sequence[ast.AST] = (),
    ) -> list[ast.stmt]:
        """A function of the names that a block sets, which returns them, or what the function returns.

        The names that it writes in place, and those that it and `also` read, are its attribute `names`.
        """
        writes, reads = tuple(written(block)), tuple(read([*block, *also]))
        parameters = ", ".join([*([first] if first else []), *names])
        end = "None" if returns else f"{RUNTIME}.values(locals(), {tuple(names)!r})"
        made, *noted = ast.parse(
            f"def {name}({parameters}):\n    return {end}\n" + (f"{name}.names = {writes, reads}" if writes else "")
        ).body
        assert isinstance(made, ast.FunctionDef)
        for node in (made, *noted):
            place(node, at)
        made.body[-1:] = [*self.block(block, returns=returns), made.body[-1]]
        return [made, *noted]

    def _assign(self, names: Sequence[str], what: str) -> str:
        return f"{''.join(f'{n}, ' for n in names)}{'= ' if names else ''}{RUNTIME}.{what}"

    def _call(self, text: str, at: ast.stmt, names: Sequence[str], **parts: ast.expr) -> list[ast.stmt]:
        """Statements from text, with expressions in place of names; names that got no value are unset again."""
        made = ast.parse("\n".join([text, *(f"if {n} is {RUNTIME}.UNSET: del {n}" for n in names)])).body
        for node in made:
            place(node, at)
        return [Fill(parts).visit(node) for node in made]

    # ------------------------------------------------------------------ loops

    def visit_While(self, node: ast.While) -> Any:
        """A loop."""
        found = self._leaving(node, (ast.Return,))
        if found:
            return self._keep(node, found)
        body, flag, before = self._without_break(node.body, node)
        names = assigned(body)
        name, test = self._name("body"), self._name("test")
        made = self._function(name, names, body, returns=False, at=node, also=[node.test])
        (asks,) = ast.parse(f"def {test}({', '.join(names)}):\n    return TEST").body
        asked = Fill({"TEST": self.test(node.test)}).visit(place(asks, node))
        line = f"{self._assign(names, 'while_')}({test}, {name}, {tuple(names)!r}, locals(), {flag!r})"
        return [*before, asked, *made, *self._call(line, node, names)]

    def visit_For(self, node: ast.For) -> Any:
        """A loop over something."""
        found = self._leaving(node, (ast.Return,))
        if found:
            return self._keep(node, found)
        body, flag, before = self._without_break(node.body, node)
        row = self._name("row")
        (take,) = ast.parse(f"TARGET = {row}").body
        assert isinstance(take, ast.Assign)
        take.targets = [node.target]
        body = [place(take, node), *body]
        names = assigned(body)
        name = self._name("body")
        made = self._function(name, names, body, returns=False, at=node, first=row)
        line = f"{self._assign(names, 'for_')}(ITER, {name}, {tuple(names)!r}, locals(), {flag!r})"
        return [*before, *made, *self._call(line, node, names, ITER=self._rows(node.iter))]

    def _rows(self, node: ast.expr) -> ast.expr:
        """The iterable of a `for`; ``range(...)`` may be of tensors."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            wrapped: ast.expr = ast.copy_location(ast.Call(runtime("range_", node), [node.func, *node.args], []), node)
            self.generic_visit(wrapped)
            return wrapped
        made: ast.expr = self.visit(node)
        return made

    def _without_break(self, block: list[ast.stmt], at: ast.stmt) -> tuple[list[ast.stmt], str, list[ast.stmt]]:
        """A loop's body without `break` and `continue`, the name of the flag that says it has ended, and its start."""
        kinds = (ast.Break, ast.Continue)
        if not leaves(block, kinds):
            return block, "", []
        flag = self._name("ended") if leaves(block, (ast.Break,)) else ""
        before = self._call(f"{flag} = False", at, []) if flag else []
        return self._moved(block, flag), flag, before

    def _moved(self, block: Sequence[ast.stmt], flag: str) -> list[ast.stmt]:
        kinds = (ast.Break, ast.Continue)
        out: list[ast.stmt] = []
        for i, node in enumerate(block):
            if isinstance(node, ast.Continue):
                return out or [ast.copy_location(ast.Pass(), node)]
            if isinstance(node, ast.Break):
                return [*out, *self._call(f"{flag} = True", node, [])]
            if isinstance(node, ast.If) and leaves([node], kinds):
                rest = list(block[i + 1 :])
                one, two = (
                    self._moved([*part] if always_leaves(part, kinds) else [*part, *deepcopy(rest)], flag)
                    for part in (node.body, node.orelse)
                )
                passes = [ast.copy_location(ast.Pass(), node)]
                return [*out, ast.copy_location(ast.If(node.test, one or [*passes], two), node)]
            out.append(node)
        return out

    def _without_return(self, node: Any) -> tuple[list[ast.stmt], ast.stmt]:
        """A loop that breaks where it returned, with what sets its flags before; and the return after it."""
        flag, value = self._name("returned"), self._name("result")
        changed = _Returns(self, flag, value).visit(node)
        (after,) = self._call(f"if {flag}:\n    return {value}", node, [])
        return [*self._call(f"{flag} = False", node, []), changed], after

    def _keep(self, node: Any, found: tuple[int, str]) -> Any:
        """A statement as it is, which refuses a tensor where Python asks it."""
        what = "iter" if isinstance(node, ast.For) else "test"
        setattr(node, what, self._plain(self.visit(getattr(node, what)), found, node))
        node.body, node.orelse = self.block(node.body), self.block(node.orelse) if node.orelse else []
        return node

    def _plain(self, value: ast.expr, found: tuple[int, str], at: ast.AST) -> ast.expr:
        arguments = [value, ast.Constant(found[0]), ast.Constant(found[1])]
        return place(ast.Call(runtime("plain", at), arguments, []), at)

    # ------------------------------------------------------------------ expressions

    def test(self, node: ast.expr) -> Any:
        """The condition of an `if` or a `while`, in which ``x.item()`` is a tensor."""
        before, self.testing = self.testing, True
        made = self.visit(node)
        self.testing = before
        return made

    def _lazy(self, node: ast.expr) -> ast.expr:
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.copy_location(ast.Lambda(nothing, self.visit(node)), node)

    def _helper(self, name: str, arguments: list[ast.expr], at: ast.expr) -> Any:
        return place(ast.Call(runtime(name, at), arguments, []), at)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """``a and b``."""
        if sets_names(node):
            return self.generic_visit(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self._helper(name, [self._lazy(x) for x in node.values], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """``not a``."""
        if not isinstance(node.op, ast.Not):
            return self.generic_visit(node)
        return self._helper("not_", [self.visit(node.operand)], node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """``a if b else c``."""
        if sets_names(node):
            return self.generic_visit(node)
        parts = [self.test(node.test), self._lazy(node.body), self._lazy(node.orelse)]
        return self._helper("if_expression", parts, node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """``a < b < c``."""
        if len(node.ops) == 1 or sets_names(node):
            return self.generic_visit(node)
        names = [f"tw__x{i}" for i in range(len(node.ops) + 1)]
        pairs: list[ast.expr] = []
        for a, op, b in zip(names, node.ops, names[1:]):
            text = ast.parse(f"lambda {a}, {b}: {a} < {b}", mode="eval").body
            assert isinstance(text, ast.Lambda)
            text.body = ast.Compare(text.body.left, [op], text.body.comparators)  # type: ignore[attr-defined]
            pairs.append(text)
        values = [self._lazy(x) for x in (node.left, *node.comparators)]
        return self._helper("chain", [ast.Tuple(values, ast.Load()), ast.Tuple(pairs, ast.Load())], node)

    def visit_Call(self, node: ast.Call) -> Any:
        """Calls of functions that may be converted, ``x.item()`` in a test, and ``super()``."""
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.first:
            node.args = [ast.Name("__class__", ast.Load()), ast.Name(self.first, ast.Load())]
            return place(node, node)
        bare = not node.args and not node.keywords
        if self.testing and bare and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
            return place(ast.Call(runtime("item", node), [self.visit(node.func.value)], []), node)
        self.generic_visit(node)
        if isinstance(node.func, (ast.Name, ast.Attribute)):
            node.func = place(ast.Call(runtime("callee", node), [node.func], []), node)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        """``assert test, message``."""
        message = self._lazy(node.msg or ast.copy_location(ast.Constant(""), node))
        (made,) = self._call(f"{RUNTIME}.assert_(TEST, MESSAGE)", node, [], TEST=self.test(node.test), MESSAGE=message)
        return made

    def visit_Return(self, node: ast.Return) -> Any:
        """A returned name must have a value."""
        if node.value is not None:
            node.value = place(ast.Call(runtime("result", node), [self.visit(node.value)], []), node.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Private names of a class."""
        if self.private and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self.private.lstrip('_')}{node.attr}"
        return self.generic_visit(node)

    # ------------------------------------------------------------------ scopes

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """An inner function, for itself."""
        rewrite_function(node, self.file, self.private)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """Left as it is."""
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        """Left as it is."""
        return node


class _Returns(ast.NodeTransformer):
    """``return x`` in a loop -> ``flag, value = True, x; break``; after an inner loop that may, ``if flag: break``."""

    def __init__(self, rewriter: Rewriter, flag: str, value: str) -> None:
        self.rewriter, self.flag, self.value, self.depth = rewriter, flag, value, 0

    def visit_Return(self, node: ast.Return) -> Any:
        value = node.value or ast.copy_location(ast.Constant(None), node)
        text = f"{self.value} = VALUE\n{self.flag} = True\n"
        return [*self.rewriter._call(text, node, [], VALUE=value), ast.copy_location(ast.Break(), node)]

    def visit_For(self, node: ast.For) -> Any:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> Any:
        return self._loop(node)

    def _loop(self, node: Any) -> Any:
        inner = self.depth > 0 and leaves([node], (ast.Return,))
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        if not inner:
            return node
        test = ast.Name(self.flag, ast.Load())
        return [node, place(ast.If(test, [ast.Break()], []), node)]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return node if isinstance(node, SCOPES) else super().generic_visit(node)


def rewrite_function(node: Any, file: str, private: str) -> None:
    """Rewrite a function definition in place.

    Raises
    ------
    TraceError : it becomes too large.
    """
    for part in ast.walk(node):
        part.tw_user = True  # type: ignore[attr-defined]
    parameters = [*node.args.posonlyargs, *node.args.args]
    declared = [n for x in ast.walk(node) if isinstance(x, (ast.Global, ast.Nonlocal)) for n in x.names]
    rewriter = Rewriter(file, frozenset(declared), parameters[0].arg if parameters else "", private)
    if isinstance(node, ast.Lambda):
        node.body = rewriter.visit(node.body)
    else:
        node.body = rewriter.function(node.body)
    if sum(1 for _ in ast.walk(node)) > MOST_NODES:
        raise TraceError(
            f"{file}:{node.lineno}: the function has too many `if` with a return inside, or too much behind them, to "
            "be converted: return at one place, or call functions"
        )


__all__ = ["rewrite_function"]
