"""Arguments that are ints (dimensions, sizes, offsets) or functions; all else is refused by name and value."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from reprlib import Repr
from typing import Any

import numpy as np

from common.core.errors import AllocationError, ArgumentError, IndexRangeError, ShapeError, TwingradError
from common.core.sizes import Dim
from common.core.source_lines import locate, user_frame


def integer(value: Any, op: str, name: str) -> Any:
    """`value` as an int, or as the symbolic size that it is.

    Parameters
    ----------
    value : int, numpy integer, Dim, or an integer tensor of one element.
    op, name : function and argument, for the message.

    Raises
    ------
    ArgumentError : something else, a bool included.
    """
    if type(value) is int or isinstance(value, Dim):
        return value
    if not isinstance(value, (bool, np.bool_)) and hasattr(value, "__index__"):
        try:
            return index(value)
        except TwingradError:
            raise
        except TypeError:
            pass
    raise _refused(value, op, name, "int")


def is_whole_number(value: Any) -> bool:
    """Whether a traced value is an int that the compiled function was given, or follows from such: no tensor."""
    spec = getattr(getattr(value, "payload", None), "spec", None)
    return spec is not None and bool(spec.weak) and spec.dtype.kind == "i"


def number(value: Any) -> Any:
    """An argument that Python decides on as a Python number; a traced one is decided now, and the trace relies on it.

    So is a traced size.

    Parameters
    ----------
    value : anything; what is no traced number is returned as it is.

    Raises
    ------
    TraceError : a traced number that depends on arrays.
    """
    if isinstance(value, Dim):
        return int(value)
    spec = getattr(getattr(value, "payload", None), "spec", None)
    if spec is None or not spec.weak:
        return value
    return index(value) if spec.dtype.kind == "i" else float(value)


def integers(values: Any, op: str, name: str) -> tuple[Any, ...]:
    """One int, or a sequence of them, as a tuple.

    Raises
    ------
    ArgumentError : something else.
    """
    if isinstance(values, (tuple, list)):
        return tuple([value if type(value) is int else integer(value, op, name) for value in values])
    return (integer(values, op, name),)


def members(values: Any, op: str, name: str) -> list[Any]:
    """The members of a list or another iterable; the rows of an array are no list.

    Raises
    ------
    ArgumentError : an array with rows, or an array or a range with as many elements as nobody lists.
    """
    shape = (len(values),) if isinstance(values, range) else getattr(values, "shape", ())
    if len(shape) > 1 or (shape and isinstance(shape[0], int) and shape[0] > 1 << 16):
        raise ArgumentError(f"{op}(): {name} is a list, not {type(values).__name__} of shape {tuple(shape)}")
    return list(values)


def copies(value: Any, op: str, name: str) -> int:
    """How many layers to make, each with parameters of its own.

    Raises
    ------
    ArgumentError : something else than an int.
    AllocationError : more than anybody waits for.
    """
    count: int = integer(value, op, name)
    if count > 1 << 16:
        raise AllocationError(f"{op}(): {name}={shown(count)} asks for more layers than the {1 << 16} that can be made")
    return count


def lengths(values: Any, op: str, name: str = "size") -> tuple[Any, ...]:
    """The sizes of a tensor that is to be made: none of them negative.

    Raises
    ------
    ArgumentError : something else than ints.
    ShapeError : a negative size.
    """
    if type(values) is tuple:  # the commonest case, by itself
        for n in values:
            if type(n) is not int or n < 0:
                break
        else:
            return values
    sizes = integers(values, op, name)
    for size in sizes:
        if type(size) is int and size < 0:
            raise ShapeError(f"Trying to create tensor with negative dimension {size}: {list(sizes)}")
    return sizes


def flag(value: Any, op: str, name: str) -> bool:
    """A truth value, which 0 and 1 may stand for.

    Raises
    ------
    ArgumentError : something else.
    """
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise _refused(value, op, name, "bool")


def callable_argument(value: Any, op: str, name: str) -> Any:
    """`value`, which is called later.

    Raises
    ------
    ArgumentError : it is not callable.
    """
    if callable(value):
        return value
    raise _refused(value, op, name, "callable")


def _refused(value: Any, op: str, name: str, wanted: str) -> ArgumentError:
    """The error about an argument of another type, with the user's line."""
    code = user_frame(2)
    line = "" if code[0] is None else " (called at {}:{})".format(*locate(*code)[:2])
    return ArgumentError(
        f"{op}(): argument '{name}' must be {wanted}, not {type(value).__name__} ({shown(value)}){line}"
    )


def gathered(given: tuple[Any, ...], named: Any, op: str, name: str) -> tuple[Any, ...]:
    """Sizes or dimensions that came under their name, as if given one by one.

    Raises
    ------
    ArgumentError : both ways at once.
    """
    if given:
        raise ArgumentError(f"{op}() got multiple values for argument '{name}'")
    return tuple(named) if isinstance(named, (tuple, list)) else (named,)


def shown(value: Any) -> str:
    """The text of a value for a message, shortened; also of one that cannot be shown."""
    try:
        text = _short.repr(value) if type(value) in (list, tuple, dict, set, str, bytes, int) else repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 40 else f"{text[:37]}..."


_short = Repr()
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = 12
_short.maxstring = _short.maxlong = _short.maxother = 60


def is_nested(value: Any, limit: int = 200) -> bool:
    """Whether a list, tuple or dict contains itself, or others to a depth that no call can follow."""
    level = [value]
    for _ in range(limit):
        inside = [x for y in level for x in (y.values() if isinstance(y, dict) else y) if isinstance(x, _NESTS)] \
            if isinstance(level[0], _NESTS) else []  # fmt: skip
        if not inside:
            return False
        level = inside[:100]
    return True


_NESTS = (list, tuple, dict)


def normalize_dims(dim: int | tuple[int, ...] | list[int] | None, ndim: int, op: str) -> tuple[int, ...]:
    """Sorted non-negative dimensions; None means all. A 0-d tensor has none, though 0 and -1 name one, as in PyTorch.

    Raises
    ------
    IndexRangeError : a dimension that does not exist.
    ShapeError : one named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is int and 0 <= dim < ndim:
        return (dim,)
    dims = integers(dim, op, "dim")
    if not dims:
        return tuple(range(ndim))
    out = sorted(normalize_dim(d, ndim, op) for d in dims)
    if len(set(out)) != len(out):
        twice = next(d for d in out if out.count(d) > 1)
        raise ShapeError(f"{op}(): dim {twice} appears multiple times in the list of dims: {dim}")
    return tuple(out) if ndim else ()


def normalize_dim(dim: int, ndim: int, op: str) -> int:
    """One non-negative dimension; 0 and -1 are allowed on a 0-d tensor, as in PyTorch.

    Raises
    ------
    IndexRangeError : the dimension does not exist.
    ArgumentError : it is no int.
    """
    if type(dim) is not int:
        dim = number(integer(dim, op, "dim"))
    limit = max(ndim, 1)
    if not -limit <= dim < limit:
        raise IndexRangeError(
            f"{op}(): Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {shown(dim)})"
        )
    return dim % limit


def mapping(value: Any, op: str, name: str) -> Any:
    """A dictionary, or what has its methods.

    Raises
    ------
    ArgumentError : something else; a tensor would be gone through element by element.
    """
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{op}(): argument '{name}' must be dict, not {type(value).__name__} ({shown(value)})")
    return value
