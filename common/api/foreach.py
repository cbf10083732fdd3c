"""Functions of lists of tensors under PyTorch's names, such as `_foreach_add_`.

PyTorch saves calls by them; here each is the op for one tensor after the other, with the bits of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core.errors import ArgumentError
from common.tensor import boundary

#: What these names have behind `_foreach_`, also with `_` behind it: then the first list is written to.
_OPS = frozenset([
    "abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max", "clamp_min",
    "cos", "cosh", "div", "erf", "erfc", "exp", "expm1", "floor", "frac", "lerp", "lgamma", "log", "log10",
    "log1p", "log2", "maximum", "minimum", "mul", "neg", "pow", "reciprocal", "round",
    "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc",
])  # fmt: skip
_ONE_WAY = frozenset(["clone", "copy_", "max", "mm", "norm", "zero_"])
"""Those of which there is one kind only."""
_OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}
"""Ops whose second operand may be a number, and the op that it is then."""


def made(module: str, name: str) -> Callable[..., Any] | None:
    """The function of a name that begins with `_foreach_`; None for other names.

    Parameters
    ----------
    module : that offers it.
    """
    op = name.removeprefix("_foreach_")
    if op == name or not (op.removesuffix("_") in _OPS or op in _ONE_WAY):
        return None

    def each(self: Any, *others: Any, **options: Any) -> tuple[Any, ...] | list[Any]:
        lists = [x for x in (self, *others, *options.values()) if isinstance(x, (list, tuple))]
        if not lists or any(len(x) != len(lists[0]) for x in lists):
            raise ArgumentError(f"{name}() takes lists of as many tensors, got {[len(x) for x in lists] or 'none'}")
        results = tuple(
            _one(op, _at(self, i), [_at(x, i) for x in others], {key: _at(x, i) for key, x in options.items()})
            for i in range(len(lists[0]))
        )
        return list(self) if op.endswith("_") else results

    each.__module__, each.__name__, each.__qualname__ = module, name, name
    each.__doc__ = f"`{op}` of each tensor of a list; other lists, of tensors or numbers, have as many members."
    published: Callable[..., Any] = boundary.published(each)
    return published


def _at(x: Any, i: int) -> Any:
    return x[i] if isinstance(x, (list, tuple)) else x


def _one(op: str, x: Any, others: list[Any], options: dict[str, Any]) -> Any:
    stem = op.removesuffix("_")
    if stem in _OF_NUMBERS and isinstance(others[0], (int, float)):
        return _one(op.replace(stem, _OF_NUMBERS[stem]), x, others, options)
    if stem in ("addcmul", "addcdiv") and len(others) == 3:
        options = {"value": others.pop()}
    if isinstance(x, (int, float)):  # the base of a power
        return x ** others[0]
    if op.endswith("_") and not hasattr(x, op):
        return x.copy_(getattr(x, stem)(*others, **options))
    return getattr(x, op)(*others, **options)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Lists of tensors, divided by the dtype of the first list's; optimizers of libraries ask for it.

    Parameters
    ----------
    tensorlistlist : lists of as many tensors, or Nones; one position of all lists belongs to one parameter.
    with_indices : whether to give the positions.

    Returns
    -------
    dict
        ``(device, dtype)`` -> the lists of the positions that have it, and these positions.
    """
    found: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for at, first in enumerate(tensorlistlist[0]):
        lists, places = found.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for part, given in zip(lists, tensorlistlist, strict=True):
            part.append(given[at])
        if with_indices:
            places.append(at)
    return found
