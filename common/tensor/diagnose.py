"""The argument that a call stumbled over: for errors of Python and numpy that came from inside a function.

Functions do not check every argument before they use it: a check costs time in each call, and one that is forgotten
shows up as an error about an attribute or an index. Where such an error comes out of a public function, the arguments
are looked at here, and the one that is of the wrong kind is named; if none is, the error says what was given. What the
user's own code has raised, below the function, is let through.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from common.core.aliases import OPERANDS
from common.core.allocation import allocation_error, too_large
from common.core.errors import (
    AllocationError,
    ArgumentError,
    DivisionByZeroError,
    IndexRangeError,
    MissingKeyError,
    NotDefinedError,
    TwingradError,
    file_error,
)
from common.core.int_arguments import is_nested, shown
from common.core.sizes import Dim
from common.core.source_lines import is_user_file, locate, user_frame
from common.tensor.base import TensorBase

_INTS = frozenset(
    ["axis0", "axis1", "chunks", "destination", "diagonal", "dim", "dim0", "dim1", "dim2", "dims", "end_dim", "index",
     "k", "length", "m", "n", "normalized_shape", "num_classes", "offset", "output_size", "shape", "shifts", "size",
     "sizes", "source", "start_dim", "steps"]
)  # fmt: skip
_NUMBER = (bool, int, float, Dim)
_NUMBERS = frozenset(["alpha", "beta", "correction", "end", "eps", "fill_value", "p", "start", "step", "value"])


class PublicFunction(NamedTuple):
    """A public function: its name, and which of its parameters are operands.

    Attributes
    ----------
    operands, sequences : names of parameters that are tensors, and sequences of tensors.
    optional : names of those with a default.
    numbers : names of those whose default is a number.
    signature : the function's, whose annotations say more.
    """

    name: str
    operands: tuple[str, ...]
    sequences: tuple[str, ...]
    optional: tuple[str, ...]
    numbers: tuple[str, ...]
    signature: inspect.Signature | None = None


def stumbled(place: PublicFunction, arguments: dict[str, Any], error: Exception) -> Exception:
    """The error to raise in place of `error`: itself, or one that names the argument that is to blame."""
    return translated(error, lambda: (place, arguments))


def translated(
    error: Exception, called: Callable[..., tuple[PublicFunction, dict[str, Any]]], *details: Any
) -> Exception:
    """The error that leaves a public function which raised `error`: that itself, or one of `common.core.errors`.

    Parameters
    ----------
    called : ``called(*details)`` gives the function's place and arguments, by name.
    """
    if isinstance(error, (Warning, ImportError)) or from_user(error):
        return error
    inner = error
    if isinstance(error, TwingradError):
        cause = error.__cause__ if isinstance(error, AllocationError) or hasattr(error, "at_boundary") else None
        if not isinstance(cause, Exception):  # an op's, or an inner function's, becomes the outer function's
            return error
        error = cause
    place, arguments = called(*details)
    try:
        ours, names_one = _ours(place, arguments, error)
    except Exception as odd:  # arguments that cannot even be looked at
        ours, names_one = (
            ArgumentError(f"{place.name}(): {_told(error)}; an argument cannot be looked at: {type(odd).__name__}"),
            False,
        )
    if getattr(inner, "at_boundary", False) and not names_one:
        return inner  # which has named the inner function's argument
    if ours is not error:
        ours.__cause__ = error
        ours.at_boundary = names_one  # type: ignore[attr-defined]
    return ours


def from_user(error: BaseException) -> bool:
    """Whether code that is neither this package's nor that of a library below it has raised an error."""
    place = error.__traceback__
    while place is not None:
        if is_user_file(name := place.tb_frame.f_code.co_filename) and not _is_below(name):
            return True
        place = place.tb_next
    return False


def _is_below(name: str) -> bool:
    """Whether a file belongs to Python, or to a library that this package is made with."""
    if name.startswith("<frozen") or (name.startswith(_PYTHON) and "-packages" not in name):
        return True
    known = (sys.modules.get(library) for library in _LIBRARIES)
    return any(name.startswith(path) for module in known if module is not None for path in module.__path__)


