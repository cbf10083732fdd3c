"""The builtin that in-place ops ask and tell, see `common.runtime.call_text`.

``write``: f(tensor) -> the array of a tensor that may be overwritten at once, in order and in memory of its own or
another's: no leaf that requires grad and no part of a family of views, while nothing watches | None where the caller
has to look itself. f(array, frame) -> True after a write to all of an array that owns its memory was logged, as
`common.tensor.write_log.log_write` does, where the memory has a log and the frame is the user's | None. f(tensor,
frame, None) -> True after zeros were written to all of such an array, and that was logged; the array if the caller has
to log that itself | None, with nothing done, where f(tensor) is None, and for dtypes of no known size.

Table: [log, dict of the module that has it, the name of its newest write there, the place that is everything, zero and
the end of memory, offset of the count in a log's entry, offset of a tensor's family, table of ``apply``...].
"""

from __future__ import annotations

from common.runtime.apply_text import APPLIED

_NAMES = ("LOG", "MODULE", "NEWEST", "EVERYTHING", "ZERO", "END", "W_COUNT", "T_FAMILY")
CARRAY = 1281
"""Flags of numpy: in C order, aligned, writeable."""

WRITE = f"""{APPLIED}
PyDict_GetItem, PyDict_SetItem, memset = C
{"".join(f"{name} = {i}" + chr(10) for i, name in enumerate(_NAMES))}
STATE = {len(_NAMES)}
LIST_ITEMS = 3
CARRAY = {CARRAY}

def writable(table, state, object):
    if state[TRACING][ENTRIES] or not is_tensor(state, object):
        return none()
    array = object[state[T_payload]]
    if not has_type(array, PyArray_Type) or (int32s(array)[FLAGS_INT32] & CARRAY) != CARRAY:
        return none()
    if object[state[T__requires_grad]] == Py_True or object[table[T_FAMILY]] != Py_None:
        return none()
    return share(array)

# the entry of a write; 0 after an exception
def entry_of(table, state, code, frame):
    number = PyIter_Next(state[COUNTER])
    if not number:
        return 0
    entry = PyTuple_New(5)
    if not entry:
        Py_DecRef(number)
        return 0
    entry[ITEMS] = number
    entry[ITEMS + 1] = share(table[ZERO])
    entry[ITEMS + 2] = share(table[END])
    entry[ITEMS + 3] = share(code)
    entry[ITEMS + 4] = PyLong_FromLongLong(int_of(PyFrame_GetLasti(frame)))
    return entry

def logged(table, state, array, frame, code):
    if array[BASE] or int_of(PySet_Contains(state[USER_FILES], code[state[FILE_NAME]])) != 1:
        return none()
    key = PyLong_FromLongLong(array)
    writes = PyDict_GetItem(table[LOG], key)
    Py_DecRef(key)
    if not writes:
        return none()
    entry = entry_of(table, state, code, frame)
    if not entry:
        return 0
    failed = int_of(PyDict_SetItem(table[MODULE], table[NEWEST], entry[ITEMS]))
    failed = failed | int_of(PyDict_SetItem(writes, table[EVERYTHING], entry))
    Py_DecRef(entry)
    if failed:
        return 0
    counts = writes[table[W_COUNT]][LIST_ITEMS]
    old = counts[0]
    counts[0] = PyLong_FromLongLong(PyLong_AsLongLong(old) + 1)
    Py_DecRef(old)
    return share(Py_True)

def note_write(table, state, array, frame):
    code = PyFrame_GetCode(frame)
    done = logged(table, state, array, frame, code)
    Py_DecRef(code)
    return done

# bytes of an element by the number of its type, 0 for what is neither bool nor integer nor float
def itemsize_of(number):
    if number < 0 or number > FLOAT64:
        return 0
    return 1 if number < 3 else 2 if number < 5 else 4 if number < 7 or number == FLOAT32 else 8

def zeroed(table, state, object, frame):
    array = writable(table, state, object)
    if array == Py_None:
        return array
    itemsize = itemsize_of(array[DESCR][DTYPE] >> 32)
    if not itemsize:
        Py_DecRef(array)
        return none()
    memset(array[DATA], 0, size_of(array) * itemsize)
    done = note_write(table, state, array, frame)
    if done == Py_None:
        Py_DecRef(done)
        return array
    Py_DecRef(array)
    return done

def write(self, args, nargs):
    table = table_of(self)
    state = at(table, STATE)
    if nargs == 1:
        return writable(table, state, args[0])
    if nargs == 3:
        return zeroed(table, state, args[0], args[1])
    return note_write(table, state, args[0], args[1])
"""
