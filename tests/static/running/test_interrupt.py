"""Ctrl-C during a compiled loop, in a process of its own: a loop that does not listen runs forever."""

from __future__ import annotations

import pytest

from tests.compiler.test_processes import finish, start

PREPARE = """
import os, signal, subprocess, time
import numpy as np
import static

signal.alarm(100)  # ends the process, whatever runs
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born deaf to it

def soon():
    return subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -INT {os.getpid()}"])

w = static.nn.Parameter(np.ones(3))
w.grad = static.tensor(np.full(3, 7.0))
"""

KINDS = {
    "while": "static.while_loop(lambda y: (y < limit).any(), lambda y: y + 1.0, w * 0.0 + limit * 0.0)",
    "counted": "static.fori_loop(0, limit, lambda i, y: y * 0.5 + 1.0, w * 0.0)",
    "numbers": "static.while_loop(lambda y: y < limit, lambda y: y + 1.0, w[0] * 0.0 + limit * 0.0)",
    "nested": "static.fori_loop(0, 3, lambda i, y: static.while_loop("
    "lambda z: (z < limit).any(), lambda z: z + 1.0, y * 0.0), w * 0.0)",
}

INTERRUPT = """
@static.function
def f(limit):
    w.grad = None
    with static.no_grad():
        y = LOOP
        w.copy_(w + y)
    return y.sum()

def state():
    return [x if x is None else np.asarray(x).tolist() for x in (w, w.grad)]

short, endless = LIMITS
right = f(short)
for _ in range(3):  # the general path, then the short one
    w.grad = static.tensor(np.full(3, 7.0))
    before, sender = state(), soon()
    start = time.perf_counter()
    try:
        f(endless)
    except KeyboardInterrupt:
        late = time.perf_counter() - start
    assert 0.2 < late < 10, late
    assert sender.wait() == 0 and state() == before
    assert np.asarray(f(short)).tobytes() == np.asarray(right).tobytes()
    assert state() != before
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


LIMITS = {
    "while": "np.float64(5), np.float64(1e300)",
    "counted": "np.int64(5), np.int64(2**62)",
    "numbers": "np.float64(5), np.float64(1e300)",
    "nested": "np.float64(5), np.float64(1e300)",
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_endless_loop_is_interrupted_and_nothing_has_changed(kind, folder):
    code = PREPARE + INTERRUPT.replace("LOOP", KINDS[kind]).replace("LIMITS", LIMITS[kind])
    finish(start(code, folder))


AGAIN = """
@static.function
def f(limit):
    y = static.while_loop(lambda y: (y < limit).any(), lambda y: y + 1.0, w * 0.0)
    return y.sum() + limit

seen, now = [], []
def note(*_):
    now.append(time.perf_counter())
    seen.append(f(np.float64(4)).item())  # in the memory of the call that has been interrupted

signal.signal(signal.SIGINT, note)
assert f(np.float64(3)).item() == 12
sender = soon()
result = f(np.float64(2e7)).item()
end = time.perf_counter()
assert sender.wait() == 0 and seen == [16] and result == 8e7
assert end - now[0] > 0.1  # the handler ran before the loop had ended, which then began again
"""


def test_a_handler_that_does_not_raise_may_use_the_function_and_the_call_begins_again(folder):
    finish(start(PREPARE + AGAIN, folder))


PRINTS = """
@static.function
def f(limit):
    static.print("begun")
    return static.while_loop(lambda y: (y < limit).any(), lambda y: y + 1.0, w * 0.0).sum()

seen = []
raising = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
f(np.float64(3))
sender = soon()
f(np.float64(2e7))
assert sender.wait() == 0 and seen == [1]
signal.signal(signal.SIGINT, raising)
for _ in range(2):
    sender = soon()
    try:
        f(np.float64(1e300))
    except KeyboardInterrupt:
        print("interrupted")
    sender.wait()
f(np.float64(3))
"""


def test_what_a_call_has_printed_is_not_printed_again_when_it_begins_again(folder):
    assert finish(start(PREPARE + PRINTS, folder)).split() == [*["begun"] * 2, *["begun", "interrupted"] * 2, "begun"]
