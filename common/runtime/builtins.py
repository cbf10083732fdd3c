"""Kernels as Python callables that cost about 100 ns: native METH_FASTCALL builtins around compiled code.

A builtin reads the C structures of its arguments itself (`common.runtime.call_text`).  That is allowed only
where `common.runtime.cpython_abi` finds the layout it knows and a trial run gives the right answers; elsewhere the
same functions are made of Python and ctypes (`common.runtime.python_builtins`), about fifty times slower per call.
An operand is an exact, aligned ndarray of its dtype; one that is not C-contiguous is copied first if it has fewer than
`common.runtime.object_text.FEW` elements, and declined if it has more.

All of them hold the GIL from the first check to the last kernel, so tables, frames and workspaces need no
lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from common.compiler import disk_cache
from common.compiler.compile import load_native, make_key
from common.compiler.image import outlive
from common.core.shapes import overlapping
from common.runtime import cpython_abi
from common.runtime.bound_program import Binding
from common.runtime.call_text import MAX_BUFFERS, MAX_INPUTS, builtin_source
from common.runtime.dispatch_text import CELL_WORDS, CELLS
from common.runtime.program_plan import ProgramPlan
from common.runtime.tape_state import Tape, WriteLog, line_words

METH_FASTCALL = 0x80


@cache
def _of_python() -> Any:
    """The same functions without native code."""
    from common.runtime import python_builtins

    return python_builtins


def make_call(address: int) -> Callable[..., int]:
    """Return ``f(*args)`` that runs the kernel at `address`.

    Arrays become ``bufs`` and ints ``args``, each in order.  The caller guarantees dtypes, contiguity and
    sizes.

    Returns
    -------
    callable
        Returns the kernel's status; -1, without running it, for an argument that is neither an exact ndarray
        nor an exact int, and for more than 64 arguments.  Raises OverflowError for an int beyond int64.
    """
    if not is_native("call"):
        return _of_python().make_call(address)
    return _builtin("call", np.array([address], dtype=np.int64))


def make_elementwise(
    in_dtypes: Sequence[Any],
    out_dtype: Any,
    full: int,
    scalar_left: int = 0,
    scalar_right: int = 0,
) -> Callable[..., Any]:
    """Return ``f(*arrays)`` that allocates the result and runs an elementwise kernel.

    Parameters
    ----------
    in_dtypes : sequence of dtype
        One per operand, at most 8.
    out_dtype : dtype
    full : int
        Kernel for operands of one shape: bufs = operands..., result; args = [number of elements].
    scalar_left, scalar_right : int
        Kernels for two operands of which the left (right) one is 0-d; 0: no such kernel.

    Returns
    -------
    callable
        Returns the new array; an int, the kernel's status, if that is not 0; None if it declines an operand
        or the shapes differ (the caller then takes its general path). A float or int counts as a 0-d operand,
        rounded once to a dtype that is floating point.
    """
    if not 1 <= len(in_dtypes) <= MAX_INPUTS:
        raise ValueError(f"an elementwise call has 1 to {MAX_INPUTS} operands, not {len(in_dtypes)}")
    if not is_native("elementwise"):
        return _of_python().make_elementwise(in_dtypes, out_dtype, full, scalar_left, scalar_right)
    descr = np.dtype(out_dtype)
    words = [len(in_dtypes), full, scalar_left, scalar_right, id(descr), *map(cpython_abi.descr_word, in_dtypes)]
    words += [np.dtype(dtype).itemsize for dtype in (*in_dtypes, descr)]
    return _builtin("elementwise", np.array(words, dtype=np.int64), descr)


def make_fixed(
    kernel: int,
    in_dtypes: Sequence[Any],
    out_shape: Sequence[int],
    out_dtype: Any,
    ints: Sequence[int] = (),
    scratch: int = 0,
    numbers: Sequence[int] = (),
    units: Sequence[int] = (),
) -> Callable[..., Any]:
    """Return ``f(*arrays)`` that allocates the result and runs a kernel on operands of known shapes.

    Parameters
    ----------
    kernel : int
        bufs = operands..., result, and scratch if there is any; args = `ints`.
    in_dtypes : sequence of dtype
        One per operand, at most 8.
    out_shape, out_dtype : of the result.
    scratch : int
        Bytes of memory that the kernel uses; the builtin keeps them.
    numbers : positions of 0-d operands, in whose place a Python number may come.
    units : where the first of `ints` counts units that do not depend on each other, the bytes from one to the next, in
        each operand and the result. Threads share those of a large result.

    Returns
    -------
    callable
        Returns the new array; None if it declines an operand, or if the kernel's status is not 0. A number is rounded
        once, to a dtype that is floating point; an int may come for one of integers that has it. The caller guarantees
        the shapes.
    """
    if not 1 <= len(in_dtypes) <= MAX_INPUTS:
        raise ValueError(f"a call has 1 to {MAX_INPUTS} operands, not {len(in_dtypes)}")
    if not is_native("fixed"):
        return _of_python().make_fixed(kernel, in_dtypes, out_shape, out_dtype, ints, scratch, numbers)
    descr, held = np.dtype(out_dtype), np.empty(scratch, np.uint8)
    words = [len(in_dtypes), kernel, id(descr), len(out_shape), held.ctypes.data if scratch else 0]
    first = 10 + len(in_dtypes) + len(out_shape)
    words += [first, sum(1 << i for i in numbers), first + len(ints), len(ints), prod(out_shape) if units else 0]
    words += [*map(cpython_abi.descr_word, in_dtypes), *out_shape, *ints, *units]
    return _builtin("fixed", np.array(words, dtype=np.int64), descr, held)


def make_finder() -> tuple[Callable[..., Any], Callable[..., Any], np.ndarray]:
    """Return ``find(op, attrs, *operands)`` and ``store(found, op, attrs, *operands)``, and the table that they share.

    What is found depends on the identities of `op` and `attrs`, on dtype and shape of arrays, and on the type of
    numbers. The table is small and may forget; `find` then returns None, as it does for operands of other kinds.
    ``store()`` forgets everything. Stored objects must keep `op` and `attrs` alive.
    """
    if not is_native("find"):
        return _of_python().make_finder()
    cells = np.zeros(CELLS * CELL_WORDS, np.int64)
    find, store = (_builtin("find", np.array([cells.ctypes.data, way], dtype=np.int64), cells) for way in (0, 1))
    return find, store, cells


def make_apply(cells: np.ndarray, tape: Tape, source: str = "") -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return ``apply(op, attrs, *operands)`` and ``show(recipe, result, *tensors)``.

    Parameters
    ----------
    cells : the table of a finder: of recipes, see `common.evaluate.specialise.Recipe`.
    tape : what tensors and nodes are made of.
    source : another text of the builtin, as benchmarks.features has.

    Returns
    -------
    callable
        Runs an op on tensors and records it. Returns a tensor or a tuple of tensors; None, with nothing done, where the
        general way is to be taken.
    callable
        The same for an array, or a tuple of arrays, that an op has made of tensors.
    """
    if not is_native("apply"):
        return _of_python().make_apply(cells, tape)
    words = [np.array(tape.words(cells, ready), dtype=np.int64) for ready in (False, True)]
    apply, show = (_builtin("apply", each, cells, tape, source=source) for each in words)
    return apply, show


