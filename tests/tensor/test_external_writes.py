"""Writes from outside to what a node has saved: through arrays that were handed out, or that tensors were made of."""

import ctypes
import gc
import inspect
import sys
import weakref

import numpy as np
import pytest

import dynamic as tw
from common.kernels.arrays.checksum import checksum_oracle
from common.tensor import external_writes as state
from dynamic.utils.checkpoint import checkpoint

MODIFIED = "modified by an inplace operation"


def leaf(*values, dtype=tw.float32):
    return tw.tensor(list(values), dtype=dtype, requires_grad=True)


def handed(x):
    return x.detach().numpy()


WAYS_OUT = {
    "numpy": handed,
    "asarray": lambda x: np.asarray(x.detach()),
    "array": lambda x: np.array(x.detach(), copy=False),
    "dlpack": lambda x: np.from_dlpack(x.detach()),
    "a view of it": lambda x: handed(x)[:],
    "of a view": lambda x: handed(x.reshape(2, 2)).reshape(4),
    "memoryview": lambda x: np.asarray(memoryview(handed(x))),
}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("early", [True, False], ids=["handed out before", "handed out after"])
def test_a_write_to_what_was_handed_out(way, early):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    h = x * 1
    if early:
        a = WAYS_OUT[way](h)
        y = h * h
    else:
        y = h * h
        a = WAYS_OUT[way](h)
    if not a.flags.writeable:
        a = np.ctypeslib.as_array((ctypes.c_float * 4).from_address(a.ctypes.data))
    a[2] = 7.0
    assert h.tolist()[2] == 7.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_a_write_through_an_address_while_an_array_is_out():
    h = leaf(1.0, 2.0) * 1
    y = h * h
    a = handed(h)
    ctypes.c_float.from_address(a.ctypes.data).value = 5.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


@pytest.mark.parametrize("make", [tw.from_numpy, tw.as_tensor, tw.from_dlpack, tw.Tensor])
def test_a_write_to_what_a_tensor_was_made_of(make):
    a = np.array([1.0, 2.0, 3.0], np.float32)
    w, t = leaf(1.0, 1.0, 1.0), make(a)
    (w * t).sum().backward()
    assert w.grad.tolist() == [1.0, 2.0, 3.0]
    y = (w * t).sum()
    a[1] = 0.5
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()
    (w * t).sum().backward()  # the next step, with what is there now


def test_a_write_to_an_array_that_was_an_operand():
    a = np.array([1.0, 2.0], np.float32)
    for apply in (lambda w, a: w * a, lambda w, a: a * w, tw.mul, lambda w, a: tw.outer(w, a).sum(0)):
        y = apply(leaf(1.0, 2.0), a).sum()
        a += 1
        with pytest.raises(RuntimeError, match=MODIFIED):
            y.backward()


def test_both_lines_and_the_way_out_are_told():
    h = leaf(1.0, 2.0) * 1
    line = inspect.currentframe().f_lineno
    a = handed(h)
    y = h.exp() * h
    a[0] = 3.0
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    text = str(caught.value)
    assert text.startswith(
        "one of the variables needed for gradient computation has been modified by an inplace operat"
    )
    assert f"saved by MulBackward0 at {__file__}:{line + 2} was overwritten from outside" in text
    assert f"numpy() shares since {__file__}:" in text


def test_no_false_alarm():
    x = leaf(1.0, 2.0, 3.0, float("nan"))
    h = x * 1
    y = h[:2] * h[:2]
    a = handed(h)
    z = h[:2] * h[:2]
    a[2] = 9.0  # another part
    a[3] = np.float32(np.nan)
    a[0] = 1.0  # what is there already
    with tw.no_grad():
        h[2:].mul_(2.0)
    (y + z).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0, 0.0, 0.0]


def test_a_write_before_it_is_saved():
    a = np.ones(3, np.float32)
    t, w = tw.from_numpy(a), leaf(1.0, 1.0, 1.0)
    b = t.numpy()
    a[:] = 2.0
    b[0] = 3.0
    (w * t).sum().backward()
    assert w.grad.tolist() == [3.0, 2.0, 2.0]


