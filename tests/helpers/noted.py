"""Notes of a random program, and where two runs of it disagree."""

from __future__ import annotations

from typing import Any, NamedTuple

#: Classes of errors, as PyTorch's users catch them; ours are subclasses.
STRICTER = "refused, though defined"
BUILT_IN = (IndexError, TypeError, ValueError, NotImplementedError, RuntimeError)


class Note(NamedTuple):
    """One observation: what was done, and what was seen, plain numbers and texts."""

    what: str
    seen: Any


class Refused(NamedTuple):
    """An error, by the names of the built-in classes that it is."""

    classes: list[str]


def difference(ours: list[Note], theirs: list[Note]) -> str | None:
    """Where two runs of one program disagree; None if they do not.

    Where PyTorch refuses because a part of memory that was saved has a newer version, though its elements are as they
    were, or because a view was made without recording, or is one of several, the comparison ends without a
    disagreement, wherever in a step that is. So it does where PyTorch refuses `view`: there a result lies in memory as
    its operand does, for example transposed, here in C order, and both are what `view` asks for.
    """
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if b.seen == STRICTER or (a.what == b.what and a.seen == STRICTER and isinstance(b.seen, Refused)):
            return None
        if a.what == b.what and a.seen == "done" and ".view(" in a.what and isinstance(b.seen, Refused):
            return None
        if a.what != b.what or not _close(a.seen, b.seen):
            told = "\n".join(
                f"    {n.what}: {n.seen}" for n in ours[:number] if not n.what.startswith(("value", "flags"))
            )
            return f"{told}\n  {a.what}: {a.seen}\n  {b.what}: {b.seen}"
    return None if len(ours) == len(theirs) else f"{ours[-1]}, {theirs[-1]}"


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, Refused) and isinstance(b, Refused):
        return b.classes[0] in a.classes
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-12 * max(1.0, abs(a), abs(b)) or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)
