"""Forks at any moment: the child, which has one thread, computes and ends, whatever the other threads were doing."""

from __future__ import annotations

import pytest

from tests.compiler.test_processes import finish, start

PREPARE = """
import faulthandler, gc, os, random, signal, sys, threading, time
import numpy as np
import dynamic, static
from common.core import garbage as collecting, locks

rng = random.Random(SEED)
signal.alarm(110)  # ends the process, whatever waits
x = np.linspace(-1, 1, 8, dtype=np.float32)
serial = iter(range(10**6))

def compiled():
    a, b = next(serial) + 0.5, 1.25
    f = static.function(lambda x: (static.tanh(x * a) + static.cumsum(x, 0) * b).sum())
    return f, dynamic.function(lambda x: (dynamic.tanh(x * a) + dynamic.cumsum(x, 0) * b).sum())

def in_a_thread():
    "A first call that another thread makes."
    thread = threading.Thread(target=compiled()[0], args=(x,))
    thread.start()
    return thread

def computes():
    "What needs locks of all kinds; runs in the child."
    f, eager = compiled()
    assert np.asarray(f(x)).tobytes() == np.asarray(eager(dynamic.tensor(x))).tobytes()
    w = dynamic.tensor(x, requires_grad=True)
    for _ in range(2):
        (dynamic.cat([w] * 5) * dynamic.rand(40)).sum().backward()
    g = static.grad(static.grad(lambda v: (v * v * v).sum()))
    assert static.function(static.grad(lambda v: (v * v).sum()))(x).tolist() == (2 * x).tolist()
    assert gc.isenabled() and not collecting._resting

def forked():
    "Fork; the child computes within a bound."
    global serial
    own = iter(range(10**6 * (next(serial) + 1), 10**12))  # no program of the parent
    start, child = time.perf_counter(), os.fork()
    if not child:
        serial = own
        try:
            faulthandler.register(signal.SIGALRM, chain=True)  # says where it waits
            signal.alarm(60)
            computes()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    waited = time.perf_counter() - start
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, f"the child ended with {status}"
    return waited
"""

MOMENTS = {
    "in the middle of a kernel": """
from common.compiler import llvm_engine as engine
emit, inside = engine.emit, threading.Event()
def slowly(module, symbol, *options):
    inside.set()
    time.sleep(0.1)
    return emit(module, symbol, *options)
engine.emit = slowly
for _ in range(2):
    inside.clear()
    thread = in_a_thread()
    assert inside.wait(60)
    forked()
    thread.join()
""",
    "compiling": """
for _ in range(2):
    thread = in_a_thread()
    time.sleep(rng.random() * 0.15)
    forked()
    thread.join()
""",
    "importing": """
in_a_thread()  # it imports the compiler
time.sleep(rng.random() * 0.2)
forked()
""",
    "anything": """
ended = threading.Event()
big = np.ones((1200, 1200), np.float32)
w = dynamic.tensor(x, requires_grad=True)
def work(kind):
    while not ended.is_set():
        if kind == 0:
            f, eager = compiled()
            f(x)
        elif kind == 1:
            static.function(static.grad(lambda v: (v @ v).sum()))(big[:64, :64])
            (w * dynamic.rand(8)).sum().backward()
        else:
            dynamic.cat([w] * (2 + next(serial) % 30)).sum().backward()
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
static.set_num_threads(2)
for thread in threads:
    thread.start()
try:
    for _ in range(3):
        time.sleep(rng.random() * 0.05)
        forked()
finally:
    ended.set()
    for thread in threads:
        thread.join()
""",
    "a callback that waits for the fork": """
begun, done = threading.Event(), threading.Event()
def callback(v):
    begun.set()
    assert done.wait(60)
    return v
f = static.function(lambda x: static.pure_callback(callback, static.empty(8), x) * 2)
thread = threading.Thread(target=f, args=(x,))
thread.start()
assert begun.wait(60)
assert forked() < locks.LIMIT
done.set()
thread.join()
""",
    "a library is loaded while the fork waits": """
kept, taken = locks.make_lock(), threading.Event()
def load():
    with kept:
        taken.set()
        time.sleep(0.1)
        from llvmlite.binding.ffi import lib
        lib._lock._lock.acquire()
    time.sleep(0.3)
    lib._lock._lock.release()
assert "llvmlite" not in sys.modules
thread = threading.Thread(target=load)
thread.start()
assert taken.wait(60)
forked()
thread.join()
""",
    "the forking thread holds a lock": """
def callback(v):
    forked()
    return v
f = static.function(lambda x: static.pure_callback(callback, static.empty(8), x) * 2)
assert f(x).tolist() == (2 * x).tolist()
""",
    "a lock that is never given back": """
locks.LIMIT = 0.2
kept, done = locks.make_lock(), threading.Event()
def hold():
    with kept:
        done.wait()
thread = threading.Thread(target=hold)
thread.start()
time.sleep(0.05)
child = os.fork()
if not child:
    with kept:
        computes()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert not kept.acquire(blocking=False)
done.set()
thread.join()
computes()
""",
}


EMPTY = (
    "in the middle of a kernel", "compiling", "importing", "a library is loaded while the fork waits", "anything",
)  # fmt: skip


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_forked_process_computes_and_ends(moment, filled, tmp_path):
    """Where what compiles is what matters, with an empty cache."""
    code = PREPARE.replace("SEED", str(sum(map(ord, moment)))) + MOMENTS[moment]
    finish(start(code, tmp_path if moment in EMPTY else filled))