def make_recall(cells: np.ndarray, tape: Tape, plain: Sequence[type]) -> tuple[Callable[..., Any], Callable[..., None]]:
    """Return ``recall(memory, *arguments)`` and ``store(line, memory, *arguments)``, which share a table of lines.

    What is recalled depends on the identity of `memory`, on the form of tensors among the arguments, which may stand in
    a list or tuple, and on the values of numbers, bools, None and tuples of ints.

    Parameters
    ----------
    cells, tape : as for `make_apply`.
    plain : a class of tuples, and classes whose objects count by their identity; lines must keep these alive.

    Returns
    -------
    callable
        Returns what a `KnownLine` makes of the tensors; None where none is known; NotImplemented where that is stored,
        for other arguments, and while something watches.
    callable
        Keeps a line, or NotImplemented; the table is small and may forget. Without arguments it forgets everything.
    """
    if not is_native("recall"):
        return _of_python().make_recall(cells, tape, plain)
    lines = np.zeros(CELLS * CELL_WORDS, np.int64)
    words = [np.array(line_words(lines, way, plain, tape, cells), dtype=np.int64) for way in (False, True)]
    recall, store = (_builtin("recall", each, lines, cells, tape, plain) for each in words)
    return recall, store


def make_write(tape: Tape, log: WriteLog) -> Callable[..., Any]:
    """Return ``f(tensor)``, ``f(array, frame)`` and ``f(tensor, frame, None)``, in one function.

    Returns
    -------
    callable
        Of a tensor its array, if it may be overwritten at once; None where the caller has to look itself. For an array
        and a frame True, once a write to all of it was logged; None, with nothing done, where the caller has to. With
        None zeros are written first: True, or the array if the caller has to log that; None, with nothing done.
    """
    if not is_native("write"):
        return _of_python().make_write(tape, log)
    return _builtin("write", np.array(log.words(tape), dtype=np.int64), tape, log)


def make_view(
    dtype: Any,
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int,
    out_shape: Sequence[int],
    out_strides: Sequence[int],
) -> Callable[..., Any]:
    """Return ``f(x)`` that makes a view of arrays of one dtype, shape and strides.

    Parameters
    ----------
    shape, strides : what an operand must have; strides and `offset` in bytes.
    offset, out_shape, out_strides : where the view lies.

    Returns
    -------
    callable
        Returns the view, an exact ndarray, read-only where elements share a place; None for another operand.
    """
    if not is_native("view"):
        return _of_python().make_view(dtype, shape, strides, offset, out_shape, out_strides)
    repeats = any(n > 1 and s == 0 for n, s in zip(out_shape, out_strides, strict=True))
    repeats = repeats or overlapping(out_shape, out_strides)
    words = [cpython_abi.descr_word(dtype), len(shape), *shape, *strides, offset, len(out_shape)]
    words += [0 if repeats else cpython_abi.WRITEABLE, *out_shape, *out_strides]
    return _builtin("view", np.array(words, dtype=np.int64))


