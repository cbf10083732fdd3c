"""Failures of a user's program, told by the user's own lines instead of the library's."""

from __future__ import annotations

import os
import sysconfig
import traceback

from benchmarks.bootstrap import ROOT
from common.core.errors import TwingradError

#: Where frames lie that are not the user's, beside installed packages: the packages of this project, Python's library.
FOREIGN = (
    *(str(ROOT / name) + os.sep for name in ("benchmarks", "common", "dynamic", "static")),
    *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "scripts")),
    "<",
)
INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def own_lines(problem: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of a user's mistake that lie in the user's files, the outermost first.

    A mistake is an error of Twingrad's, or one that the user's own line raised; there are no lines for others.
    """
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if not _foreign(frame.filename)]
    return own if isinstance(problem, TwingradError) or own[-1:] == frames[-1:] else []


def _foreign(file: str) -> bool:
    return file.startswith(FOREIGN) or any(folder in file for folder in INSTALLED)


def told(problem: BaseException) -> str:
    """Return the user's lines and the message of a user's mistake, and the whole traceback of another failure."""
    lines = own_lines(problem)
    if not lines and not isinstance(problem, TwingradError):
        return "".join(traceback.format_exception(problem)).rstrip()
    text = [*traceback.format_list(lines), *traceback.format_exception_only(problem)]
    return "".join(text).rstrip()
