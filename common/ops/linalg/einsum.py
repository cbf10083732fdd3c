"""Sums of products in Einstein's notation, contracted strictly left to right over the operands."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

from common.core.dtypes import promote
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.sizes import same
from common.ops.linalg.contract import Labels, contract, ordered
from common.ops.reduce.reductions import sum_
from common.ops.shape.diagonal import diagonal
from common.ops.shape.view import permute_

#: Of the numbers that may stand for letters.
_LETTERS = string.ascii_uppercase + string.ascii_lowercase


def einsum(equation: str, *tensors: Any) -> Any:
    """Sum of products of elements, over dimensions that `equation` names.

    Parameters
    ----------
    equation : per operand a letter for each dimension, separated by commas, as in "ij,jk->ik"; "..." stands for
        further dimensions, which broadcast. After "->" come the letters of the result; without it these are "..."
        and, sorted, the letters that appear once. A letter twice in one operand takes the diagonal.
    tensors : operands, one by one or as a list. Sizes of 1 broadcast. Without an equation each operand is followed by
        a list of numbers below 52, one for each dimension, in the place of letters; a list at the end is the result's.

    Returns
    -------
    tensor : contracted strictly left to right: the first two operands, their result with the third, and so on.

    Raises
    ------
    ShapeError : an equation that is not of this form, or does not fit the operands.
    DTypeError : the dtypes of operands differ over whose common dimensions is summed; elsewhere they are promoted.
    ArgumentError : `equation` is not a string, or there are no operands.

    Examples
    --------
    >>> import dynamic as tw
    >>> a = tw.tensor([[1, 2], [3, 4]])
    >>> tw.einsum("ij,jk->ik", a, a)
    tensor([[ 7, 10],
            [15, 22]])
    >>> tw.einsum("ii", a), tw.einsum("...i->...", a), tw.einsum(a, [0, 1], a, [1, 0], [])
    (tensor(5), tensor([3, 7]), tensor(29))
    """
    if not isinstance(equation, str):
        raise ArgumentError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise ArgumentError("einsum(): must specify the equation string and at least one operand")
    inputs, output = _parse(equation, tuple(x.ndim for x in tensors))
    dtypes = [x.dtype for x in tensors]
    if len(set(dtypes)) > 1:
        all_labels = [label for term in inputs for label in set(term)]
        if any(label not in output and all_labels.count(label) > 1 for label in all_labels):
            raise DTypeError(f"einsum(): expected operands of one dtype, but got {', '.join(map(str, dtypes))}")
        common = reduce(promote, dtypes)
        tensors = tuple([x.to(common) for x in tensors])
    _check_sizes(inputs, [x.shape for x in tensors])
    single = [_diagonals(x, labels) for x, labels in zip(tensors, inputs, strict=True)]
    total, labels = single[0]
    for position, (x, other) in enumerate(single[1:], 1):
        needed = {*output, *(label for _, later in single[position + 1 :] for label in later)}
        wanted = output if position == len(single) - 1 else ()
        total, labels = contract(total, labels, x, other, needed, wanted)
    gone = tuple(i for i, label in enumerate(labels) if label not in output)
    if gone:
        total = sum_(total, dim=gone, keepdim=False)
        labels = tuple(label for label in labels if label in output)
    if len(tensors) == 1 and not gone:  # a view of its own, also where nothing changes
        return permute_(total, dims=tuple(labels.index(label) for label in output))
    return ordered(total, labels, output)


def spelled(first: Any, rest: Sequence[Any]) -> tuple[Any, ...]:
    """The equation and the operands of a call whose operands are followed by lists of numbers; others as they are."""
    given = (first, *rest)
    if isinstance(first, (str, list, tuple)) or len(given) < 2 or not isinstance(given[1], (list, tuple)):
        return given
    last = given[-1] if len(given) % 2 else None
    operands, lists = given[: len(given) // 2 * 2 : 2], given[1::2]
    output = "" if last is None else f"->{_letters_of(last)}"
    return (",".join(map(_letters_of, lists)) + output, *operands)


def _letters_of(numbers: Any) -> str:
    for n in numbers if isinstance(numbers, (list, tuple)) else [numbers]:
        if n is not Ellipsis and not (type(n) is int and 0 <= n < len(_LETTERS)):
            raise ArgumentError(
                f"einsum(): subscript in subscript list is not within the valid range [0, {len(_LETTERS)}), got {n!r}"
            )
    return "".join("..." if n is Ellipsis else _LETTERS[n] for n in numbers)


@lru_cache(maxsize=1024)
def _parse(equation: str, ndims: tuple[int, ...]) -> tuple[list[Labels], Labels]:
    """The labels of all operands and of the result; a dimension under "..." is named by its distance to the last."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        few = "fewer" if len(ndims) < len(terms) else "more"
        raise ShapeError(f"einsum(): {few} operands were provided than specified in the equation {equation!r}")
    inputs: list[Labels] = []
    for position, (term, ndim) in enumerate(zip(terms, ndims, strict=True)):
        before, dots, after = _letters(term, f"operand {position}", equation)
        rest = ndim - len(before) - len(after)
        if rest < 0 or (rest and not dots):
            raise ShapeError(
                f"einsum(): the number of subscripts in the equation ({len(before) + len(after)}) "
                f"{'is more than' if dots else 'does not match'} the number of dimensions ({ndim}) for operand "
                f"{position}{'' if dots else ' and no ellipsis was given'}"
            )
        inputs.append((*before, *range(rest - 1, -1, -1), *after))
    used = [label for labels in inputs for label in labels]
    extra = max((label for label in used if isinstance(label, int)), default=-1)
    hidden = tuple(range(extra, -1, -1))
    if not arrow:
        return inputs, (*hidden, *sorted(x for x in set(used) if isinstance(x, str) and used.count(x) == 1))
    before, dots, after = _letters(right, "the output", equation)
    for letter in (*before, *after):
        if letter not in used:
            raise ShapeError(
                f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
            )
        if (*before, *after).count(letter) > 1:
            raise ShapeError(f"einsum(): output subscript {letter} appears more than once in the output")
    return inputs, (*before, *(hidden if dots else ()), *after)


