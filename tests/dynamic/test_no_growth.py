"""Reference counting alone frees what training makes: with the collector off, steps leave no memory behind."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import dynamic as tw
from common.tensor import external_writes

STEPS = 1000


class Doubled(tw.autograd.Function):
    """A rule of its own that saves its argument and its result."""

    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * 2 + (y - 2 * x)


def _plain(w, x):
    (tw.tanh(x @ w) ** 2).sum().backward()


def _function(w, x):
    Doubled.apply(x @ w).sum().backward()


def _hooks(w, x):
    y = x @ w
    y.register_hook(lambda g: g * 2)  # a hook that names y itself would make a cycle, as in PyTorch
    y.grad_fn.register_prehook(lambda gs: None)
    y.retain_grad()
    (y * y).sum().backward()


def _module_hooks(w, x):
    layer = tw.nn.Linear(3, 3)
    layer.register_forward_hook(lambda m, args, y: y * 2)
    layer.register_full_backward_hook(lambda m, inputs, outputs: None)
    layer(x @ w).sum().backward()


def _checkpoint(w, x):
    tw.utils.checkpoint.checkpoint(lambda x: tw.tanh(x @ w), x, use_reentrant=False).sum().backward()


def _views(w, x):
    y = x @ w
    part = y[1:]
    part.mul_(2)
    y[0] = part[0]
    (y * y).sum().backward()


def _higher_order(w, x):
    (g,) = tw.autograd.grad((tw.tanh(x @ w) ** 2).sum(), w, create_graph=True)
    (g * g).sum().backward()


def _transforms(w, x):
    f = tw.func.grad(lambda w: (tw.tanh(x @ w) ** 2).sum())
    f(w.detach())
    tw.func.vmap(lambda row: row.sum())(x)
    tw.func.jacrev(lambda w: (x @ w).sum(0))(w.detach())


def _unused_graph(w, x):
    _ = tw.tanh(x @ w).sum()


def _failing(w, x):
    y = x @ w

    def fail(g):
        raise KeyError

    y.register_hook(fail)
    with pytest.raises(KeyError):
        (y * y).sum().backward()


def _modes(w, x):
    with tw.inference_mode():
        _ = x @ w
    with tw.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), tw.from_numpy):
        y = tw.tanh(x @ w)
    y.sum().backward()


def _edges(w, x):
    edge = tw.autograd.graph.get_gradient_edge(x @ w)
    tw.autograd.backward(edge, tw.ones(4, 3))


PROGRAMS = [_plain, _function, _hooks, _module_hooks, _checkpoint, _views, _higher_order, _transforms, _unused_graph,
            _failing, _modes, _edges]  # fmt: skip


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("step", PROGRAMS, ids=lambda f: f.__name__.strip("_"))
def test_steps_do_not_grow(step, without_collector):
    w = tw.tensor(np.ones((3, 3), np.float32), requires_grad=True)
    x = tw.tensor(np.ones((4, 3), np.float32))
    count = STEPS if step is _plain else STEPS // 5

    def steps(n):
        for _ in range(n):
            step(w, x)
            w.grad = None

    steps(20)  # recipes, kernels, lines
    tracemalloc.start()
    try:
        gc.collect()
        external_writes.settle()  # notes on arrays that numpy() handed out wait, some hundred kB at most
        before = tracemalloc.get_traced_memory()[0]
        steps(count)
        external_writes.settle()
        assert gc.collect() == 0, "cycles are left"  # a collection also gives back what the interpreter keeps in stock
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # what is made once, such as a table that has grown, is no leak; a tensor left of each step is 100 bytes and more
    assert grown < 4096 + 12 * count, f"{grown / count:.0f} bytes are left of each step"


@pytest.mark.parametrize("step", PROGRAMS, ids=lambda f: f.__name__.strip("_"))
def test_leaves_go_with_their_last_name(step, without_collector):
    w = tw.tensor(np.ones((3, 3), np.float32), requires_grad=True)
    step(w, tw.tensor(np.ones((4, 3), np.float32)))
    alive = weakref.ref(w)
    del w
    assert alive() is None
