"""The function that runs a program without Python's lock: native source, to be read with `common.runtime.call_text`.

``f(table, given, memory)`` returns 0, (instruction + 1) << 32 | status, or -1 - index for an argument that is state and
has become something else. `given` holds the addresses of arrays and the bits of numbers, in order; the caller has
checked them. `memory` is what the call writes to besides its outputs: the frame, the addresses of one kernel's buffers,
and the arena.

Table, in words: [arguments, records, code, words of the frame, frame, places, list of places, buffers]; all but the
counts are offsets. A record is that of `common.runtime.binding_text`, with an object's identity as its target: state is
the array that it was, or refused. Words of the frame that are places hold offsets into the arena.
"""

from __future__ import annotations

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
