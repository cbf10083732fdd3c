"""Where in the user's program something happened: kept as code object and instruction, resolved when asked."""

from __future__ import annotations

import os
import sys
import warnings
from bisect import bisect_right
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import CodeType

_HOME = Path(__file__).absolute().parent.parent.parent

#: Folders whose frames are not the user's, and the file of decorators that are context managers: they only call.
PACKAGES = (
    *(f"{_HOME / name}{os.sep}" for name in ("common", "dynamic", "static")),
    contextmanager.__code__.co_filename,
)


#: Files that frames were found in, by whose they are.
own_files: set[str] = set()
user_files: set[str] = set()
_getframe = sys._getframe


def is_user_file(name: str) -> bool:
    """Whether a file is not the package's own."""
    return name in user_files or (name not in own_files and not name.startswith(PACKAGES))


def user_frame(depth: int) -> tuple[CodeType | None, int]:
    """Code and instruction of the nearest frame outside this package, from `depth` frames up."""
    frame = _getframe(depth)
    code = frame.f_code
    while (name := code.co_filename) not in user_files:
        if name not in own_files:
            (own_files if name.startswith(PACKAGES) else user_files).add(name)
        elif (caller := frame.f_back) is not None:
            frame, code = caller, caller.f_code
        else:
            break
    return code, frame.f_lasti


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, at the line of the nearest frame outside this package."""
    frame, level = _getframe(1), 2
    while not is_user_file(frame.f_code.co_filename) and (caller := frame.f_back) is not None:
        frame, level = caller, level + 1
    warnings.warn(message, category, stacklevel=level)


def locate(code: CodeType | None, lasti: int) -> tuple[str, int, str]:
    """File, line and function of a code object's instruction."""
    if code is None:
        return ("<unknown>", 0, "<unknown>")
    starts, lines = _lines(code)
    place = bisect_right(starts, lasti) - 1
    line = lines[place] if place >= 0 else None
    return (code.co_filename, code.co_firstlineno if line is None else line, code.co_name)


@lru_cache(maxsize=256)
def _lines(code: CodeType) -> tuple[list[int], list[int | None]]:
    """Where each run of instructions begins, and its line: a long function is gone through once, not per op."""
    runs = list(code.co_lines())
    return [start for start, _, _ in runs], [line for _, _, line in runs]
