"""The builtin that finds and runs the ops which a public function applies, see `common.runtime.call_text`.

``recall``: f(memory, *arguments) -> the result of a *line* of ops for the tensors among the arguments | None where no
line is stored | NotImplemented where the function is to be called; ``f(line, memory, *arguments)`` stores a line, or
NotImplemented; ``f()`` clears. A line is found by the identity of `memory`, by shape and dtype of the tensors, which
may stand in a list or tuple, and by the values of all other arguments: numbers, tuples of ints, and objects of some
classes by their identity, which a line must keep alive.

Table: [lines, store, offsets in a line..., classes whose objects count by identity..., table of ``apply``...]. A line
that is one op has an order: [operands, per operand which of the tensors it is, or -1 for the next constant].
"""

from __future__ import annotations

from common.runtime.apply_text import APPLIED
from common.runtime.dispatch_text import KEY_WORDS, MAX_OPERANDS

LINE = ("function", "op", "attrs", "order", "constants")
PLAIN_CLASSES = 12
"""How many classes a table names."""
MOST_TENSORS = 256
"""Tensors of one call."""

_NAMES = ("LINES", "STORES", *(f"L_{name}" for name in LINE))

RECALL = f"""{APPLIED}
PyList_Type, Py_False = C
{"".join(f"{name} = {i}" + chr(10) for i, name in enumerate(_NAMES))}
PLAIN = {len(_NAMES)}
PLAIN_CLASSES = {PLAIN_CLASSES}
MOST_TENSORS = {MOST_TENSORS}
STATE = {len(_NAMES) + PLAIN_CLASSES}
LIST_ITEMS = 3

def is_plain(table, object):
    for i in range(PLAIN_CLASSES):
        if object[TYPE] == table[PLAIN + i]:
            return True
    return object == Py_None or object == Py_True or object == Py_False

# adds what is no tensor to a key of so many words
def write_value(table, key, words, object):
    if words > KEY_ROOM:
        return NO_ROOM
    if is_plain(table, object):
        key[words] = object
        return words + 1
    key[words] = object[TYPE]
    if has_type(object, PyFloat_Type):
        key[words + 1] = object[NUMBER]
        return words + 2
    return words + 2 if put_int(object, at(key, words + 1)) else NO_ROOM

def has_array(table, tensor):
    return has_type(tensor[at(table, STATE)[T_payload]], PyArray_Type)

# adds a tensor, one more of the call; of several of one form side by side how many
def write_tensor(state, key, words, tensor, tensors, found):
    count, payload = found[0], state[T_payload]
    tensors[count] = tensor
    found[0] = count + 1
    after = write_form(key, words, tensor[payload], tensors[count - 1][payload] if count else 0)
    if after == words + 1 and found[1] == words and key[words - 1] < 0:
        key[words - 1] += LIKE_LAST
        return words
    found[1] = after
    return after

# adds an argument that holds others, and its tensors to those of the call
def write_several(table, key, words, items, count, tensors, found):
    key[words + 1] = count
    words += 2
    for i in range(count):
        if is_tensor(at(table, STATE), items[i]):
            if not has_array(table, items[i]):
                return NO_ROOM
            if found[0] == MOST_TENSORS:
                return NO_ROOM
            words = write_tensor(at(table, STATE), key, words, items[i], tensors, found)
        elif has_type(items[i], PyLong_Type):
            words = write_value(table, key, words, items[i])
        else:
            return NO_ROOM
        if words == NO_ROOM:
            return NO_ROOM
    return words

# the result of a line for tensors
def run_line(state, table, line, tensors, count):
    operands = room({MAX_OPERANDS})
    order = line[table[L_order]]
    y = none()
    if order != Py_None:
        words = order + BYTES
        constant = line[table[L_constants]] + 8 * ITEMS
        for i in range(words[0]):
            if words[1 + i] < 0:
                operands[i] = constant[0]
                constant = at(constant, 1)
            else:
                operands[i] = tensors[words[1 + i]]
        Py_DecRef(y)
        y = applied(state, line[table[L_op]], line[table[L_attrs]], operands, words[0])
    if y == Py_None:
        Py_DecRef(y)
        y = PyObject_Vectorcall(line[table[L_function]], tensors, count, 0)
    return y

def recall(self, args, nargs):
    key = room({KEY_WORDS})
    tensors = room(MOST_TENSORS)
    found = room(2)
    table = table_of(self)
    state = at(table, STATE)
    lines, stores = table[LINES], table[STORES]
    if nargs == 0:
        return clear(lines)
    found[0] = 0
    found[1] = 0
    key[0] = args[stores]
    words = 1
    if state[TRACING][ENTRIES]:
        return share(Py_NotImplemented)
    for i in range(stores + 1, nargs):
        arg = args[i]
        if is_tensor(state, arg):
            if found[0] == MOST_TENSORS or not has_array(table, arg):
                return share(Py_NotImplemented)
            words = write_tensor(state, key, words, arg, tensors, found)
        elif words <= KEY_ROOM and arg[TYPE] == PyList_Type:
            key[words] = arg[TYPE]
            words = write_several(table, key, words, arg[LIST_ITEMS], arg[COUNT], tensors, found)
        elif words <= KEY_ROOM and (has_type(arg, PyTuple_Type) or arg[TYPE] == table[PLAIN]):
            key[words] = arg[TYPE]
            words = write_several(table, key, words, at(arg, ITEMS), arg[COUNT], tensors, found)
        else:
            words = write_value(table, key, words, arg)
        if words == NO_ROOM:
            return share(Py_NotImplemented)
    home = hash_of(key, words)
    cell = cell_of(lines, key, words, home)
    if stores:
        return put(cell if cell else cell_at(lines, home), args[0], key, words)
    if not cell or not cell[0]:
        return none()
    line = share(cell[0])
    if line == Py_NotImplemented:
        return line
    y = run_line(state, table, line, tensors, found[0])
    Py_DecRef(line)
    return y
"""
