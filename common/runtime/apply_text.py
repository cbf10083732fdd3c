"""The builtin that applies an op to tensors, see `common.runtime.call_text`.

``apply``: f(op, attrs, *operands) -> tensor, or tuple of tensors | None. Operands are tensors and numbers. It finds the
recipe for them in the table of ``find``, runs it, makes a tensor of the result and, if a gradient may be wanted, puts a
node on the tape. It returns None, with nothing done, where the general way is to be taken: for new shapes and dtypes,
for operands of other classes, while something watches, and where the op raises an Exception, which the general way
raises again.

With READY in its table it is ``show``: f(recipe, result, *tensors) -> the same for an array, or a tuple of arrays, that
the op has made already; whose memory a result shows is for the caller to note.

Table: see the names below; what is in capitals there is an object, an offset in words, or an address. A plan, the
contents of a bytes object, says how a node is made: [whether it may be, or CONVERTS where converted operands need
nodes of their own, whether results may be views of the first operand, inputs that it saves, their positions..., inputs
of which it saves the shape, their positions..., what of the results it saves].
"""

from __future__ import annotations

from common.runtime.dispatch_text import KEY_WORDS, MAX_OPERANDS, TABLE

#: The words of the table: those of the engine's state and functions, then offsets in objects by class and attribute.
STATE = (
    "ROWS", "TRACING", "EXPOSED", "NO_ATTRS", "DUE", "GRAD_MODE", "COUNTER", "USER_FILES", "OWN_FILES", "PLACE", "LOOK",
    "SEAL", "NOTE", "TEMPLATE", "TENSOR_WORDS", "NODE_CLASS", "KIND_1", "KIND_2", "KIND_3", "FILE_NAME", "READY",
)  # fmt: skip
TENSOR = ("payload", "_requires_grad", "grad_fn", "output_nr")
NODE = ("number", "op", "attrs", "backward", "edges", "saved", "fit", "code", "lasti", "freed_by")
RECIPE = ("builtin", "run", "plan", "op", "attrs", "backward", "forms")
CONVERTS = 2
SAVES_NONE, SAVES_ALL, SAVES_REST, SAVES_FIRST = range(4)

_NAMES = (*STATE, *(f"T_{x}" for x in TENSOR), *(f"N_{x}" for x in NODE), *(f"R_{x}" for x in RECIPE))

