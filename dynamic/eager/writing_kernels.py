"""The short path of in-place forms such as `x.add_(y)` and `x.clamp_(0, 1)`: one kernel that writes where it reads.

The general way makes a result and copies it. Where nothing is recorded, and a function applies only elementwise ops of
one float dtype, one kernel reads and writes the operand element by element. The ops are written down as in
`dynamic.eager.remembered`, once a call has come often (`python -m benchmarks.ops -k _`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from itertools import count
from sys import _getframe
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from common.api.out import write as write_result
from common.api.out import written
from common.core import mode
from common.core.aliases import ABSENT
from common.core.dtypes import SUPPORTED
from common.core.members import give
from common.core.python_numbers import ends
from common.core.source_lines import user_files, user_frame
from common.evaluate import specialise as eager
from common.evaluate.kernels import MANY, filled
from common.evaluate.kinds import number
from common.evaluate.native_results import overwrite
from common.methods.in_place_functions import AT_INDICES, NAMES
from common.methods.install import IN_PLACE
from common.ops import functional
from common.runtime.builtins import make_finder, make_write
from common.tensor import boundary
from common.tensor.base import Tensor, TensorBase
from common.tensor.leaf import Leaf
from common.tensor.view_families import is_recorded
from common.tensor.write_log import log_write, native_log, read_first
from dynamic.eager.remembered import KINDS, OFTEN

_LIMIT = 256
_ndarray = np.ndarray
_grad_enabled = mode.grad_mode.get


def _log(x: np.ndarray, frame: FrameType) -> None:
    """Note that an array has been written where `frame` is, or the user's code behind it, where `write` has not."""
    if (code := frame.f_code).co_filename in user_files:
        log_write(x, code, frame.f_lasti)
    else:
        log_write(x, *user_frame(3))


_calls = count()


def _first_write(*given: Any) -> Any:
    """Declines, and makes the builtin after some calls: a program that only draws parameters does not need it."""
    global write
    if next(_calls) >= OFTEN:
        write = make_write(eager.tape(), native_log())
    return None


#: Of a tensor the array that may be overwritten at once; logs a write to an array, from a frame. None where the caller
#: has to do so itself, see `common.runtime.write_text`. To be called under its name in this module.
write: Callable[..., Any] = _first_write


def free(self: Any) -> Any:
    """The array of a tensor that may be overwritten where nothing is recorded; None of any other one."""
    if self.__class__ not in KINDS or mode.tracing or (_grad_enabled() and is_recorded(self)):
        return None
    x = self.payload
    return x if x.__class__ is _ndarray and x.flags.carray else None


def _is_beside(x: np.ndarray, z: np.ndarray) -> bool:
    """Whether a kernel that writes to one array may read another as it goes: it lies apart, in order."""
    return z.flags.c_contiguous and ((x.base is None and z.base is None) or not np.may_share_memory(x, z))


def _first_find(*given: Any) -> Any:
    """Finds nothing, and makes the table for the first way that is stored."""
    global find, _store
    if len(given) > 2 and isinstance(given[0], _Way):
        find, _store, _ = make_finder()
        _store(*given)
    return None


#: ``find(calls, numbers, *arrays)``: the way of an in-place form for these numbers and forms of arrays, or None. To be
#: called under its name in this module.
find: Callable[..., Any] = _first_find
_store: Callable[..., Any] = _first_find


class _Way(NamedTuple):
    """How an in-place form runs.

    Attributes
    ----------
    run : ``run(*arrays)``; False where only the general way serves.
    calls, numbers : what it was stored by, which stays alive with it.
    """

    run: Any
    calls: Any
    numbers: Any


_PLAIN = frozenset((bool, str, type(None), type(ABSENT), *map(type, SUPPORTED)))