def _letters(term: str, where: str, equation: str) -> tuple[Labels, bool, Labels]:
    """The letters before "...", whether it is there, and the letters after it."""
    before, dots, after = term.replace(" ", "").partition("...")
    if "..." in after:
        raise ShapeError(f"einsum(): found '.' for {where} for which an ellipsis was already found")
    for letter in before + after:
        if letter == ".":
            raise ShapeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
        if letter not in string.ascii_letters:
            raise ShapeError(
                f"einsum(): invalid subscript {letter!r} in the equation {equation!r}, subscripts must be in [a-zA-Z]"
            )
    return tuple(before), bool(dots), tuple(after)


def _check_sizes(inputs: Sequence[Labels], shapes: Sequence[Sequence[Any]]) -> None:
    sizes: dict[Any, Any] = {}
    for position, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        here: dict[Any, Any] = {}
        for label, n in zip(labels, shape, strict=True):
            if label in here and not same(here[label], n) and here[label] != n:
                raise ShapeError(
                    f"einsum(): subscript {label} is repeated for operand {position} but the sizes don't match, "
                    f"{n} != {here[label]}"
                )
            here[label] = n
        for label, n in here.items():
            known = sizes.setdefault(label, n)
            if same(known, n) or known == n or n == 1:
                continue
            if known != 1:
                raise ShapeError(
                    f"einsum(): subscript {label if isinstance(label, str) else '...'} has size {n} for operand "
                    f"{position} which does not broadcast with previously seen size {known}"
                )
            sizes[label] = n


def _diagonals(x: Any, labels: Labels) -> tuple[Any, Labels]:
    """`x` with one dimension per label: what has a label twice becomes its diagonal, as the last dimension."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = diagonal(x, 0, i, j)
            labels = (*(y for d, y in enumerate(labels) if d not in (i, j)), label)
    return x, labels


def trace(x: Any) -> Any:
    """The sum of the diagonal of a matrix; ints sum as int64.

    Parameters
    ----------
    x : (m, n)

    Returns
    -------
    tensor : ()

    Raises
    ------
    ShapeError : `x` is not 2-D.
    """
    if x.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    return sum_(diagonal(x), dim=(0,), keepdim=False)


__all__ = ["einsum", "trace"]
