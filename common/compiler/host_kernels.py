"""Kernels that are Python: they have the ABI of compiled ones, and call a library, such as LAPACK through SciPy.

Their source names a function of arrays and the forms of its buffers; sizes are int arguments as of any kernel, so one
of them serves all sizes. The function's module is imported when the kernel first runs. While Python runs, another
thread may: a program with such a kernel holds a lock, as one with a `pure_callback` does.

Where Python takes longer than the library, another module has a function by the same name that writes native source
(`common.compiler.native_source`) for the usual case: ``(kernel, python) -> text``. That code has the ABI too, and calls
the kernel named `python` with its own arguments in all other cases.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from math import prod
from threading import local
from typing import Any, NamedTuple

import numpy as np

from common.compiler import llvm_engine
from common.core.dtypes import name_of
from common.core.op import NativeCall
from common.core.sizes import Dim
from common.core.spec import Spec

MARK = "python "
"""How the source of such a kernel begins."""
RAISED = (1 << 22) + 1
"""The status of a kernel that has raised; `take_error` tells what. No compiled kernel has it."""
ERRORS: Mapping[int, str] = {RAISED: "a library function has failed"}
"""Of a `NativeCall`: such a kernel may end a program."""

_ABI = ctypes.PYFUNCTYPE(
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_int64),
)
_made: dict[str, tuple[Any, int]] = {}
_raised = local()


def host_call(
    module: str, function: str, specs: Sequence[Spec], outs: Sequence[Spec], words: Sequence[Any] = (), native: str = ""
) -> NativeCall:
    """The call of ``module.function(*arrays, *words) -> array``, or a tuple of arrays where there are several results.

    Parameters
    ----------
    specs, outs : operands and results of the op.
    words : further arguments: ints and sizes, and others of which `repr` makes Python text.
    native : the module that writes native source for the usual case.
    """
    forms = " ".join(f"{name_of(s.dtype)}:{len(s.shape)}" for s in (*specs, *outs))
    texts = tuple(... if _is_size(x) else x for x in words)
    source = f"{MARK}{module} {function} {len(outs)} {native}\n{forms}\n{texts!r}\n".replace("Ellipsis", "...")
    ints = (*(n for s in (*specs, *outs) for n in s.shape), *(x for x in words if _is_size(x)))
    return NativeCall(source, function, ints, errors=ERRORS)


def _is_size(x: Any) -> bool:
    return type(x) is int or isinstance(x, Dim)


def address(source: str) -> int:
    """The address of the kernel in Python that a source of `host_call` describes."""
    if source not in _made:
        made = _ABI(_kernel(source))
        _made[source] = made, ctypes.cast(made, ctypes.c_void_p).value or 0
    return _made[source][1]


def native(source: str) -> tuple[str, str]:
    """Native source for the usual case of a kernel, which leaves the rest to Python, and its name; may be empty."""
    kernel, name = parse(source), f"python_{sha256(source.encode()).hexdigest()[:16]}"
    text = getattr(import_module(kernel.native), kernel.name)(kernel, name) if kernel.native else ""
    if text:
        llvm_engine.define(f"twingrad_{name}", lambda: address(source))
    return text, f"twingrad_native_{name}"


def take_error() -> BaseException:
    """Take the exception that the last kernel of this thread raised."""
    error, _raised.error = _raised.error, None
    assert isinstance(error, BaseException)
    return error


def forget_error() -> None:
    """Forget the exception that the last kernel of this thread raised: the caller computes again, and raises its own.

    Its frames would keep the memory of operands alive.
    """
    _raised.error = None


class HostKernel(NamedTuple):
    """The source of a kernel that calls Python, parsed.

    Attributes
    ----------
    module, name : of the function.
    buffers : dtype and dimensions of each operand and result.
    operands : how many of them are operands.
    words : further arguments; an ellipsis stands for an int argument of the kernel, behind those that are sizes.
    native : the module that writes native source; may be empty.
    """

    module: str
    name: str
    buffers: list[tuple[np.dtype[Any], int]]
    operands: int
    words: tuple[Any, ...]
    native: str


def parse(source: str) -> HostKernel:
    """Parse a source of `host_call`."""
    from ast import literal_eval

    head, forms, words = source.splitlines()
    module, name, results, native = head.removeprefix(MARK).split(" ")
    buffers = [(np.dtype(dtype), int(ndim)) for dtype, ndim in (form.split(":") for form in forms.split())]
    return HostKernel(module, name, buffers, len(buffers) - int(results), literal_eval(words), native)


def _kernel(source: str) -> Callable[..., int]:
    """The function behind an address, which reads and writes memory."""
    module, name, buffers, first, arguments, _ = parse(source)
    found: list[Callable[..., Any]] = []
    # what lies at an address stays the same view of it, so the last one serves calls on the same memory
    seen: list[tuple[Any, Any, Any]] = [(None, None, None)] * len(buffers)

    def run(status: Any, _: Any, bufs: Any, ints: Any) -> int:
        status[0] = 0
        try:
            if not found:
                found.append(getattr(import_module(module), name))
            arrays, at = [], 0
            for i, (dtype, ndim) in enumerate(buffers):
                shape = tuple(ints[at : at + ndim])
                at += ndim
                address, before, array = seen[i]
                if address != bufs[i] or before != shape:
                    array = _array(bufs[i], shape, dtype)
                    seen[i] = bufs[i], shape, array
                arrays.append(array)
            sizes = iter(ints[at : at + arguments.count(...)])
            given = found[0](*arrays[:first], *(next(sizes) if x is ... else x for x in arguments))
            for y, value in zip(arrays[first:], given if type(given) is tuple else (given,), strict=True):
                y[...] = value
        except BaseException as error:  # it must not pass through native code
            _raised.error, status[0] = error, RAISED
        return 0

    return run


def is_host(call: NativeCall) -> bool:
    """Whether a call is one of `host_call`."""
    return call.source.startswith(MARK)


def function_of(call: NativeCall) -> Callable[..., Any]:
    """The computation of a `host_call`, as a function of arrays alone; its module is imported when it runs."""
    module, name, buffers, _, words, _ = parse(call.source)
    sizes = iter(call.ints[sum(ndim for _, ndim in buffers) :])
    values = [next(sizes) if x is ... else x for x in words]
    found: list[Callable[..., Any]] = []

    def run(*arrays: Any) -> Any:
        if not found:
            found.append(getattr(import_module(module), name))
        return found[0](*arrays, *values)

    return run


def _array(address: int | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """The elements at an address."""
    nbytes = prod(shape) * dtype.itemsize
    if not nbytes or not address:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, memoryview((ctypes.c_char * nbytes).from_address(address)))
