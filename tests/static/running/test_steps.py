"""Repeated calls of compiled functions: one native call, which reads state and leaves gradients by itself."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import dynamic
import static
from common.tensor.leaf import Parameter
from static.running.plan import Plan
from tests.bits import assert_same_bits


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def make(tw, w):
    @tw.function
    def step(x):
        w.grad = None
        loss = (tw.tanh(x @ w) ** 2).mean()
        loss.backward()
        return loss

    return step


@pytest.fixture
def trained():
    """A parameter, and a step that has left its gradient twice."""
    w = Parameter(floats(3, 2))
    step = make(static, w)
    for seed in range(2):
        step(floats(5, 3, seed=seed))
    return w, step


def gradient_of(w, x):
    other = Parameter(w.payload)
    make(dynamic, other)(dynamic.tensor(x))
    return other.grad.payload


def test_the_second_call_is_one_native_call(monkeypatch, trained):
    monkeypatch.setattr(Plan, "__call__", None)
    w, step = trained
    x = floats(5, 3, seed=7)
    step(x)
    assert_same_bits(w.grad.payload, gradient_of(w, x), "gradient")
    assert type(w.grad) is dynamic.Tensor


def test_memory_of_gradients_is_used_again(trained):
    w, step = trained
    address = w.grad.payload.__array_interface__["data"][0]
    for seed in range(3, 6):
        x = floats(5, 3, seed=seed)
        step(x)
        assert w.grad.payload.ctypes.data == address
        assert_same_bits(w.grad.payload, gradient_of(w, x), "gradient")


HOLDS = {
    "tensor": lambda g: g,
    "detached": lambda g: g.detach(),
    "row": lambda g: g[0],
    "transposed": lambda g: g.t(),
    "array": lambda g: g.numpy(),
    "dlpack": np.from_dlpack,
    "buffer": lambda g: memoryview(g.numpy()),
}


@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
def test_what_a_user_holds_of_a_gradient_stays_as_it_is(trained, hold):
    w, step = trained
    held = hold(w.grad)
    before = np.array(held)
    for seed in range(3, 6):
        x = floats(5, 3, seed=seed)
        step(x)
        assert_same_bits(np.array(held), before, "held")
        assert_same_bits(w.grad.payload, gradient_of(w, x), "gradient")


def test_a_gradient_that_the_tape_has_saved_stays_as_it_is(trained):
    w, step = trained
    x = dynamic.tensor(floats(3, 2), requires_grad=True)
    product = (x * w.grad).sum()
    expected = np.array(w.grad)
    step(floats(5, 3, seed=9))
    product.backward()
    assert_same_bits(x.grad.payload, expected, "gradient of the product")


def test_gradients_that_are_added_to_are_read_and_written_apart():
    w = Parameter(floats(3, 2))

    @static.function
    def add(x):
        (static.tanh(x @ w) ** 2).mean().backward()

    x = floats(5, 3)
    total, one = None, gradient_of(w, x)
    for _ in range(5):
        add(x)
        total = one if total is None else total + one
        assert_same_bits(w.grad.payload, total, "gradient")


def test_a_failing_call_leaves_gradients_as_they_were():
    w = Parameter(floats(4, 2))

    @static.function
    def step(x, i):
        w.grad = None
        (x @ w).sum().backward()
        return static.index_select(x, 0, i)

    x, good, bad = floats(5, 4), np.array([1, 2]), np.array([1, 5])
    for _ in range(3):
        step(x, good)
    tensor, before = w.grad, np.array(w.grad)
    del tensor
    for _ in range(3):
        with pytest.raises(IndexError):
            step(x * 2, bad)
        assert_same_bits(w.grad.payload, before, "gradient")
    step(x * 2, good)
    assert_same_bits(w.grad.payload, before * 2, "gradient")


def test_gradients_may_be_cleared_and_state_replaced(trained):
    w, step = trained
    x = floats(5, 3, seed=4)

    for change in (
        lambda: setattr(w, "grad", None),
        lambda: setattr(w, "data", dynamic.tensor(floats(3, 2, seed=8))),
        lambda: setattr(w, "grad", dynamic.ones(3, 2)),
        lambda: setattr(w, "data", dynamic.tensor(floats(2, 3, seed=8)).t()),
        lambda: w.grad.requires_grad_(),
    ):
        change()
        step(x)
        assert_same_bits(w.grad.payload, gradient_of(w, x), "gradient")
        assert not w.grad.requires_grad


def test_cleared_gradients_are_none():
    w = Parameter(floats(3))
    clear = static.function(lambda x: (setattr(w, "grad", None), x * w)[1])
    for _ in range(3):
        w.grad = dynamic.ones(3)
        clear(floats(3))
        assert w.grad is None


def test_inference_tensors_are_left_under_inference_mode():
    w = Parameter(floats(3))
    double = static.function(lambda x: setattr(w, "grad", x * 2))
    x = floats(3)
    with dynamic.inference_mode():
        for _ in range(3):
            double(x)
            assert w.grad.is_inference()
    double(x)
    assert not w.grad.is_inference()


@pytest.mark.parametrize("size", [4, 200_000])
def test_results_are_fresh(size):
    f = static.function(lambda x: (x + 1, {"twice": [x * 2, None, "text"]}))
    x = floats(size)
    kept = [f(x) for _ in range(6)]
    for first, rest in kept:
        assert_same_bits(first, x + 1, "first")
        assert_same_bits(rest["twice"][0], x * 2, "second")
        assert rest["twice"][1:] == [None, "text"]
        first += 1e9


def test_threads_share_a_function(trained):
    w, step = trained
    xs = [floats(5, 3, seed=i) for i in range(4)]
    expected = [np.array(step(x)) for x in xs]
    wrong = []

    def run(i):
        wrong.extend(i for _ in range(500) if not np.array_equal(step(xs[i]), expected[i]))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert any(np.array_equal(w.grad.payload, gradient_of(w, x)) for x in xs)


LATER = """
import numpy as np, static
w = static.nn.Parameter(np.ones(3, np.float32))
@static.function
def step(x):
    w.grad = None
    (x * w).sum().backward()
x = np.ones(3, np.float32)
for _ in range(3):
    step(x)
print(type(w.grad).__name__)
import dynamic
step(x)
print(type(w.grad).__name__, len(step.traces))
"""


def test_gradients_are_tensors_whichever_engine_is_imported():
    run = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["Tensor", "Tensor", "1"]
