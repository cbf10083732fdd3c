"""Threads change no bit: products of many tiles and batches, in both engines, for any number of threads."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import dynamic
import static
from common.compiler.compile import compile_kernel
from common.core.errors import ArgumentError
from common.kernels.arrays import gemm
from common.runtime import builtins, pool_text, python_builtins, thread_pool
from tests.kernels.run import assert_same_bits, run

SHAPES = [(1, 1024, 1024, 1024), (1, 2700, 160, 160), (1, 5, 9000, 1500), (7, 90, 100, 80), (3, 2600, 130, 200)]


@pytest.fixture(autouse=True)
def one_thread_afterwards():
    yield
    dynamic.set_num_threads(1)


def operands(shape, dtype):
    batch, m, n, k = shape
    rng = np.random.default_rng(60)
    return [rng.normal(size=s).astype(dtype) for s in ((batch, m, k), (batch, k, n))]


def alone(a, b):
    """The products of batches by one thread; `tests.kernels.test_gemm` says what they are."""
    assert thread_pool.get_num_threads() == 1
    batch, m, k = a.shape
    out = np.full((batch, m, b.shape[2]), np.nan, a.dtype)
    assert run(gemm.gemm_source(a.dtype), [a, b, out], [batch, m, b.shape[2], k, 0, 0, m * k, k * b.shape[2]]) == 0
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_bits_do_not_depend_on_the_number_of_threads(shape, dtype):
    batch, m, n, k = shape
    a, b = operands(shape, dtype)
    expected = alone(a, b)
    for count in (1, 2, 3, 8):
        dynamic.set_num_threads(count)
        out = np.full((batch, m, n), np.nan, dtype)
        assert run(gemm.gemm_source(dtype), [a, b, out], [batch, m, n, k, 0, 0, m * k, k * n]) == 0
        assert_same_bits(out, expected)


@pytest.mark.parametrize("flags", [(0, 1), (1, 0), (1, 1)])
def test_transposed_operands(flags):
    m, n, k = 2700, 160, 170
    (a,), (b,) = operands((1, m, n, k), "float32")
    stored = [np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), flags, strict=True)]
    (expected,) = alone(a[None], b[None])
    dynamic.set_num_threads(3)
    out = np.empty((m, n), np.float32)
    assert run(gemm.gemm_source("float32"), [*stored, out], [1, m, n, k, *flags, 0, 0]) == 0
    assert_same_bits(out, expected)


def test_every_tile_is_computed_by_the_kernel_of_a_tile():
    """The kernel that threads call, one tile at a time and in any order, makes the product that one call makes."""
    batch, m, n, k = 2, 2700, 170, 160
    a, b = operands((batch, m, n, k), "float32")
    rows, columns = gemm.tiles(m, n, k)
    count = batch * -(-m // rows) * -(-n // columns)
    assert count > 2
    out = np.full((batch, m, n), np.nan, np.float32)
    for task in np.random.default_rng(61).permutation(count):
        args = [batch, m, n, k, 0, 0, m * k, k * n, int(task)]
        before = np.isnan(out).sum()
        assert run(gemm.tile_source("float32"), [a, b, out], args) == 0
        assert np.isnan(out).sum() < before, "two tasks write one tile"
    assert_same_bits(out, alone(a, b))


def test_the_work_is_shared():
    """Some thread of the pool takes a task: with two, the caller's processor time falls in one of many products."""
    import time

    (a,), (b,) = operands((1, 1024, 1024, 1024), "float64")
    x, y = dynamic.tensor(a), dynamic.tensor(b)

    def own_seconds():
        start = time.thread_time()
        x @ y
        return time.thread_time() - start

    alone = min(own_seconds() for _ in range(3))
    dynamic.set_num_threads(2)
    assert min(own_seconds() for _ in range(20)) < 0.8 * alone


def test_threads_that_look_out_sleep_or_are_called_off_do_the_same():
    """Pauses of any length, so that a task finds its helpers in every state; more threads than processors too."""
    import time

    a, b = operands((6, 90, 100, 80), "float32")
    expected = alone(a, b)
    pauses = np.random.default_rng(63).exponential(5e-5, 300)
    for count in (2, 3, 16):
        dynamic.set_num_threads(count)
        for pause in pauses:
            time.sleep(pause if pause > 2e-5 else 0)
            out = np.full_like(expected, np.nan)
            assert run(gemm.gemm_source("float32"), [a, b, out], [6, 90, 100, 80, 0, 0, 90 * 80, 80 * 100]) == 0
            assert_same_bits(out, expected)