_PYTHON = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  compared with the texts of code objects
_LIBRARIES = ("numpy", "numba", "llvmlite", "networkx", "scipy", "safetensors", "tensorboard", "google.protobuf",
              "matplotlib", "rich", "jinja2", "onnx", "dask")  # fmt: skip


def _ours(place: PublicFunction, arguments: dict[str, Any], error: Exception) -> tuple[Exception, bool]:
    """The library's error for one of Python's or numpy's, and whether it names the argument that is to blame."""
    if too_large(error):
        return allocation_error(place.name, error), False
    deep = next((key for key, x in arguments.items() if is_nested(x)), None)
    if deep is not None:
        return ArgumentError(f"{place.name}(): argument '{deep}' is nested too deeply, or contains itself"), True
    if isinstance(error, RecursionError):
        return error, False  # the program's own recursion has reached its end here
    if isinstance(error, OSError):
        return file_error(error), False
    line = "" if (code := user_frame(1))[0] is None else " (called at {}:{})".format(*locate(*code)[:2])
    if isinstance(error, TypeError) and _is_binding(error):
        return ArgumentError(f"{place.name}(){_said(error).partition('()')[2] or _said(error)}{line}"), False
    found = next(_wrong(place, arguments, error), None) or next(_against_types(place, arguments), None)
    kind = MissingKeyError if isinstance(error, KeyError) else ArgumentError  # what a mapping's callers wait for
    if found is not None:
        return kind(f"{place.name}(): {found}{line}"), True
    blamed = _blamed(arguments, error)
    if isinstance(error, IndexError):
        return IndexRangeError(f"{place.name}(): {_said(error)}{blamed}{line}"), False
    if isinstance(error, ZeroDivisionError):
        return DivisionByZeroError(f"{place.name}(): {error}{line}"), False
    if isinstance(error, NotImplementedError):
        return NotDefinedError(f"{error}" if str(error) else f"{place.name}() is not implemented{line}"), False
    return kind(f"{place.name}(): {_told(error)}{blamed}{line}"), False


def _said(error: Exception) -> str:
    """The text of an error; the name of one that cannot be shown, as a `KeyError` of an endless int."""
    try:
        return str(error)
    except Exception:
        return type(error).__name__


def _told(error: Exception) -> str:
    said = _said(error)
    return said if said and isinstance(error, (TypeError, ValueError)) else f"{type(error).__name__}: {said}"


def _is_binding(error: TypeError) -> bool:
    """Whether the arguments did not even fit the function's parameters: then nothing of it has run."""
    return error.__traceback__ is None or (
        error.__traceback__.tb_next is None
        and any(word in str(error) for word in ("positional argument", "keyword argument", "multiple values"))
    )


def _blamed(arguments: dict[str, Any], error: Exception) -> str:
    """The arguments of which an error may speak, as text: that of a type that it names, else all."""
    kinds = set(_KIND.findall(_said(error)))
    named = {key: x for key, x in arguments.items() if type(x).__name__ in kinds} or arguments
    return f"; given {', '.join(f'{key}={shown(x)}' for key, x in named.items())}" if named else ""


_KIND = re.compile(r"'([\w.]+)'")


