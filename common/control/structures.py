"""Structures of tensors that enter and leave regions, and messages about two that differ."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.dtypes import bool_, default_float, int64
from common.core.errors import ArgumentError
from common.core.sizes import Dim, same_shape
from common.core.source_lines import locate
from common.core.spec import Spec
from common.core.tree import flatten, ordered, text
from common.ops.create.creation import full_, made
from common.tensor.base import TensorBase, wrap
from common.tensor.create import operand


class TreeSpec:
    """Structure, shapes and dtypes of a tree of tensors."""

    def __init__(self, structure: Any, leaves: Sequence[TensorBase]) -> None:
        self.structure = structure
        self.specs = [Spec(tuple(x.shape), x.dtype) for x in leaves]

    def __str__(self) -> str:
        return text(self.structure, map(str, self.specs))

    def is_like(self, other: TreeSpec) -> bool:
        """Whether structure, shapes and dtypes are equal."""
        return self.structure == other.structure and all(
            equal_shapes(a, b) and a.dtype == b.dtype for a, b in zip(self.specs, other.specs)
        )

    def fits(self, structure: Any, leaves: Sequence[Any]) -> bool:
        """Whether leaves are tensors of arrays like these."""
        if structure != self.structure:
            return False
        for x, spec in zip(leaves, self.specs):
            if not isinstance(x, TensorBase) or type(x.payload) is not np.ndarray or not is_like(x, spec):
                return False
        return True


def tensors(
    tree: Any, what: str | Said, like: TreeSpec | None = None, numbers: dict[int, Any] | None = None
) -> tuple[list[TensorBase], Any]:
    """The leaves of a tree as tensors, and its structure; dictionaries in the order of `like`.

    Numbers become tensors as `tensor` makes them, or of the dtype that `like` has in their place.

    Parameters
    ----------
    numbers : is given the leaves that are Python numbers, by position; then `like` tells the order only.

    Raises
    ------
    ArgumentError : a leaf is neither a number nor an array nor a tensor.
    """
    leaves, structure = flatten(tree)
    if like is not None and structure != like.structure:
        leaves, structure = flatten(ordered(tree, like.structure))
    fits = like is not None and structure == like.structure
    if numbers is not None:
        numbers.update((i, x) for i, x in enumerate(leaves) if is_number(x))
        fits = False
    return [_tensor(x, what, like.specs[i] if fits and like else None) for i, x in enumerate(leaves)], structure


def _tensor(x: Any, what: str | Said, like: Spec | None) -> TensorBase:
    if isinstance(x, TensorBase) and type(x.payload) is np.ndarray:
        return x
    if is_number(x):
        return number(x, number_dtype(x) if like is None else with_numbers(like.dtype, [x]))
    elif isinstance(x, (Dim, TensorBase, np.ndarray, np.generic)):
        x = operand(x)
        x = operand(wrap(x)) if not isinstance(x, (TensorBase, np.ndarray)) else x
    else:
        raise ArgumentError(
            f"{what} has a leaf of type {type(x).__name__}; leaves are tensors, arrays and numbers; "
            "tree_util.register_pytree_node makes trees of objects of your own class"
        )
    return x if isinstance(x, TensorBase) else wrap(x)


def is_number(x: Any) -> bool:
    """Whether a leaf is a Python number, which takes the dtype of what it stands beside."""
    return isinstance(x, (bool, int, float)) and not isinstance(x, np.generic)


def number_dtype(x: Any) -> np.dtype[Any]:
    """The dtype of a Python number that stands beside nothing."""
    return bool_ if isinstance(x, bool) else int64 if isinstance(x, int) else default_float()


def number(x: Any, dtype: np.dtype[Any]) -> TensorBase:
    """A 0-d tensor of a Python number."""
    kind = bool if isinstance(x, bool) else int if isinstance(x, int) else float
    x = made(full_, shape=(), value=kind(x), dtype=dtype)
    return x if isinstance(x, TensorBase) else wrap(x)


def with_numbers(dtype: np.dtype[Any], numbers: Sequence[Any]) -> np.dtype[Any]:
    """A dtype, if Python numbers are of its kind or a lower one; else that of the highest of them."""
    highest = max((number_dtype(x) for x in numbers), key=lambda d: "bif".index(d.kind))
    return dtype if "bif".index(dtype.kind.replace("u", "i")) >= "bif".index(highest.kind) else highest


def place_of(function: Callable[..., Any]) -> str:
    """A function's name, file and line."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return getattr(function, "__name__", repr(function))
    file, line, name = locate(code, -1)
    return f"{name} at {file}:{line}"


class Said(NamedTuple):
    """A text about a function, which is made when it is needed: each iteration of an eager loop is checked.

    Attributes
    ----------
    text : "{}" stands for the function's name, file and line.
    """

    text: str
    function: Callable[..., Any]

    def __str__(self) -> str:
        return self.text.format(place_of(self.function))


def is_like(x: TensorBase, spec: Spec) -> bool:
    """Whether a tensor has a shape and dtype."""
    return same_shape(x.payload.shape, spec.shape) and x.payload.dtype == spec.dtype


def equal_shapes(a: Spec, b: Spec) -> bool:
    """Whether two specs have one shape, with a guard where that is open."""
    return same_shape(a.shape, b.shape) or a.shape == b.shape
