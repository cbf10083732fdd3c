"""`while_loop(checkpoint=k)`: what is kept, how often what runs, and what is refused, in both engines."""

import gc
import tracemalloc

import numpy as np
import pytest

import dynamic
import static
from common.control import checkpointed_while
from common.core.errors import ArgumentError, ShapeError
from tests.bits import assert_all_same_bits
from tests.parity.engines import payload

F32 = np.float32
STEPS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100)


def recurrence(tw, k):
    """The gradients of so many steps of a recurrence."""

    def loss(x, w, stop):
        def body(s):
            return s[0] + 1, (s[1] @ w + x).tanh()

        return (tw.while_loop(lambda s: s[0] < stop, body, (0, x), checkpoint=k)[1] ** 2).sum()

    return tw.function(tw.value_and_grad(loss, (0, 1)))


def operands(size=(3, 4)):
    rng = np.random.default_rng(11)
    return rng.normal(size=size).astype(F32), (rng.normal(size=(size[1], size[1])) / 3).astype(F32)


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_every_number_of_iterations(k):
    x, w = operands()
    x64, w64 = x.astype(np.float64), w.astype(np.float64)
    f, eager, plain = recurrence(static, k), recurrence(dynamic, k), recurrence(static, None)
    for steps in STEPS:
        value, grads = f(x, w, np.array(steps))
        assert_all_same_bits([value, *grads], [payload(y) for y in _flat(eager(x, w, np.array(steps)))], f"{steps}")
        value, grads = f(x64, w64, np.array(steps))
        for found, expected in zip([value, *grads], _flat(plain(x64, w64, np.array(steps))), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def _flat(result):
    value, grads = result
    return [value, *grads]


def test_what_is_kept_after_so_many_iterations(monkeypatch):
    """At most k states, more than half of them once they were too many, at equal distances that are powers of two."""
    kept = []

    class Spy(checkpointed_while.Thinned):
        def __init__(self, step, ran, captured):
            super().__init__(step, ran, captured)
            kept.append((ran.kept[0].copy(), ran.lengths.copy()))

    monkeypatch.setattr(checkpointed_while, "Thinned", Spy)
    x = dynamic.tensor(1.0, requires_grad=True)
    for k in (2, 5, 8):
        for steps in STEPS:
            dynamic.while_loop(lambda s, n=steps: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, x), checkpoint=k)
            positions, lengths = kept.pop()
            even = k // 2 * 2
            assert lengths.sum() == steps
            assert len(positions) <= even
            assert len(positions) > even // 2 or len(positions) == steps
            stride = 1
            while -(-steps // stride) > even:
                stride *= 2
            assert positions.tolist() == list(range(0, steps, stride))


def test_how_often_functions_run():
    """Each iteration once, and once again for the gradient; the condition once more than the body."""
    x = dynamic.tensor([0.5, 0.25], requires_grad=True)
    for steps in (0, 1, 7, 40):
        runs = {"body": 0, "condition": 0}

        def condition(s, runs=runs, n=steps):
            runs["condition"] += type(s[0].payload) is np.ndarray  # not where it runs for shapes
            return s[0] < n

        def body(s, runs=runs):
            runs["body"] += type(s[0].payload) is np.ndarray
            return s[0] + 1, s[1] * x

        y = dynamic.while_loop(condition, body, (0, x), checkpoint=4)[1]
        assert runs == {"body": steps, "condition": steps + 1}
        y.sum().backward()
        assert runs == {"body": 2 * steps, "condition": steps + 1}


def test_memory_of_the_compiled_gradient():
    """That of k and a stride of states, whatever the number of iterations was before; without, one per iteration."""
    x, w = operands((3, 16))
    state, sizes = x.nbytes, {}
    for k in (None, 32):
        f = recurrence(static, k)
        for steps in (500, 1000):
            f(x, w, np.array(steps))
        f(x, w, np.array(1000))
        sizes[k] = f._by_call[next(reversed(f._by_call))][1].arena_bytes / state
    assert sizes[None] > 2 * 1000
    assert sizes[32] < 6 * 32 + 2 * 64 + 100  # what is carried has two buffers; a segment of 64 saves two values each


def test_memory_of_the_eager_gradient():
    x, w = (dynamic.tensor(v, requires_grad=True) for v in operands((64, 64)))

    def peak(k):
        def step():
            def body(s):
                return s[0] + 1, dynamic.tanh(s[1] @ w)

            dynamic.while_loop(lambda s: s[0] < 400, body, (0, x), checkpoint=k)[1].sum().backward()

        step()
        gc.disable()  # reference counting alone ends each segment
        tracemalloc.start()
        step()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gc.enable()
        return most / x.payload.nbytes

    assert peak(None) > 400
    assert peak(32) < 32 + 400 / 16 * 2 + 20


def test_numbers_are_drawn_again():
    x = operands()[0]

    def build(tw, k):
        def loss(x):
            def body(s):
                return s[0] + 1, tw.dropout(s[1], 0.25) * (x + tw.rand_like(x))

            y = tw.while_loop(lambda s: s[0] < 13, body, (0, x), checkpoint=k)[1]
            return (y * tw.rand_like(x)).sum()

        tw.manual_seed(2)
        step = tw.function(tw.value_and_grad(loss))
        return [payload(y) for _ in range(2) for y in step(x)] + [tw.get_rng_state()]

    for k in (2, 6):
        assert_all_same_bits(build(static, k), build(dynamic, k), f"draws, {k}")
    for found, expected in zip(build(static, 6), build(static, None), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("tw", [dynamic, static])
def test_what_is_refused(tw):
    x = tw.nn.Parameter(np.ones(2, F32))
    count = tw.nn.Buffer(np.zeros((), F32)) if hasattr(tw.nn, "Buffer") else None
    run = lambda body, k: tw.function(lambda: tw.while_loop(lambda s: s.sum() < 9, body, x * 1, checkpoint=k))()  # noqa: E731
    for k in (0, 1, -3):
        with pytest.raises(ArgumentError, match=f"checkpoint is {k}; at least two states"):
            run(lambda s: s * 2, k)
    with pytest.raises(ShapeError, match=r"what <lambda> at .* carries on is"):
        run(lambda s: s.sum(), 4)
    assert count is not None

    def counts(s):
        count.add_(1)
        return s * 2

    with pytest.raises(ArgumentError, match="runs again for the gradient, but it writes to a tensor"):
        run(counts, 4)


def test_a_captured_value_that_is_overwritten_is_noticed():
    x, w = (dynamic.tensor(v, requires_grad=True) for v in operands())
    y = dynamic.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] @ w), (0, x), checkpoint=2)[1]
    with dynamic.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("examples", [False, True])
def test_second_derivatives_are_those_of_a_loop_that_keeps_every_state(examples):
    x = np.array([[0.15, 0.12], [1.15, 1.12], [0.075, 0.06]])

    def hessian(tw, k):
        w = tw.tensor([[0.5, 0.2], [0.1, 0.7]], dtype=tw.float64)
        f = lambda x: tw.while_loop(lambda s: (s * s).sum() < 8, lambda s: s * 1.3 + s.sin() @ w, x, checkpoint=k).sum()  # noqa: E731
        second = tw.func.hessian(f)
        return payload(tw.func.vmap(second)(tw.tensor(x)) if examples else second(tw.tensor(x[0])))

    expected = hessian(dynamic, None)
    for k in (2, 6):
        found = hessian(static, k)
        assert_all_same_bits([found], [hessian(dynamic, k)], f"hessian, {k}")
        np.testing.assert_allclose(found, expected, rtol=1e-12)
