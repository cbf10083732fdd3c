"""The callables of `common.runtime.builtins` in Python and ctypes, for interpreters whose objects look different.

Same checks, same results, same codes; only slower.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from common.core.locks import make_lock
from common.runtime import execute_text as ops
from common.runtime.argument_checks import ARRAY, FLOAT, ArgumentCheck
from common.runtime.bound_program import GIVEN, HELD, HELD_GRAD, LEFT, LEFT_FRESH, Binding
from common.runtime.call_text import MAX_BUFFERS
from common.runtime.object_text import FEW, RAISED
from common.runtime.program_plan import ProgramPlan
from common.runtime.run_text import BAD_ARGUMENT, OVERLAP

_KERNEL = ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)  # PYFUNCTYPE: keeps the GIL


_lock = make_lock()  # Python may switch threads between two kernels, and plans share an arena


def _data(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _runner(address: int) -> Callable[[Sequence[int], Sequence[int]], int]:
    kernel = _KERNEL(address)

    def run(bufs: Sequence[int], ints: Sequence[int]) -> int:
        status, exception = ctypes.c_int64(), ctypes.c_void_p()
        buf_table = (ctypes.c_int64 * (len(bufs) + 1))(*bufs)
        int_table = (ctypes.c_int64 * (len(ints) + 1))(*ints)
        code = kernel(ctypes.byref(status), ctypes.byref(exception), buf_table, int_table)
        return RAISED if code else status.value

    return run


def _is_array(value: Any, dtype: np.dtype[Any], writes: bool = False) -> bool:
    if type(value) is not np.ndarray or value.dtype.num != dtype.num or not value.dtype.isnative:
        return False
    flags = value.flags
    return bool(flags.c_contiguous and flags.aligned and (flags.writeable or not writes))


def _check_int64(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise OverflowError("int too big to convert")
    return value


def make_call(address: int) -> Callable[..., int]:
    """Return what `common.runtime.builtins.make_call` returns."""
    run = _runner(address)

    def call(*args: Any) -> int:
        bufs, ints = [], []
        if len(args) > MAX_BUFFERS:
            return -1
        for arg in args:
            if type(arg) is np.ndarray:
                bufs.append(_data(arg))
            elif type(arg) is int:
                ints.append(_check_int64(arg))
            else:
                return -1
        return run(bufs, ints)

    return call


def _in_order(value: Any, dtype: np.dtype[Any]) -> Any:
    """An operand as it is, or a copy in order of one with few elements in another."""
    odd = type(value) is np.ndarray and value.dtype == dtype and not value.flags.c_contiguous
    return value.copy("C") if odd and value.flags.aligned and value.size < FEW else value


def _number_as_array(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number as an operand of a dtype of floats, or an int of one of integers that has it; anything else as it is."""
    if dtype.kind in "iu" and type(value) is int:
        info = np.iinfo(dtype)
        return np.array(value, dtype) if info.min <= value <= info.max else value
    if dtype.kind != "f" or type(value) not in (int, float):
        return value
    try:
        with np.errstate(all="ignore"):
            return np.array(value).astype(np.int64 if type(value) is int else np.float64).astype(dtype)
    except OverflowError:
        return value


def make_elementwise(
    in_dtypes: Sequence[Any], out_dtype: Any, full: int, scalar_left: int = 0, scalar_right: int = 0
) -> Callable[..., Any]:
    """Return what `common.runtime.builtins.make_elementwise` returns."""
    dtypes = [np.dtype(dtype) for dtype in in_dtypes]
    scalar_left_run, scalar_right_run = [_runner(a) if a else None for a in (scalar_left, scalar_right)]
    full_run = _runner(full)

    def elementwise(*arrays: Any) -> Any:
        if len(arrays) == 2 == len(dtypes) and any(type(x) is np.ndarray for x in arrays):
            kernels = (scalar_left_run, scalar_right_run)
            arrays = tuple(_number_as_array(x, d) if k else x for x, d, k in zip(arrays, dtypes, kernels))
        if len(arrays) != len(dtypes):
            return None
        arrays = tuple(map(_in_order, arrays, dtypes))
        if not all(map(_is_array, arrays, dtypes)):
            return None
        run: Any = full_run
        shape = arrays[0].shape
        if any(array.shape != shape for array in arrays):
            if len(arrays) != 2 or (arrays[0].ndim and arrays[1].ndim):
                return None
            run, shape = (scalar_right_run, shape) if shape else (scalar_left_run, arrays[1].shape)
            if run is None:
                return None
        out = np.empty(shape, out_dtype)
        status = run([*map(_data, arrays), _data(out)], [out.size])
        return status if status else out

    return elementwise


