"""`export`, `save` and `load` with the arguments of `torch.export`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from common.api.machine.scripting import refuse_extra_files
from common.core.errors import ArgumentError
from static.export import program_file

__all__ = ["Dim", "export", "load", "save"]


@dataclass(frozen=True)
class SizeName:
    """A size that may change, for `dynamic_shapes`.

    Attributes
    ----------
    name : of the size.
    min, max : what PyTorch checks; here every size that fulfils the program's own conditions will do.
    """

    name: str
    min: int = 0
    max: int | None = None

    AUTO: ClassVar[None] = None
    DYNAMIC: ClassVar[None] = None
    STATIC: ClassVar[None] = None


Dim = SizeName


def export(
    mod: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: Sequence[str] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> Any:
    """A function's program for such arguments, see `static.export.program_file.export`.

    Parameters
    ----------
    mod : module or function.
    args, kwargs : an example of its arguments.
    dynamic_shapes, strict, preserve_module_call_signature, prefer_deferred_runtime_asserts_over_guards : accepted. All
        sizes other than 1 may change, as far as the function allows.

    Raises
    ------
    ArgumentError : the arguments are no tuple.
    TraceError : it cannot be traced.

    Examples
    --------
    >>> import static
    >>> program = static.export.export(static.nn.Linear(3, 2), (static.ones(4, 3),))
    >>> program.module()(static.ones(5, 3)).shape
    torch.Size([5, 2])
    """
    if not isinstance(args, (tuple, list)):
        raise ArgumentError(f"export(): argument 'args' must be a tuple of arguments, not {type(args).__name__}")
    return program_file.export(mod, *args, **(kwargs or {}))


def save(ep: Any, f: Any, *, extra_files: Any = None, opset_version: Any = None, pickle_protocol: Any = None) -> None:
    """Write a program with its state to a file, see `static.save`.

    Parameters
    ----------
    ep : what `export` gave.
    f : path, or file opened for writing bytes.
    opset_version, pickle_protocol : accepted.

    Raises
    ------
    ArgumentError : extra files, which go into files of their own.
    """
    refuse_extra_files("export.save", extra_files)
    program_file.save(ep, f)


def load(f: Any, *, extra_files: Any = None, expected_opset_version: Any = None) -> Any:
    """The program of a file that `save` wrote.

    Parameters
    ----------
    f : path, or file opened for reading bytes.
    expected_opset_version : accepted.

    Raises
    ------
    StateError : the file is damaged, or holds no program.
    """
    refuse_extra_files("export.load", extra_files)
    return program_file.load(f)
