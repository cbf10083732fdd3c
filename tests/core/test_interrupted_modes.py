"""Ctrl-C anywhere around a mode: it is what it was before, and so is the next one."""

from __future__ import annotations

import gc
import random
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

import dynamic as tw
import static
from common.control.shape_trace import AbstractTrace
from common.core import garbage, mode, weak
from common.core.switching import Switching
from common.nn import functional_call, parametrize
from common.random import draw_counts
from common.random.generator import default_generator
from common.tensor import observers
from dynamic.eager import function as eager_functions
from dynamic.eager.function import inlining
from static.session import defaults
from tests.helpers.proofs import rotated

ROOT = Path(__file__).parents[2]

GRAPH, SESSION = static.Graph(), object()
with GRAPH.as_default():
    FIRST = static.constant(1.0, name="first")
LINEAR = tw.nn.Linear(2, 1)

MODES = {
    "no_grad": tw.no_grad,
    "enable_grad": tw.enable_grad,
    "inference_mode": tw.inference_mode,
    "no inference": lambda: tw.inference_mode(False),
    "saved_tensors_hooks": lambda: tw.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    "no saved_tensors_hooks": lambda: tw.autograd.graph.disable_saved_tensors_hooks("none here"),
    "writes to saved tensors": tw.autograd.graph.allow_mutation_on_saved_tensors,
    "detect_anomaly": tw.autograd.detect_anomaly,
    "profile": tw.profiler.profile,
    "a trace": lambda: mode.activate_trace(AbstractTrace("f")),
    "no trace": lambda: mode.activate_trace(None),
    "counted": draw_counts.counted,
    "uncounted": draw_counts.uncounted,
    "a graph": GRAPH.as_default,
    "a session": lambda: defaults.default_session(SESSION),
    "Session": lambda: static.Session(GRAPH),
    "name_scope": lambda: GRAPH.name_scope("inner"),
    "variable_scope": lambda: static.variable_scope("inner", reuse=static.AUTO_REUSE),
    "control_dependencies": lambda: GRAPH.control_dependencies([FIRST]),
    "fork_rng": tw.random.fork_rng,
    "cached": tw.nn.utils.parametrize.cached,
    "replaced parameters": lambda: functional_call._replaced(functional_call._places(LINEAR), {"bias": tw.zeros(1)}),
    "collecting_later": garbage.collecting_later,
    "a function in a function": inlining,
}
#: Modes that are on as soon as they are made, which only a statement of its own can promise to end.
AT_ONCE = {
    "set_grad_enabled": lambda: tw.set_grad_enabled(False),
    "set_detect_anomaly": lambda: tw.autograd.set_detect_anomaly(True),
    "set_multithreading_enabled": lambda: tw.autograd.set_multithreading_enabled(False),
}


def state():
    """All that modes change, as they see it."""
    return (
        tw.is_grad_enabled(), tw.is_inference_mode_enabled(), mode.profiling.get(), mode._trace.get(),
        dict(mode.tracing), observers.packers.get(), observers.refusing.get(), observers.checking.get(),
        tw.autograd.is_multithreading_enabled(),
        draw_counts._counters.get(), defaults._graphs.get(), defaults._sessions.get(),
        *((x._scope, x.variable_scope, x.reuse, x.trace.waits) for x in (GRAPH, static.get_default_graph())),
        default_generator.get_state().tolist(), len(parametrize._open), id(LINEAR.bias), len(garbage._resting),
        eager_functions._inside.get(),
    )  # fmt: skip


def interrupted(function, moment):
    """Call a function in which Ctrl-C comes before the given instruction, counted in all Python code that it calls.

    In its own code the interpreter looks for signals only behind calls and when it goes back, so never between the last
    call of a block and that of ``__exit__``; the last test sends real ones.
    """
    left = moment

    def trace(frame, event, arg):
        nonlocal left
        frame.f_trace_opcodes = True
        if frame.f_code in (interrupted.__code__, function.__code__):
            return trace
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    gc.disable()  # what a finaliser raises is lost, in Python
    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
        gc.enable()
    return False


