"""The builtin that runs a whole program, and a function that needs no lock; see `common.runtime.call_text`.

``run``: f(*arguments) returns 0, BAD_ARGUMENT + index, OVERLAP + index, or (instruction + 1) << 32 | status; if the
program is bound to Python objects (`common.runtime.binding_text`), its results instead of 0.

Table, in words: [arguments, those given, frame, last, bufs, records, code, bytes, writes, binding]; frame, last and
bufs are addresses, the others offsets into the table, binding 0 if there is none:

- a record per argument and the binding: see `common.runtime.binding_text`;
- code, per kernel call: [kernel, number of the instruction, buffers, slots..., ints, values...]; what has one of the
  small numbers of `common.runtime.execute_text` in place of a kernel's address: [that, number of the instruction, a,
  b, c, d];
- bytes and writes, one word per argument each.

Words of the frame are addresses of buffers, or counters of loops.

``last[i]`` is the data address with which argument i passed the overlap check; behind it lies the list of the
arguments whose address has changed. What the call itself makes overlaps nothing, so its word stays 0. At ``bufs`` the
addresses of the buffers of one kernel are put together.

``free`` runs a program without Python's lock: f(table, given, memory) returns 0, (instruction + 1) << 32 | status, or
-1 - index for an argument that is state and has become something else. `given` holds the addresses of arrays and the
bits of numbers, in order; the caller has checked them. `memory` is what the call writes to besides its outputs: the
frame, the addresses of one kernel's buffers, and the arena.

Table, in words: [arguments, records, code, words of the frame, frame, places, list of places, buffers]; all but the
counts are offsets. A record is that of `common.runtime.binding_text`, with an object's identity as its target: state is
the array that it was, or refused. Words of the frame that are places hold offsets into the arena.
"""

from __future__ import annotations

BAD_ARGUMENT = 1_000_000
OVERLAP = 2_000_000

RUN = f"""
def answer(code, result, left):
    Py_DecRef(result)
    Py_DecRef(left)
    return PyLong_FromLongLong(code)

# whether an object is a number of the kind that an argument is, which is then put into the argument's cell
def put_word(record, object):
    if record[KIND] != FLOAT:
        return put_int(object, record[SUBJECT])
    if not has_type(object, PyFloat_Type):
        return False
    record[SUBJECT][0] = object[NUMBER]
    return True

# the argument that overlaps another; -1 if there is none
def overlapping(a, count, last, bytes, writes):
    start = last[a]
    stop = start + bytes[a]
    for b in range(count):
        if start < last[b] + bytes[b] and last[b] < stop and b != a and (writes[a] or writes[b]):
            if bytes[a] and bytes[b]:
                return b
    return -1

def run(self, args, nargs):
    table = table_of(self)
    count, frame, last = table[0], table[2], table[3]
    changed = at(last, count)
    if nargs != table[1]:
        return PyLong_FromLongLong({BAD_ARGUMENT} + min(nargs, table[1]))
    is_bound, binding = table[9] != 0, at(table, table[9])
    result = 0
    left = 0
    if is_bound:
        # making objects may run Python code, so it is done before anything is read
        result = PyTuple_New(binding[RESULTS])
        left = PyTuple_New(binding[THINGS])
        if not result or not left or not make_objects(table, binding, result, left):
            Py_DecRef(result)
            Py_DecRef(left)
            return 0

    code = 0
    given = 0
    news = 0
    record = at(table, table[5])
    for i in range(count):
        source = record[SOURCE]
        if source >= MADE:
            own = output_array(binding, record, result, left)
            if not own:
                code = {BAD_ARGUMENT} + i
                break
            frame[record[SLOT]] = own[DATA]
        else:
            arg = 0
            if source == GIVEN:
                arg = args[given]
                given += 1
                if is_bound:
                    arg = given_array(binding, arg)
            else:
                arg = held_array(binding, record)
            if arg and record[TARGET] >= 0:
                Py_IncRef(arg)
                set_result(binding, result, record[TARGET], arg)
            if not arg or not (has_form(record, arg) if record[KIND] == ARRAY else put_word(record, arg)):
                code = {BAD_ARGUMENT} + i
                break
            if record[KIND] == ARRAY:
                data = arg[DATA]
                frame[record[SLOT]] = data
                if last[i] != data:
                    last[i] = data
                    changed[news] = i
                    news += 1
        record = record_after(record)

    # only a pair with a changed address can newly overlap: in a training loop the parameters cost nothing here
    if code == 0:
        bytes, writes = at(table, table[7]), at(table, table[8])
        for c in range(news):
            other = overlapping(changed[c], count, last, bytes, writes)
            if other >= 0:
                code = {OVERLAP} + max(changed[c], other)
                break
    if code != 0:
        # a refused call leaves no address behind that counts as checked
        for c in range(news):
            last[changed[c]] = 0
        return answer(code, result, left)

    code = execute(frame, table[4], at(table, table[6]), True)
    if code != 0 or not is_bound:
        return answer(code, result, left)
    leave(binding, left)
    Py_DecRef(left)
    if not binding[ONE]:
        return result
    only = result[ITEMS]
    Py_IncRef(only)
    Py_DecRef(result)
    return only
"""

FREE = """
def free(table, given, memory):
    words = table[3]
    memmove(memory, at(table, table[4]), 8 * words)
    bufs = at(memory, words)
    arena = at(bufs, table[7]) + 63 & -64
    places = at(table, table[6])
    for k in range(table[5]):
        memory[places[k]] += arena
    record = at(table, table[1])
    for i in range(table[0]):
        address = 0
        if record[SOURCE] == GIVEN:
            address = given[0] if record[KIND] == ARRAY else given
            given = at(given, 1)
        else:
            state = record[CELL][0]
            if state != record[TARGET] or not has_form(record, state):
                return -1 - i
            address = state[DATA]
        memory[record[SLOT]] = address
        record = record_after(record)
    return execute(memory, bufs, at(table, table[2]), False)
"""
