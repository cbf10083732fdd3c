"""Compiled functions called from the user's own numba code: the bits of the plain call, without Python."""

from __future__ import annotations

import gc
import threading

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaWarning, TypingError
from numba.core.runtime import _nrt_python, rtsys

import dynamic
import static
from common.core.errors import ArgumentError, IndexRangeError, ShapeError
from common.tensor.leaf import Parameter
from static.jit import numba_calls
from static.running.result_memory import ResultMemory
from tests.bits import assert_same_bits
from tests.helpers.proofs import core, no


def floats(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def leaves(x):
    return [y for part in x for y in leaves(part)] if isinstance(x, tuple) else [np.asarray(x is not None and x)]


def softmax_loss(x, labels):
    return static.nn.functional.cross_entropy(x, labels)


def network(x, w, b):
    return (static.tanh(x @ w + b) ** 2).mean()


def powers(x, steps):
    return static.fori_loop(0, 5, lambda i, y: y * x + i, x), steps


def halved(x):
    """A loop whose length is decided by data, with memory for the gradient of each iteration."""
    return static.while_loop(lambda y: (y * y).sum() > 1, lambda y: y * 0.5 + static.sin(y) * 0.125, x).sum()


CASES = {
    "elementwise": (lambda x, y: static.exp(x) * y - x / y, (floats(7, 3), floats(7, 3, seed=1))),
    "broadcast and views": (lambda x, y: (x.t() + y).reshape(-1), (floats(4, 3), floats(4, seed=1))),
    "double": (lambda x: static.softmax(x, dim=-1).cumsum(0), (floats(9, 5, dtype=np.float64),)),
    "large": (lambda x: (static.tanh(x) @ x.t()).sum(0), (floats(200, 300),)),
    "numbers": (lambda x, a, n: (x * a + n, x**2), (floats(5), 0.3, 7)),
    "a number alone": (lambda a: static.exp(a), (1.5,)),
    "whole numbers": (lambda i, j: (i * j, i < j, (i // 2).sum()), (np.arange(6), np.arange(6)[::-1] + 1)),
    "no dimensions": (lambda x: x * 2, (np.float32(3.5),)),
    "no elements": (lambda x: (x * 2, x.sum(0)), (floats(0, 4),)),
    "nested": (lambda p, x: (x @ p[0] + p[1][0], (None, 3, x)), ((floats(3, 2), (floats(2),)), floats(5, 3))),
    "indices": (lambda x, i: static.index_select(x, 0, i), (floats(6, 2), np.array([3, 0, 5]))),
    "network": (network, (floats(8, 3), floats(3, 2, seed=1), floats(2, seed=2))),
    "its gradient": (static.grad(network, argnums=(1, 2)), (floats(8, 3), floats(3, 2, seed=1), floats(2, seed=2))),
    "value and gradient": (static.value_and_grad(softmax_loss), (floats(8, 5), np.arange(8) % 5)),
    "branch": (lambda x: static.cond(x.sum() > 0, lambda x: x * 2, static.exp, x), (floats(4),)),
    "loop": (lambda x: powers(x, x * 2), (floats(4),)),
    "gradient of a loop": (static.grad(lambda x: powers(x, 0)[0].sum()), (floats(4),)),
    "gradient of a long loop": (static.grad(halved), (floats(4) * 9,)),
    "second derivative": (
        static.grad(lambda x: (static.grad(lambda x: (x**3 * x[0]).sum())(x) ** 2).sum()),
        (floats(4),),
    ),
}


# One of each kind of argument and result; numba takes a second for each.
KINDS = {"elementwise", "numbers", "no elements", "nested", "its gradient", "gradient of a long loop"}


@pytest.mark.parametrize("name", core(CASES, quick=no, seldom=lambda name: name not in KINDS))
def test_bits_of_the_plain_call(name):
    f, arguments = CASES[name]
    f = static.function(f)
    expected = f(*arguments)
    got = static.njit(f, *arguments)(*arguments)
    assert isinstance(got, tuple) is isinstance(expected, tuple)
    for a, b in zip(leaves(got), leaves(expected), strict=True):
        assert_same_bits(a, b, name)


def test_arrays_of_any_layout():
    f = static.function(lambda x, y: (x * 2 + y).sum(0))
    x = floats(6, 4)
    fast = static.njit(f, x, x)
    wide, readonly = floats(12, 4, seed=1), floats(6, 4, seed=2)
    readonly.flags.writeable = False
    for y in (x[::-1], np.asfortranarray(x), wide[::2], readonly, np.broadcast_to(x[0], (6, 4)), x):
        assert_same_bits(fast(y, x), f(np.ascontiguousarray(y), x), "sum")


def test_results_are_new_and_memory_is_given_back():
    f = static.function(lambda x: (x + 1, static.tanh(x) @ x))
    x = floats(30, 30)
    fast = static.njit(f, x)

    @numba.njit
    def many(x, n):
        total = np.zeros_like(x)
        for _ in range(n):
            a, b = fast(x)
            total += a
            a[:] = b
        return total

    _nrt_python.memsys_enable_stats()
    many(x, 1)
    before = rtsys.get_allocation_stats()
    assert_same_bits(many(x, 50), sum([x + 1] * 50, np.zeros_like(x)), "total")
    gc.collect()
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free


def test_other_sizes_and_types_are_refused():
    fast = static.njit(lambda x, a: x * a, floats(3, 2), 0.5)

    @numba.njit
    def caller(x, a):
        return fast(x, a)

    with pytest.raises(ShapeError, match=r"argument x must have shape \(3, 2\)"):
        caller(floats(2, 3), 0.5)
    with pytest.raises(ShapeError):
        caller(floats(2, 3).T[:2], 0.5)
    with pytest.raises(TypingError, match="argument x must be an array of float32 with 2 dimensions"):
        caller(floats(3, 2, dtype=np.float64), 0.5)
    with pytest.raises(TypingError, match="with 2 dimensions"):
        caller(floats(3), 0.5)
    with pytest.raises(TypingError, match="argument a must be a float"):
        caller(floats(3, 2), 2)


def test_errors_of_ops_reach_the_caller():
    fast = static.njit(lambda x, i: static.index_select(x, 0, i) * 2, floats(4, 2), np.array([0, 1]))

    @numba.njit
    def caller(x, i):
        try:
            return fast(x, i)
        except Exception:
            return x

    with pytest.raises(IndexRangeError, match="index_select"):
        fast(floats(4, 2), np.array([0, 4]))
    assert caller(floats(4, 2), np.array([0, 4])).shape == (4, 2)
    assert caller(floats(4, 2), np.array([0, 3])).shape == (2, 2)


def test_a_loop_without_room_is_an_error():
    slope = static.function(static.grad(halved))
    fast = static.njit(slope, floats(4))
    with pytest.raises(ArgumentError, match="a loop runs more often"):
        fast(floats(4) * 1e30)
    x = floats(4) * 1e30
    slope(x)
    assert_same_bits(static.njit(slope, x)(x), slope(x), "gradient")


def test_state_is_read_by_reference():
    w, array = Parameter(floats(3, 2)), floats(2)
    f = static.function(lambda x: static.tanh(x @ w) + array)
    fast = static.njit(f, floats(5, 3))

    @numba.njit
    def caller(x):
        return fast(x) * 2

    x = floats(5, 3, seed=1)
    for _ in range(3):
        assert_same_bits(fast(x), f(x).detach(), "result")
        assert_same_bits(caller(x), f(x).detach() * 2, "result")
        with dynamic.no_grad():
            w.mul_(0.5)
        array += 1
    w.data = dynamic.tensor(floats(3, 2, seed=3))
    for call in (fast, caller):
        with pytest.raises(ArgumentError, match="captured state has become another array"):
            call(x)
    assert_same_bits(static.njit(f, x)(x), f(x).detach(), "result")


def test_training_in_numba():
    dynamic.manual_seed(0)
    model = dynamic.nn.Sequential(dynamic.nn.Linear(3, 8), dynamic.nn.Tanh(), dynamic.nn.Linear(8, 1))
    names, start = zip(*((name, np.array(p.detach())) for name, p in model.named_parameters()), strict=True)

    def loss(p, x, y):
        return ((dynamic.func.functional_call(model, dict(zip(names, p, strict=True)), (x,)) - y) ** 2).mean()

    x, y = floats(16, 3), floats(16, 1, seed=1)
    gradient = static.njit(static.value_and_grad(loss), start, x, y)

    @numba.njit
    def train(a, b, c, d, x, y, steps):
        losses = np.empty(steps, np.float32)
        for i in range(steps):
            value, (da, db, dc, dd) = gradient((a, b, c, d), x, y)
            rate = np.float32(0.1)
            a, b, c, d = a - rate * da, b - rate * db, c - rate * dc, d - rate * dd
            losses[i] = value[()]
        return losses

    found = train(*start, x, y, 30)
    plain, p = static.function(static.value_and_grad(loss)), start
    for i in range(30):
        value, slopes = plain(p, x, y)
        assert_same_bits(np.asarray(found[i]), value, "loss")
        p = tuple(v - np.float32(0.1) * s for v, s in zip(p, slopes, strict=True))
    assert found[-1] < found[0] * 0.8


@pytest.fixture(scope="module")
def shared():
    """A function that several threads call, its arguments, and what it gives for each."""
    f = static.function(static.grad(lambda x, w: (static.tanh(x @ w) @ w.t()).sum()))
    w = floats(60, 50)
    xs = floats(64, 40, 60)
    return f, static.njit(f, xs[0], w), xs, w, np.stack([f(x, w) for x in xs])


@pytest.mark.slow
def test_numbas_threads_do_not_disturb_each_other(shared):
    """Numba takes 5 s to compile a loop for threads."""
    _, fast, xs, w, expected = shared

    @numba.njit(parallel=True)
    def in_parallel(xs, w):
        out = np.empty_like(xs)
        for i in numba.prange(len(xs)):
            out[i] = fast(xs[i], w)
        return out

    for _ in range(5):
        assert_same_bits(in_parallel(xs, w), expected, "prange")


def test_threads_do_not_disturb_each_other(shared):
    f, fast, xs, w, expected = shared

    @numba.njit(nogil=True)
    def one_by_one(xs, w, out):
        for i in range(len(xs)):
            out[i] = fast(xs[i], w)

    outs = [np.empty_like(xs) for _ in range(4)]
    threads = [threading.Thread(target=one_by_one, args=(xs, w, out)) for out in outs]
    for thread in threads:
        thread.start()
    plain = [f(x, w) for x in xs]
    for thread in threads:
        thread.join()
    for found in (*outs, np.stack(plain)):
        assert_same_bits(found, expected, "thread")


def test_a_function_as_an_argument():
    fast = static.njit(lambda x: x * 3, floats(4))

    @numba.njit
    def apply(f, x):
        return f(x) + 1

    assert_same_bits(apply(fast, floats(4)), floats(4) * 3 + 1, "result")


def test_compiled_callers_keep_what_they_need():
    def make():
        array = floats(4)
        fast = static.njit(lambda x: x * array, floats(4))
        caller = numba.njit(lambda x: fast(x))
        caller(floats(4))
        return caller.overloads[caller.signatures[0]].entry_point  # the machine code without what it was made of

    call = make()
    gc.collect()
    assert [floats(100) for _ in range(100)]
    assert_same_bits(call(floats(4)), floats(4) * floats(4), "result")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what numba imports when it looks for users of it
def test_callers_are_not_stored_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    fast = static.njit(lambda x: x * 3, floats(4))

    @numba.njit(cache=True)
    def caller(x):
        return fast(x)

    with pytest.warns(NumbaWarning, match="dynamic globals"):
        caller(floats(4))


w = Parameter(floats(3))


def writing(x):
    with static.no_grad():
        w.add_(x)
    return x


def leaving(x):
    (x * w).sum().backward()
    return x


REFUSED = {
    "sets .grad": (leaving, (floats(3),), "`.grad`"),
    "writes to state": (writing, (floats(3),), "writes to state"),
    "draws": (lambda x: x + static.rand(3), (floats(3),), "random numbers"),
    "writes to an argument": (lambda x: x.mul_(2), (floats(3),), "writes to an argument"),
    "a number of Python's": (lambda x, n: sum([x] * int(n)), (floats(3), 2), "argument 1 as a Python number"),
    "returns a dict": (lambda x: {"x": x * 2}, (floats(3),), "returns a dict"),
    "takes a list": (lambda x: x[0] * 2, ([floats(3)],), "tuples of them"),
    "takes text": (lambda x, how: x * 2, (floats(3), "how"), "argument 1 is a str"),
    "returns nothing": (lambda x: None, (floats(3),), "no array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_python_is_refused(name):
    f, arguments, text = REFUSED[name]
    with pytest.raises(ArgumentError, match=text):
        static.njit(f, *arguments)


def test_interpreted_functions_and_unknown_interpreters_are_refused(monkeypatch):
    with pytest.raises(ArgumentError, match="interpreted"):
        static.njit(static.function(lambda x: x * 2, interpret=True), floats(3))
    monkeypatch.setattr(numba_calls, "is_native", lambda symbol: False)
    with pytest.raises(ArgumentError, match="known layout"):
        static.njit(lambda x: x * 2, floats(3))


def test_calls_at_the_same_time_share_no_table_of_sizes(monkeypatch):
    """A plan keeps what depends on sizes only, in one place; calls without the lock would write it at the same time."""
    made, keep = [], ResultMemory.keep
    monkeypatch.setattr(ResultMemory, "keep", lambda self, nbytes: made.append(keep(self, nbytes)) or made[-1])
    x, program = floats(400), static.function(lambda x: x * static.exp(static.arange(400).float() / 400))
    expected = np.asarray(program(x)).copy()
    called = static.njit(program, x)
    assert made
    for table in made:
        table[:] = 255  # nan
    assert_same_bits(called(x), expected, "without the lock")
    assert all((table == 255).all() for table in made)