@pytest.mark.parametrize(("name", "around"), rotated(MODES, [None, "no_grad", "profile"]))
def test_an_interrupt_before_any_instruction(name, around):
    def once():
        with MODES[name]():
            if name == "fork_rng":
                default_generator.offset.payload[...] += 1
            inside.append(state())

    inside, moment = [], 0
    once()  # what is imported or compiled on first use is here
    interrupted(once, sys.maxsize)  # Python 3.12 tells of single instructions from the second trace on
    with MODES[around or "no trace"]():
        before = state()
        while interrupted(once, moment):
            assert state() == before
            moment += 1
        assert state() == before
    assert moment > 15
    assert inside


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_is_on_at_once_ends_with_its_block(name):
    before, moment, goes_on = state(), 0, True
    while goes_on:
        manager = AT_ONCE[name]()
        left = []

        def once(manager=manager, left=left):
            with manager:
                left.append(True)

        goes_on = interrupted(once, moment)
        if left:
            assert state() == before
        else:
            manager.__exit__()
        moment += 1
    assert moment > 5 or name == "set_grad_enabled"  # all of which are builtins


def test_a_manager_used_in_itself_and_by_hand():
    for name, make in MODES.items():
        before, manager = state(), make()
        with manager:
            first = state()
            if name not in ("profile", "a graph", "Session", "writes to saved tensors"):  # which refuse it
                with manager:
                    pass
                assert state() == first
        assert state() == before
        if name != "Session":  # which is closed
            manager.__enter__()
            assert state() != before or name in ("enable_grad", "no inference", "uncounted", "fork_rng")
            manager.__exit__(None, None, None)
            assert state() == before
        with pytest.raises(ZeroDivisionError), make():
            raise ZeroDivisionError
        assert state() == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_signals_while_modes_come_and_go():
    rng, before, hits, armed = random.Random(5), state(), 0, False

    @tw.no_grad()
    def decorated(x):
        return x * 2

    def work():
        x = tw.ones(2, requires_grad=True)
        while True:
            for make in MODES.values():
                with make(), tw.no_grad():
                    pass
            decorated(x)

    for make in (tw.no_grad, tw.inference_mode):
        with make():
            decorated(tw.ones(2, requires_grad=True))

    def press(*_):
        if armed:
            raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, press)
    try:
        for _ in range(200):
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + rng.random() * 1e-3, 0.05)  # again, if a finaliser met it
                work()
            except KeyboardInterrupt:
                armed = False
                hits += 1
            assert state() == before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert hits == 200


#: Counts presses that do not arrive while traces, graphs and tapes come and go, and the collector works all the time.
LOST = """
import gc, signal, sys, time
import dynamic as tw, static

lost, armed = [], False
sys.unraisablehook = lambda raised: lost.append(raised)

def press(*_):
    if armed:
        raise KeyboardInterrupt

def work():
    loop = [tw.ones(2, requires_grad=True)]
    loop.append(loop)
    with tw.autograd.graph.allow_mutation_on_saved_tensors(), tw.profiler.profile():
        loop.append((loop[0] * 2).sin()[:1])
    loop.append(static.function(lambda x: x * 2))
    loop[-1](tw.ones(2))
    tw.func.jvp(tw.sin, (tw.ones(2),), (tw.ones(2),))
    loop[0].data.mul_(2)
    gc.collect()

work()
signal.signal(signal.SIGALRM, press)
for i in range(100):
    stop = time.perf_counter() + 1
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.00037 * i)
        while time.perf_counter() < stop:
            work()
        lost.append(i)
    except KeyboardInterrupt:
        armed = False
print(len(lost))
"""


@pytest.mark.slow
def test_no_press_is_lost_while_the_collector_works():
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


