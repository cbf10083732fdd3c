"""Programs of further derivatives from the disk: another key wherever they may differ, and what is found anew."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from static.lowering import lowered_program
from static.running import program_store
from static.tracing import optimised
from tests.bits import assert_all_same_bits
from tests.static.jit.test_compiled_node_higher import Power
from tests.static.stored import programs

F32 = np.float32
X, W = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(F32)


def second(f, *arrays, wanted=(True, True)):
    """First and second derivatives by the arrays that are wanted."""
    leaves = [dynamic.tensor(x, requires_grad=want) for x, want in zip(arrays, wanted)]
    differentiated = [leaf for leaf in leaves if leaf.requires_grad]
    first = dynamic.autograd.grad(f(*leaves).sum(), differentiated, create_graph=True)
    then = dynamic.autograd.grad(sum((g * g).sum() for g in first), differentiated)
    return [t.detach().numpy().copy() for t in (*first, *then)]


def made(monkeypatch):
    """Programs that are lowered from here on."""
    found = []
    lower = lowered_program.LoweredProgram

    def noted(*args, **kwargs):
        if len(args) == 2 and not kwargs:  # no region, and not for threads
            found.append(args)
        return lower(*args, **kwargs)

    monkeypatch.setattr(lowered_program, "LoweredProgram", noted)
    return found


def times(n):
    return lambda x, w: (x @ w).tanh() * n


def rows(n):
    """The first derivative does not depend on `n`, the second does."""
    return lambda x, w: Power.apply(x * w, n)


CASES = {
    "closures": [(times(2.0), {}, (True, True)), (times(3.0), {}, (True, True))],
    "closures that only the second derivative reads": [(rows(2), {}, (True, True)), (rows(3), {}, (True, True))],
    "source": [(times(2.0), {}, (True, True)), (lambda x, w: (w @ x).tanh() * 2.0, {}, (True, True))],
    "what is wanted": [(times(2.0), {}, wanted) for wanted in ((True, True), (True, False), (False, True))],
    "options": [
        (times(2.0), options, (True, True))
        for options in ({}, {"fuse": False}, {"share_memory": False}, {"memory_budget": 64})
    ],
}


@pytest.mark.parametrize("what", CASES)
def test_what_differs_has_another_key(disk, monkeypatch, what):
    lowered, count = made(monkeypatch), 0
    for i, (f, options, wanted) in enumerate(CASES[what]):
        expected = second(dynamic.function(f), X, W, wanted=wanted)
        assert_all_same_bits(second(static.function(f, **options), X, W, wanted=wanted), expected, what)
        same_first = i and what == "closures that only the second derivative reads"
        count += 2 if same_first else 3  # the first program's forward half, and those of its gradient
        assert len(programs(disk)) == len(lowered) == count
        assert_all_same_bits(second(static.function(f, **options), X, W, wanted=wanted), expected, what)
        assert len(lowered) == count


def test_facts_of_parameters_are_part_of_the_key(disk, monkeypatch):
    lowered = made(monkeypatch)
    counts = []
    for trained in (True, False, True, False):
        w = dynamic.nn.Parameter(W, requires_grad=trained)
        f = lambda x, w=w: (x @ w).tanh() * w  # noqa: E731
        expected = second(dynamic.function(f), X)
        assert_all_same_bits(second(static.function(f), X), expected, f"trained: {trained}")
        counts.append(len(lowered))
    assert counts[0] < counts[1] == counts[2] == counts[3]


def test_another_package_finds_nothing(disk, monkeypatch):
    expected = second(static.function(times(2.0)), X, W)
    count = len(programs(disk))
    monkeypatch.setattr(program_store, "_package", lambda: b"another")
    lowered = made(monkeypatch)
    assert_all_same_bits(second(static.function(times(2.0)), X, W), expected, "another version")
    assert len(lowered) == count
    assert len(programs(disk)) == 2 * count


def test_a_linear_gradient_and_absent_cotangents_are_found(disk, monkeypatch):
    def f(x, w):
        return x * 3 + w, (w * x).exp()

    def run(engine):
        x, w = dynamic.tensor(X, requires_grad=True), dynamic.tensor(W, requires_grad=True)
        y, z = engine.function(f)(x, w)
        seed = dynamic.tensor(W, requires_grad=True)
        (g,) = dynamic.autograd.grad(y, x, seed, create_graph=True, retain_graph=True)
        (s,) = dynamic.autograd.grad(g.sum(), seed)
        z.sum().backward()
        return [t.detach().numpy().copy() for t in (g, s, x.grad, w.grad)]

    expected = run(dynamic)
    assert_all_same_bits(run(static), expected, "cold")
    for module, name in ((optimised, "run_passes"), (lowered_program, "LoweredProgram")):
        monkeypatch.setattr(module, name, None)
    assert_all_same_bits(run(static), expected, "warm")


class Asks(dynamic.autograd.Function):
    """The derivative of `Square`, whose own asks whether sizes are equal."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * (2 if x.shape[0] == w.shape[0] and x.shape[1] == 4 else 3), None


