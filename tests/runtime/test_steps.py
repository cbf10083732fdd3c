"""Programs bound to Python objects: state found, gradients left, and nothing changed by a call that fails."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

from common.compiler.compile import compile_kernel
from common.runtime import builtins, python_builtins
from common.runtime.bound_program import GIVEN, HELD, HELD_GRAD, LEFT, LEFT_FRESH, MADE, ArgumentPlace, Binding
from common.runtime.program_plan import ProgramPlan, RunFailure, explain_failure
from tests.compiler.kernels import ADD, FAIL

F32 = np.dtype(np.float32)
N = 8


class Holder:
    """Laid out as tensors are."""

    __slots__ = ("payload", "mark", "_grad", "__weakref__")

    def __init__(self, payload, mark=None):
        self.payload, self.mark, self._grad = payload, mark, None


class Special(Holder):
    __slots__ = ()


TEMPLATE = Holder(None)


@pytest.fixture(params=["native", "fallback"])
def make_step(request):
    return builtins.make_step if request.param == "native" else python_builtins.make_step


def vector(start=0):
    return np.arange(start, start + N, dtype=F32)


def add(make_step, *places, cleared=(), one=False, status=None, after=True):
    """``z = x + y`` for each output z; a kernel that returns `status` runs before or `after` it."""
    plan, kernel = ProgramPlan(), compile_kernel(ADD, "test_add")
    x, y = plan.add_array(F32, (N,)), plan.add_array(F32, (N,))
    outputs = [plan.add_array(F32, (N,), writes=True) for _ in places[2:]]
    if status is not None and not after:
        plan.add_call(compile_kernel(FAIL, "test_fail"), [], [status])
    for z in outputs:
        plan.add_call(kernel, [x, y, z], [N])
    if status is not None and after:
        plan.add_call(compile_kernel(FAIL, "test_fail"), [], [status])
    return make_step(plan, Binding(places, len(outputs), cleared, TEMPLATE, one))


def test_state_is_read_anew_at_each_call(make_step):
    owner, array = Holder(vector()), vector(5)
    step = add(
        make_step, ArgumentPlace(HELD, owner), ArgumentPlace(HELD, array), ArgumentPlace(MADE, None, 0), one=True
    )
    for _ in range(3):
        assert np.array_equal(step(), owner.payload + array)
        owner.payload = owner.payload + 1
        array *= 2


@pytest.mark.parametrize("payload", [vector()[1:], vector().astype(float), np.arange(16, dtype=F32)[::2], None, 1.0])
def test_state_of_another_form_is_refused(make_step, payload):
    owner, target = Holder(vector()), Holder(None)
    step = add(make_step, ArgumentPlace(GIVEN), ArgumentPlace(HELD, owner), ArgumentPlace(LEFT, target))
    assert step(vector()) == ()
    before = target._grad
    owner.payload = payload
    assert explain_failure(step(vector())) == RunFailure("argument", 1)
    assert target._grad is before
    owner.payload = vector(3)
    assert step(vector()) == ()


def test_state_that_is_missing_is_refused():
    owner = Holder(vector())
    step = add(
        builtins.make_step, ArgumentPlace(HELD, owner), ArgumentPlace(HELD_GRAD, owner), ArgumentPlace(MADE, None, 0)
    )
    del owner.payload
    assert explain_failure(step()) == RunFailure("argument", 0)
    owner.payload = vector()
    for gradient in (None, Special(vector())):
        owner._grad = gradient
        assert explain_failure(step()) == RunFailure("argument", 1)
    owner._grad = Holder(vector())
    assert np.array_equal(step()[0], vector() * 2)


def test_the_number_of_given_arguments_is_checked(make_step):
    step = add(make_step, ArgumentPlace(GIVEN), ArgumentPlace(HELD, Holder(vector())), ArgumentPlace(MADE, None, 0))
    assert explain_failure(step()) == RunFailure("argument", 0)
    assert explain_failure(step(vector(), vector())) == RunFailure("argument", 1)


def test_results_of_other_calls_are_arguments_like_others():
    """A bound program knows which arrays a call before it has found apart, but not where that left results."""
    plan = ProgramPlan()
    x, y = plan.add_array(F32, (N,)), plan.add_array(F32, (N,), writes=True)
    plan.add_call(compile_kernel(ADD, "test_add"), [x, x, y], [N])
    out = vector(9)
    assert builtins.make_run(plan)(vector(), out) == 0
    step = builtins.make_step(
        plan, Binding([ArgumentPlace(GIVEN), ArgumentPlace(MADE, None, 0)], 1, (), TEMPLATE, True)
    )
    assert np.array_equal(step(out), vector() * 4)


def test_results_are_new_and_in_order(make_step):
    given = np.zeros(N, F32)
    step = add(
        make_step,
        ArgumentPlace(GIVEN),
        ArgumentPlace(GIVEN),
        ArgumentPlace(MADE, None, 0),
        ArgumentPlace(GIVEN, None, 1),
        ArgumentPlace(MADE, None, 2),
    )
    first, second, third = step(vector(), vector(1), given)
    assert second is given
    assert all(np.array_equal(x, vector() + vector(1)) for x in (first, second, third))
    assert not np.may_share_memory(first, third)
    assert explain_failure(step(vector(), given, given)) == RunFailure("overlap", 3)


def test_arguments_and_state_may_be_results(make_step):
    array, out = vector(1), np.zeros(N, F32)
    step = add(make_step, ArgumentPlace(GIVEN, None, 2), ArgumentPlace(HELD, array, 0), ArgumentPlace(HELD, out, 1))
    x = vector()
    assert [a is b for a, b in zip(step(x), (array, out, x), strict=True)] == [True] * 3
    assert np.array_equal(out, x + array)
    assert explain_failure(step(out)) == RunFailure("overlap", 2)
    out.flags.writeable = False
    assert explain_failure(step(x)) == RunFailure("argument", 2)


def test_gradients_are_left_and_cleared(make_step):
    owner, other = Holder(vector()), Holder(vector())
    other._grad = Holder(vector())
    step = add(make_step, ArgumentPlace(HELD, owner), ArgumentPlace(GIVEN), ArgumentPlace(LEFT, owner), cleared=[other])
    assert step(vector(2)) == ()
    assert type(owner._grad) is Holder
    assert (owner._grad.mark, owner._grad._grad) == (None, None)
    assert np.array_equal(owner._grad.payload, vector() + vector(2))
    assert other._grad is None


def left(make=builtins.make_step, source=LEFT):
    """An owner with a gradient that a call has left, and the call."""
    owner = Holder(None)
    step = add(make, ArgumentPlace(GIVEN), ArgumentPlace(GIVEN), ArgumentPlace(source, owner))
    assert step(vector(), vector()) == ()
    return owner, step


def test_memory_of_a_gradient_that_nobody_else_holds_is_used_again():
    owner, step = left()
    tensor, array = id(owner._grad), id(owner._grad.payload)
    assert step(vector(1), vector(1)) == ()
    assert (id(owner._grad), id(owner._grad.payload)) == (tensor, array)
    assert np.array_equal(owner._grad.payload, vector(1) * 2)


HOLDS = {
    "tensor": lambda g: g,
    "array": lambda g: g.payload,
    "view": lambda g: g.payload[2:],
    "view of a view": lambda g: g.payload.reshape(2, 4).T,
    "buffer": lambda g: memoryview(g.payload),
}


@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
def test_memory_of_a_gradient_that_somebody_holds_is_not(make_step, hold):
    owner, step = left(make_step)
    before = owner._grad.payload.copy()
    address = owner._grad.payload.ctypes.data
    held = hold(owner._grad)
    assert step(vector(1), vector(1)) == ()
    assert owner._grad.payload.ctypes.data != address
    assert np.array_equal(owner._grad.payload, vector(1) * 2)
    if not isinstance(held, Holder):
        assert np.array_equal(np.sort(np.asarray(held).ravel()), before[-np.asarray(held).size :])
    else:
        assert np.array_equal(held.payload, before)


@pytest.mark.parametrize("target", [lambda g: g, lambda g: g.payload], ids=["tensor", "array"])
def test_a_weak_reference_sees_a_gradient_end(make_step, target):
    owner, step = left(make_step)
    held = weakref.ref(target(owner._grad))
    assert step(vector(1), vector(1)) == ()
    assert held() is None


OTHERS = {
    "marked": lambda: Holder(vector(), mark=True),
    "another class": lambda: Special(vector()),
    "another dtype": lambda: Holder(np.zeros(N)),
    "another size": lambda: Holder(np.zeros(N - 1, F32)),
    "another rank": lambda: Holder(np.zeros((N, 1), F32)),
    "strided": lambda: Holder(np.zeros(2 * N, F32)[::2].copy()[::-1]),
    "part of memory": lambda: Holder(np.zeros(2 * N, F32)[:N]),
    "foreign memory": lambda: Holder(np.frombuffer(bytearray(4 * N), F32)),
    "subclass": lambda: Holder(np.zeros(N, F32).view(np.recarray)),
    "none": lambda: Holder(None),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_gradients_of_another_form_are_replaced(make_step, other):
    owner, step = left(make_step)
    old = owner._grad = other()
    address = id(old)
    del old
    assert step(vector(), vector(1)) == ()
    assert type(owner._grad) is Holder
    assert owner._grad.mark is None
    assert id(owner._grad) != address or owner._grad.payload.flags.owndata
    assert np.array_equal(owner._grad.payload, vector() + vector(1))


def test_a_readonly_gradient_is_replaced():
    owner, step = left()
    owner._grad.payload.flags.writeable = False
    assert step(vector(), vector(1)) == ()
    assert owner._grad.payload.flags.writeable


def test_fresh_memory_where_it_is_asked_for():
    owner, step = left(source=LEFT_FRESH)
    array = owner._grad.payload.ctypes.data
    again = [owner._grad]
    assert step(vector(), vector(1)) == ()
    assert owner._grad is not again[0]
    assert owner._grad.payload.ctypes.data != array


@pytest.mark.parametrize("after", [False, True])
def test_a_call_that_fails_leaves_nothing(make_step, after):
    owner, other = Holder(None), Holder(None)
    owner._grad, other._grad = Holder(vector()), Holder(vector())
    places = ArgumentPlace(GIVEN), ArgumentPlace(GIVEN), ArgumentPlace(LEFT_FRESH, owner), ArgumentPlace(MADE, None, 0)
    step = add(make_step, *places, cleared=[other], status=3, after=after)
    gradients = owner._grad, other._grad
    position = 2 if after else 0
    assert explain_failure(step(vector(), vector())) == RunFailure("status", position, 3)
    assert (owner._grad, other._grad) == gradients
    assert np.array_equal(owner._grad.payload, vector())


def test_no_reference_is_lost_or_kept():
    owner, other, array = Holder(vector()), Holder(None), vector()
    places = (
        ArgumentPlace(HELD, owner),
        ArgumentPlace(GIVEN),
        ArgumentPlace(MADE, None, 0),
        ArgumentPlace(LEFT, owner),
        ArgumentPlace(LEFT_FRESH, other),
    )
    good = add(builtins.make_step, *places, cleared=[Holder(None)])
    bad = add(builtins.make_step, *places, cleared=[Holder(None)], status=1)
    watched = [owner, other, array, owner.payload, TEMPLATE, Holder, F32, None, np.ndarray]

    def calls_of_all_kinds():
        for _ in range(1000):
            good(array)
            bad(array)
            good()
            good(None)
            number(array, 2**70)

    plan = ProgramPlan()
    plan.add_array(F32, (N,))
    plan.add_int()
    plan.add_array(F32, (N,), writes=True)
    places = [ArgumentPlace(GIVEN), ArgumentPlace(GIVEN), ArgumentPlace(MADE, None, 0)]
    number = builtins.make_step(plan, Binding(places, 1, [other], TEMPLATE, False))
    calls_of_all_kinds()
    gc.collect()
    before = [sys.getrefcount(x) for x in watched]
    blocks = sys.getallocatedblocks()
    calls_of_all_kinds()
    gc.collect()
    after = [sys.getrefcount(x) for x in watched]
    assert all(abs(b - a) < 50 for a, b in zip(before, after, strict=True)), (before, after)
    assert abs(sys.getallocatedblocks() - blocks) < 200


def test_a_call_inside_a_call_is_exact():
    """The collector runs Python code while objects are made, and that code may call the same program."""
    owner = Holder(None)
    step = add(
        builtins.make_step,
        ArgumentPlace(GIVEN),
        ArgumentPlace(GIVEN),
        ArgumentPlace(MADE, None, 0),
        ArgumentPlace(LEFT_FRESH, owner),
    )
    inner = []

    class Cycle:
        def __init__(self):
            self.itself = self

        def __del__(self):
            inner.append((step(vector(100), vector(200))[0], owner._grad.payload))

    threshold = gc.get_threshold()
    try:
        gc.set_threshold(3)
        for _ in range(300):
            Cycle()
            (result,) = step(vector(), vector(1))
            assert np.array_equal(result, vector() + vector(1))
    finally:
        gc.set_threshold(*threshold)
    assert len(inner) > 100
    assert all(np.array_equal(x, vector(100) + vector(200)) for pair in inner for x in pair)


def test_calls_from_many_threads_are_exact():
    owner = Holder(None)
    step = add(
        builtins.make_step,
        ArgumentPlace(GIVEN),
        ArgumentPlace(GIVEN),
        ArgumentPlace(MADE, None, 0),
        ArgumentPlace(LEFT, owner),
        one=True,
    )
    wrong = []

    def run(start):
        for _ in range(2000):
            if not np.array_equal(step(vector(start), vector(1)), vector(start) + vector(1)):
                wrong.append(start)

    interval = sys.getswitchinterval()
    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    try:
        sys.setswitchinterval(1e-6)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