def test_helpers_run_on_other_processors_than_their_caller():
    """The caller is moved from one processor to the next; its helper may run on all the others each time."""
    if not hasattr(os, "sched_setaffinity"):
        return  # nobody can be moved
    allowed = os.sched_getaffinity(0)
    (a,), (b,) = operands((1, 2700, 160, 160), "float32")
    x, y = dynamic.tensor(a), dynamic.tensor(b)
    dynamic.set_num_threads(2)
    helper = next(thread for thread in threading.enumerate() if thread.name == "twingrad-1")
    try:
        for processor in sorted(allowed)[:4] if len(allowed) > 1 else ():
            os.sched_setaffinity(0, {processor})
            x @ y
            assert os.sched_getaffinity(helper.native_id) == allowed - {processor}
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_training_step_with_threads_is_the_step_without():
    def weights(tw, threads):
        tw.set_num_threads(threads)
        tw.manual_seed(0)
        model = tw.nn.Sequential(tw.nn.Linear(160, 160), tw.nn.ReLU(), tw.nn.Linear(160, 160))
        optimizer = tw.optim.SGD(model.parameters(), lr=0.1)
        x = np.random.default_rng(62).normal(size=(2700, 160)).astype(np.float32)

        @tw.function
        def step(x):
            optimizer.zero_grad()
            loss = tw.nn.functional.mse_loss(model(x), x)
            loss.backward()
            optimizer.step()
            return loss

        losses = [np.asarray(step(x)).copy() for _ in range(2)]
        return [*losses, *(p.detach().numpy().copy() for p in model.parameters())]

    expected = weights(dynamic, 1)
    for tw in (dynamic, static):
        for count in (1, 2, 3):
            for ours, theirs in zip(weights(tw, count), expected, strict=True):
                assert_same_bits(ours, theirs)


def test_calls_from_several_threads_at_once():
    """Where the GIL is not held, one call has the pool and the others work alone."""
    a, b = operands((6, 90, 100, 80), "float32")
    expected = alone(a, b)
    call = python_builtins.make_call(compile_kernel(gemm.gemm_source("float32"), "gemm"))
    dynamic.set_num_threads(3)
    wrong = []

    def work():
        for _ in range(50):
            out = np.empty_like(expected)
            call(a, b, out, 6, 90, 100, 80, 0, 0, 90 * 80, 80 * 100)
            if np.asarray(out).tobytes() != np.asarray(expected).tobytes():
                wrong.append(out)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    if not hasattr(os, "fork"):
        return  # nothing to fork
    a, b = operands((1, 2700, 160, 160), "float32")
    x, y = dynamic.tensor(a[0]), dynamic.tensor(b[0])
    dynamic.set_num_threads(2)
    expected = (x @ y).numpy().tobytes()
    child = os.fork()
    if child == 0:
        good = (x @ y).numpy().tobytes() == expected and dynamic.get_num_threads() == 2
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_setting_is_one_for_both_engines():
    assert dynamic.get_num_threads() == 1
    static.set_num_threads(3)
    assert dynamic.get_num_threads() == static.get_num_threads() == 3
    dynamic.set_num_threads(2)
    assert static.get_num_threads() == 2
    dynamic.set_num_threads(1000)
    assert dynamic.get_num_threads() == 1000
    assert thread_pool.LIMIT == 64


LOOPS = {
    "one operand": lambda x, c, r: x.tanh(),
    "two": lambda x, c, r: x * x.exp(),
    "a number": lambda x, c, r: (x / 3, 3 - x, x**2.0),
    "an array of one element": lambda x, c, r: (x * c[0, 0], c[0, 0] - x),
    "columns": lambda x, c, r: x - c,
    "rows": lambda x, c, r: (x + r, x > r),
    "blocks": lambda x, c, r: x.reshape(3, -1, 700) * r[:98].reshape(98, 1) + c,
    "a fused rule": lambda x, c, r: dynamic.nn.functional.softplus(x),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LOOPS)
def test_threads_share_eager_loops_over_many_elements(name, dtype):
    """Of 294 x 700 elements: no part has as many as another."""
    rng = np.random.default_rng(62)
    leaves = [dynamic.tensor(rng.normal(size=size).astype(dtype), requires_grad=True) for size in (
        (294, 700), (1, 700), (294, 1))]  # fmt: skip

    def results():
        found = LOOPS[name](*leaves)
        found = found if isinstance(found, tuple) else (found,)
        total = sum((y * y).sum() for y in found if y.requires_grad)
        return [
            y.detach().numpy()
            for y in (*found, *dynamic.autograd.grad(total, leaves, allow_unused=True))
            if y is not None
        ]

    expected = results()
    for count in (2, 3, 8):
        dynamic.set_num_threads(count)
        thread_pool._pool[pool_text.JOB] = 0
        for a, b in zip(results(), expected, strict=True):
            assert_same_bits(a, b)
        assert thread_pool._pool[pool_text.JOB], "no thread was asked"


PICKY = """def picky(bufs, args):
    x = buffer(bufs, 0, int64)
    for i in range(args[0]):
        if x[i] < 0:
            return 7
    return 0
"""


def test_a_status_of_any_part_is_that_of_the_call():
    call = builtins.make_elementwise([np.int64], np.int64, compile_kernel(PICKY, "picky"))
    x = np.zeros(1 << 18, np.int64)
    dynamic.set_num_threads(3)
    assert type(call(x)) is np.ndarray
    for place in (0, 100_000, x.size - 1):
        x[place] = -1
        assert call(x) == 7
        x[place] = 0


REFUSED = {0: "positive integer, but got 0", -1: "but got -1", 1.5: "expects an int, but got float"}


@pytest.mark.parametrize(("value", "text"), [*REFUSED.items(), (True, "but got bool")])
def test_a_number_of_threads_that_is_none_is_refused(value, text):
    for tw in (dynamic, static):
        with pytest.raises(ArgumentError, match=text):
            tw.set_num_threads(value)
    assert dynamic.get_num_threads() == 1