def make_fixed(
    kernel: int,
    in_dtypes: Sequence[Any],
    out_shape: Sequence[int],
    out_dtype: Any,
    ints: Sequence[int] = (),
    scratch: int = 0,
    numbers: Sequence[int] = (),
) -> Callable[..., Any]:
    """Return what `common.runtime.builtins.make_fixed` returns."""
    dtypes, shape = [np.dtype(dtype) for dtype in in_dtypes], tuple(out_shape)
    run, held = _runner(kernel), np.empty(scratch, np.uint8)

    def fixed(*operands: Any) -> Any:
        arrays = [_number_as_array(x, d) if i in numbers else x for i, (x, d) in enumerate(zip(operands, dtypes))]
        arrays = list(map(_in_order, arrays, dtypes))
        if len(operands) != len(dtypes) or not all(map(_is_array, arrays, dtypes)):
            return None
        out = np.empty(shape, out_dtype)
        return None if run([*map(_data, arrays), _data(out), _data(held)], ints) else out

    return fixed


def make_finder() -> tuple[Callable[..., Any], Callable[..., Any], np.ndarray]:
    """Return what `common.runtime.builtins.make_finder` returns; its table does not forget by itself."""
    table: dict[Any, Any] = {}

    def key(op: Any, attrs: Any, *operands: Any) -> Any:
        parts = [(x.shape, x.dtype) if type(x) is np.ndarray else type(x) for x in operands]
        return (id(op), id(attrs), *parts)

    def find(*applied: Any) -> Any:
        return table.get(key(*applied))

    def store(*given: Any) -> None:
        if given:
            table[key(*given[1:])] = given[0]
        else:
            table.clear()

    return find, store, np.zeros(0, np.int64)


