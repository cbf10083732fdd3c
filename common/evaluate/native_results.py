"""Results of views and of kernel ops by one native call each: recipes use it where an operand is as expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from math import prod
from typing import Any, NoReturn

import numpy as np

from common.compiler import host_kernels
from common.compiler.compile import compile_kernel
from common.core.errors import ArgumentError, DivisionByZeroError, IndexRangeError
from common.core.op import NativeCall, Op, Refusal
from common.core.shapes import contiguous_strides
from common.core.spec import Spec
from common.evaluate import kernels
from common.evaluate.kernels import MANY
from common.runtime.builtins import make_steps, make_view
from common.runtime.call_text import MAX_BUFFERS

Call = Callable[..., Any]


def view_of(op: Op, attrs: Mapping[str, Any], shape: Sequence[int], dtype: np.dtype, strides: Any = None) -> Any:
    """A builtin that makes the view of arrays of one form, and declines others with None; None if it would be a copy.

    Parameters
    ----------
    strides : of the operand, in bytes; contiguous by default.
    """
    size = dtype.itemsize
    if strides is None:
        steps: tuple[int, ...] = contiguous_strides(tuple(shape))
    elif any(s % size for s in strides):
        return None
    else:
        steps = tuple(s // size for s in strides)
    if 0 in shape:  # numpy has strides of its own for what is empty
        return None
    placed = op.strided(0, tuple(shape), steps, **attrs)
    if placed is None:
        return None
    offset, out_shape, out_steps = placed
    if prod(out_shape) == 0:
        offset = 0
    try:
        return make_view(
            dtype, shape, [s * size for s in steps], offset * size, out_shape, [s * size for s in out_steps]
        )
    except OverflowError:  # sizes that 64 bits cannot count, which numpy refuses
        return None


def in_a_row(calls: Sequence[NativeCall], forms: Sequence[Any], outs: Sequence[Spec]) -> Call | None:
    """A builtin that runs a row of kernels; None for others than arrays, and for large scratch, which all ops share.

    It gives None for operands of another form, and where a kernel's status is not 0.
    """
    held = max((call.scratch for call in calls), default=0)
    if (
        held > kernels.OWNED
        or len(forms) + len(outs) > MAX_BUFFERS - 2
        or any(isinstance(form, type) for form in forms)
    ):
        return None
    every = tuple(range(len(forms) + len(outs)))
    addresses = [compile_kernel(call.source, call.name, ready_made=True) for call in calls]
    steps = [(address, _slots(call, every), call.ints) for address, call in zip(addresses, calls, strict=True)]
    return make_steps(forms, [(out.shape, out.dtype) for out in outs], steps, held)


def _slots(call: NativeCall, every: tuple[int, ...]) -> tuple[int, ...]:
    """The buffers of a kernel, among operands, results and scratch."""
    return (*(every if call.buffers is None else call.buffers), *((len(every),) if call.scratch else ()))


def in_python(op: Op, calls: Sequence[NativeCall], inputs: int, outs: Sequence[Spec]) -> Call:
    """The kernels one after the other, operands made contiguous first."""
    from common.evaluate.layouts import dense

    every = tuple(range(inputs + len(outs)))
    steps: list[Any] = []

    def run(*operands: Any) -> Any:
        if not steps:
            steps.extend((kernels.compiled(call.source, call.name), call) for call in calls)
        results = [np.empty(spec.shape, spec.dtype) for spec in outs]
        buffers = [*map(dense, operands), *results]
        for kernel, call in steps:
            held = (kernels.scratch(call.scratch),) if call.scratch else ()
            status = kernel(*[buffers[i] for i in (every if call.buffers is None else call.buffers)], *held, *call.ints)
            if status:
                raise_status(op, call.errors, status)
        return results[0] if len(results) == 1 else tuple(results)

    return run


def on_arrays(
    calls: Sequence[NativeCall], forms: Sequence[Any], outs: Sequence[Spec]
) -> tuple[Call | None, Call] | None:
    """A kernel that is a function of arrays, called with them: no way through memory addresses; None for others.

    Small matrices, and whatever else has native source, have a builtin without Python, which leaves what goes wrong to
    the function.
    """
    if len(calls) != 1 or not host_kernels.is_host(call := calls[0]) or call.buffers:
        return None
    from common.evaluate.layouts import dense

    function = host_kernels.function_of(call)

    def run(*operands: Any) -> Any:
        given = function(*map(dense, operands))
        found = given if type(given) is tuple else (given,)
        results = [in_memory_of_its_own(y, spec, operands) for y, spec in zip(found, outs, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)

    native = host_kernels.parse(call.source).native
    small = bool(native) and max(forms[0][0][-1:], default=1) <= import_module(native).MOST
    builtin = in_a_row(calls, forms, outs) if small else None
    if builtin is None:
        return None, run

    def run_small(*operands: Any) -> Any:
        given = [*map(dense, operands)]
        y = builtin(*given)
        if y is not None:
            return y
        host_kernels.forget_error()
        return run(*given)

    return builtin, run_small


def in_memory_of_its_own(y: Any, spec: Spec, operands: Sequence[np.ndarray]) -> np.ndarray:
    """An array of one form, in order and in memory of its own."""
    if type(y) is np.ndarray and y.flags.owndata and y.flags.carray and y.shape == spec.shape and y.dtype == spec.dtype:
        if not any(y is x for x in operands):
            return y
    made = np.empty(spec.shape, spec.dtype)
    made[...] = y
    return made


def raise_status(op: Op, errors: Mapping[int, str], status: int) -> NoReturn:
    """Raise what a kernel's status stands for.

    Raises
    ------
    ArgumentError, IndexRangeError, DivisionByZeroError : always one of them, but
    BaseException : what a kernel in Python has raised.
    """
    if status == host_kernels.RAISED:
        raise host_kernels.take_error()
    text = errors.get(status, f"kernel status {status}")
    if isinstance(text, Refusal):
        raise ArgumentError(text)
    if "division" in text:  # it names the op that the user called
        raise DivisionByZeroError(text)
    name = op.name.rstrip("0123456789")
    raise IndexRangeError(f"{_PUBLIC.get(name, name)}(): {text}")


#: Users' names of ops that they do not call by name.
_PUBLIC = {"index_get": "index", "index_set": "index_put", "pick": "nll_loss", "put_zeros": "index_add"}


def overwrite(target: np.ndarray, source: np.ndarray) -> None:
    """Write an array to the memory of another one; a large one by the loops that copy, loaded with the first."""
    if target.size < MANY:
        target[...] = source
    else:
        from common.evaluate import layouts

        layouts.overwrite(target, source)
