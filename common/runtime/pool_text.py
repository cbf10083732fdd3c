"""The pool's threads and their caller, as `common.compiler.native_source`.

Words of the pool: number of threads, whether a call uses the pool, address of its job, how often threads look out;
then, in a cache line per thread but the first, its state, a lock that wakes it, a lock with which it says that it is
done, the number that the system has for it, and the processor that is forbidden to it. Words of a job: kernel, bufs,
args, their count, tasks, the next task.
"""

from __future__ import annotations

from common.runtime.object_text import OBJECTS

THREADS, BUSY, JOB, PATIENCE, FIRST = 0, 1, 2, 3, 8
STATE, WAKE, DONE, NUMBER, FORBIDDEN, WORDS = 0, 1, 2, 3, 4, 8
IDLE, LOOKS_OUT, WOKEN, CALLED_OFF, RUNNING, AWAITED = range(6)
MOST_ARGS = 23
MANY = 1 << 16
"""Elements of a loop from which on its units are shared: one thread takes some 5 us for them."""
PER_THREAD = 2
"""Tasks for each thread: one that a busy machine delays leaves some to the others."""

_BOTH = f"""{OBJECTS}
pool, PyThread_acquire_lock, PyThread_release_lock = C

def thread_at(number):
    return at(pool, {FIRST} + {WORDS} * number)

def move(thread, old, new):
    return compare_exchange(at(thread, {STATE}), old, new)

# look at the state of a thread until it is another one, or for some 50 us
def look_out(thread, state):
    for i in range(atomic_load(at(pool, {PATIENCE}))):
        if atomic_load(at(thread, {STATE})) != state:
            return 0
        pause()

def drain(job):
    own = room({MOST_ARGS + 1})
    count = job[3]
    memmove(own, job[2], 8 * count)
    while True:
        task = fetch_add(at(job, 5), 1)
        if task >= job[4]:
            return 0
        own[count] = task
        run_kernel(job[0], job[1], own)
"""

SHARE = f"""{_BOTH}
def rouse(thread, here):
    if thread[{FORBIDDEN}] != here:
        forbid(thread[{NUMBER}], here)
        thread[{FORBIDDEN}] = here
    # called off before it noticed that it had been woken: it still will
    if not move(thread, {CALLED_OFF}, {WOKEN}) and not move(thread, {LOOKS_OUT}, {WOKEN}):
        move(thread, {IDLE}, {WOKEN})
        PyThread_release_lock(thread[{WAKE}])

def wait_for(thread):
    if move(thread, {WOKEN}, {CALLED_OFF}):
        return 0
    look_out(thread, {RUNNING})
    if move(thread, {RUNNING}, {AWAITED}):
        PyThread_acquire_lock(thread[{DONE}], 1)

def share(kernel, bufs, args, count, tasks):
    job = room(6)
    job[0] = kernel
    job[1] = bufs
    job[2] = args
    job[3] = count
    job[4] = tasks
    job[5] = 0
    others = min(tasks, pool[{THREADS}]) - 1
    if others < 1 or not compare_exchange(at(pool, {BUSY}), 0, 1):
        drain(job)
        return 0
    pool[{JOB}] = job
    here = processor()
    for i in range(others):
        rouse(thread_at(i), here)
    drain(job)
    for i in range(others):
        wait_for(thread_at(i))
    atomic_store(at(pool, {BUSY}), 0)
"""

WORK = f"""{_BOTH}
def begins(thread):
    while not move(thread, {WOKEN}, {RUNNING}):
        if move(thread, {CALLED_OFF}, {LOOKS_OUT}):
            return False
    return True

def work(number):
    thread = thread_at(number)
    while True:
        look_out(thread, {LOOKS_OUT})
        if move(thread, {LOOKS_OUT}, {IDLE}):
            PyThread_acquire_lock(thread[{WAKE}], 1)
        if begins(thread):
            drain(pool[{JOB}])
            if not move(thread, {RUNNING}, {LOOKS_OUT}):
                atomic_store(at(thread, {STATE}), {LOOKS_OUT})
                PyThread_release_lock(thread[{DONE}])
"""

# Kernels whose first int counts units that do not depend on each other: of each buffer, a unit has so many bytes.
# A job's args: kernel, buffers, units, tasks, ints, their count, address of the status, bytes..., and the task.
SLICE = f"""{OBJECTS}
def slice(status, exception, bufs, args):
    own = room(16)
    ints = room(16)
    units, tasks, task = args[2], args[3], args[7 + args[1]]
    grain = 16 if units >= 4096 else 1
    low = units * task // tasks // grain * grain
    high = units
    if task + 1 < tasks:
        high = units * (task + 1) // tasks // grain * grain
    for i in range(args[1]):
        own[i] = bufs[i] + low * args[7 + i]
    memmove(ints, args[4], 8 * args[5])
    ints[0] = high - low
    failed = run_kernel(args[0], own, ints)
    if failed:
        args[6][0] = failed
    return 0
"""

SHARED = f"""
pool, share, slice = C

# the status of a kernel whose first int counts units, of which threads take some where there are many elements
def run_shared(kernel, bufs, buffers, bytes, ints, count, elements):
    args = room({MOST_ARGS})
    status = room(1)
    tasks = min(ints[0], {PER_THREAD} * pool[{THREADS}])
    if elements < {MANY} or pool[{THREADS}] < 2 or tasks < 2:
        return run_kernel(kernel, bufs, ints)
    status[0] = 0
    args[0] = kernel
    args[1] = buffers
    args[2] = ints[0]
    args[3] = tasks
    args[4] = ints
    args[5] = count
    args[6] = status
    memmove(at(args, 7), bytes, 8 * buffers)
    invoke(share[0], slice[0], bufs, args, 7 + buffers, tasks)
    return status[0]
"""
