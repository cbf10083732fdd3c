"""Ctrl-C while a kernel is compiled: modules of LLVM are freed in finalisers, where an interrupt would be lost."""

import os
import signal
import threading

import numpy as np
import pytest

import static
from common.compiler.llvm_library import LlvmModule
from common.core.interrupts import heard_later


def press():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def handler():
    """That of Python, in which `pytest` may have put its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("compiler", ["llvm", "numba"])
def test_a_press_inside_a_finaliser_of_the_compiler_is_heard(monkeypatch, tmp_path, compiler):
    monkeypatch.setenv("TWINGRAD_CACHE", str(tmp_path))
    pressed, free = [], LlvmModule.__del__

    def freeing(self):
        if not pressed:
            pressed.append(1)
            press()
        free(self)

    monkeypatch.setattr(LlvmModule, "__del__", freeing)
    number = 1.0 + np.random.default_rng().random()
    f = static.function(lambda x: (x * number).tanh() + x, compiler=compiler)
    with pytest.raises(KeyboardInterrupt):
        f(np.ones(3, np.float32))
    assert pressed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert f(np.zeros(3, np.float32)).tolist() == [0.0, 0.0, 0.0]


def test_it_is_heard_at_the_end_of_the_outermost_block():
    reached = []

    def nested():
        with heard_later():
            with heard_later():
                press()
                reached.append(1)
            reached.append(2)

    with pytest.raises(KeyboardInterrupt):
        nested()
    assert reached == [1, 2]


def test_an_error_of_the_block_is_the_context():
    def failing():
        with heard_later():
            press()
            raise ValueError

    with pytest.raises(KeyboardInterrupt) as caught:
        failing()
    assert isinstance(caught.value.__context__, ValueError)


@pytest.mark.parametrize("other", [signal.SIG_IGN, lambda *_: None])
def test_the_users_handler_stays(other):
    signal.signal(signal.SIGINT, other)
    with heard_later():
        press()
    assert signal.getsignal(signal.SIGINT) is other


def test_other_threads_leave_signals_alone():
    found = []

    def run():
        with heard_later():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