def test_one_bit_is_seen_even_in_a_nan():
    a = np.full(5, np.nan, np.float32)
    t = tw.from_numpy(a)
    y = leaf(1.0, 2.0, 3.0, 4.0, 5.0) * t
    a.view(np.uint32)[4] ^= 1
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_zeros_have_signs():
    a = np.zeros(2, np.float32)
    y = leaf(1.0, 2.0) * tw.from_numpy(a)
    a[0] = -0.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_an_array_that_came_back():
    """A tensor over what was handed out shows the same memory."""
    h = leaf(1.0, 2.0) * 1
    a = handed(h)
    again = tw.from_numpy(a)
    y = h * h
    again.zero_()  # our own write, through another tensor
    with pytest.raises(RuntimeError, match=f"{MODIFIED}.*was overwritten at"):
        y.sum().backward()


def test_twice_and_twice_differentiated():
    a = np.array([1.0, 2.0], np.float64)
    x, t = leaf(1.0, 3.0, dtype=tw.float64), tw.from_numpy(a)
    y = (x * t * x).sum()
    y.backward(retain_graph=True)
    (g,) = tw.autograd.grad(y, x, create_graph=True)
    (gg,) = tw.autograd.grad(g.sum(), x, retain_graph=True)
    assert gg.tolist() == [2.0, 4.0]
    a[0] = 5.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()
    with pytest.raises(RuntimeError, match=MODIFIED):
        g.sum().backward()


def test_saved_by_a_function():
    class Times(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, t):
            ctx.save_for_backward(x, t)
            return x * t

        @staticmethod
        def backward(ctx, g):
            _, t = ctx.saved_tensors
            return g * t, None

    a = np.array([1.0, 2.0], np.float32)
    x, t = leaf(3.0, 4.0), tw.from_numpy(a)
    Times.apply(x, t).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]
    y = Times.apply(x, t)
    a[0] = 9.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_checkpoints_and_hooks_go_on_working():
    a = np.array([1.0, 2.0], np.float32)
    x, t = leaf(3.0, 4.0), tw.from_numpy(a)
    checkpoint(lambda x: (x * t).exp(), x, use_reentrant=False).sum().backward()
    with tw.autograd.graph.saved_tensors_hooks(lambda s: s.numpy().copy(), tw.from_numpy):
        y = (x * t).sum()
    y.backward()
    assert np.allclose(x.grad.numpy(), np.array([1, 2]) * (np.exp([3, 8]) + 1))


def test_parameters_that_were_looked_at_are_trained():
    p = tw.nn.Parameter(np.ones(2, np.float32))
    held = p.numpy()
    sgd = tw.optim.SGD([p], lr=0.5)
    for _ in range(3):
        sgd.zero_grad()
        (p * p).sum().backward()
        sgd.step()
    assert held.tolist() == p.tolist() == [0.0, 0.0]


def test_nothing_is_kept():
    gc.disable()
    try:
        state.settle()  # what other tests have left
        before = len(state.exposed), len(state.seals), len(state.copies)
        h = leaf(1.0, 2.0) * 1
        y = (h * h).sum()
        a = handed(h)
        z = (h * h).sum()
        assert (len(state.exposed), len(state.seals), len(state.copies)) == tuple(n + 1 for n in before)
        y.backward(retain_graph=True)
        z.backward()
        del a, z
        state.settle()
        assert (len(state.exposed), len(state.seals), len(state.copies)) == before
        memory = weakref.ref(h.payload)
        b = handed(h)
        del h, y, b
        assert memory() is None
        outside = np.ones(3, np.float32)
        t = tw.from_numpy(outside)
        memory = weakref.ref(outside)
        del t, outside
        assert memory() is None
        assert (len(state.exposed), len(state.seals), len(state.copies)) == before
    finally:
        gc.enable()


def test_memory_that_nobody_else_holds_is_exposed_no_longer():
    gc.collect()  # cycles of other tests hold exposed memory, too
    state.settle()
    before = {*state.exposed}, {*state.seals}

    def more() -> tuple[int, int]:
        """How many are new; those of other tests may go in the meantime."""
        return len({*state.exposed} - before[0]), len({*state.seals} - before[1])

    a = np.array([1.0, 2.0], np.float32)
    w, kept, given = leaf(1.0, 1.0), tw.from_numpy(a), tw.from_numpy(a.copy())
    part = a[1:]
    y = (w * given).sum()
    assert more() == (1, 0)
    del a
    y = (w * kept).sum()  # a part of it still is outside
    part[0] = 7.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()
    del part, y
    y = (w * kept).sum()
    assert more() == (0, 0)
    y.backward()
    assert w.grad.tolist() == [1.0, 7.0]


