"""Native builtins and their fallback: one set of expectations for both."""

from __future__ import annotations

import sys
import weakref

import numpy as np
import pytest

from common.compiler.compile import compile_kernel
from common.evaluate import kernels
from common.ops import functional
from common.runtime import builtins, cpython_abi, object_text, python_builtins, trial
from tests.compiler.kernels import ADD, ADD_LEFT, ADD_RIGHT, FAIL

F32 = np.dtype(np.float32)


@pytest.fixture(params=["native", "fallback"])
def make(request):
    if request.param == "fallback":
        return python_builtins
    assert all(map(builtins.is_native, trial.TRIALS))
    return builtins


@pytest.fixture
def add(make):
    kernels = [
        compile_kernel(source, name)
        for source, name in ((ADD, "test_add"), (ADD_LEFT, "test_add_left"), (ADD_RIGHT, "test_add_right"))
    ]
    return make.make_elementwise([F32, F32], F32, *kernels)


@pytest.fixture
def add_call(make):
    return make.make_call(compile_kernel(ADD, "test_add"))


def vectors(*shape):
    rng = np.random.default_rng(0)
    return rng.random(shape, np.float32), rng.random(shape, np.float32)


def test_this_interpreter_is_supported():
    assert cpython_abi.is_supported()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 3, 5), (3, 0, 2), (100_003,)])
def test_elementwise_of_equal_shapes(add, shape):
    x, y = vectors(*shape)
    z = add(x, y)
    assert type(z) is np.ndarray
    assert z.dtype is F32
    assert z.shape == shape
    assert z.flags.c_contiguous
    assert z.flags.aligned
    assert z.flags.writeable
    assert z.base is None
    assert np.array_equal(z, x + y)


def test_elementwise_with_a_0d_operand(add):
    x, _ = vectors(2, 3)
    scalar = np.array(0.5, F32)
    assert np.array_equal(add(x, scalar), x + scalar)
    assert np.array_equal(add(scalar, x), x + scalar)
    assert add(x, scalar).shape == (2, 3)


def test_elementwise_without_scalar_kernels_refuses_a_0d_operand(make):
    full_only = make.make_elementwise([F32, F32], F32, compile_kernel(ADD, "test_add"))
    x, _ = vectors(4)
    assert full_only(x, np.array(1, F32)) is None
    assert full_only(np.array(1, F32), x) is None


class Subclass(np.ndarray):
    pass


def misaligned(n):
    return np.frombuffer(bytearray(4 * n + 1), np.uint8)[1:].view(F32)


@pytest.mark.parametrize(
    "other",
    [
        np.zeros(6, np.float64),
        np.zeros(6, np.int32),
        np.zeros(6, F32.newbyteorder()),
        np.zeros(5, F32),
        np.zeros((6, 1), F32),
        np.zeros((1, 6), F32),
        misaligned(6),
        np.zeros(6, F32).view(Subclass),
        [0.0] * 6,
        True,
        1 << 70,
        np.float32(1),
        None,
    ],
    ids=lambda value: str(getattr(value, "dtype", value)) + str(getattr(value, "shape", "")),
)
def test_elementwise_refuses_everything_else(add, other):
    x, _ = vectors(6)
    assert add(x, other) is None
    assert add(other, x) is None


def test_few_elements_in_another_order_are_copied(add):
    for size in (0, 6, object_text.FEW - 1, object_text.FEW):
        x, y = vectors(2 * size)
        before = sys.getrefcount(y)
        z = add(x[::2], y[::-2])
        if size < object_text.FEW:
            assert np.array_equal(z, x[::2] + y[::-2])
            assert np.array_equal(add(x[::2], 2.0), x[::2] + F32.type(2))
        else:
            assert z is None
        assert add(x[::2], y[::-2][1:]) is None or not size
        assert sys.getrefcount(y) == before


@pytest.mark.parametrize("number", [0.1, -0.0, 3, 2**60 + 1, -1, 1e300, float("nan")])
def test_elementwise_rounds_a_number_once(add, number):
    x, _ = vectors(2, 3)
    with np.errstate(over="ignore"):
        rounded = np.array(number).astype(F32)
    for y in (add(x, number), add(number, x)):
        assert np.asarray(y).tobytes() == (x + rounded).tobytes()
        assert y.shape == (2, 3)
    assert add(number, number) is None
    assert add(np.zeros((0, 2), F32), number).shape == (0, 2)


def test_elementwise_takes_a_number_only_where_there_is_a_kernel_for_it(make):
    full_only = make.make_elementwise([F32, F32], F32, compile_kernel(ADD, "test_add"))
    x, _ = vectors(4)
    assert full_only(x, 1.0) is None
    assert full_only(1.0, x) is None