def make_apply(*_: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return two functions that decline: the caller's general path runs and records the op."""
    return lambda *_: None, lambda *_: None


def make_recall(*_: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return a function that knows nothing, and one that keeps nothing: the caller looks lines up itself."""
    return lambda *_: None, lambda *_: None


def make_write(*_: Any) -> Callable[..., None]:
    """Return a function that declines: the caller looks, and logs, itself."""
    return lambda *_: None


def make_view(*_: Any) -> Callable[..., None]:
    """Return a function that declines: the caller's general path makes its views with numpy."""
    return lambda *_: None


def make_steps(
    forms: Sequence[tuple[Sequence[int], Any]],
    out_forms: Sequence[tuple[Sequence[int], Any]],
    steps: Sequence[tuple[int, Sequence[int], Sequence[int]]],
    scratch: int = 0,
) -> Callable[..., Any]:
    """Return what `common.runtime.builtins.make_steps` returns."""
    wanted = [(tuple(shape), np.dtype(dtype)) for shape, dtype in forms]
    runs, held = [(_runner(address), slots, ints) for address, slots, ints in steps], np.empty(scratch, np.uint8)

    def run_steps(*arrays: Any) -> Any:
        if len(arrays) != len(wanted):
            return None
        arrays = tuple(_in_order(x, dtype) for x, (_, dtype) in zip(arrays, wanted, strict=True))
        if any(not _is_array(x, dtype) or x.shape != shape for x, (shape, dtype) in zip(arrays, wanted, strict=True)):
            return None
        outs = tuple(np.empty(tuple(shape), dtype) for shape, dtype in out_forms)
        places = [*map(_data, arrays), *map(_data, outs), _data(held)]
        failed = any(run([places[slot] for slot in slots], ints) for run, slots, ints in runs)
        return None if failed else outs[0] if len(outs) == 1 else outs

    return run_steps


def make_extent(dtypes: Sequence[Any]) -> Callable[..., Any]:
    """Return what `common.runtime.builtins.make_extent` returns."""
    known = {np.dtype(dtype) for dtype in dtypes}

    def extent(*args: Any) -> Any:
        if len(args) != 1 or type(args[0]) is not np.ndarray or args[0].dtype not in known:
            return None
        return byte_bounds(args[0]) if args[0].size else (_data(args[0]),) * 2

    return extent


def make_run(plan: ProgramPlan) -> Callable[..., int]:
    """Return what `common.runtime.builtins.make_run` returns."""
    arguments, preset, keep = plan.exact_arguments(), plan.start().tolist(), plan.keep
    steps: list[Any] = [
        (i.op if i.op >= 0 else _runner(plan.exact(i.kernel)), i.slots, tuple(map(plan.exact, i.ints)))
        for i in plan.instructions
    ]

    def run(*values: Any) -> int:
        if len(values) != len(arguments):
            return BAD_ARGUMENT + min(len(values), len(arguments))
        with _lock:
            return run_alone(values)

    def run_alone(values: Sequence[Any]) -> int:
        frame = list(preset)
        try:
            return run_in(frame, values)
        finally:
            plan.words[:] = frame[: len(plan.words)]

    def run_in(frame: list[int], values: Sequence[Any]) -> int:
        for index, (argument, value) in enumerate(zip(arguments, values, strict=True)):
            if not _accept(argument, value, frame):
                return BAD_ARGUMENT + index
        clash = _find_overlap(arguments, values)
        if clash:
            return OVERLAP + clash
        index = 0
        while index < len(steps):
            kernel, slots, ints = steps[index]
            following, status = index + 1, 0
            if type(kernel) is int:
                following, status = _control(kernel, ints, frame, following)
            else:
                status = kernel([frame[slot] for slot in slots], ints)
            if status:
                return (index + 1) << 32 | (status & 0xFFFFFFFF)
            index = following
        return 0

    run.keep = keep  # type: ignore[attr-defined]
    return run


def make_step(plan: ProgramPlan, binding: Binding) -> Callable[..., Any]:
    """Return what `common.runtime.builtins.make_step` returns; gradients are always left in new memory."""
    run, first = make_run(plan), binding.first

    def step(*given: Any) -> Any:
        wanted = sum(place.source == GIVEN for place in binding.places)
        if len(given) != wanted:
            return BAD_ARGUMENT + min(len(given), wanted)
        each, values = iter(given), []
        for place, argument in zip(binding.places, plan.exact_arguments(), strict=True):
            if place.source == GIVEN:
                x = next(each)
                taken = binding.tensors and type(x) is type(binding.template) and not x._requires_grad
                values.append(x.payload if taken else x)
            elif place.source in (HELD, HELD_GRAD):
                holder = place.owner if place.source == HELD else place.owner._grad
                values.append(holder if isinstance(holder, np.ndarray) else getattr(holder, "payload", None))
            else:
                values.append(np.empty(argument.shape, argument.dtype))
        code = run(*values)
        if code:
            return code
        outputs = list(zip(binding.places, values, strict=True))[first:]
        for place, value in outputs:
            if place.source in (LEFT, LEFT_FRESH):
                place.owner._grad = _like(binding.template, value)
        for owner in binding.cleared:
            owner._grad = None
        found = {place.result: value for place, value in zip(binding.places, values, strict=True)}
        results = [found[i] for i in range(binding.results)]
        if binding.tensors:
            results = [_like(binding.template, x) for x in results]
        return results[0] if binding.one else tuple(results)

    return step


def _like(template: Any, payload: np.ndarray) -> Any:
    """A tensor like the template over an array."""
    made = object.__new__(type(template))
    for name in (name for kind in type(template).__mro__ for name in getattr(kind, "__slots__", ())):
        if name != "__weakref__" and hasattr(template, name):
            setattr(made, name, getattr(template, name))
    made.payload = payload
    return made


def _control(op: int, ints: tuple[int, ...], frame: list[int], following: int) -> tuple[int, int]:
    """Run an instruction that is no kernel call; the number of the next one, and a status."""
    a, b, c, d = ints
    word = ctypes.c_int64
    if op in (ops.SET, ops.ROW):
        frame[a] = frame[b] + (d if op == ops.SET else frame[c] * d)
    elif op == ops.SWAP:
        frame[a], frame[b] = frame[b], frame[a]
    elif op == ops.LOAD:
        frame[a] = word.from_address(frame[b]).value
    elif op == ops.STORE:
        word.from_address(frame[a]).value = frame[b]
    elif op == ops.COPY:
        ctypes.memmove(frame[a], frame[b], d)
    elif op == ops.LIMIT:
        return following, c if frame[a] >= b else 0
    elif op == ops.SHARE:  # one after the other
        pass
    elif (
        op == ops.JUMP
        or (op == ops.JUMP_FALSE and not ctypes.c_int8.from_address(frame[a]).value)
        or (op == ops.JUMP_REACHED and frame[a] >= frame[b])
        or (op == ops.JUMP_OTHER and frame[a] != b)
    ):
        return d, 0
    return following, 0


def _accept(argument: ArgumentCheck, value: Any, frame: list[int]) -> bool:
    if argument.kind == ARRAY:
        if not _is_array(value, argument.dtype, argument.writes) or value.shape != argument.shape:
            return False
        frame[argument.slot] = _data(value)
    else:
        if type(value) is not (float if argument.kind == FLOAT else int):
            return False
        if argument.kind == FLOAT:
            ctypes.c_double.from_address(frame[argument.slot]).value = value
        else:
            if not -(2**63) <= value < 2**63:
                return False
            ctypes.c_int64.from_address(frame[argument.slot]).value = int(value)
    return True


def _find_overlap(arguments: Sequence[ArgumentCheck], values: Sequence[Any]) -> int:
    """Return the later index of an overlapping pair of which one is written; 0 if there is none."""
    for a, first in enumerate(arguments):
        for b, second in enumerate(arguments[:a]):
            if (first.writes or second.writes) and first.nbytes and second.nbytes:
                start, other = _data(values[a]), _data(values[b])
                if start < other + second.nbytes and other < start + first.nbytes:
                    return a
    return 0