@pytest.mark.parametrize("way", WAYS_OUT)
def test_memory_that_a_tensor_was_made_of_and_handed_out_again(way):
    w, t = leaf(1.0, 1.0, 1.0, 1.0), tw.from_numpy(np.ones(4, np.float32))
    a = WAYS_OUT[way](t)
    y = (w * t).sum()
    if not a.flags.writeable:
        a = np.ctypeslib.as_array((ctypes.c_float * 4).from_address(a.ctypes.data))
    a[2] = 7.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


def test_what_holds_the_memory_by_other_means_is_outside():
    for hold in (memoryview, lambda a: a.T, lambda a: a.ctypes, lambda a: np.frombuffer(a, np.int32)):
        w, a = leaf(1.0, 1.0), np.ones(2, np.float32)
        held, t = hold(a), tw.from_numpy(a)
        del a
        y = (w * t).sum()
        ctypes.c_float.from_address(t.payload.ctypes.data).value = 5.0
        with pytest.raises(RuntimeError, match=MODIFIED):
            y.backward()
        del held


def test_a_write_by_one_who_is_gone_is_not_forgotten():
    h = leaf(1.0, 2.0) * 1
    y = (h * h).sum()
    handed(h)[0] = 5.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


def test_what_nothing_has_saved_is_not_copied():
    t = tw.zeros(1000)
    a = t.numpy()
    assert id(t.payload) not in state.copies
    assert a.base is not None
    assert np.shares_memory(a, t.payload)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_the_checksum_is_what_its_formula_says(dtype):
    x = (np.random.default_rng(0).normal(size=1003) * 3).astype(dtype)
    assert state._checksum(x) == checksum_oracle(x)
    assert state._checksum(x[::2]) == checksum_oracle(x[::2].copy())
    assert state._checksum(x[:0]) == 0


def test_the_checksum_sees_changes_and_exchanges():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, 4096).astype(np.float32)
    total = state._checksum(x)
    for _ in range(2000):
        i, j = rng.integers(0, x.size, 2)
        y = x.copy()
        y[[i, j]] = y[[j, i]]
        assert (state._checksum(y) == total) == (np.asarray(y).tobytes() == np.asarray(x).tobytes())
        y = x.copy()
        y.view(np.uint32)[i] ^= np.uint32(1) << np.uint32(rng.integers(32))
        assert state._checksum(y) != total


@pytest.mark.parametrize("name", ["dropout", "dropout2d", "alpha_dropout", "feature_alpha_dropout"])
def test_what_a_function_draws_is_not_exposed(name):
    """Nor summed up, which takes longer than the op."""
    before = set(state.exposed)
    x = tw.ones(2, 3, 4, 4, requires_grad=True)
    y = getattr(tw.nn.functional, name)(x, training=True)
    assert set(state.exposed) <= before
    assert y.grad_fn is not None


def test_another_thread_may_expose_memory_while_a_node_looks_for_what_is_over(monkeypatch):
    others = [tw.from_numpy(np.ones(1, np.float32))]
    real = state.islice

    def late(values, count):
        found = real(values, count)  # it has counted the entries
        others.append(tw.from_numpy(np.ones(1, np.float32)))
        return found

    monkeypatch.setattr(state, "islice", late)
    w = leaf(1.0, 2.0)
    (w * tw.from_numpy(np.ones(2, np.float32))).sum().backward()  # memory that nobody else holds any more
    assert w.grad.tolist() == [1.0, 1.0]
    assert len(others) > 1


def test_nodes_are_not_looked_at_for_what_was_handed_out_before(monkeypatch):
    asked = []
    monkeypatch.setattr(state, "check", lambda nodes: asked.append(nodes))
    a, b = leaf(1.0, 2.0, 3.0, 4.0), tw.ones(2, 2)
    early = (a * a).sum()
    copied = handed(b.reshape(4))  # another tensor refers to that memory, so there is a copy of it
    late = (a * a).sum()
    early.backward()
    assert state.copies
    assert len(asked) == 1
    late.backward()
    assert len(asked) == 1
    assert a.grad.tolist() == [4, 8, 12, 16]
    del copied


def test_shapes_among_saved_values_are_no_memory_of_the_outside():
    def calls(run):
        seen = []
        sys.setprofile(lambda frame, event, _: seen.append(frame.f_code) if event == "call" else None)
        try:
            run()
        finally:
            sys.setprofile(None)
        return seen.count(state.seal.__code__)

    a = leaf(1.0, 2.0, 3.0, 4.0)
    for _ in range(40):  # until the short way takes these ops
        a.reshape(2, 2).sum()
    outside = handed(a)
    assert calls(lambda: a.reshape(2, 2)) == 0
    assert calls(lambda: a * a) == 1
    del outside
