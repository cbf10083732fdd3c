"""Native functions as source: kernel source whose values are words, for code that reads and makes C's objects.

Grammar (statements and expressions: `common.compiler.translate`)::

    module   ::= (NAME = number | name, ... = C)* function+
    function ::= def name(parameter, ...): statement*

Parameters, variables and results are words, that is int64: numbers and addresses alike. C takes and returns both in
the same registers on every platform with 64 bits, so a call of C passes words too; of what C returns as an int, the
upper half is not defined.

- ``x[i]`` is the word number i from the address x on, ``int32s(x)[i]`` an element of another dtype;
- ``room(n)`` is the address of n words that belong to the call; it stands before all loops and decisions;
- ``invoke(address, ...)`` calls a function by its address;
- a name that is C's is a function where it is called, else the address of an object: those that
  `common.compiler.llvm_engine.define` names ``twingrad_name``;
- ``atomic_load(x)``, ``atomic_store(x, value)``, ``fetch_add(x, value)``, ``compare_exchange(x, old, new)`` are C11's
  on the word at an address, sequentially consistent; the last says whether it has exchanged;
- ``pause()`` lets a processor rest that waits for a word to change.

A function that reaches its end returns 0, and calls only what stands before it. The last one of a module is exported,
the others become part of it.
"""

from __future__ import annotations

import ast
import platform
from collections.abc import Callable
from typing import Any

import numpy as np

from common.compiler.expressions import number
from common.compiler.known_texts import KnownTexts
from common.compiler.module_text import ModuleText
from common.compiler.registers import BOOL, DTYPES, INT64, ArrayKind, Refused, Register, constant, widens
from common.compiler.syntax_tree import parts
from common.compiler.translate import Statements

_OF_PROCESS = ("memmove", "memset")
"""Functions of C that kernels find under their own names."""

_PAUSES = {"x86_64": "llvm.x86.sse2.pause()", "amd64": "llvm.x86.sse2.pause()"} | dict.fromkeys(
    ("aarch64", "arm64"), "llvm.aarch64.hint(i32 1)"
)


def translate_native(source: str, symbol: str, resolve: Callable[[str], Any]) -> str:
    """Return the text of an LLVM module that exports the last function of `source` as `symbol`.

    Parameters
    ----------
    resolve : as for `common.compiler.translate.translate`.

    Raises
    ------
    Refused
        The text is no native source; the message begins with its line.
    """
    module, constants, functions = ModuleText(symbol, KnownTexts()), dict[str, Register](), list[ast.FunctionDef]()
    of_c: set[str] = set()
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[target], value=ast.Name(id="C")):
                of_c |= {part.id for part in parts(target) if isinstance(part, ast.Name)}
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                constants[name] = constant(number(value), INT64)
            case ast.FunctionDef():
                functions.append(node)
            case _:
                raise Refused(f"line {node.lineno}: a module has numbers and functions")
    own = {function.name: len(function.args.args) for function in functions}
    declared: dict[str, str] = {}
    texts = [_NativeFunction(module, resolve, constants, own, of_c, declared).text(node) for node in _used(functions)]
    texts.append(_exported(functions[-1], symbol))
    return "\n".join([str(module), *declared.values(), *texts, ""])


