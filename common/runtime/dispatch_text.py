"""The builtins of an eager op's short way, see `common.runtime.call_text`.

``fixed``: f(*arrays) -> ndarray | None runs one kernel on operands of known forms; None, with nothing done, if one is
not an exact, aligned ndarray of its dtype, or a large one that is not C-contiguous, or if the kernel's status is not 0.
Where a 0-d array may come a number may, which a dtype of floats rounds once, or an int that one of integers has. The
shapes are the caller's word. Table:
[inputs, kernel, result descr, result rank, address of scratch or 0, offset of the kernel's ints, inputs that may be
numbers (a bit for each), offset of units' bytes, ints, elements or 0 where no units are shared, inputs' dtypes...,
result dims..., ints..., bytes from a unit to the next in each operand and the result...].

``find``: a table of objects by what an op is applied to: op and attributes by identity, arrays by dtype and shape,
numbers by type. ``f(op, attrs, *operands) -> object | None``; ``f(object, op, attrs, *operands)`` stores, and stores
what does not depend on the shape of arrays if they have one and `attrs` is NotImplemented; ``f()`` clears. Table:
[address of the cells, store]. A cell: [object, words, key...]; an empty one has object 0. A cell owns its object, and
that must keep the attributes alive. A key is looked for in four cells from its hash on; a new one takes the first of
them that is empty, or the first.
"""

from __future__ import annotations

from common.core.allocation import LARGE
from common.runtime.pool_text import SHARED

CELLS = 1024  # a power of 2
CELL_WORDS = 64
KEY_WORDS = 62
MAX_DIMS = 8
MAX_OPERANDS = 32

FIXED = f"""{SHARED}
def fixed(self, args, nargs):
    bufs = room(10)
    numbers = room(8)
    held = room(8)
    table = table_of(self)
    inputs = table[0]
    if nargs != inputs:
        return none()
    begin(held, inputs)
    for i in range(inputs):
        bufs[i] = elements_of(args[i], table[10 + i], at(held, i))
        if not bufs[i] and (table[6] >> i) & 1 and put_number(args[i], table[10 + i] >> 32, at(numbers, i)):
            bufs[i] = at(numbers, i)
        if not bufs[i]:
            release(held, inputs)
            return none()
    out = new_array(table[2], table[3], at(table, 10 + inputs))
    if not out:
        release(held, inputs)
        return 0
    bufs[inputs] = out[DATA]
    bufs[inputs + 1] = table[4]
    ints = at(table, table[5])
    status = run_shared(table[1], bufs, inputs + 1, at(table, table[7]), ints, table[8], table[9])
    release(held, inputs)
    if status == 0:
        return out
    Py_DecRef(out)
    return none()
"""

TABLE = f"""
Py_NotImplemented = C
CELLS = {CELLS}
MAX_OPERANDS = {MAX_OPERANDS}
CELL_WORDS = {CELL_WORDS}
MAX_DIMS = {MAX_DIMS}
KEY_ROOM = {KEY_WORDS - 2 - MAX_DIMS}
NO_ROOM = 999
LIKE_LAST = -1
LARGE = {LARGE // 8}
SPREAD = -7046029254386353131
BITS_35 = 34359738367

def is_number(type):
    return type == PyFloat_Type or type == PyLong_Type or type == PyBool_Type

# adds dtype and shape of an array, or that they are those of the last one, to a key of so many words; how many it has
# then, too many if it has no room
def write_form(key, words, array, last):
    rank, dims = rank_of(array), array[DIMS]
    if rank > MAX_DIMS or words > KEY_ROOM:
        return NO_ROOM
    if last and array[DESCR][DTYPE] == last[DESCR][DTYPE] and has_sizes(array, rank_of(last), last[DIMS]):
        key[words] = LIKE_LAST
        return words + 1
    key[words] = rank
    key[words + 1] = array[DESCR][DTYPE]
    for d in range(rank):
        key[words + 2 + d] = dims[d]
    return words + 2 + rank

# how many words the key of an op, its attributes and operands has; 0 for operands that have none
def write_key(key, op, attrs, operands, count):
    key[0] = op
    key[1] = attrs
    words = 2
    last = 0
    for i in range(count):
        arg = operands[i]
        if has_type(arg, PyArray_Type):
            words = write_form(key, words, arg, last)
            last = arg
        elif is_number(arg[TYPE]) and words <= KEY_ROOM:
            key[words] = arg[TYPE]
            words += 1
        else:
            return 0
        if words == NO_ROOM:
            return 0
    return words

# the same of what does not depend on the shape of arrays; 0 if they have not the same shape, or are large
def write_common_key(key, op, operands, count):
    key[0] = op
    key[1] = Py_NotImplemented
    first = 0
    for i in range(count):
        arg = operands[i]
        if has_type(arg, PyArray_Type):
            if not first:
                first = arg
                key[2] = 1 if rank_of(arg) else 0
                if size_of(arg) >= LARGE:
                    return 0
            elif not has_sizes(arg, rank_of(first), first[DIMS]):
                return 0
            key[3 + i] = arg[DESCR][DTYPE]
        elif is_number(arg[TYPE]):
            key[3 + i] = arg[TYPE]
        else:
            return 0
    return 3 + count if first else 0

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
"""

FIND = f"""{TABLE}
def find(self, args, nargs):
    key = room({KEY_WORDS})
    table = table_of(self)
    cells, stores = table[0], table[1]
    if nargs == 0:
        return clear(cells)
    words = 0
    count = nargs - stores - 2
    if count >= 0 and count <= MAX_OPERANDS:
        operands = at(args, stores + 2)
        if stores and args[2] == Py_NotImplemented:
            words = write_common_key(key, args[1], operands, count)
        else:
            words = write_key(key, args[stores], args[stores + 1], operands, count)
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
