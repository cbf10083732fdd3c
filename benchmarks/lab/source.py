"""A user's file, loaded once per engine: whichever engine it imports, it gets the measured one.

``import dynamic as tw``, ``import static as tw`` and ``import torch`` all name the engine. The file stays as it is; its
imports are rewritten in memory, lines keep their numbers, so that errors and graphs show the user's own lines.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

NAMES = ("dynamic", "static", "torch")
"""Names by which a file may import the engine that runs it."""
_HOOK = "__engine_import__"


class NoSuchPart(ImportError):
    """A file imports what the engine that runs it lacks; the message names the line."""


def load(path: Path, engine: Any, base: str, loaded: dict[Path, ModuleType] | None = None) -> ModuleType:
    """Return a user's file as a new module that is run by an engine, and so are the files beside it that it imports.

    Parameters
    ----------
    path : Path
        The file.
    engine : module, or what stands for one
        Takes the place of every engine that the file imports.
    base : str
        Package in which submodules such as ``nn.functional`` are looked for.
    loaded : dict, optional
        Files that have been loaded on the way here.

    Raises
    ------
    LookupError
        If there is no such file.
    SyntaxError
        If it is no Python.
    NoSuchPart
        If the engine lacks what it imports.
    """
    if not path.is_file():
        raise LookupError(f"there is no file {path}")
    tree = _Imports().visit(ast.parse(path.read_text(encoding="utf-8"), str(path)))
    code = compile(ast.fix_missing_locations(tree), str(path), "exec")
    module = ModuleType(f"measured_{path.stem}")
    module.__file__ = str(path)

    def found(name: str) -> Any:
        """The engine, or a part of it."""
        part, at = engine, base
        for step in name.split(".") if name else ():
            at = f"{at}.{step}"
            try:
                part = getattr(part, step)
            except AttributeError as absent:
                try:  # a submodule that nobody has imported yet
                    part = importlib.import_module(at)
                except ModuleNotFoundError:
                    line = sys._getframe(1).f_lineno
                    raise NoSuchPart(f"{path}:{line}: there is no {at}: {absent}") from None
        return part

    beside = {} if loaded is None else loaded
    beside[path.resolve()] = module

    def beside_or_installed(name: str, *rest: Any) -> Any:
        """Import a file of the same folder as this one was, and everything else as always."""
        other = path.resolve().parent / (name.replace(".", "/") + ".py")
        if not other.is_file() or (rest and rest[-1] and len(rest) == 4):
            return builtins.__import__(name, *rest)
        return beside[other] if other in beside else load(other, engine, base, beside)

    setattr(module, _HOOK, found)
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": beside_or_installed}
    sys.modules[module.__name__] = module  # dataclasses and pickle look their module up
    exec(code, module.__dict__)
    return module


class _Imports(ast.NodeTransformer):
    """Imports of an engine become assignments."""

    def visit_Import(self, node: ast.Import) -> Any:
        """``import dynamic.nn as nn -> nn = __engine_import__("nn")``."""
        kept = [alias for alias in node.names if alias.name.partition(".")[0] not in NAMES]
        made: list[ast.stmt] = [ast.Import(kept)] if kept else []
        for alias in node.names:
            root, _, rest = alias.name.partition(".")
            if root in NAMES:
                made.append(_assignment(alias.asname or root, rest if alias.asname else ""))
        return [ast.copy_location(statement, node) for statement in made]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """``from dynamic import nn as n -> n = __engine_import__("nn")``."""
        root, _, rest = (node.module or "").partition(".")
        if node.level or root not in NAMES:
            return node
        made = []
        for alias in node.names:
            if alias.name == "*":
                raise SyntaxError(f"line {node.lineno}: name what you import from {node.module}, * cannot be measured")
            path = f"{rest}.{alias.name}" if rest else alias.name
            made.append(_assignment(alias.asname or alias.name, path))
        return [ast.copy_location(statement, node) for statement in made]


def _assignment(name: str, path: str) -> ast.stmt:
    call = ast.Call(ast.Name(_HOOK, ast.Load()), [ast.Constant(path)], [])
    return ast.Assign([ast.Name(name, ast.Store())], call)
