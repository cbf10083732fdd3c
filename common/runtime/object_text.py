"""The beginning of the native builtins' source: how they read objects and call kernels.

Numbers are those of words (int64), of int32 where the name says so, in the structures of CPython and numpy; all are
checked at run time by `common.runtime.cpython_abi` before this code is used. The eight bytes of a dtype's descr from
word 3 on hold kind, type character, byte order and type number, which together identify a native dtype.
"""

from __future__ import annotations

FEW = 4096
"""Elements below which operands in another order than C's are copied."""

RAISED = 0xFFFFFFFF
"""The status of a kernel that raised an exception, by numba's calling convention; kernels never do."""

OBJECTS = f"""
PyLong_Type, PyFloat_Type, PyBool_Type, PyArray_Type, Py_None = C
PyLong_FromLongLong, PyLong_AsLongLong, PyErr_Occurred, PyErr_Clear, PyErr_SetInterrupt, PyOS_InterruptOccurred = C
Py_IncRef, Py_DecRef, PyTuple_New, PyType_GenericAlloc, memmove = C
PyArray_NewFromDescr, PyArray_SetBaseObject, PyArray_NewCopy = C

RAISED = {RAISED}
TYPE = 1
ITEMS = 3
NUMBER = 2
BYTES = 32
DATA = 2
DIMS = 4
STRIDES = 5
BASE = 6
DESCR = 7
WEAK = 9
RANK_INT32 = 6
FLAGS_INT32 = 16
DTYPE = 3
ALIGNED_ROWS = 257
ALIGNED = 256
FEW = {FEW}

def at(words, index):
    return words + 8 * index

# what a C function returns as an int
def int_of(word):
    return word & 4294967295

# the words of a builtin: the first item of its tuple is a bytes object
def table_of(self):
    return self[ITEMS] + BYTES

def none():
    Py_IncRef(Py_None)
    return Py_None

def has_type(object, type):
    return object[TYPE] == type

# an exact ndarray of a dtype, with at least the given flags
def is_array(object, dtype, flags):
    if not has_type(object, PyArray_Type):
        return False
    return object[DESCR][DTYPE] == dtype and (int32s(object)[FLAGS_INT32] & flags) == flags

def same_words(a, b, count):
    for i in range(count):
        if a[i] != b[i]:
            return False
    return True

def rank_of(array):
    return int32s(array)[RANK_INT32]

def size_of(array):
    size, dims = 1, array[DIMS]
    for d in range(rank_of(array)):
        size *= dims[d]
    return size

def has_sizes(array, rank, dims):
    return rank_of(array) == rank and same_words(array[DIMS], dims, rank)

# a new C-contiguous array, 0 if there is no memory
def new_array(descr, rank, dims):
    Py_IncRef(descr)
    return PyArray_NewFromDescr(PyArray_Type, descr, rank, dims, 0, 0, 0, 0)

# the buffers of one kernel: those of the addresses whose numbers are at slots
def choose(bufs, addresses, slots, count):
    for i in range(count):
        bufs[i] = addresses[slots[i]]

# the status of one kernel
def run_kernel(kernel, bufs, ints):
    status = room(1)
    exception = room(1)
    raised = int_of(invoke(kernel, status, exception, bufs, ints)) != 0
    own = status[0]
    return RAISED if raised else own

# whether an object is an int that fits into a word, which is then put at a place
def put_int(object, place):
    if not has_type(object, PyLong_Type):
        return False
    value = PyLong_AsLongLong(object)
    if value == -1 and PyErr_Occurred():
        PyErr_Clear()
        return False
    place[0] = value
    return True

UINT8 = 2
INT64 = 7
FLOAT32 = 11
FLOAT64 = 12

# whether an object is an int that is within the range of a dtype of integers, which is then put into a cell
def put_whole(object, number, cell):
    if number < 1 or number > INT64 or not put_int(object, cell):
        return False
    value = cell[0]
    bits = 8 if number < 3 else 16 if number < 5 else 32 if number < 7 else 64
    if number == UINT8:
        return value >= 0 and value < 256
    return bits == 64 or (value >> (bits - 1)) == (value >> 63)

# whether an object is a number that a dtype of floats rounds once, or an int that one of integers has, which is then
# put into a cell
def put_number(object, number, cell):
    if number != FLOAT32 and number != FLOAT64:
        return put_whole(object, number, cell)
    if has_type(object, PyFloat_Type):
        if number == FLOAT32:
            float32s(cell)[0] = to_float32(float64s(object)[NUMBER])
        else:
            cell[0] = object[NUMBER]
        return True
    if not put_int(object, cell):
        return False
    if number == FLOAT32:
        float32s(cell)[0] = to_float32(cell[0])
    else:
        float64s(cell)[0] = to_float64(cell[0])
    return True

# the address of an operand's elements in order, 0 if it is of another kind; of few elements in another order it holds a
# copy, as the general way would make
def elements_of(object, dtype, held):
    if not is_array(object, dtype, ALIGNED):
        return 0
    if (int32s(object)[FLAGS_INT32] & ALIGNED_ROWS) == ALIGNED_ROWS:
        return object[DATA]
    if size_of(object) >= FEW:
        return 0
    held[0] = PyArray_NewCopy(object, 0)
    if not held[0]:
        PyErr_Clear()
        return 0
    return held[0][DATA]

def begin(held, count):
    for i in range(count):
        held[i] = 0

def release(held, count):
    for i in range(count):
        if held[i]:
            Py_DecRef(held[i])
"""
