"""Lines of generated Python in the form that formatters give them: what is too long is broken in its brackets."""

from __future__ import annotations

import re

WIDTH = 120
"""Columns of a line."""
_INDENT = "    "
_SIGNS = (" == ", " != ", " < ", " <= ", " > ", " >= "), (" + ", " - "), (" * ", " // ", " % ", " / ")
"""Operators, those that bind least first."""
_OPEN, _CLOSE = "([{", ")]}"


def laid_out(text: str) -> str:
    """A text with its long lines broken; strings and comments stay whole."""
    return "\n".join(new for line in text.split("\n") for new in _broken(line))


def clipped(text: str, width: int) -> str:
    """A text of at most so many letters."""
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."


def quoted(text: str) -> str:
    """A string of Python in double quotes."""
    return '"' + text.replace("\\", "/").replace('"', "'") + '"'


def _broken(line: str, inside: bool = False) -> list[str]:
    """A line, or the lines that it becomes: what is in its last bracket together, or one element on each.

    Parameters
    ----------
    inside : whether it lies in a bracket, so that it may end anywhere.
    """
    if line.lstrip().startswith("#"):
        return [line]
    line = re.sub(r"(?<=\de)\+(?=\d)", "", line)
    if len(line) <= WIDTH:
        return [line]
    margin = line[: len(line) - len(line.lstrip())]
    inner, (head, value) = margin + _INDENT, _head(line)
    if inside and len(terms := _terms(line.strip())) > 1:
        return [new for term in terms for new in _broken(margin + term, inside=True)]
    if head and len(_terms(value)) > 1:
        return [f"{head}(", *_broken(inner + value, inside=True), f"{margin})"]
    if head and len(parts := _parts(value)) > 1:
        return [f"{head}(", *(f"{inner}{part}," for part in parts), f"{margin})"]
    start, end = _bracket(line)
    parts = _parts(line[start + 1 : end])
    if not parts or (line[start] == "[" and len(parts) == 1):
        return [line]
    whole = inner + line[start + 1 : end]
    comma = "," if len(parts) > 1 or not line[:start].endswith((" ", "(", "[")) else ""
    made = [whole] if len(whole) <= WIDTH else [new for x in parts for new in _broken(inner + x + comma, inside=True)]
    return [line[: start + 1], *made, margin + line[end:]]


def _head(line: str) -> tuple[str, str]:
    """The beginning of an assignment or a return, and its value."""
    if line.lstrip().startswith("return "):
        at = line.index("return ") + len("return ")
    else:
        at = next((i + 3 for i in _outside(line) if line.startswith(" = ", i)), 0)
    return line[:at], line[at:]


def _terms(text: str) -> list[str]:
    """The terms of what binds least in an expression, such as a sum, each but the first with its sign."""
    for signs in _SIGNS:
        cuts = [i for i in _outside(text) if text.startswith(signs, i)]
        if cuts:
            return [text[a:b].strip() for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    return [text]


def _parts(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    cuts = [i for i in _outside(text) if text[i] == ","]
    found = [text[a:b].strip() for a, b in zip([0, *(i + 1 for i in cuts)], [*cuts, None], strict=True)]
    return found if found[-1] else found[:-1]


def _outside(text: str) -> list[int]:
    """The places outside of brackets and strings."""
    depth, found = 0, []
    for i, letter in _letters(text):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if depth == 0:
            found.append(i)
    return found


def _bracket(line: str) -> tuple[int, int]:
    """Where the first bracket that ends last opens and closes."""
    depth, start, found = 0, 0, (0, 0)
    for i, letter in _letters(line):
        if letter in _OPEN:
            start = i if depth == 0 else start
            depth += 1
        elif letter in _CLOSE:
            depth -= 1
            found = (start, i) if depth == 0 else found
    return found


def _letters(text: str) -> list[tuple[int, str]]:
    """The letters outside of strings, with their places."""
    found, inside = [], False
    for i, letter in enumerate(text):
        inside ^= letter == '"'
        if not inside:
            found.append((i, letter))
    return found