def test_fixed(make):
    x, y = vectors(2, 3)
    add = make.make_fixed(compile_kernel(ADD, "test_add"), [F32, F32], (3, 2), F32, [6])
    z = add(x, y)
    assert z.dtype is F32
    assert np.asarray(z).tobytes() == (x + y).tobytes()
    assert z.shape == (3, 2)
    assert z.flags.c_contiguous
    assert z.flags.writeable
    assert z.base is None
    assert np.array_equal(add(x, y.T.copy().T).reshape(2, 3), x + y)
    for other in (x.astype(np.float64), x.view(Subclass), 1.0, None, misaligned(6)):
        assert add(x, other) is None
        assert add(other, x) is None
    assert add(x) is None
    assert add(x, y, x) is None
    assert make.make_fixed(compile_kernel(FAIL, "test_fail"), [F32], (6,), F32, [7])(x) is None
    assert make.make_fixed(compile_kernel(ADD, "test_add"), [F32, F32], (), F32, [1])(x, y).shape == ()


def test_fixed_takes_numbers_where_it_is_told(make):
    x, _ = vectors(6)
    left = make.make_fixed(compile_kernel(ADD_LEFT, "test_add_left"), [F32, F32], (6,), F32, [6], 0, [0])
    for number in (0.1, 3, 1e30, -0.0):
        assert left(number, x).tobytes() == (F32.type(number) + x).tobytes()
    for other in (True, 2**70, None, "1"):
        assert left(other, x) is None
    assert left(x, 0.1) is None


def test_fixed_limits_its_operands():
    with pytest.raises(ValueError, match="1 to 8 operands"):
        builtins.make_fixed(1, [F32] * 9, (), F32)


def test_finder_tells_what_a_recipe_depends_on(make):
    find, store, _ = make.make_finder()
    op, attrs = object(), {}
    x, row = np.zeros((2, 3), F32), np.zeros(3, F32)
    keys = [
        (op, attrs, x, row),
        (op, attrs, row, x),
        (op, attrs, x, x),
        (op, attrs, x, x.T),
        (op, attrs, x),
        (op, attrs, x.astype(np.float64)),
        (op, attrs, x.view(np.int32)),
        (op, attrs, x[None]),
        (op, attrs, np.zeros((), F32)),
        (op, attrs, x, 1.0),
        (op, attrs, x, 1),
        (op, attrs, x, True),
        (op, attrs, 1.0, x),
        (op, {}, x, row),
        (object(), attrs, x, row),
        (op, attrs),
    ]
    for key in keys:
        assert find(*key) is None
    found = [[] for _ in keys]
    for each, key in zip(found, keys, strict=True):
        assert store(each, *key) is None
    assert [find(*key) for key in keys] == found
    assert all(find(*key) is each for each, key in zip(found, keys, strict=True))
    assert find(op, attrs, np.ones((2, 3), F32), row + 1) is found[0]
    assert find(op, attrs, x, -0.5) is found[9]
    store([1], *keys[0])
    assert find(*keys[0]) == [1]
    store()
    assert [find(*key) for key in keys] == [None] * len(keys)


def test_finder_does_without_what_it_cannot_tell():
    find, store, _ = builtins.make_finder()
    op = object()
    for odd in (np.zeros((1,) * 9, F32), np.float32(1), "x", None, [1.0], np.zeros(1, F32).view(Subclass)):
        store([], op, None, odd)
        assert find(op, None, odd) is None
    many = [np.zeros((1, 1, 1, n), F32) for n in range(12)]
    store([], op, None, *many)
    assert find(op, None, *many) is None
    assert find(op) is None


def test_finder_owns_what_it_holds_and_forgets_by_itself():
    find, store, _ = builtins.make_finder()
    op, held = object(), object()
    before = sys.getrefcount(held)
    for n in range(5000):
        store(held, op, None, np.zeros(n % 2500, F32))
        assert find(op, None, np.ones(n % 2500, F32)) is held
    assert before < sys.getrefcount(held) <= before + 1024
    store()
    assert sys.getrefcount(held) == before


def test_elementwise_refuses_another_number_of_arguments(add):
    x, y = vectors(3)
    assert add(x) is None
    assert add() is None
    assert add(x, y, x) is None


def test_elementwise_takes_a_readonly_operand(add):
    x, y = vectors(6)
    x.flags.writeable = False
    assert np.array_equal(add(x, y), x + y)


