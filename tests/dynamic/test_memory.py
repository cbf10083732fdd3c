"""Reference counts alone free everything: no cycle is ever made, so nothing waits for the garbage collector."""

import gc
import tracemalloc
import weakref
from functools import partial

import numpy as np
import pytest

import dynamic as tw
from dynamic.eager.remembered import OFTEN


@pytest.fixture(autouse=True)
def without_garbage_collector():
    gc.collect()
    gc.freeze()  # what other tests have left is looked at once, not by every test
    gc.disable()
    yield
    gc.enable()


def leaf(shape=(4,)):
    return tw.ones(*shape).requires_grad_()


def expression(x):
    y = (x * x + x / 2).tanh()
    return (y.softmax(0) * y.reshape(2, 2).T.reshape(4)).sum() + tw.cat([y, y]).mean()


def scan(x):
    return tw.scan(lambda c, row: ((c * row).tanh(), c), x.sum(), x)[0]


def branches(x):
    return tw.cond(x.sum() > 0, lambda x: (x * 2).sum(), lambda x: x.sum(), x)


def loop(x, **options):
    return tw.while_loop(lambda s: s[0] < 8, lambda s: (s[0] + 1, (s[1] * x).tanh()), (0, x), **options)[1].sum()


def held(x):
    """Two managers, one of which the program still holds when it asks for the other."""
    manager = tw.no_grad()
    with manager:
        x = x * 2
    with tw.no_grad(), tw.enable_grad():
        return x * 2


def switched(x):
    tw.set_grad_enabled(False)
    x = x * 2
    with tw.set_grad_enabled(True):
        x = x * 2
    tw.set_grad_enabled(True)
    return x


PROGRAMS = {
    "forward": lambda x: expression(x),
    "backward": lambda x: expression(x).backward(),
    "retained": lambda x: expression(x).backward(retain_graph=True),
    "create_graph": lambda x: tw.autograd.grad(expression(x), x, create_graph=True),
    "function": lambda x: tw.function(expression)(x).backward(),
    "value_and_grad": lambda x: tw.value_and_grad(expression)(x),
    "vjp": lambda x: tw.vjp(expression, x)[1](tw.tensor(1.0)),
    "modes": held,
    "modes at once": switched,
    "a mode never entered": lambda x: tw.no_grad() and tw.no_grad(),
    "decorated": lambda x: tw.no_grad()(lambda x: x * 2)(x),
    "in place": lambda x: (x * 2).add_(x).sum().backward(),
    **{f"{f.__name__} forward": f for f in (scan, branches, loop)},
    "scan backward": lambda x: scan(x).backward(),
    "scan create_graph": lambda x: tw.autograd.grad(scan(x), x, create_graph=True),
    "branches backward": lambda x: branches(x).backward(),
    "branches create_graph": lambda x: tw.autograd.grad(branches(x), x, create_graph=True),
    "loop backward": lambda x: loop(x).backward(),
    "loop create_graph": lambda x: tw.autograd.grad(loop(x), x, create_graph=True),
    "thinned loop": lambda x: loop(x, checkpoint=2).backward(),
    "thinned loop, forward": lambda x: loop(x, checkpoint=2),
    "thinned loop, create_graph": lambda x: tw.autograd.grad(loop(x, checkpoint=2), x, create_graph=True),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_leave_nothing_behind(name):
    x = leaf()
    PROGRAMS[name](x)
    alive = weakref.ref(x)
    x.grad = None
    del x
    assert alive() is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_make_no_garbage(name):
    x = leaf()
    for _ in range(OFTEN + 1):  # until functions are remembered, and the lines of gradients written
        PROGRAMS[name](x)
    gc.collect()
    PROGRAMS[name](x)
    x.grad = None
    assert gc.collect() == 0


def test_modes_at_once_are_freed():
    for _ in range(3):
        with tw.set_grad_enabled(False):
            pass
    assert not [x for x in gc.get_objects() if type(x) is tw.set_grad_enabled]


def test_saved_values_go_with_the_result():
    x = leaf()
    y = x.exp()
    z = y * y
    node, memory = weakref.ref(y.grad_fn), weakref.ref(y.payload)
    del y
    assert node() is not None
    assert memory() is not None  # saved by the product
    del z
    assert (node(), memory()) == (None, None)


def test_backward_frees_saved_values():
    x = leaf()
    y = x.exp()
    memory = weakref.ref(y.detach().numpy())
    z = (y * y).sum()
    del y
    z.backward()
    assert memory() is None
    assert z.grad_fn is not None


def test_graphs_keep_no_tensors_alive():
    x = leaf()
    y = x * 2
    tensor = weakref.ref(y)
    z = y * 3
    del y
    assert tensor() is None
    z.sum().backward()
    assert x.grad.tolist() == [6.0] * 4


def train_once():
    model = tw.nn.Sequential(tw.nn.Linear(3, 4), tw.nn.Tanh(), tw.nn.Linear(4, 2))
    optimizer = tw.optim.Adam(model.parameters())

    @tw.function
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    step(np.ones((5, 3), np.float32))
    return [weakref.ref(p) for p in model.parameters()]


def test_modules_and_optimisers_are_freed():
    assert [held() for held in train_once()] == [None] * 4


def peak(program):
    """Bytes at the peak of a program's second run."""
    program()
    tracemalloc.start()
    program()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_a_checkpoint_saves_memory():
    """Eight checkpoints of eight layers hold eight activations and those of one checkpoint, not sixty-four."""
    x = leaf((50_000,))

    def block(h):
        for _ in range(8):
            h = (h * 1.5).tanh()
        return h

    def run(call):
        h = x
        for _ in range(8):
            h = call(block, h)
        h.sum().backward()
        x.grad = None

    plain, checkpointed = (
        peak(lambda: run(lambda f, h: f(h))),
        peak(lambda: run(partial(tw.utils.checkpoint.checkpoint, use_reentrant=False))),
    )
    assert checkpointed < plain / 3
