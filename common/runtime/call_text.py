"""The native builtins of `common.runtime.builtins`, written for the C layout of CPython and numpy.

``self`` of each builtin is a tuple whose first item is a bytes object: a table of int64 words, described at
each function.  The other items only keep alive what the table points to. All texts are native source
(`common.compiler.native_source`) and begin with `common.runtime.object_text`.
"""

from __future__ import annotations

from common.runtime.apply_text import APPLY
from common.runtime.array_text import EXTENT, STEPS, VIEW
from common.runtime.binding_text import BINDING
from common.runtime.dispatch_text import FIND, FIXED
from common.runtime.execute_text import EXECUTE
from common.runtime.object_text import OBJECTS
from common.runtime.pool_text import SHARED
from common.runtime.recall_text import RECALL
from common.runtime.run_text import FREE, RUN
from common.runtime.write_text import WRITE

MAX_BUFFERS = 64
MAX_INPUTS = 8

# f(*args): ndarrays -> bufs, ints -> args.  Table: [kernel].  Returns the status, -1 for other arguments.
_CALL = f"""
def call(self, args, nargs):
    bufs = room({MAX_BUFFERS})
    ints = room({MAX_BUFFERS})
    if nargs > {MAX_BUFFERS}:
        return PyLong_FromLongLong(-1)
    arrays = 0
    numbers = 0
    for i in range(nargs):
        arg = args[i]
        if has_type(arg, PyArray_Type):
            bufs[arrays] = arg[DATA]
            arrays += 1
        elif has_type(arg, PyLong_Type):
            value = PyLong_AsLongLong(arg)
            if value == -1 and PyErr_Occurred():
                return 0
            ints[numbers] = value
            numbers += 1
        else:
            return PyLong_FromLongLong(-1)
    return PyLong_FromLongLong(run_kernel(table_of(self)[0], bufs, ints))
"""

# f(*operands) -> ndarray | status | None.  Of two operands one may be a number, if there is a scalar kernel for it.
# Table: [inputs, full kernel, left-scalar kernel, right-scalar kernel, result descr, inputs' dtypes..., bytes of an
# element of each and of the result...].
_ELEMENTWISE = f"""{SHARED}
# the status of an elementwise kernel, whose result is put into a place; -1 for operands that it does not take
def run_elementwise(table, args, held, result):
    bufs = room({MAX_INPUTS + 1})
    bytes = room({MAX_INPUTS + 1})
    size = room(1)
    cell = room(1)
    inputs, number = table[0], -1
    memmove(bytes, at(table, 5 + inputs), 8 * (inputs + 1))
    for i in range(inputs):
        bufs[i] = elements_of(args[i], table[5 + i], at(held, i))
        if not bufs[i]:
            if inputs != 2 or number != -1 or not table[2 + i] or not put_number(args[i], table[5 + i] >> 32, cell):
                return -1
            bufs[i] = cell
            number = i
    first = args[1 - number if number >= 0 else 0]
    kernel, rank, dims = table[1], rank_of(first), first[DIMS]
    if number >= 0:
        kernel = table[2 + number]
        bytes[number] = 0
    else:
        for j in range(1, inputs):
            other = args[j]
            its_rank = rank_of(other)
            if its_rank == rank:
                if not same_words(dims, other[DIMS], rank):
                    return -1
            elif inputs == 2 and (rank == 0 or its_rank == 0):
                kernel = table[2 if rank == 0 else 3]
                if not kernel:
                    return -1
                bytes[0 if rank == 0 else 1] = 0
                if rank == 0:
                    rank = its_rank
                    dims = other[DIMS]
            else:
                return -1
    n = 1
    for k in range(rank):
        n *= dims[k]
    out = new_array(table[4], rank, dims)
    result[0] = out
    if not out:
        return 0
    bufs[inputs] = out[DATA]
    size[0] = n
    return run_shared(kernel, bufs, inputs + 1, bytes, size, 1, n)

def elementwise(self, args, nargs):
    held = room({MAX_INPUTS})
    result = room(1)
    table = table_of(self)
    inputs = table[0]
    if nargs != inputs:
        return none()
    begin(held, inputs)
    status = run_elementwise(table, args, held, result)
    release(held, inputs)
    if status == 0:
        return result[0]
    if status == -1:
        return none()
    Py_DecRef(result[0])
    return PyLong_FromLongLong(status)
"""


_BODIES = {
    "call": _CALL, "elementwise": _ELEMENTWISE, "fixed": FIXED, "find": FIND, "view": VIEW, "steps": STEPS,
    "extent": EXTENT, "apply": APPLY, "recall": RECALL, "write": WRITE, "run": BINDING + EXECUTE + RUN,
    "free": BINDING + EXECUTE + FREE,
}  # fmt: skip


def builtin_source(symbol: str) -> str:
    """Return the native source of one builtin."""
    return OBJECTS + _BODIES[symbol]