def call_place(
    function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[PublicFunction, dict[str, Any]]:
    """A function that has no place of its own, and the arguments of its call by name."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function written in C
        signature = inspect.Signature()
    try:
        arguments = dict(signature.bind(*args, **kwargs).arguments)
    except TypeError:
        arguments = {f"argument {i}": x for i, x in enumerate(args)} | {f"{key}=": x for key, x in kwargs.items()}
    first = next(iter(signature.parameters), None)
    if first == "self" and args:
        arguments.pop("self", None)
        arguments.pop("argument 0", None)
        owner, _, method = name.partition(".")
        if not issubclass(type(args[0]), TensorBase):  # a class that it may say it is is no matter, see `Node`
            owner = type(args[0]).__name__ if owner in [kind.__name__ for kind in type(args[0]).__mro__] else owner
            name = f"{owner}.{method}" if method and method != "__call__" else owner
        else:
            name = method or owner
    optional = tuple(key for key, p in signature.parameters.items() if p.default is not p.empty)
    takes = inspect.ismethod(function) or (args and issubclass(type(args[0]), TensorBase))
    named = (k for k in arguments if k in OPERANDS or k in ("other", "tensor")) if takes else ()
    operands = tuple(k for k in named if signature.parameters[k].annotation in _ANY)
    return PublicFunction(name, operands, (), optional, (), signature), arguments


_ANY = ("Any", inspect.Parameter.empty)


def _wrong(place: PublicFunction, arguments: dict[str, Any], error: BaseException) -> Iterator[str]:
    """The faults of the arguments, the most certain first."""
    tensors = {key: arguments[key] for key in place.operands}
    numbers = {key: x for key, x in tensors.items() if isinstance(x, _NUMBER)}
    for key, x in tensors.items():
        if not _is_tensor(x) and key not in numbers and x is not None:
            yield f"argument '{key}' must be Tensor, not {type(x).__name__} ({shown(x)})"
    for key in place.sequences:
        xs = arguments[key]
        if not isinstance(xs, (tuple, list)):
            yield f"argument '{key}' must be tuple of Tensors, not {type(xs).__name__}"
            continue
        for i, x in enumerate(xs):
            if not _is_tensor(x):
                yield f"expected Tensor as element {i} in argument '{key}', but got {type(x).__name__} ({shown(x)})"
    for key, x in arguments.items():
        if key in tensors or key in place.sequences or (x is None and key in place.optional):
            continue
        if key in _INTS and not _ints(x):
            yield f"argument '{key}' must be int or tuple of ints, not {type(x).__name__} ({shown(x)})"
        elif (key in _NUMBERS or key in place.numbers) and not (_is_tensor(x) or isinstance(x, _NUMBER)):
            yield f"argument '{key}' must be a number, not {type(x).__name__} ({shown(x)})"
        elif isinstance(error, (OverflowError, ValueError)) and isinstance(x, int) and not -(2**63) <= x < 2**63:
            yield f"argument '{key}' does not fit into 64 bits: {shown(x)}"
    for key, x in tensors.items() if isinstance(error, (AttributeError, TypeError)) else ():
        if key in numbers or (x is None and key not in place.optional):
            yield f"argument '{key}' must be Tensor, not {type(x).__name__} ({shown(x)})"


def _against_types(place: PublicFunction, arguments: dict[str, Any]) -> Iterator[str]:
    """Arguments that are not what the function's annotations say."""
    for key, p in (place.signature.parameters if place.signature is not None else {}).items():
        if key not in arguments or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or not isinstance(p.annotation, str):
            continue
        checks = [_TYPES.get(part.strip().partition("[")[0]) for part in _parts(p.annotation)]
        x = arguments[key]
        if None not in checks and not any(check is not None and check(x) for check in checks):
            yield f"argument '{key}' must be {p.annotation}, not {type(x).__name__} ({shown(x)})"


def _parts(annotation: str) -> list[str]:
    """The alternatives of an annotation."""
    parts, depth = [""], 0
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _is_tensor(x: Any) -> bool:
    return isinstance(x, (TensorBase, np.ndarray))


def _ints(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return all(map(_ints, x))
    if isinstance(x, Dim):
        return True
    if isinstance(x, (TensorBase, np.ndarray)):
        return x.dtype.kind in "iu" and x.ndim == 0
    return hasattr(x, "__index__") and not isinstance(x, (bool, np.bool_, type)) and -(2**63) <= x.__index__() < 2**63


#: The classes behind annotations.
_TYPES: dict[str, Callable[[Any], bool]] = {
    "int": lambda x: not isinstance(x, (tuple, list)) and _ints(x),
    "float": lambda x: isinstance(x, (*_NUMBER, np.generic)) or (_is_tensor(x) and x.ndim == 0),
    "bool": lambda x: isinstance(x, (bool, np.bool_)),
    "str": lambda x: isinstance(x, str),
    "None": lambda x: x is None,
    "tuple": lambda x: isinstance(x, tuple),
    "list": lambda x: isinstance(x, list),
    "Sequence": lambda x: isinstance(x, (tuple, list)),
    "Iterable": lambda x: hasattr(x, "__iter__"),
    "Mapping": lambda x: hasattr(x, "keys"),
    "dict": lambda x: isinstance(x, dict),
    "Callable": callable,
    "Function": callable,
    "TensorBase": lambda x: isinstance(x, TensorBase),
}
