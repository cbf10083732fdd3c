"""Native source: functions on words, addresses and objects of C, beside what Python computes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from common.compiler.compile import load_native
from common.compiler.native_source import translate_native
from common.compiler.registers import Refused
from common.runtime import cpython_abi

FORWARD = """
BASE = 10

def digit(n):
    return n % BASE

def digits(n, out):
    count = 0
    while n:
        out[count] = digit(n)
        n = n // BASE
        count += 1
    return count
"""

SEARCH = """
def first(words, count, wanted):
    for i in range(count):
        if words[i] == wanted:
            return i
    return -1

def search(words, count, wanted, out):
    found = first(words, count, wanted)
    int32s(out)[1] = to_int32(found) if found < 3 else to_int32(99)
    float64s(out)[1] = to_float64(found)
    if found < 0 and words[0] == wanted - 1:
        return 7
"""

SWAPPED = """
memmove = C

def swapped(memory, n):
    room_of_all = room(n)
    for i in range(n):
        room_of_all[i] = memory[n - 1 - i]
    memmove(memory, room_of_all, 8 * n)
    return memory[0]
"""


ANSWER = """
PyLong_AsLongLong, PyLong_Type = C

def answer(x):
    return PyLong_AsLongLong(x) + (100 if x[1] == PyLong_Type else 0)
"""

COUNTED = """
def counted(memory, seen):
    before = fetch_add(memory, 5)
    exchanged = compare_exchange(memory + 8, seen, 7)
    pause()
    atomic_store(memory + 16, atomic_load(memory) + before)
    return exchanged
"""


def _function(source: str, symbol: str, parameters: int) -> Any:
    cpython_abi.define_symbols()
    return ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * parameters)(load_native(source, symbol))


def test_words_and_functions() -> None:
    """A loop over a number's digits, by a function of the module and a number of its own."""
    out = np.zeros(20, np.int64)
    count = _function(FORWARD, "test_digits", 2)(9071, out.ctypes.data)
    assert out[:count].tolist() == [1, 7, 0, 9]


@pytest.mark.parametrize(("wanted", "found", "answer"), [(5, 1, 0), (8, 4, 0), (1, -1, 0), (10, -1, 7)])
def test_elements_of_other_dtypes(wanted: int, found: int, answer: int) -> None:
    """A function that returns from within a loop; stores of int32 and float64; the end of a function returns 0."""
    words, out = np.array([9, 5, 6, 7, 8]), np.zeros(2, np.int64)
    result = _function(SEARCH, "test_search", 4)(words.ctypes.data, 5, wanted, out.ctypes.data)
    assert result == answer
    assert out.view(np.int32)[1] == (found if found < 3 else 99)
    assert out.view(np.float64)[1] == found


def test_memory_of_a_call() -> None:
    """Memory of a size that is only known at the call, and a function of the C library."""
    memory = np.arange(7)
    assert _function(SWAPPED, "test_swapped", 2)(memory.ctypes.data, 7) == 6
    assert memory.tolist() == [6, 5, 4, 3, 2, 1, 0]


def test_objects_and_functions_of_c() -> None:
    """C's int, and an object's address."""
    read = _function(ANSWER, "test_answer", 1)
    assert read(id(41)) == 141
    assert read(id(True)) == 1


@pytest.mark.parametrize(("seen", "after"), [(3, [6, 7, 7]), (4, [6, 3, 7])])
def test_atomic_words(seen: int, after: list[int]) -> None:
    """An exchange takes place where the word is what was seen."""
    memory = np.array([1, 3, 0])
    assert _function(COUNTED, "test_counted", 2)(memory.ctypes.data, seen) == (seen == 3)
    assert memory.tolist() == after


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os", "line 1: a module has numbers and functions"),
        ("def f(x):\n    return x\n\ndef g(x):\n    return f(x, x)", "line 5: f takes 1 arguments"),
        ("def f(x):\n    return y", "line 2: 'y' has no value here"),
        ("def f(x):\n    return to_float64(x)", "line 2: a word is needed, not float64"),
        ("def f(x):\n    float32s(x)[0] = x", "line 2: int64 is stored as float32"),
        ("def f(x):\n    return", "line 2: a value is returned"),
        ("def f(x):\n    return x.y", "line 2: Attribute is not part of kernel source"),
    ],
)
def test_what_is_not_native_source(source: str, message: str) -> None:
    """The message says the line and what is wrong there."""
    with pytest.raises(Refused, match=message):
        translate_native(source, "test", lambda name: lambda x: x.convert(np.dtype(np.float64)))