def _used(functions: list[ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The functions that the last one needs, which stand before it."""
    needed, used = {functions[-1].name}, list[ast.FunctionDef]()
    for function in reversed(functions):
        if function.name in needed:
            needed |= {part.id for part in parts(function) if isinstance(part, ast.Name)}
            used.append(function)
    return used


def _exported(function: ast.FunctionDef, symbol: str) -> str:
    operands = ", ".join(f"i64 %{parameter.arg}" for parameter in function.args.args)
    call = f'%result = call i64 @"{function.name}"({operands})'
    return f"define i64 @{symbol}({operands}) nounwind {{\n  {call}\n  ret i64 %result\n}}"


class _NativeFunction(Statements):
    """Writes one function.

    Parameters
    ----------
    constants : what names mean in all functions.
    functions : how many parameters each function of the module has.
    of_c : names of C's functions and objects.
    declared : lines that declare what is C's, which is added to.
    """

    def __init__(
        self,
        module: ModuleText,
        resolve: Callable[[str], Any],
        constants: dict[str, Register],
        functions: dict[str, int],
        of_c: set[str],
        declared: dict[str, str],
    ) -> None:
        super().__init__(module, resolve, {None: ""}, vectors=False)
        self.variables = dict(constants)
        self._functions, self._of_c, self._declared = functions, of_c, declared

    def text(self, function: ast.FunctionDef) -> str:
        """The function, to be inlined wherever it is called."""
        names = [parameter.arg for parameter in function.args.args]
        self.variables |= {name: Register(f"%{name}", INT64) for name in names}
        self._name_objects(function)
        self.statements(function.body)
        if self.here is not None:
            self.line("ret i64 0")
        head = f'define internal i64 @"{function.name}"({", ".join(f"i64 %{name}" for name in names)}) alwaysinline'
        return f"{head} {{\n{self}\n}}"

    def _name_objects(self, function: ast.FunctionDef) -> None:
        names = {part.id for part in parts(function) if isinstance(part, ast.Name)} & self._of_c
        calls = [part.func for part in parts(function) if isinstance(part, ast.Call)]
        for name in sorted(names - {called.id for called in calls if isinstance(called, ast.Name)}):
            self._declared[name] = f"@twingrad_{name} = external global i8"
            self.variables[name] = Register(f"ptrtoint (ptr @twingrad_{name} to i64)", INT64)

    def give(self, node: ast.expr) -> None:
        """Return a word."""
        self.line(f"ret {self._word(node).typed}")

    def _word(self, node: ast.expr) -> Register:
        value = self.expression(node)
        if value.kind == BOOL:
            return Register(self.register(f"zext i1 {value.text} to i64"), INT64)
        if not widens(value.kind):
            raise Refused(f"a word is needed, not {value.kind}")
        return self.convert(value, INT64)

    def container(self, node: ast.expr) -> Register:
        """The words from an address on, or elements of another dtype."""
        value = self.expression(node)
        return self._elements(value, INT64) if value.kind == INT64 else value

    def _elements(self, address: Register, dtype: np.dtype[Any]) -> Register:
        return Register(self.register(f"inttoptr i64 {address.text} to ptr"), ArrayKind(dtype, 0))

    def call(self, node: ast.expr) -> Register | None:
        """Write a call."""
        match node:
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                pass
            case _:
                raise Refused("only functions are called, by their names and without keywords")
        if name == "room":
            memory = self.register(f"alloca i64, {self._word(arguments[0]).typed}, align 16")
            return Register(self.register(f"ptrtoint ptr {memory} to i64"), INT64)
        if name.removesuffix("s") in DTYPES:
            return self._elements(self._word(arguments[0]), DTYPES[name.removesuffix("s")])
        if name == "invoke":
            address, *arguments = arguments
            function = self._elements(self._word(address), INT64).text
        elif name in self._functions:
            function = f'@"{name}"'
            if len(arguments) != self._functions[name]:
                raise Refused(f"{name} takes {self._functions[name]} arguments")
        elif name in self._of_c:
            function = f"@{name}" if name in _OF_PROCESS else f"@twingrad_{name}"
            self._declared[name] = f"declare i64 {function}({', '.join(['i64'] * len(arguments))})"
        elif name in _ATOMIC:
            return _ATOMIC[name](self, [self._word(argument) for argument in arguments])
        elif name == "pause":
            self._pause()
            return None
        else:
            return super().call(node)
        words = ", ".join(self._word(argument).typed for argument in arguments)
        return Register(self.register(f"call i64 {function}({words})"), INT64)

    def _pause(self) -> None:
        instruction = _PAUSES.get(platform.machine().lower())
        if instruction:
            self._declared["pause"] = f"declare void @{instruction.replace(' 1', '')}"
            self.line(f"call void @{instruction}")

    def _at(self, address: Register) -> str:
        return f"ptr {self._elements(address, INT64).text}"

    def _load_atomic(self, words: list[Register]) -> Register:
        return Register(self.register(f"load atomic i64, {self._at(words[0])} seq_cst, align 8"), INT64)

    def _store_atomic(self, words: list[Register]) -> None:
        self.line(f"store atomic {words[1].typed}, {self._at(words[0])} seq_cst, align 8")

    def _fetch_add(self, words: list[Register]) -> Register:
        return Register(self.register(f"atomicrmw add {self._at(words[0])}, {words[1].typed} seq_cst"), INT64)

    def _compare_exchange(self, words: list[Register]) -> Register:
        address, old, new = words
        found = self.register(f"cmpxchg {self._at(address)}, {old.typed}, {new.typed} seq_cst seq_cst")
        return Register(self.register(f"extractvalue {{ i64, i1 }} {found}, 1"), BOOL)

    def _as_it_is(self) -> str:
        return ""  # no loop of these functions is optimised


_ATOMIC: dict[str, Callable[[_NativeFunction, list[Register]], Register | None]] = {
    "atomic_load": _NativeFunction._load_atomic,
    "atomic_store": _NativeFunction._store_atomic,
    "fetch_add": _NativeFunction._fetch_add,
    "compare_exchange": _NativeFunction._compare_exchange,
}
