"""Parts of the builtin that runs a program: its arguments, and the Python objects of a bound one. Native source.

A bound program (`common.runtime.bound_program`) finds its state in Python objects, makes its results, and leaves
gradients in tensors. What can run other Python code comes first and last: objects are made before an address is read,
and what is replaced is let go of after everything is in its place.

Words of a record: kind, dtype or address of a cell, rank, flags, slot, source, address of a slot, target, descr,
dims... Words of a binding: results, things to leave, those among them that are gradients, whether there is one result,
not a tuple, template, its words, which of these is the payload, first output, offset of its record in the table, where
weak references to a tensor start (since Python 3.12 before the object), which of its words says that it requires grad
(0: results are arrays, and no tensors are taken), slot addresses...
"""

from __future__ import annotations

from common.runtime.argument_checks import ARRAY, FLOAT
from common.runtime.bound_program import GIVEN, HELD, LEFT, LEFT_FRESH, MADE
from common.runtime.cpython_abi import ALIGNED, C_CONTIGUOUS, OWNDATA, WRITEABLE

BINDING = f"""
ARRAY = {ARRAY}
FLOAT = {FLOAT}
GIVEN = {GIVEN}
HELD = {HELD}
MADE = {MADE}
LEFT = {LEFT}
LEFT_FRESH = {LEFT_FRESH}

# of a record
KIND = 0
SUBJECT = 1
RANK = 2
WANTED = 3
SLOT = 4
SOURCE = 5
CELL = 6
TARGET = 7
OWN_DESCR = 8
SIZES = 9

# of a binding
RESULTS = 0
THINGS = 1
GRADIENTS = 2
ONE = 3
TEMPLATE = 4
WORDS = 5
PAYLOAD = 6
FIRST = 7
FIRST_RECORD = 8
WEAK_PLACE = 9
TENSORS = 10
CELLS = 11

REFERENCES = 0
OWN_MEMORY = {C_CONTIGUOUS | ALIGNED | OWNDATA | WRITEABLE}

def record_after(record):
    return at(record, SIZES + record[RANK])

def has_form(record, array):
    return is_array(array, record[SUBJECT], record[WANTED]) and has_sizes(array, record[RANK], at(record, SIZES))

# keep an array, whose reference it takes, as a result; a result that is a tensor is there already
def set_result(binding, result, target, array):
    if binding[TENSORS]:
        result[ITEMS + target][binding[PAYLOAD]] = array
    else:
        result[ITEMS + target] = array

# the array of an argument that is a tensor which does not require grad, where tensors are taken; else what it is
def given_array(binding, given):
    template, wants = binding[TEMPLATE], binding[TENSORS]
    if wants and given[TYPE] == template[TYPE] and given[wants] == template[wants]:
        return given[binding[PAYLOAD]]
    return given

# a new array for a record, 0 if there is no memory
def array_for(record):
    return new_array(record[OWN_DESCR], record[RANK], at(record, SIZES))

# a tensor like the template over an array, whose reference it takes; 0 if there is no memory
def new_tensor(binding, array):
    template, payload = binding[TEMPLATE], binding[PAYLOAD]
    new = PyType_GenericAlloc(template[TYPE], 0)
    if not new:
        Py_DecRef(array)
        return 0
    for w in range(2, binding[WORDS]):
        if w != payload and template[w]:
            Py_IncRef(template[w])
            new[w] = template[w]
    new[payload] = array
    return new

def is_like_template(binding, tensor):
    template, payload = binding[TEMPLATE], binding[PAYLOAD]
    for w in range(1, binding[WORDS]):
        if w != payload and tensor[w] != template[w]:
            return False
    return True

# the array of a tensor that only its slot refers to, and which is as the template but for an array of the record's
# form that owns its memory, and to which only the tensor refers; else 0
def reusable(binding, record, tensor):
    if not tensor or tensor[REFERENCES] != 1 or tensor[binding[WEAK_PLACE]] or not is_like_template(binding, tensor):
        return 0
    array = tensor[binding[PAYLOAD]]
    if not array or array[REFERENCES] != 1 or not is_array(array, record[SUBJECT], OWN_MEMORY):
        return 0
    if array[BASE] or array[WEAK] or not has_sizes(array, record[RANK], at(record, SIZES)):
        return 0
    return array

# the array in whose memory the gradient of a record may be left, or 0
def old_gradient(binding, record):
    return reusable(binding, record, record[CELL][0]) if record[SOURCE] == LEFT else 0

# put new tensors into the result if it has tensors; false if there is no memory
def make_tensors(binding, result):
    if binding[TENSORS]:
        for k in range(binding[RESULTS]):
            result[ITEMS + k] = new_tensor(binding, 0)
            if not result[ITEMS + k]:
                return False
    return True

# put a new array into the result, or a new gradient among the things to leave; false if there is no memory
def make_object(binding, record, result, left):
    if record[SOURCE] == MADE:
        array = array_for(record)
        set_result(binding, result, record[TARGET], array)
        return array != 0
    if record[SOURCE] < LEFT or old_gradient(binding, record):
        return True
    array = array_for(record)
    if not array:
        return False
    tensor = new_tensor(binding, array)
    left[ITEMS + record[TARGET]] = tensor
    return tensor != 0

# put all new objects into the result and among the things to leave; false if there is no memory
def make_objects(table, binding, result, left):
    if not make_tensors(binding, result):
        return False
    record = at(table, binding[FIRST_RECORD])
    for i in range(binding[FIRST], table[0]):
        if not make_object(binding, record, result, left):
            return False
        record = record_after(record)
    for k in range(binding[GRADIENTS], binding[THINGS]):
        left[ITEMS + k] = none()
    return True

# the array of an output; 0 if the memory of a gradient is no longer to be written to
def output_array(binding, record, result, left):
    target = record[TARGET]
    if record[SOURCE] == MADE:
        made = result[ITEMS + target]
        return made[binding[PAYLOAD]] if binding[TENSORS] else made
    new = left[ITEMS + target]
    return new[binding[PAYLOAD]] if new else old_gradient(binding, record)

# the array that is state; 0 if there is none
def held_array(binding, record):
    held = record[CELL][0]
    if record[SOURCE] == HELD:
        return held
    if not held or held[TYPE] != binding[TEMPLATE][TYPE]:
        return 0
    return held[binding[PAYLOAD]]

# let slots and the things to leave change places
def leave(binding, left):
    for k in range(binding[THINGS]):
        new = left[ITEMS + k]
        if new:
            cell = binding[CELLS + k]
            left[ITEMS + k] = cell[0]
            cell[0] = new
"""
