"""A Python function's computation as a string: the part of a cache key for a user's own scalar op."""

from __future__ import annotations

import hashlib
import marshal
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_REPEATABLE = 2
"""A version of marshal whose bytes do not depend on which objects are shared."""

_PLAIN = (int, float, bool, str, bytes, type(None), np.dtype, np.generic)
# Every key covers what these define: Python and numpy by version, the package by the contents of its files.
_STABLE = re.compile(
    r"(builtins|math|operator|importlib|numpy|common\.(compiler|kernels|ops|runtime|core\.numerics))(\.|$)"
)


def global_names(code: CodeType) -> set[str]:
    """Return the global and attribute names in a code object, nested functions included."""
    nested = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(global_names, nested))


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a hash of the code of `function` and of every value that it refers to.

    A value whose meaning cannot be told for certain makes the hash unique, so that nothing is shared by
    mistake: numba's own cache ignores globals and closures, so a program that computed ``x * 7.5`` has been
    given the stored ``x * 2.5`` of another.

    Examples
    --------
    >>> scale = 2.5
    >>> first = fingerprint(lambda x: x * scale)
    >>> scale = 7.5
    >>> first == fingerprint(lambda x: x * scale)
    False
    """
    return certain_fingerprint(function) or hashlib.sha256(os.urandom(16)).hexdigest()


def certain_fingerprint(value: Any) -> str | None:
    """Return the fingerprint of a function, or of plain values and functions in tuples, lists and dictionaries.

    None if it refers to a value whose meaning cannot be told for certain.
    """
    digest = hashlib.sha256()
    for part in _parts(value, set()):
        if part is None:
            return None
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def package_fingerprint(definition: Callable[..., Any]) -> str | None:
    """What tells a definition of the package from all others, where its files are the same; None of a user's own."""
    if isinstance(definition, partial):
        inner = package_fingerprint(definition.func)
        return inner and certain_fingerprint((inner, definition.args, definition.keywords))
    if not isinstance(definition, FunctionType) or not definition.__module__.startswith("common."):
        return None
    cells = [cell.cell_contents for cell in definition.__closure__ or ()]
    code = marshal.dumps(definition.__code__, _REPEATABLE)  # with its place in a file
    return certain_fingerprint((definition.__module__, code, definition.__defaults__, definition.__kwdefaults__, cells))


def _is_named(value: FunctionType | BuiltinFunctionType | type) -> bool:
    """Whether the name of a function or class says all: it is defined at the top of a stable module."""
    unique = "<" not in value.__qualname__
    return unique and isinstance(value.__module__, str) and bool(_STABLE.match(value.__module__))


def _parts(value: Any, seen: set[int]) -> Iterator[bytes | None]:
    if isinstance(value, FunctionType | BuiltinFunctionType | type) and _is_named(value):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    elif isinstance(value, FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        code = value.__code__
        # The position in a file is not part of the meaning.
        yield marshal.dumps(code.replace(co_filename="", co_firstlineno=1, co_linetable=b""))
        used = {name: value.__globals__[name] for name in global_names(code) if name in value.__globals__}
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from _parts((value.__defaults__, value.__kwdefaults__, cells, used), seen)
    elif isinstance(value, partial):
        yield b"partial"
        yield from _parts((value.func, value.args, value.keywords), seen)
    elif isinstance(value, tuple | list):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _parts(item, seen)
    elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
        for key, item in sorted(value.items()):
            yield key.encode()
            yield from _parts(item, seen)
    elif isinstance(value, _PLAIN):
        yield f"{type(value).__name__} {value.str if isinstance(value, np.dtype) else repr(value)}".encode()
    elif isinstance(value, ModuleType) and _STABLE.match(value.__name__):
        yield value.__name__.encode()
    else:
        yield None