def test_what_forgets_the_dead_is_no_python_code():
    """The collector would throw away what Ctrl-C raises in it; see `common.core.weak`."""
    python = re.compile(r"Weak(Set|Key|Value|Method)|[k.]finalize\(|def __del__|gc\.callbacks|[ (]ref\(\w+, [\w.]+[ )]")
    found = [
        f"{path.parent.name}/{path.name}: {line.strip()}"
        for room in ("common", "dynamic", "static")
        for path in sorted((ROOT / room).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if python.search(line) and path.name != "weak.py"
    ]
    assert found == [
        "compiler/llvm_library.py: def __del__(self) -> None:",  # of modules, which are compiled while Ctrl-C waits
        "core/locks.py: group.add(ref(lock, group.discard))",
        "data/loader.py: weakref.finalize(self, workers.close)",  # which ends processes
        "tensor/node.py: def __del__(self) -> None:",  # one assignment, of user-defined functions only
    ]


def test_weak_collections_forget_what_is_gone():
    class Thing:
        def __eq__(self, other):
            return True

        __hash__ = None

    things = [Thing() for _ in range(4)]
    alive, known, named = weak.Alive(), weak.WhileKeysLive(), weak.WhileValuesLive()
    for i, x in enumerate(things):
        alive.add(x)
        alive.add(x)
        assert known.put(x, [i]) == [i]
        assert named.put(i, x) is x
    assert list(alive) == things
    assert things[2] in alive
    assert [known.get(x) for x in things] == [[0], [1], [2], [3]]
    assert [named.get(i) for i in range(5)][4] is None
    known.put(things[0], "again")
    named.put(3, things[0])
    del x, things[1:3]
    gc.collect()
    assert len(alive) == len(list(alive)) == len(known._entries) == 2
    assert [known.get(x) for x in things] == ["again", [3]]
    assert [named.get(i) for i in range(4)] == [things[0], None, None, things[0]]
    assert known.get(Thing()) is None
    assert Thing() not in alive
    del things[0]
    assert len(alive) == len(known._entries) == 1
    assert len(named) == 0
    kept = weak.WhileValuesLive()
    kept.put(7, things[0])
    kept.clear()
    assert kept.get(7) is None


#: Where functions are that `contextlib` makes of generators.
CONTEXTS = contextmanager(lambda: iter(())).__code__.co_filename
#: Public context managers that change nothing that outlives an interrupt: blocks without effect, and files.
WITHOUT_STATE = {
    "device_index", "autocast", "flags", "device", "set_checkpoint_early_stop", "record_function", "SummaryWriter",
    "RemovableHandle", "Path", "set_stance",
}  # fmt: skip


def public(package):
    """All that an engine offers, in the modules that both have too: (name, object)."""
    seen, waiting = set(), [package]
    while waiting:
        module = waiting.pop()
        seen.add(id(module))
        for name in getattr(module, "__all__", ()) if module is not package else dir(package):
            x = getattr(module, name)
            if callable(x):
                yield name, x
        below = [x for name, x in vars(module).items() if isinstance(x, ModuleType) and hasattr(tw, name)]
        waiting += [x for x in below if x.__name__.startswith(package.__name__) and id(x) not in seen]


@pytest.mark.parametrize("package", [tw, static])
def test_every_public_manager_is_one_that_no_interrupt_leaves_half_done(package):
    found = dict(public(package))
    classes = {name for name, x in found.items() if isinstance(x, type) and hasattr(x, "__enter__")}
    assert {"no_grad", "inference_mode", "fork_rng", "profile"} <= classes
    plain = {name for name in classes if not issubclass(found[name], Switching)}
    made = {name for name, x in found.items() if getattr(getattr(x, "__code__", None), "co_filename", "") == CONTEXTS}
    assert plain | made <= WITHOUT_STATE | MODES.keys() | AT_ONCE.keys()
