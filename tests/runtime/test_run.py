"""Programs: arguments checked, overlaps refused, kernels in order, statuses passed on."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from common.compiler.compile import compile_kernel
from common.runtime import builtins, python_builtins
from common.runtime.program_plan import ProgramPlan, RunFailure, explain_failure
from common.runtime.table_words import SizeWord
from tests.compiler.kernels import ADD, FAIL

F32 = np.dtype(np.float32)

SCALE = """def test_scale(bufs, args):
    x = buffer(bufs, 0, float32)
    factor = buffer(bufs, 1, float64)
    shift = buffer(bufs, 2, int64)
    y = buffer(bufs, 3, float32)
    for i in range(args[0]):
        y[i] = plus(times(x[i], to_float32(factor[0])), to_float32(shift[0]))
    return 0
"""


@pytest.fixture(params=["native", "fallback"])
def make_run(request):
    return builtins.make_run if request.param == "native" else python_builtins.make_run


def add_program(make_run, n=8, between=None):
    """``z = (x + y) + y`` through an arena; `between` is a status that a kernel between the two returns."""
    plan, add = ProgramPlan(), compile_kernel(ADD, "test_add")
    x, y, z = plan.add_array(F32, (n,)), plan.add_array(F32, (n,)), plan.add_array(F32, (n,), writes=True)
    middle = plan.add_memory(np.zeros(n + 16, F32), offset=64)
    plan.add_call(add, [x, y, middle], [n])
    if between is not None:
        plan.add_call(compile_kernel(FAIL, "test_fail"), [], [between])
    plan.add_call(add, [middle, y, z], [n])
    return make_run(plan)


def arrays(n=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random(n, np.float32), rng.random(n, np.float32), np.zeros(n, np.float32)


def test_kernels_run_in_order(make_run):
    run = add_program(make_run)
    for seed in range(3):
        x, y, z = arrays(seed=seed)
        assert run(x, y, z) == 0
        assert np.array_equal(z, (x + y) + y)


def test_read_arguments_may_be_the_same_array(make_run):
    x, _, z = arrays()
    assert add_program(make_run)(x, x, z) == 0
    assert np.array_equal(z, (x + x) + x)


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros(8, np.float64),
        np.zeros(8, F32.newbyteorder()),
        np.zeros(7, F32),
        np.zeros(9, F32),
        np.zeros((8, 1), F32),
        np.zeros((2, 4), F32),
        np.zeros((), F32),
        np.zeros(16, F32)[::2],
        np.zeros(8, F32)[::-1],
        np.frombuffer(bytearray(33), np.uint8)[1:].view(F32),
        np.zeros(8, F32).view(np.recarray),
        1.0,
        None,
    ],
    ids=lambda value: str(getattr(value, "dtype", value)) + str(getattr(value, "strides", "")),
)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_bad_argument_is_refused_before_anything_runs(make_run, bad, position):
    values = list(arrays())
    result = values[2]
    values[position] = bad
    assert explain_failure(add_program(make_run)(*values)) == RunFailure("argument", position)
    assert not result.any()


def test_a_readonly_array_is_refused_where_it_is_written(make_run):
    x, y, z = arrays()
    run = add_program(make_run)
    x.flags.writeable = False
    assert run(x, y, z) == 0
    z.flags.writeable = False
    assert explain_failure(run(x, y, z)) == RunFailure("argument", 2)


def test_the_number_of_arguments_is_checked(make_run):
    x, y, z = arrays()
    run = add_program(make_run)
    assert explain_failure(run()) == RunFailure("argument", 0)
    assert explain_failure(run(x, y)) == RunFailure("argument", 2)
    assert explain_failure(run(x, y, z, z)) == RunFailure("argument", 3)


@pytest.mark.parametrize("shift", [-7, -1, 0, 1, 7])
def test_a_written_array_overlaps_nothing(make_run, shift):
    run = add_program(make_run)
    memory = np.zeros(32, F32)
    x, y, z = arrays()
    other = memory[8 + shift : 16 + shift]
    assert run(x, y, z) == 0
    assert explain_failure(run(other, y, memory[8:16])) == RunFailure("overlap", 2)
    assert explain_failure(run(x, other, memory[8:16])) == RunFailure("overlap", 2)
    # A refused call leaves no trace: the same arguments are refused again.
    assert explain_failure(run(x, other, memory[8:16])) == RunFailure("overlap", 2)
    assert run(x, y, z) == 0


@pytest.mark.parametrize("shift", [-8, 8])
def test_neighbours_do_not_overlap(make_run, shift):
    memory = np.zeros(32, F32)
    _, y, _ = arrays()
    assert add_program(make_run)(memory[8 + shift : 16 + shift], y, memory[8:16]) == 0


def test_a_refused_argument_forgets_the_addresses_before_it(make_run):
    run = add_program(make_run)
    memory = np.zeros(32, F32)
    _, y, _ = arrays()
    assert explain_failure(run(memory[8:16], y, None)) == RunFailure("argument", 2)
    assert explain_failure(run(memory[8:16], y, memory[9:17])) == RunFailure("overlap", 2)


def test_empty_arrays_overlap_nothing(make_run):
    run = add_program(make_run, n=0)
    x, y, z = arrays(0)
    assert run(x, y, z) == 0
    memory = np.zeros(8, F32)
    assert run(memory[4:4], memory[4:4], memory[4:4]) == 0


def test_a_status_stops_the_program(make_run):
    x, y, z = arrays()
    assert explain_failure(add_program(make_run, between=3)(x, y, z)) == RunFailure("status", 1, 3)
    assert not z.any()
    assert add_program(make_run, between=0)(x, y, z) == 0
    assert z.all()


def test_numbers_are_arguments(make_run):
    plan = ProgramPlan()
    x, factor, shift = plan.add_array(F32, (4,)), plan.add_float(), plan.add_int()
    y = plan.add_array(F32, (4,), writes=True)
    plan.add_call(compile_kernel(SCALE, "test_scale"), [x, factor, shift, y], [4])
    run = make_run(plan)
    values, out = np.arange(4, dtype=F32), np.zeros(4, F32)
    assert run(values, 2.5, -1, out) == 0
    assert out.tolist() == [-1.0, 1.5, 4.0, 6.5]
    assert explain_failure(run(values, 2, -1, out)) == RunFailure("argument", 1)
    assert explain_failure(run(values, np.float64(2), -1, out)) == RunFailure("argument", 1)
    assert explain_failure(run(values, 2.5, True, out)) == RunFailure("argument", 2)
    assert explain_failure(run(values, 2.5, 2**63, out)) == RunFailure("argument", 2)
    assert run(values, 2.5, 2**40, out) == 0


def sized_program():
    """``middle = x + y`` of n elements, somewhere in the arena, and ``z = middle + fixed`` of some of them."""
    plan, n = ProgramPlan(), SizeWord(0)
    x, y, z = plan.add_array(F32, (n,)), plan.add_array(F32, (n,)), plan.add_array(F32, (n,), writes=True)
    fixed, middle = plan.add_array(F32, (8,)), plan.add_place(SizeWord(1))
    plan.add_call(compile_kernel(ADD, "test_add"), [x, y, middle], [n])
    plan.add_call(compile_kernel(ADD, "test_add"), [middle, fixed, z], [SizeWord(2)])
    return plan


def test_a_program_is_given_sizes(make_run):
    plan, memory = sized_program(), np.zeros(64, F32)
    runs = {n: make_run(plan.at([n, 64, min(n, 8)], memory.ctypes.data)) for n in (3, 12, 8)}
    for n in (8, 3, 12, 3):
        (x, y, z), fixed = arrays(n), np.arange(8, dtype=F32)
        assert runs[n](x, y, z, fixed) == 0
        part = min(n, 8)
        assert z[:part].tolist() == ((x + y)[:part] + fixed[:part]).tolist()
        assert memory[16 : 16 + n].tolist() == (x + y).tolist()
        other = arrays(n + 1)
        assert explain_failure(runs[n](*other, fixed)) == RunFailure("argument", 0)


def test_what_is_apart_for_one_size_may_overlap_for_another(make_run):
    """A call begins with what calls for other sizes have found, but not of arrays that these sizes are of."""
    plan, scratch, memory = sized_program(), np.zeros(64, F32), np.zeros(64, F32)
    for n, overlaps in ((8, False), (24, True), (8, False), (20, True), (16, False)):
        run = make_run(plan.at([n, 0, 0], scratch.ctypes.data))
        code = run(memory[0:n], memory[0:n], memory[16 : 16 + n], memory[48:56])
        assert (explain_failure(code).kind == "overlap" if code else False) is overlaps


def test_an_empty_program(make_run):
    assert make_run(ProgramPlan())() == 0


@pytest.mark.parametrize("buffers", [64, 3000])
def test_many_arguments_and_a_kernel_of_many_buffers(make_run, buffers):
    plan = ProgramPlan()
    slots = [plan.add_array(np.int64, (index,), writes=index % 3 == 0) for index in range(64)]
    plan.add_call(compile_kernel(FAIL, "test_fail"), (slots * 50)[:buffers], [0])
    values = [np.zeros(index, np.int64) for index in range(64)]
    run = make_run(plan)
    assert run(*values) == 0
    values[5] = values[6][:5]
    assert explain_failure(run(*values)) == RunFailure("overlap", 6)


def test_a_plan_refuses_what_cannot_run():
    plan = ProgramPlan()
    slot = plan.add_array(F32, (1,))
    with pytest.raises(ValueError, match="no such kernel or slot"):
        plan.add_call(1, [slot + 1])
    with pytest.raises(ValueError, match="no such kernel or slot"):
        plan.add_call(0, [slot])


def test_threads_share_one_program(make_run):
    """The arena is shared: only a lock, or the GIL held throughout, keeps the threads' values apart."""
    run, wrong = add_program(make_run, n=257), []

    def work(seed):
        x, y, z = arrays(257, seed)
        expected = (x + y) + y
        for _ in range(500):
            if run(x, y, z) != 0 or not np.array_equal(z, expected):
                wrong.append(seed)
            z[:] = 0

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_reference_is_lost_or_kept(make_run):
    run = add_program(make_run)
    x, y, z = arrays()
    watched = [x, y, z, F32]
    repeats = 100_000 if make_run is builtins.make_run else 1_000
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(repeats):
        run(x, y, z)
        run(x, y, x)
        run(x, y)
    assert [sys.getrefcount(each) for each in watched] == before


def test_a_program_keeps_its_memory_alive():
    memory = np.zeros(1_000, F32)
    before = sys.getrefcount(memory)
    plan = ProgramPlan()
    plan.add_memory(memory)
    run = builtins.make_run(plan)
    del plan
    assert sys.getrefcount(memory) == before + 1
    del run
    assert sys.getrefcount(memory) == before