APPLIED = f"""{TABLE}
PyTuple_Type, Py_True, PyExc_Exception, PyErr_ExceptionMatches, PyObject_Vectorcall, PyDict_Contains = C
PyIter_Next, PyContextVar_Get, PyEval_GetFrame, PyFrame_GetCode, PyFrame_GetBack, PyFrame_GetLasti, PySet_Contains = C

{"".join(f"{name} = {i}" + chr(10) for i, name in enumerate(_NAMES))}
ENTRIES = 2
COUNT = 2
REFERENCES = 0
FLOATING = 102

def is_tensor(table, object):
    kind = object[TYPE]
    return kind == table[KIND_1] or kind == table[KIND_2] or kind == table[KIND_3]

def wants_gradient(table, object):
    return is_tensor(table, object) and object[table[T__requires_grad]] == Py_True

def share(object):
    Py_IncRef(object)
    return object

# what a slot holds is replaced by something new
def set_slot(object, slot, new):
    old = object[slot]
    object[slot] = new
    Py_DecRef(old)

# declines after an exception that the general way raises again; a press of Ctrl-C and its like goes on
def failed():
    if int_of(PyErr_ExceptionMatches(PyExc_Exception)):
        PyErr_Clear()
        return none()
    return 0

# a call of a function of Python's whose result does not matter; whether it went well
def tell(function, argument):
    cell = room(1)
    cell[0] = argument
    result = PyObject_Vectorcall(function, cell, 1, 0)
    if not result:
        return False
    Py_DecRef(result)
    return True

# a tensor without history over an array, whose reference it takes
def tensor_over(table, array):
    template, payload = table[TEMPLATE], table[T_payload]
    new = PyType_GenericAlloc(template[TYPE], 0)
    if not new:
        Py_DecRef(array)
        return 0
    for w in range(2, table[TENSOR_WORDS]):
        if w != payload and template[w]:
            new[w] = share(template[w])
    new[payload] = array
    return new

def pair_of(a, b):
    both = PyTuple_New(2)
    if both:
        both[ITEMS] = share(a)
        both[ITEMS + 1] = share(b)
    return both

# where the gradient of an operand goes
def edge_of(table, operand):
    if not wants_gradient(table, operand):
        return none()
    maker = operand[table[T_grad_fn]]
    if maker == Py_None:
        return share(operand)
    output = operand[table[T_output_nr]]
    if output == table[TEMPLATE][table[T_output_nr]]:
        return share(maker)
    return pair_of(maker, output)

def edges_of(table, operands, count):
    edges = PyTuple_New(count)
    if edges:
        for i in range(count):
            edge = edge_of(table, operands[i])
            if not edge:
                Py_DecRef(edges)
                return 0
            edges[ITEMS + i] = edge
    return edges

# of several results all but the first, or the first alone; None stands for the others
def some_of(y, first):
    count = y[COUNT]
    parts = PyTuple_New(count)
    if parts:
        for i in range(count):
            parts[ITEMS + i] = share(y[ITEMS + i]) if (1 if i == 0 else 0) == first else none()
    return parts

# what the rules of an op read, see `Op.saves`
def saved_of(table, plan, forms, payloads, y):
    inputs = plan[2]
    positions = at(plan, 3)
    shapes = positions[inputs]
    places = at(positions, inputs + 1)
    outputs = places[shapes]
    saved = PyTuple_New(inputs + shapes + (1 if outputs != {SAVES_NONE} else 0))
    if not saved:
        return 0
    for i in range(inputs):
        saved[ITEMS + i] = share(payloads[positions[i]])
    for i in range(shapes):
        saved[ITEMS + inputs + i] = share(forms[ITEMS + places[i]][ITEMS])
    if outputs == {SAVES_ALL}:
        saved[ITEMS + inputs + shapes] = share(y)
    elif outputs != {SAVES_NONE}:
        some = some_of(y, outputs == {SAVES_FIRST})
        if not some:
            Py_DecRef(saved)
            return 0
        saved[ITEMS + inputs + shapes] = some
    return saved

# the user's code and instruction, as `common.core.source_lines.user_frame` finds them; whether it went well
def note_place(table, new):
    cell = room(1)
    frame = PyEval_GetFrame()
    Py_IncRef(frame)
    while frame:
        code = PyFrame_GetCode(frame)
        name = code[table[FILE_NAME]]
        if int_of(PySet_Contains(table[USER_FILES], name)) == 1:
            new[table[N_code]] = code
            new[table[N_lasti]] = PyLong_FromLongLong(int_of(PyFrame_GetLasti(frame)))
            Py_DecRef(frame)
            return new[table[N_lasti]] != 0
        Py_DecRef(code)
        below = PyFrame_GetBack(frame) if int_of(PySet_Contains(table[OWN_FILES], name)) == 1 else 0
        Py_DecRef(frame)
        frame = below
    depth = PyLong_FromLongLong(1)
    cell[0] = depth
    place = PyObject_Vectorcall(table[PLACE], cell, 1, 0)
    Py_DecRef(depth)
    if not place:
        return False
    new[table[N_code]] = share(place[ITEMS])
    new[table[N_lasti]] = share(place[ITEMS + 1])
    Py_DecRef(place)
    return True

# whether what is saved may be memory that the outside can write: its owner is known by its identity, or is no array
def may_be_exposed(table, saved):
    for i in range(saved[COUNT]):
        array = saved[ITEMS + i]
        if has_type(array, PyTuple_Type):
            if array[COUNT] and not is_number(array[ITEMS][TYPE]):  # no shape
                return True
        elif has_type(array, PyArray_Type):
            while array[BASE] and has_type(array[BASE], PyArray_Type):
                array = array[BASE]
            if array[BASE]:
                return True
            key = PyLong_FromLongLong(array)
            found = int_of(PyDict_Contains(table[EXPOSED], key))
            Py_DecRef(key)
            if found != 0:
                return True
    return False

# the node of an op; 0 after an exception
def node_of(table, recipe, operands, payloads, count, y):
    number = PyIter_Next(table[COUNTER])
    if not number:
        return 0
    if PyLong_AsLongLong(number) >= table[DUE][0] and not tell(table[LOOK], number):
        Py_DecRef(number)
        return 0
    new = PyType_GenericAlloc(table[NODE_CLASS], 0)
    if not new:
        Py_DecRef(number)
        return 0
    new[table[N_number]] = number
    new[table[N_op]] = share(recipe[table[R_op]])
    new[table[N_attrs]] = share(recipe[table[R_attrs]])
    new[table[N_backward]] = share(recipe[table[R_backward]])
    new[table[N_fit]] = share(recipe[table[R_forms]])
    new[table[N_freed_by]] = none()
    new[table[N_edges]] = edges_of(table, operands, count)
    new[table[N_saved]] = saved_of(table, recipe[table[R_plan]] + BYTES, recipe[table[R_forms]], payloads, y)
    if new[table[N_edges]] and new[table[N_saved]] and note_place(table, new):
        if not table[EXPOSED][ENTRIES] or not may_be_exposed(table, new[table[N_saved]]) or tell(table[SEAL], new):
            return new
    Py_DecRef(new)
    return 0

def recorded(table, tensor, node, position):
    set_slot(tensor, table[T_grad_fn], share(node))
    set_slot(tensor, table[T__requires_grad], share(Py_True))
    if position:
        set_slot(tensor, table[T_output_nr], PyLong_FromLongLong(position))

# whether gradients are recorded; -1 after an exception
def is_recording(table):
    cell = room(1)
    cell[0] = 0
    if int_of(PyContextVar_Get(table[GRAD_MODE], 0, cell)) != 0 or not cell[0]:
        return -1
    found = cell[0] == Py_True
    Py_DecRef(cell[0])
    return found

# whether results are arrays
def are_arrays(y):
    if not has_type(y, PyTuple_Type) or not y[COUNT]:
        return False
    for i in range(y[COUNT]):
        if not has_type(y[ITEMS + i], PyArray_Type):
            return False
    return True

# note that a tensor may show memory of an operand; whether that went well
def noted(table, recipe, operand, tensor, position):
    arguments = room(5)
    arguments[0] = operand
    arguments[1] = tensor
    arguments[2] = recipe[table[R_op]]
    arguments[3] = recipe[table[R_attrs]]
    arguments[4] = Py_None if position < 0 else PyLong_FromLongLong(position)
    found = PyObject_Vectorcall(table[NOTE], arguments, 5, 0)
    if position >= 0:
        Py_DecRef(arguments[4])
    if found:
        Py_DecRef(found)
    return found != 0

# the tensors of several results
def tensors_over(table, recipe, operand, y, node):
    count = y[COUNT]
    tensors = PyTuple_New(count)
    if not tensors:
        return 0
    shows = y[ITEMS][BASE] and is_tensor(table, operand) and not table[READY]
    for i in range(count):
        array = y[ITEMS + i]
        tensor = tensor_over(table, share(array))
        if not tensor:
            Py_DecRef(tensors)
            return 0
        tensors[ITEMS + i] = tensor
        if node and (array[DESCR][DTYPE] & 255) == FLOATING:
            recorded(table, tensor, node, i)
        if shows and not noted(table, recipe, operand, tensor, i):
            Py_DecRef(tensors)
            return 0
    return tensors

# the recipe that a key leads to; 0 if there is none that says how a node is made, if one is wanted
def recipe_of(table, key, words, wanted):
    if not words:
        return 0
    cell = cell_of(table[ROWS], key, words, hash_of(key, words))
    if not cell or not cell[0] or cell[0][table[R_plan]] == Py_None:
        return 0
    if wanted and (cell[0][table[R_plan]] + BYTES)[0] == {CONVERTS} and is_recording(table) != 0:
        PyErr_Clear()
        return 0
    return cell[0]

# what a builtin returns, None without one; 0 after an exception
def called(builtin, payloads, count):
    return PyObject_Vectorcall(builtin, payloads, count, 0) if builtin != Py_None else none()

# tensors over the results, and a node if one is wanted; takes the reference to y
def shown(table, recipe, operands, payloads, count, y, wanted):
    several = has_type(y, PyTuple_Type)
    if not (are_arrays(y) if several else has_type(y, PyArray_Type)):
        Py_DecRef(y)
        return none()
    node = 0
    if wanted and (recipe[table[R_plan]] + BYTES)[0]:
        recording = is_recording(table)
        if recording == 1:
            node = node_of(table, recipe, operands, payloads, count, y)
        if recording == -1 or (recording == 1 and not node):
            Py_DecRef(y)
            return failed()
    result = 0
    if several:
        result = tensors_over(table, recipe, operands[0], y, node)
        Py_DecRef(y)
    else:
        result = tensor_over(table, y)
        if result and node:
            recorded(table, result, node, 0)
        if result and (recipe[table[R_plan]] + BYTES)[1] and is_tensor(table, operands[0]) and not table[READY]:
            if not noted(table, recipe, operands[0], result, -1):
                Py_DecRef(result)
                result = 0
    if node:
        Py_DecRef(node)
    return result

# what an op makes of tensors and numbers; None where the general way is to be taken
def applied(table, op, attrs, operands, count):
    payloads = room({MAX_OPERANDS})
    key = room({KEY_WORDS})
    wanted = 0
    tensors = 0
    for i in range(count):
        operand = operands[i]
        if is_tensor(table, operand):
            tensors += 1
            payloads[i] = operand[table[T_payload]]
            if operand[table[T__requires_grad]] == Py_True:
                wanted = 1
        elif is_number(operand[TYPE]):
            payloads[i] = operand
        else:
            return none()
    if not tensors:
        return none()
    # by a recipe for any shape, where there is one and its builtin takes the operands; else by that for theirs
    y = none()
    recipe = 0
    if attrs == table[NO_ATTRS]:
        recipe = recipe_of(table, key, write_common_key(key, op, payloads, count), wanted)
        if recipe:
            Py_IncRef(recipe)
            Py_DecRef(y)
            y = called(recipe[table[R_builtin]], payloads, count)
    if y == Py_None:
        if recipe:
            Py_DecRef(recipe)
        recipe = recipe_of(table, key, write_key(key, op, attrs, payloads, count), wanted)
        if not recipe:
            return y
        Py_IncRef(recipe)
        Py_DecRef(y)
        y = called(recipe[table[R_builtin]], payloads, count)
        if y == Py_None:
            Py_DecRef(y)
            y = PyObject_Vectorcall(recipe[table[R_run]], payloads, count, 0)
    result = shown(table, recipe, operands, payloads, count, y, wanted) if y else failed()
    Py_DecRef(recipe)
    return result
"""

APPLY = f"""{APPLIED}
# what `applied` makes of a result
def ready(table, recipe, y, operands, count):
    payloads = room({MAX_OPERANDS})
    wanted = False
    for i in range(count):
        if not is_tensor(table, operands[i]):
            return none()
        payloads[i] = operands[i][table[T_payload]]
        if wants_gradient(table, operands[i]):
            wanted = True
    return shown(table, recipe, operands, payloads, count, share(y), wanted)

def apply(self, args, nargs):
    table = table_of(self)
    if nargs < 3 or nargs - 2 > MAX_OPERANDS or table[TRACING][ENTRIES]:
        return none()
    if table[READY]:
        return ready(table, args[0], args[1], at(args, 2), nargs - 2)
    return applied(table, args[0], args[1], at(args, 2), nargs - 2)
"""
