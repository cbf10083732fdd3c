"""Gradients of gradients of compiled calls: one node each, compiled, with the bits of the eager `function`."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import GradientError
from common.tensor.leaf import Buffer
from common.transforms.gradcheck import gradcheck, gradgradcheck
from static.running import interpreter
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import chosen, rotated

F32 = np.float32
DATA = np.random.default_rng(5).standard_normal((4, 5, 5))


def leaf(array):
    return dynamic.tensor(array, requires_grad=True)


def affine(w):
    return lambda x: dynamic.tanh(x @ w) * x.sum(0) + w.mean(1)


def several(w):
    def f(x):
        h = dynamic.softmax(x @ w, -1)
        return {"h": h, "scale": (h * h).sum(0), "other": x.exp(), "none": x.detach()}, x * 1

    return f


def scanned(w):
    def f(x):
        h, running = dynamic.scan(lambda h, row: (dynamic.tanh(h * w[0] + row @ w),) * 2, x[0], x)
        return h * running.sum()

    return f


def until(w):
    def f(x):
        y = dynamic.while_loop(lambda y: (y * y).sum() < 300, lambda y: y * (1 + w[0].sigmoid()) + x[1].sin(), x[0])
        return dynamic.cond(y.sum() > 0, lambda y: y * w[1], lambda y: y * y, y)

    return f


def linear(w):
    return lambda x: x * 2 - x.sum()


PROGRAMS = [affine, several, scanned, until, linear]


def first_of(result):
    """A tensor made of some of the results; others get no cotangent."""
    if isinstance(result, tuple):
        return result[0]["h"] * result[0]["scale"]
    return result


def orders(engine, program, dtype, order, options):
    """Gradients up to an order, each of a nonlinear sum of those before it; of two calls, one of which takes `x`."""
    x, w = leaf(DATA[0].astype(dtype)), dynamic.nn.Parameter(DATA[1].astype(dtype) / 2)
    f = engine.function(program(w), **options)
    h = x * 2
    y = first_of(f(h)).sum() * 3 + (first_of(f(x)) * x).sum()
    found = [y]
    for _ in range(order - 1):
        inputs = [t for t in (x, w) if y.requires_grad]
        gradients = [g for g in dynamic.autograd.grad(y, inputs, create_graph=True, allow_unused=True) if g is not None]
        found += gradients
        y = sum((g * g * t).sum() for g, t in zip(gradients, (x, w), strict=False))
    if y.requires_grad:
        y.backward()
    return [t.data for t in (*found, *(t.grad for t in (x, w) if t.grad is not None))]


@pytest.mark.parametrize(("program", "other"), rotated(PROGRAMS, ["fuse", "interpret"]))
def test_second_order_has_the_bits_of_the_eager_function(program, other):
    dtype = np.dtype(chosen(program, [F32, np.float64]))
    eager = orders(dynamic, program, dtype, 2, {})
    for options in ({}, {other: other == "interpret"}):
        assert_all_same_bits(eager, orders(static, program, dtype, 2, options), f"{program.__name__} {options}")
    assert len(eager) >= 3


@pytest.mark.parametrize("program", PROGRAMS)
def test_third_order_has_the_bits_of_the_eager_function(program):
    eager = orders(dynamic, program, F32, 3, {})
    assert_all_same_bits(eager, orders(static, program, F32, 3, {}), program.__name__)


def test_all_orders_are_compiled(monkeypatch):
    def refuse(*args):
        raise AssertionError("interpreted")

    monkeypatch.setattr(interpreter, "run_node", refuse)
    orders(static, scanned, F32, 3, {})


@pytest.mark.parametrize("program", [affine, scanned, until])
def test_against_finite_differences(program):
    w = leaf(DATA[1] / 3)
    f = static.function(lambda x, w: program(w)(x))
    x = leaf(DATA[0] / 2)
    assert gradcheck(f, (x, w))
    assert gradgradcheck(f, (x, w))


def test_the_gradient_is_one_node():
    w = leaf(DATA[1])
    y = static.function(lambda x: dynamic.tanh(x @ w))(leaf(DATA[0]))
    (g,) = dynamic.autograd.grad((y * y).sum(), w, create_graph=True)
    assert g.grad_fn.name() == "CompiledBackwardBackward"
    assert [node.name() for node, _ in g.grad_fn.next_functions] == ["AccumulateGrad"] * 2 + ["AddBackward0"]
    (z,) = dynamic.autograd.grad((g * g).sum(), w, create_graph=True)
    assert "CompiledBackwardBackwardBackward" in {n.name() for n in dynamic.autograd.graph.iter_graph(z)}


def test_what_is_linear_has_a_history_if_its_cotangent_has_one():
    for engine in dynamic, static:
        f, x = engine.function(lambda x: x * 3 + 1), leaf(DATA[0])
        (g,) = dynamic.autograd.grad(f(x).sum(), x, create_graph=True)
        assert not g.requires_grad
        seed = leaf(np.ones((5, 5)))
        (g,) = dynamic.autograd.grad(f(x), x, seed, create_graph=True)
        (s,) = dynamic.autograd.grad(g.sum(), seed)
        assert np.array_equal(s.data, np.full((5, 5), 3.0))


def test_an_absent_cotangent_is_not_zero():
    """An input of a result without a cotangent gets nothing; nan times zero does not reach the others."""
    found = []
    for engine in dynamic, static:
        x, w = leaf(np.zeros(3, F32)), leaf(np.ones(3, F32))
        y, z = engine.function(lambda a, b: (a * 2, (a.sqrt() / a) * b))(x, w)
        y.sum().backward(retain_graph=True)
        assert w.grad is None
        first = np.array(x.grad.data)
        (y.sum() + z.sum()).backward()
        found.append([first, x.grad.data, w.grad.data])
    assert_all_same_bits(*found, "absent")
    assert np.array_equal(first, [2, 2, 2])
    assert np.isnan(x.grad.data.numpy()).all()


def test_new_sizes_are_plans_only():
    f = static.function(lambda x: (x @ x.T).exp().sum(0))
    for n in (3, 5, 8):
        bits = []
        for g in f, dynamic.function(f.target):
            x = leaf(DATA[0, :3, :2].repeat(3, 0)[:n].astype(F32))
            (d,) = dynamic.autograd.grad(g(x).sum(), x, create_graph=True)
            (d * d).sum().backward()
            bits.append([x.grad.data])
        assert_all_same_bits(*bits, f"{n} rows")
    assert len(f.traces) == 1
    assert len(f.newest.op._further) == 1


def test_what_is_printed_and_drawn_happens_once(capsys):
    drawn = []
    for engine in dynamic, static:
        dynamic.manual_seed(4)
        seen = Buffer(np.zeros(()))

        def f(x, seen=seen):
            def body(y):
                static.print("now")
                return y * 2 + x.sin()

            with dynamic.no_grad():
                seen.add_(1)
            y = dynamic.dropout(x * x, 0.5)
            return static.while_loop(lambda y: y.sum() < 40, body, y)

        x = leaf(abs(DATA[0]))
        (g,) = dynamic.autograd.grad(engine.function(f)(x).sum(), x, create_graph=True)
        (g * g).sum().backward()
        drawn.append([g.data, x.grad.data, np.array(seen.numpy())])
        assert seen.numpy() == 1
    assert_all_same_bits(*drawn, "a loop behind a dropout")
    lines = capsys.readouterr().out.split()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :] == ["now"] * (len(lines) // 2)
    assert lines


def test_inputs_overwritten_since_are_noticed():
    w = leaf(DATA[1].copy()) * 1
    y = static.function(lambda x: (x + w).tanh())(leaf(DATA[0]))
    with dynamic.no_grad():
        w.add_(1)  # the first derivative needs the result only, and so does the second
    dynamic.autograd.grad(y.sum(), w, create_graph=True)
    v = leaf(DATA[1].copy()) * 1
    y = static.function(lambda x: (x * v).exp().sum())(leaf(DATA[0]))
    with dynamic.no_grad():
        v.add_(1)
    with pytest.raises(GradientError, match=r"modified by an inplace operation.*CompiledBackward"):
        dynamic.autograd.grad(y, v, create_graph=True)


def test_a_checkpoint_inside_and_by_itself():
    found = []
    for engine in dynamic, static:
        dynamic.manual_seed(1)
        x, w = leaf(DATA[0].astype(F32)), leaf(DATA[1].astype(F32))

        def part(a, w=w):
            return dynamic.dropout(dynamic.tanh(a @ w) * a, 0.3)

        f = engine.function(lambda x, part=part: dynamic.utils.checkpoint.checkpoint(part, x, use_reentrant=False) * x)
        (g,) = dynamic.autograd.grad(f(x).sum(), x, create_graph=True)
        (g * g).sum().backward()
        found.append([g.data, x.grad.data, w.grad.data])
    assert_all_same_bits(*found, "a checkpoint")


def test_hooks_and_functions_of_users_run_in_all_orders():
    class Cube(dynamic.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x * x * 3

    found = []
    for engine in dynamic, static:
        x, w = leaf(DATA[0].astype(F32)), leaf(DATA[1].astype(F32))

        def f(x, w=w):
            y = Cube.apply(x)
            y.register_hook(lambda cotangent: cotangent * w)
            return y * x

        (g,) = dynamic.autograd.grad(engine.function(f)(x).sum(), x, create_graph=True)
        (g * g).sum().backward()
        found.append([g.data, x.grad.data, w.grad.data])
    assert_all_same_bits(*found, "hooks and functions")


def test_hessians_by_transforms():
    def f(x):
        return (x.sin() * x[0]).sum()

    x = dynamic.tensor(DATA[0, 0])
    eager = dynamic.autograd.functional.hessian(dynamic.function(f), x)
    assert_all_same_bits([eager.data], [dynamic.autograd.functional.hessian(static.function(f), x).data], "a hessian")


class Power(dynamic.autograd.Function):
    """x^3, whose second derivative asks Python how often to add: `n` times, or as often as there are rows."""

    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return Slope.apply(x, ctx.n) * g, None


class Slope(dynamic.autograd.Function):
    """The derivative."""

    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return 3 * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y = x * 0
        for _ in range(x.shape[0] if ctx.n is None else ctx.n):
            y = y + x
        return y * g, None


def second(f, x, *numbers):
    x = leaf(x)
    (d,) = dynamic.autograd.grad(f(x, *numbers).sum(), x, create_graph=True)
    return dynamic.autograd.grad(d.sum(), x)[0].data


def test_numbers_that_only_a_second_derivative_asks_for():
    def f(x, n):
        return Power.apply(x, n)

    fast, slow = static.function(f), dynamic.function(f)
    for n in (6, 2, 6, 3):
        assert_all_same_bits([second(fast, DATA[0], n)], [second(slow, DATA[0], n)], f"n = {n}")
    assert len(fast.traces) == 1, "the first derivative does not depend on it"


def test_sizes_that_only_a_second_derivative_decides_on():
    def f(x):
        return Power.apply(x, None)

    fast, slow = static.function(f), dynamic.function(f)
    fast(leaf(DATA[0, :2]))  # what is decided on holds for the sizes of this call
    with pytest.raises(GradientError, match=r"decides on sizes.*arg0.shape\[0\] == 2.*call the function again"):
        second(fast, DATA[0, :4])
    for n in (4, 2, 3, 4, 2):
        assert_all_same_bits([second(fast, DATA[0, :n])], [second(slow, DATA[0, :n])], f"{n} rows")
    assert len(fast.traces) == 3


def test_a_module_that_a_checkpoint_runs_again_is_what_it_was():
    layer = dynamic.nn.Sequential(dynamic.nn.Linear(5, 5), dynamic.nn.Dropout(0.5))
    f = static.function(lambda x: dynamic.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).tanh())
    x = leaf(DATA[0].astype(F32))
    y = f(x)
    layer.eval()
    with pytest.raises(GradientError, match="training is False now, it was True"):
        dynamic.autograd.grad(y.sum(), x, create_graph=True)
    (d,) = dynamic.autograd.grad(f(x).sum(), x, create_graph=True)
    assert d.requires_grad