def test_elementwise_passes_the_status_on(make):
    failing = make.make_elementwise([F32], F32, compile_kernel(FAIL, "test_fail"))
    assert failing(np.zeros(7, F32)) == 7


@pytest.mark.parametrize("count", [0, 9])
def test_elementwise_limits_its_operands(count):
    with pytest.raises(ValueError, match="1 to 8 operands"):
        builtins.make_elementwise([F32] * count, F32, 1)


def test_call_passes_arrays_and_ints_in_order(add_call):
    x, y = vectors(9)
    z = np.zeros(9, F32)
    assert add_call(8, x, y, z) == 0
    assert np.array_equal(z[:8], (x + y)[:8])
    assert z[8] == 0


@pytest.mark.parametrize("argument", [True, 1.0, None, np.float32(1), np.zeros(1, F32).view(Subclass)])
def test_call_refuses_other_arguments(add_call, argument):
    x, y = vectors(1)
    assert add_call(x, y, x.copy(), argument) == -1


def test_call_refuses_more_than_64_arguments(make):
    call = make.make_call(compile_kernel(FAIL, "test_fail"))
    assert call(*range(64)) == 0
    assert call(*range(65)) == -1


@pytest.mark.parametrize("value", [-1, 5, 2**62, -(2**63), 2**63 - 1])
def test_call_passes_every_int64(make, value):
    assert make.make_call(compile_kernel(FAIL, "test_fail"))(value) == value


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_call_raises_for_an_int_beyond_int64(make, value):
    with pytest.raises(OverflowError):
        make.make_call(compile_kernel(FAIL, "test_fail"))(value)


def test_builtins_refuse_keywords(add):
    with pytest.raises(TypeError):
        add(x=1)


def test_no_reference_is_lost_or_kept(add, make):
    x, y = vectors(8)
    failing = make.make_elementwise([F32], F32, compile_kernel(FAIL, "test_fail"))
    call = make.make_call(compile_kernel(FAIL, "test_fail"))
    watched = [x, y, F32, None, np.ndarray, 1 << 40]
    repeats = 100_000 if make is builtins else 1_000

    def work():
        for _ in range(repeats):
            add(x, y)
            add(x, None)
            failing(x)
            call(x, 7)
            call(None)

    work()
    before = [sys.getrefcount(each) for each in watched]
    work()
    after = [sys.getrefcount(each) for each in watched]
    # None is shared with everything else that runs in the process.
    assert all(abs(b - a) < 20 for a, b in zip(after, before, strict=True)), (before, after)


def test_results_are_freed(add):
    x, y = vectors(8)
    result = weakref.ref(add(x, y))
    assert result() is None


def test_a_builtin_owns_what_it_needs_and_nothing_for_longer():
    own = np.dtype(np.float32, copy=True)  # numpy's own is immortal since Python 3.12: nothing counts there
    before = sys.getrefcount(own)
    many = [builtins.make_elementwise([own], own, compile_kernel(FAIL, "test_fail")) for _ in range(1_000)]
    assert sys.getrefcount(own) >= before + 1_000
    assert {f(np.zeros(3, own)) for f in many} == {3}
    del many
    assert abs(sys.getrefcount(own) - before) < 20


def test_unknown_layouts_take_the_fallback(monkeypatch):
    monkeypatch.setattr(cpython_abi, "_numpy_layout", lambda: False)
    assert not cpython_abi.is_supported()
    builtins.is_native.cache_clear()
    try:
        call = builtins.make_call(compile_kernel(FAIL, "test_fail"))
        assert not isinstance(call, type(len))
        assert call(11) == 11
    finally:
        monkeypatch.undo()
        builtins.is_native.cache_clear()
    assert isinstance(builtins.make_call(compile_kernel(FAIL, "test_fail")), type(len))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_ints_beside_integers_are_taken_where_the_dtype_has_them(make, dtype):
    assert functional.add  # kernels know the ops that are loaded
    info, x = np.iinfo(dtype), np.arange(3, dtype=dtype)
    same, left, right = (kernels.loop_address("add", (x.dtype,) * 2, x.dtype, k) for k in ("ff", "sf", "fs"))
    add = make.make_elementwise((x.dtype,) * 2, x.dtype, same, left, right)
    for value in (0, 1, info.min, info.max):
        with np.errstate(over="ignore"):
            expected = x + np.array([value], dtype)
        for found in (add(x, value), add(value, x)):
            assert found.dtype == x.dtype
            assert found.tolist() == expected.tolist()
    for value in (info.min - 1, info.max + 1, 10**30, 1.0, True):
        assert add(x, value) in (None, -1)
        assert add(value, x) in (None, -1)
