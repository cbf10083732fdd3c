"""Writes through ``x.data``, which PyTorch does not check: a backward pass reads what is there then."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from itertools import islice
from textwrap import dedent
from types import CodeType


@lru_cache(maxsize=256)
def through_data(code: CodeType | None, lasti: int) -> bool:
    """Whether the statement that wrote in place names what it writes to as the ``.data`` of a tensor.

    The log of writes knows memory, not tensors; so this reads the user's text, and only where a saved value has been
    overwritten.

    Parameters
    ----------
    code, lasti : the user's frame, and the instruction that called the library.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.ones(2, requires_grad=True)
    >>> y = x.exp()
    >>> y.data.zero_()
    tensor([0., 0.])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0., 0.])
    """
    if code is None:
        return False
    first, last, begin, end = next(islice(code.co_positions(), lasti // 2, None), (None,) * 4)
    if first is None or last is None or begin is None or end is None:
        return False
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    try:
        (statement,) = ast.parse(dedent(b"".join(lines).decode())).body
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return False
    return _names_data(statement)


def _names_data(part: ast.AST | None) -> bool:
    """Whether what a statement calls a method of, or assigns to, is the ``.data`` of something, or a part of it."""
    if isinstance(part, ast.Assign):
        return any(map(_names_data, part.targets))
    if isinstance(part, ast.Attribute) and part.attr == "data":
        return True
    inner = next((getattr(part, name) for name in ("target", "func", "value") if hasattr(part, name)), None)
    return isinstance(inner, ast.AST) and _names_data(inner)
