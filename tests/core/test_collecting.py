"""The cyclic collector rests while programs are made, and works afterwards; what it takes away runs no Python code."""

import gc
import sys
from contextlib import ExitStack

import numpy as np
import pytest

import dynamic
import dynamic.utils.data
import static
from common.core.garbage import collecting_later, collecting_now
from static.running.executable import Executable


@pytest.fixture(params=[True, False])
def state(request):
    """The user's own setting."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_blocks_may_overlap_as_those_of_threads_do(state):
    first, second = ExitStack(), ExitStack()
    first.enter_context(collecting_later())
    second.enter_context(collecting_later())
    assert not gc.isenabled()
    first.close()
    assert not gc.isenabled()
    second.close()
    assert gc.isenabled() is state


def test_a_search_collects_inside_a_trace(state):
    with collecting_later():
        with collecting_now():
            assert gc.isenabled()
        assert not gc.isenabled()
    with pytest.raises(ZeroDivisionError), collecting_later():
        _ = 1 / 0
    assert gc.isenabled() is state


def test_a_search_that_outlives_the_trace_leaves_the_collector_on():
    trace, search = ExitStack(), ExitStack()
    trace.enter_context(collecting_later())
    search.enter_context(collecting_now())
    trace.close()
    search.close()
    assert gc.isenabled()


def test_all_kernels_of_a_first_call_are_compiled_without_the_collector(state, monkeypatch):
    seen, address = [], Executable.address

    def watched(*args):
        seen.append(gc.isenabled())
        return address(*args)

    monkeypatch.setattr(Executable, "address", watched)
    f = static.function(lambda x: (x.sin().sum(0), x.cumsum(1)))
    f(np.ones((2, 3), np.float32))
    assert len(seen) > 1
    assert not any(seen)
    assert gc.isenabled() is state


X = np.ones((2, 3), np.float32)


def loss(x):
    return (x.sin() * x).sum()


def after_a_call(function, *args):
    function(*args)
    return function


def recorded():
    return dynamic.tensor(X, requires_grad=True) * 1


GOES = {
    "numpy": lambda: dynamic.ones(3).numpy(),
    "asarray": lambda: np.asarray(dynamic.ones(3)),
    "dlpack": lambda: np.from_dlpack(dynamic.ones(3)),
    "numpy of a saved value": lambda: (h := recorded(), h * h, h.detach().numpy()),
    "from_numpy": lambda: dynamic.from_numpy(X.copy()),
    "views": lambda: (t := recorded(), t[1:], t.view(-1)[:2]),
    "tape": lambda: loss(recorded()),
    "scan": lambda: dynamic.scan(lambda c, s: (c + s, c), dynamic.zeros(3), recorded()),
    "compiled function": lambda: after_a_call(static.function(static.grad(loss)), X),
    "compiled result": lambda: static.function(lambda x: x.expand(10**4, 2, 3) * 2)(X),
    "compiled module": lambda: after_a_call(static.compile(static.nn.Linear(3, 2)), X),
    "eager function": lambda: after_a_call(dynamic.function(loss), X),
    "optimizer": lambda: dynamic.optim.Adam(dynamic.nn.Linear(3, 2).parameters()),
    "hook": lambda: recorded().register_hook(len),
    "generator": dynamic.Generator,
    "loader": lambda: dynamic.utils.data.DataLoader([1, 2, 3]),
    "session": lambda: static.Session(graph=static.Graph()),
}


@pytest.mark.parametrize("name", GOES)
def test_what_goes_runs_no_python_code(name):
    """For a Ctrl-C that arrives in it is lost: its error is only printed."""
    ran, before = [], sys.getprofile()
    held = GOES[name]()
    gc.collect()
    sys.setprofile(lambda frame, event, _: ran.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        del held
        gc.collect()
    finally:
        sys.setprofile(before)
    assert ran == []
