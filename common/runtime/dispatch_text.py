"""The builtins of an eager op's short way, see `common.runtime.call_text`.

``fixed``: f(*arrays) -> ndarray | None runs one kernel on operands of known forms; None, with nothing done, if one is
not an exact, C-contiguous, aligned ndarray of its dtype, or if the kernel's status is not 0. The shapes are the
caller's word. Table: [inputs, kernel, result descr, result rank, address of scratch or 0, offset of the kernel's ints,
inputs' dtypes..., result dims..., ints...].

``find``: a table of objects by what an op is applied to: op and attributes by identity, arrays by dtype and shape,
numbers by type. ``f(op, attrs, *operands) -> object | None``; ``f(object, op, attrs, *operands)`` stores;
``f()`` clears. Table: [address of the cells, store]. A cell of 32 words: [object, words, key...]; an empty one has
object 0. A cell owns its object, and that must keep the attributes alive. A key is looked for in four cells from its
hash on; a new one takes the first of them that is empty, or the first.
"""

from __future__ import annotations

CELLS = 1024  # a power of 2
CELL_WORDS = 32
KEY_WORDS = 24
MAX_DIMS = 4

FIXED = """
def fixed(self, args, nargs):
    bufs = room(10)
    table = table_of(self)
    inputs = table[0]
    if nargs != inputs:
        return none()
    for i in range(inputs):
        arg = args[i]
        if not is_array(arg, table[6 + i], ALIGNED_ROWS):
            return none()
        bufs[i] = arg[DATA]
    out = new_array(table[2], table[3], at(table, 6 + inputs))
    if not out:
        return 0
    bufs[inputs] = out[DATA]
    bufs[inputs + 1] = table[4]
    if run_kernel(table[1], bufs, at(table, table[5])) == 0:
        return out
    Py_DecRef(out)
    return none()
"""

FIND = f"""
CELLS = {CELLS}
CELL_WORDS = {CELL_WORDS}
MAX_DIMS = {MAX_DIMS}
KEY_ROOM = {KEY_WORDS - 2 - MAX_DIMS}
SPREAD = -7046029254386353131
BITS_35 = 34359738367

def is_number(type):
    return type == PyFloat_Type or type == PyLong_Type or type == PyBool_Type

# how many words the key of an op, its attributes and operands has; 0 for operands that have none
def write_key(key, args, nargs):
    if nargs < 2:
        return 0
    key[0] = args[0]
    key[1] = args[1]
    words = 2
    for i in range(2, nargs):
        arg = args[i]
        if words > KEY_ROOM:
            return 0
        if has_type(arg, PyArray_Type):
            rank, dims = rank_of(arg), arg[DIMS]
            if rank > MAX_DIMS:
                return 0
            key[words] = rank
            key[words + 1] = arg[DESCR][DTYPE]
            for d in range(rank):
                key[words + 2 + d] = dims[d]
            words += 2 + rank
        elif is_number(arg[TYPE]):
            key[words] = arg[TYPE]
            words += 1
        else:
            return 0
    return words

def hash_of(key, words):
    hash = 0
    for k in range(words):
        hash = (hash ^ key[k]) * SPREAD
        hash ^= (hash >> 29) & BITS_35
    return hash >> 7

def cell_at(cells, place):
    return at(cells, (place & (CELLS - 1)) * CELL_WORDS)

# the cell that has a key, else the first of four that is empty; 0 if there is none
def cell_of(cells, key, words, home):
    for p in range(4):
        cell = cell_at(cells, home + p)
        if not cell[0] or (cell[1] == words and same_words(at(cell, 2), key, words)):
            return cell
    return 0

def put(cell, object, key, words):
    old = cell[0]
    Py_IncRef(object)
    cell[0] = object
    cell[1] = words
    for k in range(words):
        cell[2 + k] = key[k]
    if old:
        Py_DecRef(old)
    return none()

def clear(cells):
    for c in range(CELLS):
        cell = cell_at(cells, c)
        object = cell[0]
        cell[0] = 0
        if object:
            Py_DecRef(object)
    return none()

def find(self, args, nargs):
    key = room({KEY_WORDS})
    table = table_of(self)
    cells, stores = table[0], table[1]
    if nargs == 0:
        return clear(cells)
    words = write_key(key, at(args, stores), nargs - stores)
    if not words:
        return none()
    home = hash_of(key, words)
    cell = cell_of(cells, key, words, home)
    if stores:
        return put(cell if cell else cell_at(cells, home), args[0], key, words)
    if not cell or not cell[0]:
        return none()
    Py_IncRef(cell[0])
    return cell[0]
"""
