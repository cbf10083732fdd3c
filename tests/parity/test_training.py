"""Programs that change state, in the ways people write them: the same bits in both engines after every call."""

import numpy as np
import pytest

import dynamic
import static
from common.tensor.base import TensorBase
from tests.bits import assert_same_bits
from tests.helpers.proofs import core, share

X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
CLASSES = np.array([0, 1, 2, 0, 1, 2])


def trainer(make_model, make_optimizer, loss_of=lambda tw, y: (y**2).mean()):
    """The usual step, with all state that it changes."""

    def build(tw):
        model = make_model(tw.nn)
        optimizer = make_optimizer(tw.optim, list(model.parameters()))

        def step(x):
            optimizer.zero_grad()
            loss = loss_of(tw, model(x.to(dtype)))
            loss.backward()
            optimizer.step()
            return loss

        dtype = next(model.parameters()).dtype
        buffers = [b for buffers in optimizer.state.values() for b in buffers.values()]
        return step, [*model.parameters(), *buffers]

    return build


def linear(nn):
    return nn.Linear(4, 2)


def without_zero_grad(tw):
    model = linear(tw.nn)

    def step(x):
        loss = (model(x) ** 2).sum()
        loss.backward()
        return loss

    return step, list(model.parameters())


def zeros_instead_of_none(tw):
    model = linear(tw.nn)
    optimizer = tw.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, list(model.parameters())


def running_statistics(tw):
    count, mean = tw.nn.Buffer(np.int64(0)), tw.nn.Buffer(np.zeros(4, np.float32))

    def step(x):
        with tw.no_grad():
            count.add_(1)
            mean.copy_(mean * 0.9 + x.mean(0) * 0.1)
        return x - mean, count * 2

    return step, [count, mean]


def clipped_gradients(tw):
    model = linear(tw.nn)
    optimizer = tw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        norm = tw.sqrt(tw.sum(tw.stack([tw.sum(p.grad * p.grad) for p in model.parameters()])))
        for p in model.parameters():
            p.grad = p.grad * (1 / (norm + 1e-6))
        optimizer.step()
        return norm

    return step, list(model.parameters())


def groups_and_a_decaying_rate(tw):
    a, b, rate = tw.nn.Linear(4, 2), tw.nn.Linear(2, 1), tw.nn.Buffer(np.float32(0.1))
    second = {"params": b.parameters(), "lr": 0.01, "momentum": 0.5}
    optimizer = tw.optim.SGD([{"params": a.parameters()}, second], lr=rate)

    def step(x):
        optimizer.zero_grad()
        loss = (b(a(x).tanh()) ** 2).mean()
        loss.backward()
        optimizer.step()
        with tw.no_grad():
            rate.mul_(0.5)
        return loss

    return step, [*a.parameters(), *b.parameters(), rate]


def gradient_penalty(tw):
    model = tw.nn.Linear(4, 1)
    optimizer = tw.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (tw.tanh(model(x)) ** 2).mean()
        gradients = tw.autograd.grad(loss, list(model.parameters()), create_graph=True)
        for g in gradients:
            loss = loss + (g * g).sum()
        loss.backward()
        optimizer.step()
        return loss

    return step, list(model.parameters())


def tied_weights(tw):
    table = tw.nn.Embedding(6, 4)

    def step(x):
        h = table(np.array([0, 2, 2, 5]))
        loss = tw.nn.functional.cross_entropy(h @ table.weight.T, np.array([1, 2, 3, 4]))
        loss.backward()
        return loss

    return step, [table.weight]


def two_backward_passes(tw):
    model = linear(tw.nn)

    def step(x):
        h = model(x)
        h.sum().backward(retain_graph=True)
        (h * h).sum().backward()
        return h.detach()

    return step, list(model.parameters())


def a_closure(tw):
    model = linear(tw.nn)
    optimizer = tw.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return step, list(model.parameters())


def an_update_by_hand(tw):
    w = tw.nn.Parameter(np.ones((4, 2), np.float32))

    def step(x):
        loss = ((x @ w) ** 2).mean()
        loss.backward()
        with tw.no_grad():
            w.sub_(0.1 * w.grad)
        w.grad = None
        return loss

    return step, [w]


class Residual(dynamic.nn.Module):
    """Layers in a list, each added to its input."""

    def __init__(self):
        super().__init__()
        self.layers = dynamic.nn.ModuleList(dynamic.nn.Linear(4, 4) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).tanh()
        return x[:, :2]


def an_update_by_a_gradient_function(tw):
    x = tw.tensor(X[0])

    def step(y):
        x.add_(y[0])
        g = tw.grad(lambda a: (a * a).sum())(x)
        x.sub_(g * 0.1)
        _, h = tw.value_and_grad(lambda a: a.exp().sum())(x)
        x.mul_(0.5)
        return g, h

    return step, [x]


PROGRAMS = {
    "a list of modules": trainer(lambda nn: Residual(), lambda optim, p: optim.AdamW(p, lr=0.1)),
    "sgd": trainer(linear, lambda optim, p: optim.SGD(p, lr=0.1, weight_decay=0.1)),
    "dampening": trainer(linear, lambda optim, p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5)),
    "nesterov": trainer(linear, lambda optim, p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
    "adam": trainer(linear, lambda optim, p: optim.Adam(p, lr=0.1, weight_decay=0.1)),
    "float64": trainer(lambda nn: linear(nn).double(), lambda optim, p: optim.Adam(p, lr=0.1)),
    "frozen": trainer(lambda nn: freeze(linear(nn)), lambda optim, p: optim.Adam(p, lr=0.1)),
    "dropout": trainer(
        lambda nn: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)),
        lambda optim, p: optim.Adam(p, lr=0.1),
    ),
    "layer norm": trainer(
        lambda nn: nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 3), nn.GELU(), nn.LogSoftmax(1)),
        lambda optim, p: optim.SGD(p, lr=0.1),
        lambda tw, y: tw.nn.functional.nll_loss(y, CLASSES),
    ),
    **{
        f.__name__: f
        for f in (
            without_zero_grad, zeros_instead_of_none, running_statistics, clipped_gradients, groups_and_a_decaying_rate,
            gradient_penalty, tied_weights, two_backward_passes, a_closure, an_update_by_hand,
            an_update_by_a_gradient_function,
        )
    },
}  # fmt: skip


def freeze(module):
    module.weight.requires_grad_(False)
    return module


def run(tw, build, steps=3):
    """Every array that a call returns or changes, by name, per step."""
    tw.manual_seed(0)
    step, state = build(tw)
    step = tw.function(step)
    for number in range(steps):
        returned = step(X * (number + 1))
        values = returned if isinstance(returned, tuple) else (returned,)
        arrays = {f"result {i}": v.payload if isinstance(v, TensorBase) else v for i, v in enumerate(values)}
        arrays |= {f"state {i}": x.payload.copy() for i, x in enumerate(state)}
        arrays |= {f"gradient {i}": x.grad.payload.copy() for i, x in enumerate(state) if x.grad is not None}
        yield arrays


@pytest.mark.parametrize("name", core(PROGRAMS, lambda name: share(name, 4) == 0))
def test_same_bits_after_every_call(name):
    # one engine after the other: they draw from the same generator
    first, second = list(run(dynamic, PROGRAMS[name])), list(run(static, PROGRAMS[name]))
    for number, (a, b) in enumerate(zip(first, second, strict=True), start=1):
        assert list(a) == list(b)
        for key in a:
            assert_same_bits(b[key], a[key], f"{name}, call {number}, {key}")