class Square(dynamic.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return Asks.apply(*ctx.saved_tensors) * g, None


def test_sizes_that_only_a_second_derivative_makes_equal_do_not_change_the_first_program(disk):
    """The second process makes the halves of the first program when their gradient is traced already."""

    def f(x, w):
        return Square.apply(x, w) * x.exp() * x.reshape(w.shape[0], 4).exp().reshape(x.shape)

    expected = second(dynamic.function(f), X, W[0], wanted=(True, False))
    static.function(f)(dynamic.tensor(X, requires_grad=True), W[0]).sum().backward()
    for found in ("the first program", "all programs"):
        results = second(static.function(f), X, W[0], wanted=(True, False))
        assert_all_same_bits(results, expected, f"{found} from the disk")


def test_each_further_gradient_finds_out_for_itself_which_sizes_are_equal(disk):
    class Adds(dynamic.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x.exp().sum(1) * 2, w.exp()

        @staticmethod
        def backward(ctx, g, h):
            x, w = ctx.saved_tensors
            return Joined.apply(x, w, g), Joined.apply(x, w, g).sum(1)

    class Joined(dynamic.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, g):
            ctx.save_for_backward(x, w, g)
            return x * x * g.sum()

        @staticmethod
        def backward(ctx, c):
            _, w, g = ctx.saved_tensors
            column = (g + w).unsqueeze(1)
            return (c * column).tanh(), c.sum(1), (c * column).sum(1)

    def run(engine):
        x, w = dynamic.tensor(X, requires_grad=True), dynamic.tensor(W[0], requires_grad=True)
        y, z = engine.function(Adds.apply)(x, w)
        total = (y * y).sum() + z.sum()
        found = []
        for wanted in ([x], [x, w]):
            first = dynamic.autograd.grad(total, wanted, create_graph=True)
            found += first
            found += dynamic.autograd.grad(sum((g * g).sum() for g in first), [x, w], retain_graph=True)
        return [t.detach().numpy().copy() for t in found]

    expected = run(dynamic)
    for _ in range(2):
        assert_all_same_bits(run(static), expected, "gradients")


def test_gradients_that_are_made_later_hold_for_the_sizes_of_their_call(disk):
    """A second derivative that asks whether sizes are equal does not make them so for calls that are not asked."""

    def f(x, w):
        return Square.apply(x, w).exp() * x.sum(0), (w * w).exp()

    def run(engine):
        held, w = dynamic.tensor(X[:3], requires_grad=True), dynamic.tensor(W[0], requires_grad=True)
        call, x = engine.function(f), dynamic.tensor(X, requires_grad=True)
        y, results = call(x, w)[0], call(held, w)
        (g,) = dynamic.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
        (results[0].sum() + results[1].sum()).backward()
        return [t.detach().numpy().copy() for t in (g, x.grad, held.grad, w.grad)]

    expected = run(dynamic)
    for _ in range(2):
        assert_all_same_bits(run(static), expected, "gradients")
