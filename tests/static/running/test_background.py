"""`compile="background"`: the switch from the interpreter to machine code is invisible, whatever happens around it."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, CompileError
from static.running import background_compilation, executable, interpreter
from tests.bits import assert_all_same_bits
from tests.compiler.test_processes import finish, start
from tests.static.stored import network

F32 = np.float32


@pytest.fixture
def gate(fresh_cache, monkeypatch):
    """An event that the compiling thread waits for before each kernel."""
    event = threading.Event()
    monkeypatch.setattr(background_compilation, "_give_way", event.wait)
    yield event
    event.set()


def opened(gate, function):
    """Let the thread end."""
    gate.set()
    function.newest.compilation._thread.join(120)
    assert function.newest.compilation.done


def test_bits_are_those_of_a_compiled_call(gate):
    x, labels = np.random.default_rng(0).standard_normal((5, 6)).astype(F32), np.array([0, 1, 2, 1, 0])
    results = []
    for how in ("background", "now"):
        step, model = network()
        compiled = static.function(step, compile=how)
        losses = [compiled(x, labels), compiled(x[:3], labels[:3])]
        if how == "background":
            assert compiled.newest_plan is None
            assert compiled.explain().interpreted == 2
            opened(gate, compiled)
        losses += [compiled(x, labels), compiled(x[:3], labels[:3]), compiled(x, labels)]
        assert compiled.newest_plan is not None
        assert compiled._last is not None
        results.append([*losses, *(p.numpy().copy() for p in model.parameters())])
    assert_all_same_bits(*results, "losses and parameters")


def test_a_program_that_is_stored_needs_no_thread(gate):
    first = static.function(lambda x: x * 2 + 1, compile="background")
    first(np.ones(3, F32))
    opened(gate, first)
    second = static.function(lambda x: x * 2 + 1, compile="background")
    assert second(np.ones(3, F32)).tolist() == [3, 3, 3]
    assert second.newest.compilation is None
    assert second.newest_plan is not None


def test_errors_of_the_thread_are_those_of_the_call(gate, monkeypatch):
    def refuse(source, name, compiler):
        raise CompileError(f"no kernel {name}")

    f = static.function(lambda x: x * 2, compile="background")
    assert f(np.ones(3, F32)).tolist() == [2, 2, 2]
    monkeypatch.setattr(executable, "compile_kernel", refuse)
    opened(gate, f)
    for _ in range(2):
        with pytest.raises(CompileError, match="no kernel k_"):
            f(np.ones(3, F32))
    monkeypatch.undo()
    assert f(np.ones(3, F32)).tolist() == [2, 2, 2]
    assert f.newest_plan is not None


def test_calls_of_many_threads_are_exact(gate, monkeypatch):
    finish_call = interpreter.finish

    def slowly(graph, values):
        time.sleep(0.001)  # between what a call has computed and what it writes
        return finish_call(graph, values)

    monkeypatch.setattr(interpreter, "finish", slowly)
    total = static.nn.Parameter(np.zeros(3, F32))

    def add(x):
        with static.no_grad():
            total.add_(x)
        return total.sum()

    f = static.function(add, compile="background")
    f(np.zeros(3, F32))
    wrong = []

    def work():
        try:
            for _ in range(50):
                f(np.ones(3, F32))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
    opened(gate, f)
    for thread in threads:
        thread.join(120)
    f(np.zeros(3, F32))
    assert not wrong
    assert total.tolist() == [200.0] * 3
    assert f.newest_plan is not None


def test_loops_and_gradients_to_the_outside(gate):
    def loop(x):
        return static.fori_loop(0, 4, lambda i, y: (y * 1.5).tanh(), x)

    x = np.linspace(-1, 1, 5, dtype=F32)
    results = []
    for how in ("background", "now"):
        f = static.function(loop, compile=how)
        given = dynamic.tensor(x, requires_grad=True)
        f(given).sum().backward()
        before = [given.grad.numpy().copy(), f(x)]
        if how == "background":
            opened(gate, f)
        given.grad = None
        f(given).sum().backward()
        results.append([*before, given.grad.numpy(), f(x)])
    assert_all_same_bits(*results, "values and gradients")


def test_the_option_is_checked():
    with pytest.raises(ArgumentError, match=r'compile is "now" or "background", not \'later\''):
        static.function(lambda x: x, compile="later")


END = """
import numpy as np, static
w = np.full((8, 8), 0.1, np.float32)

@static.function(compile="background")
def f(x):
    for i in range(40):
        x = (x @ w + i).tanh().softmax(i % 2) + x.sum(1, True)
    return x.exp()

f(np.ones((8, 8), np.float32))
"""


@pytest.mark.parametrize("end", ["", "import sys; sys.exit(0)", "raise SystemExit", "assert f.newest.compilation"])
def test_a_process_may_end_while_kernels_compile(tmp_path, end):
    assert finish(start(END + end, tmp_path)) == ""


COUNTED = """
import threading, time
from static.running import background_compilation as background
give_way, before = background._give_way, []

def counted():
    while before and threading.main_thread().is_alive():
        time.sleep(0.001)
    give_way()
    before.append(print("kernel", flush=True))

background._give_way = counted
"""


def test_the_thread_ends_with_the_main_thread(tmp_path):
    """It finishes the kernel at hand, which is the first here, and begins no other."""
    lines = finish(start(COUNTED + END + "print('end', flush=True)", tmp_path)).split()
    assert sorted(lines) in (["end"], ["end", "kernel"])


def test_a_path_that_still_compiles_beside_one_that_is_compiled(gate):
    def f(x):
        return x.tanh() * 3 if x.sum().item() > 0 else x - 2

    g = static.function(f, control_flow="guard", compile="background")
    x = np.array([0.5, 1.5], F32)
    expected = {sign: f(dynamic.tensor(x * sign)).payload for sign in (1, -1)}
    g(x)
    opened(gate, g)
    gate.clear()
    for sign in (1, 1, -1, 1, -1, 1, -1, -1, 1):
        assert_all_same_bits([g(x * sign)], [expected[sign]], f"{sign}")
    assert g.explain().interpreted
    opened(gate, g)
    for sign in (1, -1, 1, -1, -1):
        assert_all_same_bits([g(x * sign)], [expected[sign]], f"{sign}")
