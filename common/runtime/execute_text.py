"""The instructions of a program, one after the other: native source, to be read with `common.runtime.call_text`.

They are those of `common.runtime.program_plan`. Where Python's lock is held the run listens for Ctrl-C: each iteration
of a loop jumps, and every 16th jump looks. The run then ends with the status INTERRUPTED, and has changed
no state, as with any status. The handler is left to the caller's interpreter, which runs it at once: Python code that
ran in here could use the memory of this run, or free it.
"""

from __future__ import annotations

INTERRUPTED = 1 << 23

END, SET, ROW, SWAP, LOAD, STORE, COPY, JUMP, JUMP_FALSE, JUMP_REACHED, JUMP_OTHER, LIMIT, SHARE = range(13)
"""Instructions that are no kernel calls, on words a, b, c of the frame and a number d:

- SET: a = b + d;  ROW: a = b + c * d;  SWAP: a and b;  LOAD: a = what b points to;  STORE: to what a points to, b;
- COPY: d bytes from b to a;
- JUMP to instruction d;  JUMP_FALSE: if the byte at a is 0;  JUMP_REACHED: if a >= b;  JUMP_OTHER: if a is not the
  number b;
- LIMIT: end with status c if a >= the number b;
- SHARE: the next a kernel calls, of b words each, do not depend on each other, and threads may make them. From word c
  on: the addresses that `common.runtime.tasks` gives, then the status of every call.
"""

EXECUTE = f"""
# (instruction + 1) << 32 | status
def failed(instruction, status):
    return (instruction[1] + 1) << 32 | int_of(status)

# 0, or what has failed
def execute(frame, bufs, code, listens):
    shared = room(3)
    jumps = 0
    at_next = code
    while True:
        now = at_next
        kernel = now[0]
        if kernel >= 64:
            slots = at(now, 3)
            choose(bufs, frame, slots, now[2])
            ints = at(slots, now[2])
            at_next = at(ints, 1 + ints[0])
            status = run_kernel(kernel, bufs, at(ints, 1))
            if status != 0:
                return failed(now, status)
            continue
        a, b, c, d = now[2], now[3], now[4], now[5]
        at_next = at(now, 6)
        goes = False
        if kernel == {SET}:
            frame[a] = frame[b] + d
        elif kernel == {ROW}:
            frame[a] = frame[b] + frame[c] * d
        elif kernel == {SWAP}:
            frame[a], frame[b] = frame[b], frame[a]
        elif kernel == {LOAD}:
            frame[a] = frame[b][0]
        elif kernel == {STORE}:
            frame[a][0] = frame[b]
        elif kernel == {COPY}:
            memmove(frame[a], frame[b], d)
        elif kernel == {JUMP}:
            goes = True
        elif kernel == {JUMP_FALSE}:
            goes = int8s(frame[a])[0] == 0
        elif kernel == {JUMP_REACHED}:
            goes = frame[a] >= frame[b]
        elif kernel == {JUMP_OTHER}:
            goes = frame[a] != b
        elif kernel == {LIMIT}:
            if frame[a] >= b:
                return failed(now, c)
        elif kernel == {SHARE}:
            shared[0] = at_next
            shared[1] = b
            shared[2] = at(frame, c + 2)
            invoke(frame[c], frame[c + 1], frame, shared, 3, a)
            for k in range(a):
                if frame[c + 2 + k] != 0:
                    return failed(now, frame[c + 2 + k])
            at_next = at(at_next, a * b)
        else:
            return 0
        if goes:
            jumps += 1
            if listens and jumps & 15 == 0 and int_of(PyOS_InterruptOccurred()):
                PyErr_SetInterrupt()
                return failed(now, {INTERRUPTED})
            at_next = at(code, d)
"""
