"""The terminal: lines that fit it, coloured by rich where that is installed and somebody looks, plain elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TextIO

MOST = 100
"""Columns that are used at most; longer lines are hard to read."""
SHORTEST = 20
"""Letters of a row's name that are shown at least."""
BAR = "█"


def width() -> int:
    """Return the columns to fill: the terminal's, at most `MOST`; 80 where there is none."""
    return min(shutil.get_terminal_size((80, 24)).columns, MOST) if sys.stdout.isatty() else 80


def coloured(stream: TextIO | None = None) -> bool:
    """Whether to colour: a terminal, no NO_COLOR, and rich installed (``pip install 'twingrad[lab]'``)."""
    looked_at = (stream or sys.stdout).isatty()
    wanted = looked_at and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and find_spec("rich") is not None


def say(text: str = "", style: str = "") -> None:
    """Print lines; `style` is one of rich's, such as "bold green"."""
    if style and coloured():
        from rich.console import Console
        from rich.text import Text

        Console(width=width(), highlight=False, soft_wrap=True).print(Text(text, style=style))
    else:
        print(text)


def wrapped(text: str, indent: str = "", style: str = "", follow: str = "") -> None:
    """Print a paragraph as wide as the terminal; `follow` is the indent of the second line and later ones."""
    for line in textwrap.wrap(text, width(), initial_indent=indent, subsequent_indent=follow or indent or "  "):
        say(line, style)


def bar(share: float, columns: int) -> str:
    """Return a bar of blocks, in ASCII where the terminal's encoding has none.

    Examples
    --------
    >>> len(bar(0.5, 10)), bar(-1.0, 10)
    (5, '')
    """
    block = BAR if (getattr(sys.stdout, "encoding", "") or "").lower().startswith("utf") else "#"
    count = round(max(0.0, min(1.0, share)) * columns)
    return block * max(count, 1 if share > 0 else 0)


def columns(rows: Sequence[Sequence[str]], header: Sequence[str] = (), indent: str = "  ") -> list[str]:
    """Return rows aligned in columns: the first left, others right.

    Where they do not fit, the first is cut to `SHORTEST`, and then columns that are left follow in a table below.

    Examples
    --------
    >>> columns([["fused", "1.2 us"], ["eager", "30 us"]])
    ['  fused  1.2 us', '  eager   30 us']
    """
    table = [list(header), *map(list, rows)] if header else [list(row) for row in rows]
    if not table:
        return []
    sizes = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    least = min(sizes[0], SHORTEST)
    spare = width() - len(indent) - sum(sizes[1:]) - 2 * (len(sizes) - 1)
    if spare < least and len(sizes) > 2:
        taken = [k for k in range(2, len(sizes)) if width() - len(indent) - sum(sizes[1:k]) - 2 * (k - 1) >= least]
        last = max(taken, default=2)
        upper = columns([row[:last] for row in table], (), indent)
        return [*upper, "", *columns([[row[0], *row[last:]] for row in table], (), indent)]
    sizes[0] = min(sizes[0], max(spare, least))

    def line(row: Sequence[str]) -> str:
        first = row[0] if len(row[0]) <= sizes[0] else row[0][: sizes[0] - 3] + "..."
        rest = (cell.rjust(size) for cell, size in zip(row[1:], sizes[1:], strict=True))
        return (indent + "  ".join([first.ljust(sizes[0]), *rest])).rstrip()

    return [line(row) for row in table]