class Ways:
    """How one function writes over a tensor, by the forms of its operands and the values of its other arguments.

    Attributes
    ----------
    learn : ``learn(function, operands, options, x)`` makes a way to run it over the array x; False if it has none.
    calls : how often a call has come that has no way yet; it tells the functions apart for `find`.
    tuples : of equal values the one that stands for all.
    """

    __slots__ = ("calls", "function", "known", "learn", "tuples")

    def __init__(self, function: Callable[..., Any], learn: Callable[..., Any]) -> None:
        self.function, self.learn = function, learn
        self.known: dict[Any, Any] = {}
        self.calls: dict[Any, int] = {}
        self.tuples: dict[Any, Any] = {}

    def key(self, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The arrays among operands, and all else; None of a call that is recorded, or that has other arguments."""
        recorded = None
        arrays: list[Any] = []
        numbers: Any = ()
        for i, z in enumerate(operands):
            if (kind := z.__class__) in KINDS:
                if z._requires_grad and (recorded := _grad_enabled() if recorded is None else recorded):
                    return None
                arrays.append(z.payload)
            elif kind is float or kind is int:
                numbers += i, kind, z or repr(z)
            elif kind in _PLAIN:
                numbers += i, kind, z
            elif (kind is tuple or kind is list) and z:
                for t in z:
                    if t.__class__ not in KINDS or (t._requires_grad and _grad_enabled()):
                        return None
                    arrays.append(t.payload)
                numbers += i, kind, len(z)
            else:
                return None
        for name, z in options.items():
            kind = z.__class__
            if kind is float or kind is int:
                numbers += name, kind, z or repr(z)
            elif kind in _PLAIN:
                numbers += name, kind, z
            else:
                return None
        return arrays, self.tuples.setdefault(numbers, numbers)

    def wrote(self, x: np.ndarray, own: tuple[Any, ...], operands: tuple[Any, ...], options: dict[str, Any]) -> bool:
        """Whether the result was written over the array x; else nothing was done.

        Parameters
        ----------
        own : the tensor of x where that is the first operand; else nothing.
        operands : all others.
        """
        if (key := self.key(operands, options)) is None:
            return False
        arrays, numbers = key
        found = find(self.calls, numbers, x, *arrays)
        run = self.meet([x, *arrays], numbers, (*own, *operands), options) if found is None else found[0]
        if not run:
            return False
        for i, z in enumerate(arrays):
            if z is not x and not _is_beside(x, z):
                arrays[i] = z.copy()
        return run(x, *arrays) is not NotImplemented

    def meet(self, arrays: Sequence[np.ndarray], numbers: Any, operands: Any, options: dict[str, Any]) -> Any:
        """The way of a call that `find` does not know: it will know it from now on, if such a call has come often."""
        key = (*[(x.shape, x.dtype) for x in arrays], numbers)
        found = self.known.get(key)
        if found is None:
            self.calls[key] = met = self.calls.get(key, 0) + 1
            if met < OFTEN:
                if len(self.calls) > _LIMIT:
                    self.calls.clear()
                    self.known.clear()
                    self.tuples.clear()
                return False
            learnt = self.learn(self.function, operands, options, arrays[0])
            found = self.known[key] = _Way(learnt, self.calls, numbers)
        _store(found, self.calls, numbers, *arrays)
        return found.run


def _learnt(function: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any], x: np.ndarray) -> Any:
    """``run(x, *arrays)``: a function of tensors of these forms in place, x being the memory of the first; or False."""
    from dynamic.eager import writing_lines

    return writing_lines.in_place(function, operands, options)


def _learnt_beside(function: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any], x: Any) -> Any:
    """``run(x, *arrays)``: a function of tensors of these forms, its result written to x; or False."""
    from dynamic.eager import writing_lines

    return writing_lines.beside(function, operands, options, x)


_outs: dict[Any, Ways] = {}


def write_out(name: str, out: Any, function: Callable[..., Any], /, *operands: Any, **options: Any) -> Any:
    """The call of a function with ``out=``: one kernel that writes there, with the general way behind it."""
    x = write(out)
    if x is not None or (x := free(out)) is not None:
        ways = _outs.get(function) or _outs.setdefault(function, Ways(function, lambda *given: _learnt_beside(*given)))
        if not ways.wrote(x, (), operands, options):
            y = function(*operands, **options)
            if y.__class__ is not Tensor or y._requires_grad or (z := _elements(x, y)) is None:
                return write_result(name, out, y)
            _put(x, z)
        if write(x, frame := _getframe(2)) is None:
            _log(x, frame)
        return out
    return written(name, out, function, *operands, **options)


def _over(name: str, function: Callable[..., Any], operator: str | None = None) -> Callable[..., Any]:
    """The in-place form of a function, with the general way behind it.

    Parameters
    ----------
    operator : the special method that the general way is, which leaves unknown operands to their own operators.
    """
    general = boundary.guarded(getattr(TensorBase, operator or name), name)
    ways = Ways(function, lambda *given: _learnt(*given))
    calls, tuples = ways.calls, ways.tuples
    rows: list[Any] = []

    def wide(x: np.ndarray, self: Any, others: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if not ways.wrote(x, (self,), others, options):
            return general(self, *others, **options)
        if write(x, frame := _getframe(2)) is None:
            _log(x, frame)
        return self

    def method(self: Any, *others: Any, **options: Any) -> Any:
        """The commonest operands: none, one tensor with memory of its own, or one or two numbers."""
        x = write(self)
        if x is None and (x := free(self)) is None:
            if not rows:
                from dynamic.eager.row_writes import RowWays

                rows.append(RowWays(function))
            if not rows[0].wrote(self, others, options):
                return general(self, *others, **options)
            _log(self.payload, _getframe(1))
            return self
        if not options and (given := len(others)) < 3:
            found = z = None
            if not others:
                found = find(calls, (), x)
            elif given == 2:
                low, high = others
                if ((kind := low.__class__) is float or kind is int) and ((of := high.__class__) is float or of is int):
                    if (numbers := tuples.get((0, kind, low or repr(low), 1, of, high or repr(high)))) is not None:
                        found = find(calls, numbers, x)
            elif (other := others[0]).__class__ in KINDS and not (other._requires_grad and _grad_enabled()):
                z = other.payload
                if x.base is None and z.base is None and x is not z and z.flags.c_contiguous:
                    found = find(calls, (), x, z)
            elif (other.__class__ is float or other.__class__ is int) and other:
                if (numbers := tuples.get((0, other.__class__, other))) is not None:
                    found = find(calls, numbers, x)
            if found is not None and found[0]:
                if (found[0](x) if z is None else found[0](x, z)) is not NotImplemented:
                    if write(x, frame := _getframe(1)) is None:
                        _log(x, frame)
                    return self
        return wide(x, self, others, options)

    method.__name__, method.__doc__ = name, general.__doc__
    method.__signature__ = inspect.signature(general)  # type: ignore[attr-defined]
    return method


def _put(x: np.ndarray, value: np.ndarray) -> None:
    if x.size < MANY or not filled(x, value):
        overwrite(x, read_first(x, value))


def _setting(name: str, value_of: Callable[[Any], Any]) -> Callable[..., Any]:
    """A method that gives all elements one value, or those of another tensor, with the general way behind it.

    Parameters
    ----------
    value_of : ``value_of(x, *given)`` is what is written to the array x; None leaves it to the general way.
    """
    general = boundary.guarded(getattr(TensorBase, name), name)

    def method(self: Any, *given: Any, **options: Any) -> Any:
        x = write(self)
        if x is None:
            x = free(self)
        if options or x is None or (value := value_of(x, *given)) is None:
            return general(self, *given, **options)
        _put(x, value)
        if write(x, frame := _getframe(1)) is None:
            _log(x, frame)
        return self

    return update_wrapper(method, general)


def _zero(x: np.ndarray, *given: Any) -> Any:
    return None if given else _zeros.get(x.dtype)


_zeros = {dtype: number(0, dtype) for dtype in SUPPORTED}


_KEPT: dict[Any, str] = {float: "f", int: "fiu", bool: "fiub"}
"""Per class of a number the kinds of dtypes to which it is rounded at once."""


def _number(x: np.ndarray, *given: Any) -> Any:
    """A number that is rounded once to the array's dtype."""
    if len(given) != 1 or (dtype := x.dtype).kind not in _KEPT.get((value := given[0]).__class__, ""):
        return None
    if value.__class__ is not float:
        least, most = ends(dtype)
        if not least <= value <= most:
            return None
    return number(value, dtype)


def _elements(x: np.ndarray, *given: Any) -> Any:
    """The array of another tensor of the same form, without a history that would be lost."""
    if len(given) != 1 or (other := given[0]).__class__ not in KINDS or (other._requires_grad and _grad_enabled()):
        return None
    z = other.payload
    return z if z is not x and z.shape == x.shape and z.dtype == x.dtype else None


def _zeroing() -> Callable[..., Any]:
    """`zero_`: by `write` alone where that is possible."""
    general = _setting("zero_", _zero)

    def zero_(self: Any, *given: Any) -> Any:
        if given or (done := write(self, frame := _getframe(1), None)) is None:
            return general(self, *given)
        if done is not True:
            _log(done, frame)
        return self

    return update_wrapper(zero_, general)


METHODS: dict[str, Any] = {
    "zero_": _zeroing(), "fill_": _setting("fill_", _number), "copy_": _setting("copy_", _elements),
}  # fmt: skip
for _operator, _name in IN_PLACE.items():
    METHODS[f"{_name}_"] = _over(f"{_name}_", getattr(functional, _name))
    METHODS[f"__i{_operator}__"] = _over(f"{_name}_", getattr(functional, _name), f"__i{_operator}__")


class _LateForm:
    """The in-place form of a function that is loaded when it is first asked for."""

    def __init__(self, name: str, home: type) -> None:
        self.name, self.home = name, home

    def __get__(self, instance: Any, owner: type) -> Any:
        method = _over(f"{self.name}_", getattr(functional, self.name))
        setattr(self.home, f"{self.name}_", method)
        return method if instance is None else method.__get__(instance, owner)


_late = [*(name for name in NAMES if name in functional.__all__), *AT_INDICES]
for _class in (Tensor, Leaf):
    give(_class, {**METHODS, **{f"{name}_": _LateForm(name, _class) for name in _late}})
