"""Training steps and models with control flow in files: the bits of the function, gradients and updates included."""

from itertools import cycle, islice

import numpy as np
import pytest

import static
from benchmarks.workload import discover
from common.core.tree import flatten
from tests.helpers.proofs import core, share
from tests.static.export.test_held_graph import assert_same_bits

nn, F = static.nn, static.nn.functional
X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
WORKLOADS = {w.name: w for w in discover()}


class Scanned(nn.Module):
    """A scan of a linear layer under dropout, a loop until a condition holds, and a branch."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        last, rows = static.scan(lambda c, row: (F.dropout(self.linear(c + row).tanh(), 0.3), c), x[0], x)
        grown = static.while_loop(
            lambda y: y.abs().sum() < 9, lambda y: y.abs() * 1.5 + self.linear.bias.abs() + 0.1, last
        )
        return static.cond(x.sum() > 0, lambda y: self.linear(y), lambda y: y * 2, grown), rows


class Nested(nn.Module):
    """A loop inside a scan."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        def row(carried, row):
            inner, _ = static.scan(lambda c, _: (self.linear(c).sin(), c), carried + row, None, 3)
            return inner, inner

        return static.scan(row, x[0], x)


class Counting(nn.Module):
    """A loop of integers whose body reads a parameter, and one that gives every state, read by several ops."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(static.tensor([0.5, 0.25, 0.125]))

    def forward(self, x):
        n = static.fori_loop(0, 3, lambda i, n: n + (self.scale > 0.2 * i).sum(), 0)
        w = self.scale
        last, states = static.scan(lambda c, row: (c * w * w + (w * c).sin() * row / (c * c + 1) + w.exp(), c), x[0], x)
        return last * n, states


MODELS = {
    "rnn": lambda: nn.RNN(3, 4, batch_first=True), "lstm": lambda: nn.LSTM(3, 4, 2, batch_first=True),
    "gru": lambda: nn.GRU(3, 4, bidirectional=True), "scan": Scanned, "nested": Nested,
    "counting": Counting,
}  # fmt: skip


def trained(make):
    """A step, and what it updates."""
    static.manual_seed(0)
    model = make()
    optimizer = static.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @static.function
    def step(x):
        optimizer.zero_grad()
        loss = sum(y.square().mean() for y in flatten(model(x))[0])
        loss.backward()
        optimizer.step()
        return loss

    return step, model


def both(f, g, *given):
    """Results of two functions that draw the same random numbers."""
    state = static.get_rng_state()
    first = flatten(f(*given))[0]
    static.set_rng_state(state)
    return zip(first, flatten(g(*given))[0], strict=True)


@pytest.mark.parametrize("name", MODELS)
def test_a_training_step_goes_on_in_another_process(tmp_path, name):
    step, model = trained(MODELS[name])
    step(X)
    static.save(step, tmp_path / "step.tw")
    loaded = static.load(tmp_path / "step.tw")
    for x in (X, -X * 2, np.concatenate([X, X[:1]])):
        for a, b in both(step, loaded, x):
            assert_same_bits(b.detach(), a.detach())
    found = dict(loaded.named_parameters())
    for name, x in model.named_parameters():
        assert found[name].detach().numpy().tobytes() == x.detach().numpy().tobytes(), name


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_run_and_differentiated(tmp_path, name):
    static.manual_seed(0)
    model = MODELS[name]()
    static.save(static.export(model, X), tmp_path / "model.tw")
    loaded = static.load(tmp_path / "model.tw")
    with static.no_grad():
        for a, b in both(static.function(model), loaded, X * 2):
            assert_same_bits(b, a)
    for a, b in both(model, loaded, X):
        assert_same_bits(b.detach(), a.detach())
    state = static.get_rng_state()
    for f in (model, loaded):
        static.set_rng_state(state)
        sum(y.square().sum() for y in flatten(f(X))[0]).backward()
    found = dict(loaded.named_parameters())
    for name, x in model.named_parameters():
        assert found[name].grad.numpy().tobytes() == x.grad.numpy().tobytes(), name


@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["scan", "nested", "counting", pytest.param("lstm", marks=pytest.mark.slow)])
def test_the_gradient_of_a_loop_is_differentiated(tmp_path, name, order):
    static.manual_seed(0)
    model = MODELS[name]()

    def slope(x):
        x = x * 1
        y = sum(y.sin().sum() for y in flatten(model(x))[0])
        for _ in range(order):
            slopes = static.autograd.grad(y, [x, *model.parameters()], create_graph=True)
            y = sum(g.square().sum() for g in slopes)
        return y

    static.save(static.export(slope, X), tmp_path / "slope.tw")
    loaded = static.load(tmp_path / "slope.tw")
    state, gradients = static.get_rng_state(), []
    for f in (slope, loaded):
        static.set_rng_state(state)
        x = static.tensor(X * 2, requires_grad=True)
        f(x).backward()
        gradients.append(x.grad)
    assert_same_bits(gradients[1], gradients[0])
    found = sorted(y.grad.numpy().tobytes() for y in loaded.parameters())
    assert found == sorted(y.grad.numpy().tobytes() for y in model.parameters())


@pytest.mark.parametrize("name", core(WORKLOADS, lambda name: False, lambda name: share(name, 7) != 0))
def test_a_workload_is_saved_and_loaded(tmp_path, name):
    workload = WORKLOADS[name]
    program, batches = workload.make(static), [*islice(cycle(workload.inputs()), 3)]
    program.call(*batches[0])
    static.save(program.call, tmp_path / "step.tw")
    loaded = static.load(tmp_path / "step.tw")
    for batch in batches:
        for a, b in both(program.call, loaded, *batch):
            assert_same_bits(b.detach(), a.detach())
