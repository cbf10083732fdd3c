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
from math import prod
from sys import _getframe
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from common.core import mode
from common.core.dtypes import SUPPORTED
from common.core.members import give
from common.core.op import Op
from common.core.source_lines import user_files, user_frame
from common.core.spec import Spec
from common.evaluate import kernels
from common.evaluate import specialise as eager
from common.evaluate.fused_lines import DelayedOp, expressions
from common.evaluate.kernels import MANY, filled
from common.evaluate.kinds import number
from common.methods.in_place_functions import NAMES
from common.methods.install import IN_PLACE
from common.ops import functional
from common.random.draw_counts import refuse_draws
from common.runtime.builtins import make_finder, make_write
from common.runtime.call_text import MAX_INPUTS
from common.tensor import boundary
from common.tensor.base import Tensor, TensorBase, wrap
from common.tensor.leaf import Leaf
from common.tensor.view_families import is_recorded
from common.tensor.write_log import log_write, native_log, read_first
from dynamic.eager.op_lines import MoreThanFormsError, OpLine, StandIn
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


def _free(self: Any) -> Any:
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


def _over(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place form of a function, with the general way behind it."""
    general = boundary.guarded(getattr(TensorBase, name), name)
    known: dict[Any, Any] = {}
    calls: dict[Any, int] = {}
    tuples: dict[Any, Any] = {}

    def meet(arrays: Sequence[np.ndarray], numbers: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
        """The way of a call that `find` does not know: it will know it from now on, if such a call has come often."""
        key = (*[(x.shape, x.dtype) for x in arrays], numbers)
        found = known.get(key)
        if found is None:
            calls[key] = met = calls.get(key, 0) + 1
            if met < OFTEN:
                if len(calls) > _LIMIT:
                    calls.clear()
                    known.clear()
                    tuples.clear()
                return False
            found = known[key] = _Way(_learnt(function, operands, options), calls, numbers)
        _store(found, calls, numbers, *arrays)
        return found.run

    def wide(x: np.ndarray, self: Any, others: tuple[Any, ...], options: dict[str, Any]) -> Any:
        recorded = None
        arrays: list[Any] = [x]
        numbers: Any = ()
        for i, z in enumerate(others):
            if (kind := z.__class__) in KINDS:
                if z._requires_grad and (recorded := _grad_enabled() if recorded is None else recorded):
                    return general(self, *others, **options)
                arrays.append(z.payload)
            elif kind is float or kind is int:
                numbers += i, kind, z or repr(z)
            else:
                return general(self, *others, **options)
        for name_, z in options.items():
            kind = z.__class__
            if kind is not float and kind is not int:
                return general(self, *others, **options)
            numbers += name_, kind, z or repr(z)
        numbers = tuples.setdefault(numbers, numbers)
        found = find(calls, numbers, *arrays)
        run = meet(arrays, numbers, (self, *others), options) if found is None else found[0]
        if not run:
            return general(self, *others, **options)
        for z in arrays:
            if z is not x and not _is_beside(x, z):
                return general(self, *others, **options)
        if run(*arrays) is NotImplemented:
            return general(self, *others, **options)
        if write(x, frame := _getframe(2)) is None:
            _log(x, frame)
        return self

    def method(self: Any, *others: Any, **options: Any) -> Any:
        """The commonest operands: none, one tensor with memory of its own, or one number."""
        x = write(self)
        if x is None and (x := _free(self)) is None:
            return general(self, *others, **options)
        if not options and len(others) < 2:
            found = z = None
            if not others:
                found = find(calls, (), x)
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


def _learnt(function: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """``run(*arrays)``: a function of tensors of these forms, in place; or False.

    It returns NotImplemented, with nothing done, where the general way is to be taken.
    """
    forms = [Spec(x.payload.shape, x.payload.dtype) if type(x) in KINDS else x for x in operands]
    try:
        with mode.GradSwitch(False), refuse_draws():
            line = OpLine(forms)
            result = function(*line.operands, **options)
        try:
            return _kernel(line, result)
        except MoreThanFormsError:
            return _result_over(line, result)
    except Exception:  # the general way raises it again for the operands, unless only stand-ins cause it
        return False


def _result_over(line: OpLine, result: Any) -> Any:
    """The steps of a line one after the other; their result, of the first operand's form, is copied over it.

    Raises
    ------
    MoreThanFormsError : the result has another form.
    """
    first: Any = line.operands[0]
    if result.payload.shape != first.payload.shape or result.payload.dtype != first.payload.dtype:
        raise MoreThanFormsError
    text, scope = line.function(result)
    exec(compile(text, f"{__file__}: remembered", "exec"), scope)
    run = scope["line"]

    def over(*arrays: np.ndarray) -> Any:
        try:
            y = run(*map(wrap, arrays))
        except Exception:  # the general way raises it again
            return NotImplemented
        arrays[0][...] = y.payload
        return None

    return over


def _kernel(line: OpLine, result: Any) -> Any:
    """The steps of a line as one kernel that writes to its first operand.

    Raises
    ------
    MoreThanFormsError : they are no elementwise ops of its shape and dtype, or none at all.
    """
    first: Any = line.operands[0]
    shape, dtype, steps = first.payload.shape, first.payload.dtype, line.steps
    if dtype.kind != "f" or not prod(shape) or not steps or [result.name] != steps[-1][4]:
        raise MoreThanFormsError
    tensors = [x for x in line.operands if type(x) is StandIn]
    places: dict[str, tuple[str, int]] = {x.name: ("x", i) for i, x in enumerate(tensors)}
    shapes = [x.payload.shape for x in tensors]
    constants: list[np.ndarray] = []
    program: list[tuple[Op, list[tuple[str, Any]]]] = []
    for at, (op, operands, attrs, _, names) in enumerate(steps):
        found = line.recipes[at]
        made = DelayedOp(op, tuple(x.payload if type(x) is StandIn else x for x in operands), None, None, found.dtype)
        if op.kind != "elementwise" or attrs or found.spec.shape != shape or not made.is_fusible(found.spec):
            raise MoreThanFormsError
        if found.dtype not in (dtype, np.dtype(np.bool_)):
            raise MoreThanFormsError
        given = []
        for x in operands:
            if type(x) is StandIn:
                given.append(places[x.name])
            elif op.versions:  # another kernel for some numbers
                given.append(("n", x))
            else:
                given.append(("x", len(shapes)))
                shapes.append(())
                constants.append(number(x, dtype))
        program.append((op, given))
        places[names[0]] = "t", at
    if found.spec.dtype != dtype or len(shapes) > MAX_INPUTS:
        raise MoreThanFormsError
    classes, ints = kernels.arrange(shapes, shape)
    if None in classes:
        raise MoreThanFormsError
    letters = "".join(map(str, classes))
    dtypes = [*(x.payload.dtype for x in tensors), *(dtype for _ in constants)]
    if len(program) == 1 and program[0][1] == [("x", i) for i in range(len(dtypes))]:  # the op's own kernel
        call = kernels.general(program[0][0].name, tuple(dtypes), dtype, letters)
    else:
        source = kernels.loop_source("fused", expressions(program, dtype), dtypes, dtype, letters)
        call = kernels.compiled(source, "fused", False)

    def run(*arrays: np.ndarray) -> None:
        call(*arrays, *constants, arrays[0], *ints)

    def run_two(x: np.ndarray, z: np.ndarray) -> None:
        call(x, z, *constants, x, *ints)

    return run_two if len(tensors) == 2 else run


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
            x = _free(self)
        if options or x is None or (value := value_of(x, *given)) is None:
            return general(self, *given, **options)
        if x.size < MANY or not filled(x, value):
            x[...] = read_first(x, value)
        if write(x, frame := _getframe(1)) is None:
            _log(x, frame)
        return self

    return update_wrapper(method, general)


def _zero(x: np.ndarray, *given: Any) -> Any:
    return None if given else _zeros.get(x.dtype)


_zeros = {dtype: number(0, dtype) for dtype in SUPPORTED}


def _number(x: np.ndarray, *given: Any) -> Any:
    """A number that is rounded once to the array's dtype."""
    if len(given) != 1 or given[0].__class__ is not float or (dtype := x.dtype).kind != "f":
        return None
    return number(given[0], dtype)


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
    METHODS[f"__i{_operator}__"] = METHODS[f"{_name}_"]


class _LateForm:
    """The in-place form of a function that is loaded when it is first asked for."""

    def __init__(self, name: str, home: type) -> None:
        self.name, self.home = name, home

    def __get__(self, instance: Any, owner: type) -> Any:
        method = _over(f"{self.name}_", getattr(functional, self.name))
        setattr(self.home, f"{self.name}_", method)
        return method if instance is None else method.__get__(instance, owner)


for _class in (Tensor, Leaf):
    give(_class, {**METHODS, **{f"{name}_": _LateForm(name, _class) for name in NAMES if name in functional.__all__}})