def make_steps(
    forms: Sequence[tuple[Sequence[int], Any]],
    out_forms: Sequence[tuple[Sequence[int], Any]],
    steps: Sequence[tuple[int, Sequence[int], Sequence[int]]],
    scratch: int = 0,
) -> Callable[..., Any]:
    """Return ``f(*arrays)`` that allocates the results and runs some kernels, one after the other.

    Parameters
    ----------
    forms : shape and dtype per operand, at most 61 with those of results.
    out_forms : those of each result.
    steps : per kernel its address, which of operands, results and scratch (counted through) it gets, and its ints.
    scratch : bytes of memory that kernels use; the builtin keeps them.

    Returns
    -------
    callable
        Returns the new array, or a tuple of several; None if it declines an operand or that has another shape, or if a
        kernel's status is not 0, which ends the row.
    """
    if len(forms) + len(out_forms) >= MAX_BUFFERS - 1:
        raise ValueError(f"a row of kernels has at most {MAX_BUFFERS - 2} operands and results, not {len(forms)}")
    if not is_native("steps"):
        return _of_python().make_steps(forms, out_forms, steps, scratch)
    descrs, held = [np.dtype(dtype) for _, dtype in out_forms], np.empty(scratch, np.uint8)
    words = [len(forms), len(steps), len(out_forms), held.ctypes.data if scratch else 0]
    for (shape, _), descr in zip(out_forms, descrs, strict=True):
        words += [id(descr), len(shape), *shape]
    for shape, dtype in forms:
        words += [cpython_abi.descr_word(dtype), len(shape), *shape]
    for address, slots, ints in steps:
        words += [address, len(slots), *slots, len(ints), *ints]
    return _builtin("steps", np.array(words, dtype=np.int64), descrs, held)


def make_extent(dtypes: Sequence[Any]) -> Callable[..., Any]:
    """Return ``f(array)``: the addresses (low, high) between which an array of one of the dtypes lies.

    Returns
    -------
    callable
        Returns None for other dtypes, subclasses of ndarray, and what is none. An empty array has ``low == high``.
    """
    if not is_native("extent"):
        return _of_python().make_extent(dtypes)
    words = [len(dtypes)]
    for dtype in dtypes:
        words += [cpython_abi.descr_word(dtype), np.dtype(dtype).itemsize]
    return _builtin("extent", np.array(words, dtype=np.int64))


def make_run(plan: ProgramPlan) -> Callable[..., int]:
    """Return ``f(*arguments)`` that checks the arguments and runs a program.

    Returns
    -------
    callable
        Returns 0, or a code for `common.runtime.program_plan.explain_failure`.  Arrays come in as they are declared:
        nothing is converted, and nothing has run if an argument is refused.
    """
    if not is_native("run"):
        return _of_python().make_run(plan)
    return _run(plan, None)


def make_step(plan: ProgramPlan, binding: Binding) -> Callable[..., Any]:
    """Return ``f(*given)`` that runs a program bound to Python objects.

    Returns
    -------
    callable
        Returns the results, an array or a tuple of arrays, and has then left gradients in their tensors; or an int, as
        `make_run` does, and has then changed nothing but the contents of what is given as an output.
    """
    if not is_native("run"):
        return _of_python().make_step(plan, binding)
    return _run(plan, binding)


def _run(plan: ProgramPlan, binding: Binding | None) -> Callable[..., Any]:
    frame, last = plan.start(), plan.apart(binding)
    bufs = np.zeros(plan.most_buffers + 1, dtype=np.int64)
    words = plan.pack([x.__array_interface__["data"][0] for x in (frame, last, bufs)], binding)
    return _builtin("run", words, frame, last, bufs, plan.keep, binding)


@cache
def is_native(symbol: str) -> bool:
    """Whether a native builtin is used: the object layout is known and its trial run was right on this machine.

    The trial is not run again by other processes: its key says which Python, numpy, processor and builtin it was of.
    """
    if not cpython_abi.is_supported():
        return False
    key = make_key(f"trial of {symbol}")
    if disk_cache.read(key, ready_made=True) is not None:
        return True
    from common.runtime.trial import is_right

    right = is_right(symbol, _builtin)
    if right:
        disk_cache.write(key, disk_cache.Entry(symbol, (), b""), ready_made=True)
    return right


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def _method(symbol: str, source: str = "") -> tuple[Any, _MethodDef]:
    """Return the constructor of builtins and the method definition, which outlives every builtin."""
    cpython_abi.define_symbols()
    address = load_native(source or builtin_source(symbol), f"twingrad_builtin_{symbol}")
    definition = _MethodDef(symbol.encode(), address, METH_FASTCALL, None)
    outlive(definition)
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi)), definition


def _builtin(symbol: str, table: np.ndarray, *keep: Any, source: str = "") -> Callable[..., Any]:
    make, definition = _method(symbol, source)
    # The builtin owns `self`, and with it everything that the table points to.
    return make(ctypes.addressof(definition), (table.tobytes(), *keep), None)
