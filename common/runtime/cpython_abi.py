"""The C side of CPython and numpy: addresses for native code, and the check of the objects' layout."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import weakref
from functools import cache, partial
from typing import Any

import numpy as np

from common.compiler import llvm_engine

C_CONTIGUOUS, OWNDATA, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400

# Indices of numpy's C API table (numpy/__multiarray_api.h); they have never changed.
_ARRAY_TYPE, _NEW_COPY, _NEW_FROM_DESCR, _SET_BASE_OBJECT = 2, 85, 94, 282

_PYTHON_FUNCTIONS = (
    "PyLong_FromLongLong", "PyLong_AsLongLong", "PyErr_Occurred", "PyErr_Clear", "Py_IncRef", "Py_DecRef",
    "PyTuple_Pack", "PyTuple_New", "PyType_GenericAlloc", "PyOS_InterruptOccurred", "PyErr_SetInterrupt",
    "PyErr_ExceptionMatches", "PyObject_Vectorcall", "PyIter_Next", "PyContextVar_Get", "PyEval_GetFrame",
    "PyFrame_GetCode", "PyFrame_GetBack", "PyFrame_GetLasti", "PySet_Contains", "PyDict_Contains",
    "PyDict_GetItem", "PyDict_SetItem",
)  # fmt: skip


@cache
def _numpy_api() -> Any:
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = get_pointer(_multiarray_umath._ARRAY_API, None)
    return (ctypes.c_void_p * (_SET_BASE_OBJECT + 1)).from_address(address)


def define_symbols() -> None:
    """Name the addresses that the builtins use, so that no object file contains an address."""
    for name in _PYTHON_FUNCTIONS:
        function = getattr(ctypes.pythonapi, name)
        pointer = ctypes.cast(function, ctypes.c_void_p).value or 0
        llvm_engine.define(f"twingrad_{name}", partial(int, pointer))
    for name, python_object in (
        ("PyLong_Type", int),
        ("PyFloat_Type", float),
        ("PyBool_Type", bool),
        ("PyTuple_Type", tuple),
        ("PyList_Type", list),
        ("PyExc_Exception", Exception),
        ("Py_True", True),
        ("Py_False", False),
        ("Py_NotImplemented", NotImplemented),
        ("Py_None", None),
    ):
        llvm_engine.define(f"twingrad_{name}", partial(id, python_object))
    llvm_engine.define("twingrad_PyArray_Type", partial(id, np.ndarray))
    for name, index in (
        ("NewFromDescr", _NEW_FROM_DESCR),
        ("SetBaseObject", _SET_BASE_OBJECT),
        ("NewCopy", _NEW_COPY),
    ):
        llvm_engine.define(f"twingrad_PyArray_{name}", partial(_numpy_function, index))


def _numpy_function(index: int) -> int:
    return int(_numpy_api()[index] or 0)


def descr_word(dtype: np.dtype[Any]) -> int:
    """Return the eight bytes that identify a native dtype: kind, character, byte order, flags, number."""
    dtype = np.dtype(dtype)
    known = _words.get(id(dtype))  # not by value: equal dtypes of C's long and long long have different numbers
    if known is None:
        known = _words[id(dtype)] = dtype, int(_read(ctypes.c_int64, dtype, 24))
    return known[1]


_words: dict[int, tuple[np.dtype[Any], int]] = {}


def slot_offset(owner: type, name: str) -> int:
    """Where in its objects a class with `__slots__` keeps an attribute, in bytes."""
    definition = _read(ctypes.c_int64, owner.__dict__[name], 40)
    return ctypes.c_int64.from_address(definition + 16).value


def is_supported() -> bool:
    """Whether objects of this Python and this numpy have the layout that the builtins are written for.

    Only reads memory that belongs to the objects, so it is safe with any layout.
    """
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little" or hasattr(sys, "getobjects"):
        return False
    try:
        return _python_layout() and _numpy_layout()
    except (ImportError, AttributeError, TypeError, ValueError):
        return False


def _read(ctype: Any, python_object: Any, offset: int) -> Any:
    if offset + ctypes.sizeof(ctype) > max(sys.getsizeof(python_object), type(python_object).__basicsize__):
        raise ValueError("offset outside the object")
    return ctype.from_address(id(python_object) + offset).value


class _Slotted:
    __slots__ = ("first", "second")
    second: bytes


def _python_layout() -> bool:
    word = ctypes.c_int64
    slotted = _Slotted()
    slotted.second = data = b"\x01\x02\x03\x04\x05\x06\x07\x08" * 2
    item = object()
    before = _read(word, item, 0)
    held = [item] * 3
    return bool(
        all(_read(word, each, 8) == id(type(each)) for each in (data, (item,), 2.5, 7, None))
        and _read(word, data, 32) == int.from_bytes(data[:8], "little")
        and _read(word, (item,), 24) == id(item)
        and _read(word, (item, item), 16) == 2
        and _read(word, held, 16) == 3
        and word.from_address(_read(word, held, 24)).value == id(item)
        and _read(word, {1: item, 2: item, 3: item}, 16) == 3
        and _read(ctypes.c_double, 2.5, 16) == 2.5
        and _read(word, item, 0) == before + len(held)
        and _read(word, slotted, slot_offset(_Slotted, "second")) == id(data)
        and _read(word, slotted, slot_offset(_Slotted, "first")) == 0
    )


def _numpy_layout() -> bool:
    word = ctypes.c_int64
    if _numpy_api()[_ARRAY_TYPE] != id(np.ndarray):
        return False
    for dtype in (np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.bool_)):
        array = np.zeros((3, 5), dtype)
        number = _read(ctypes.c_int32, dtype, 28)
        if number != dtype.num or _read(ctypes.c_char, dtype, 26) not in (b"=", b"|"):
            return False
        for view, flags in (
            (array, C_CONTIGUOUS | ALIGNED | WRITEABLE),
            (array.T, ALIGNED | WRITEABLE),
            (np.broadcast_to(array[0, :1], (3, 5)), ALIGNED),
        ):
            dims, steps = _read(word, view, 32), _read(word, view, 40)
            if not (
                _read(word, view, 16) == view.__array_interface__["data"][0]
                and _read(ctypes.c_int32, view, 24) == view.ndim
                and [word.from_address(dims + 8 * i).value for i in range(view.ndim)] == list(view.shape)
                and [word.from_address(steps + 8 * i).value for i in range(view.ndim)] == list(view.strides)
                and _read(word, view, 48) == (0 if view.base is None else id(view.base))
                and _read(word, view, 56) == id(view.dtype)
                and _read(ctypes.c_int32, view, 64) & (C_CONTIGUOUS | ALIGNED | WRITEABLE) == flags
                and _read(ctypes.c_int32, view, 64) & OWNDATA == (OWNDATA if view is array else 0)
                and _read(word, view, 72) == 0
            ):
                return False
        reference = weakref.ref(array)
        if reference() is array and _read(word, array, 72) == 0:
            return False
    return True
