"""Builtins that make arrays: views, and the results of ops that are a few kernels; see `common.runtime.call_text`.

``view``: f(x) -> view | None.
Table: [dtype, rank, dims..., strides..., offset, out rank, writable, out dims..., out strides...], strides and offset
in bytes, writable 0 or numpy's flag. None for anything but an exact ndarray of that dtype, those sizes and strides.

``steps``: f(*arrays) -> ndarray, or tuple of several | None.
Table: [inputs, steps, results, address of scratch or 0, per result: descr, rank, dims..., per input: dtype, rank,
dims..., per step: kernel, buffers, slots..., ints, values...]. Slots count inputs, then results, then the scratch. None
for operands of another form, and as soon as a kernel's status is not 0.

``extent``: f(array) -> (low, high) | None, the addresses between which an array lies.
Table: [dtypes, per dtype: dtype, bytes].
"""

from __future__ import annotations

VIEW = """
def view(self, args, nargs):
    table = table_of(self)
    rank = table[1]
    dims = at(table, 2)
    strides = at(dims, rank)
    if nargs != 1:
        return none()
    x = args[0]
    if not (is_array(x, table[0], 0) and has_sizes(x, rank, dims) and same_words(x[STRIDES], strides, rank)):
        return none()
    rest = at(strides, rank)
    data, its_rank, flags = x[DATA] + rest[0], rest[1], int32s(x)[FLAGS_INT32] & rest[2]
    its_dims = at(rest, 3)
    Py_IncRef(x[DESCR])
    out = PyArray_NewFromDescr(PyArray_Type, x[DESCR], its_rank, its_dims, at(its_dims, its_rank), data, flags, 0)
    if not out:
        return 0
    Py_IncRef(x)
    if int_of(PyArray_SetBaseObject(out, x)) == 0:
        return out
    Py_DecRef(out)
    return 0
"""

STEPS = """
# new arrays for several results, whose forms begin at a record, and their addresses; 0 if there is no memory
def new_arrays(record, count, addresses):
    made = PyTuple_New(count)
    if not made:
        return 0
    for k in range(count):
        out = new_array(record[0], record[1], at(record, 2))
        if not out:
            Py_DecRef(made)
            return 0
        made[ITEMS + k] = out
        addresses[k] = out[DATA]
        record = at(record, 2 + record[1])
    return made

def steps(self, args, nargs):
    bufs = room(64)
    chosen = room(64)
    held = room(64)
    table = table_of(self)
    inputs, results = table[0], table[2]
    if nargs != inputs:
        return none()
    begin(held, inputs)
    record = at(table, 4)
    for k in range(results):
        record = at(record, 2 + record[1])
    for i in range(inputs):
        arg = args[i]
        bufs[i] = elements_of(arg, record[0], at(held, i))
        if not bufs[i] or not has_sizes(arg, record[1], at(record, 2)):
            release(held, inputs)
            return none()
        record = at(record, 2 + record[1])
    made = 0
    if results == 1:
        made = new_array(table[4], table[5], at(table, 6))
        if made:
            bufs[inputs] = made[DATA]
    else:
        made = new_arrays(at(table, 4), results, at(bufs, inputs))
    if not made:
        release(held, inputs)
        return 0
    bufs[inputs + results] = table[3]
    for k in range(table[1]):
        choose(chosen, bufs, at(record, 2), record[1])
        ints = at(record, 2 + record[1])
        if run_kernel(record[0], chosen, at(ints, 1)) != 0:
            release(held, inputs)
            Py_DecRef(made)
            return none()
        record = at(ints, 1 + ints[0])
    release(held, inputs)
    return made
"""

EXTENT = """
def pair(a, b):
    both = PyTuple_New(2)
    if both:
        both[ITEMS] = PyLong_FromLongLong(a)
        both[ITEMS + 1] = PyLong_FromLongLong(b)
    return both

def between(x, size):
    low = x[DATA]
    high = low + size
    dims, strides = x[DIMS], x[STRIDES]
    for i in range(rank_of(x)):
        if dims[i] == 0:
            return pair(x[DATA], x[DATA])
        reach = (dims[i] - 1) * strides[i]
        high += max(reach, 0)
        low += min(reach, 0)
    return pair(low, high)

def extent(self, args, nargs):
    table = table_of(self)
    if nargs != 1 or not has_type(args[0], PyArray_Type):
        return none()
    for k in range(table[0]):
        if table[1 + 2 * k] == args[0][DESCR][DTYPE]:
            return between(args[0], table[2 + 2 * k])
    return none()
"""
