"""The eager engine's short ways give the bits of its general way: straight-line rules, recipes, native builtins."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest

import common.ops.functional as F
import dynamic as tw
import static
from benchmarks.bits import difference
from common.core.op import REGISTRY
from common.evaluate import specialise, straight_line
from common.evaluate import specialise as eager
from common.evaluate.straight_line import straight_rules
from common.kernels.linalg import lapack
from common.ops._define import elementwise
from tests.helpers.proofs import each, rotated
from tests.helpers.wrapped import wrap

rng = np.random.default_rng(30)


def draw(*shape, dtype=np.float32):
    return wrap(rng.normal(size=shape).astype(dtype))


OPERANDS = {
    "strided": wrap(draw(6, 8).payload[::2, ::2]),
    "transposed": wrap(draw(4, 3).payload.T),
    "row": draw(4),
    "column": draw(3, 1),
    "0-d": wrap(np.array(1.5, np.float32)),
    "float64": draw(3, 4, dtype=np.float64),
    "0-d float64": wrap(np.array(2.5)),
    "parameter": tw.nn.Parameter(draw(3, 4).payload),
}
PROGRAMS = {
    "arithmetic": lambda a, b: (a + b) * (a - b) / (b * b + 1.5),
    "numbers": lambda a, b: 2 * a - b * 0.1 + (1 - a) / 3 + True,
    "elementary": lambda a, b: (a * b).tanh() + (b * 0.5).exp() + a.sigmoid(),
    "choices": lambda a, b: F.where(a > b, a, b * 2) + F.maximum(a, b) + (a - b).relu(),
    "reductions": lambda a, b: (a * b).sum() + (a + b).mean(),
    "squares": lambda a, b: a**2 + (a * a + 1) ** 0.5 + b.square(),
}
MATRICES = {
    "matrix products": lambda a, b: a @ b.T + F.linear(a, b),
    "reductions": lambda a, b: (a * b).sum(0, keepdim=True) * a + b.mean(-1, keepdim=True),
    "softmax": lambda a, b: (a + b).softmax(-1) * F.log_softmax(a * b, 0),
    "views": lambda a, b: a.reshape(2, 6)[:, 1:5:2].sum() + b.T[1] * a[:, 1] + b[None, 0, 1:3].sum(),
    "layer_norm": lambda a, b: F.layer_norm(a * b, 4),
}


def results(operands, program, dense=False):
    """The bits of value and gradients."""
    leaves = []
    for x in operands:
        array = np.ascontiguousarray(x.payload).reshape(x.payload.shape) if dense else x.payload
        leaves.append(wrap(array, requires_grad=True))
    y = program(*leaves)
    y.sum().backward()
    grads = [leaf.grad for leaf in leaves]
    assert [(g.shape, g.dtype) for g in grads] == [(leaf.shape, leaf.dtype) for leaf in leaves]
    return [x.payload.tobytes() for x in (y, *grads)]


def check(operands, program):
    eager.forget()
    first = results(operands, program)  # the rules run on arrays
    for _ in range(3):  # from the second time on they are straight lines
        assert results(operands, program) == first
    assert results(operands, program, dense=True) == first


@pytest.mark.parametrize("first", OPERANDS)
@pytest.mark.parametrize("program", PROGRAMS)
@each("second", OPERANDS)
def test_elementwise_programs(program, first, second):
    check((OPERANDS[first], OPERANDS[second]), PROGRAMS[program])


@pytest.mark.parametrize("second", ["transposed", "parameter"])
@pytest.mark.parametrize("first", ["strided", "parameter"])
@pytest.mark.parametrize("program", MATRICES)
def test_matrix_programs(program, first, second):
    check((OPERANDS[first], OPERANDS[second]), MATRICES[program])


def test_numpys_error_state_and_warnings_play_no_part():
    extremes = np.float32([0, -1, np.inf, np.nan, 3e38])
    before = np.seterr(all="raise")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(3):
                x = wrap(extremes, requires_grad=True)
                b = wrap(np.float32([[1], [0], [-2]]), requires_grad=True)
                for y in (x / b, x.log(), (x * x * x).exp(), x.sqrt(), x.softmax(0), x**b, F.maximum(x, b)):
                    y.mean().backward()
        assert np.geterr()["over"] == "raise"
    finally:
        np.seterr(**before)


def test_gradients_own_their_memory():
    a, b = (wrap(np.float32([1, 2]), requires_grad=True) for _ in range(2))
    for g in (wrap(np.float32([3, 4])), np.float32([3, 4])):
        a.grad = b.grad = None
        (a + b).backward(g)
        a.grad.mul_(2)
        assert b.grad.tolist() == g.tolist() == [3, 4]


def test_a_cotangent_takes_the_dtype_of_its_root():
    x = wrap(np.float32([1, 2]), requires_grad=True)
    (x * x).backward(wrap(np.float64([1, 1])))
    assert x.grad.dtype == np.float32
    assert x.grad.tolist() == [2, 4]


def test_recipes_are_bounded_and_slices_of_every_place_work(monkeypatch):
    monkeypatch.setattr(eager, "_LIMIT", 50)
    eager.forget()
    x = wrap(np.arange(200, dtype=np.float32), requires_grad=True)
    for _ in range(2):
        for i in range(200):
            (x[i] * x[i : i + 2]).sum().backward()
    assert len(eager.recipes) <= 50
    steps = 2 * (np.arange(200) + np.arange(200) + np.append(np.arange(1, 200), 0) + np.append(0, np.arange(199)))
    assert x.grad.tolist() == steps.tolist()


def test_a_new_rule_replaces_what_was_made_of_the_old_one():
    op, x = REGISTRY["mul"], wrap(np.float32([[3.0]]), requires_grad=True)
    row = wrap(np.float32([2.0]))
    old = op.rules

    def gradients():
        x.grad = None
        (x * x).sum().backward()
        (x * row).sum().backward()
        return x.grad.tolist()

    assert [gradients() for _ in range(3)] == [[[8.0]]] * 3
    op.set_rules([lambda g: g, lambda g: g])
    try:
        assert gradients() == [[3.0]]
    finally:
        op.set_rules(old)
    assert gradients() == [[8.0]]


FUSED = {
    "gelu": lambda a, b: F.gelu(a * b) + F.gelu(b, approximate="tanh"),
    "softmax": lambda a, b: a.softmax(-1) * b.softmax(0),
    "losses": lambda a, b: F.mse_loss(a, b) + F.smooth_l1_loss(a, b) + F.cross_entropy(a, b.softmax(-1)),
    "statistics": lambda a, b: (a * b).var(0).sum() + (a - b).std() * b.var(-1, keepdim=True),
    "layer_norm": lambda a, b: F.layer_norm(a, (a.shape[-1],), b[0], b[1]) * F.logsumexp(b, 0),
    "pieces": lambda a, b: F.hardshrink(a) * F.hardswish(b) + F.leaky_relu(a - b) * F.relu6(b) + F.hardsigmoid(b),
    "pieces of rows": lambda a, b: (F.softshrink(a, 0.0) + F.softshrink(b, 0.25)).softmax(-1) * F.maximum(a, b),
    "powers": lambda a, b: a**3 + (b * b + 1) ** -1 + (a * a + 1) ** 1.5 + 2.0**b + F.lerp(a, b, 0.25),
}


@pytest.mark.parametrize("shape", [(2, 1), (3, 5), (2, 1025), (1100, 3), (2, 0)])
@pytest.mark.parametrize(("program", "dtype"), rotated(FUSED, [np.float32, np.float64]))
def test_ops_in_one_kernel_have_the_bits_of_ops_one_by_one(program, dtype, shape):
    operands = [draw(*shape, dtype=dtype) for _ in range(2)]
    check(operands, FUSED[program])
    check([wrap(np.asfortranarray(x.data)) for x in operands], FUSED[program])


def test_a_rule_is_one_kernel():
    """The cotangent of gelu is made in one pass: nothing of its size besides its operands and result."""
    x = wrap(rng.normal(size=1 << 20).astype(np.float32), requires_grad=True)
    y = F.gelu(x)
    g = wrap(np.ones(1 << 20, np.float32))
    for _ in range(3):
        tw.autograd.grad(y, x, g, retain_graph=True)
    tracemalloc.start()
    tw.autograd.grad(y, x, g, retain_graph=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * 4 * (1 << 20)


def test_rules_for_any_shape_are_written_once(monkeypatch):
    """Also where nodes were recorded before, and for shapes that are new."""
    written = []
    monkeypatch.setattr(straight_line, "straight_rules", lambda *given: written.append(given) or straight_rules(*given))
    specialise.forget()
    for size in (2, 3, 4, 5):
        x = y = wrap(np.arange(1, size + 1, dtype=np.float32), requires_grad=True)
        for _ in range(50):  # the first ops of a process take the general way
            y = y * x / x
        wanted = [1] * size
        assert [tw.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() for _ in range(3)] == [wanted] * 3
    assert len(written) == 2


class Rule:
    """A random gradient rule of an operand x beside a number d: ``g * e(d, x)``, with ops of d alone inside."""

    CALLS = (
        lambda v: REGISTRY["sqrt"](REGISTRY["abs"](v)), REGISTRY["exp"], REGISTRY["abs"], REGISTRY["square"],
        lambda v: REGISTRY["where"](REGISTRY["lt"](v, 0.2), v, REGISTRY["neg"](v)),
    )  # fmt: skip
    OPERATORS = (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b)

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        number, operand = self.number(3), self.pick(lambda d, x: x, lambda d, x: x**3, lambda d, x: 2 / x)
        join, rest = self.pick(*self.OPERATORS), self.number(1)
        self.value = lambda d, x: join(number(d), operand(d, x)) * rest(d)

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def number(self, depth):
        if depth == 0:
            return lambda d: d
        inner, kind = self.number(depth - 1), self.rng.integers(4)
        if kind < 2:
            call = self.pick(*self.CALLS)
            return lambda d: call(inner(d))
        whole, part, join = self.pick(3, -2, 1), self.pick(0.1, 0.5, 2), self.pick(*self.OPERATORS)
        if kind == 2:
            return lambda d: join(whole, inner(d))
        return lambda d: join(inner(d), part) ** part

    def __call__(self, g, d, x):
        return g * self.value(d, x)


def _derivatives(engine, op, number, x, g):
    """The first derivative of an op by its rule, and the derivative of that."""
    (first,) = engine.autograd.grad(op(number, x), x, g, create_graph=True)
    return first, engine.autograd.grad(first.sum(), x)[0]


def _by_every_way(engine, op, number, x, g):
    """The first derivative, and mostly the second one too: eager with and without a graph, and of a function."""
    leaf, g_ = engine.tensor(x, requires_grad=True), engine.tensor(g)
    yield engine.function(lambda x, g: _derivatives(engine, op, number, x.requires_grad_(), g))(x, g)
    yield _derivatives(engine, op, number, leaf, g_)
    for _ in range(5):  # by the rule, then by straight lines where there are some, last by those for this number
        yield engine.autograd.grad(op(number, leaf), leaf, g_)


@pytest.mark.parametrize("seed", range(4))
def test_ops_of_numbers_in_rules_are_weak_in_every_engine(seed):
    name, draws = f"of_a_number_{seed}", np.random.default_rng(seed)
    op = elementwise(name, lambda d, x: d * x, (None, Rule(seed)), doc="d x, with another derivative.", domain="float")
    try:
        for dtype, number in ((np.float32, 0.1), (np.float32, 3), (np.float64, 0.1), (np.float32, np.float32(0.7))):
            x, g = (draws.uniform(0.2, 1.5, 5).astype(dtype) for _ in range(2))
            eager.forget()
            found = [ys for engine in (static, tw) for ys in _by_every_way(engine, op, number, x, g)]
            for results in found[1:]:
                for ours, compiled in zip(results, found[0], strict=False):
                    assert difference(ours.detach().numpy(), compiled.detach().numpy()) is None
    finally:
        del REGISTRY[name]


def test_a_rule_that_counts_out_indices_is_written_as_lines():
    x = tw.tensor(rng.normal(size=(4, 8)).astype(np.float32), requires_grad=True)
    want = None
    for _ in range(4):
        y = x.unfold(1, 3, 2)
        (found,) = tw.autograd.grad(y, x, tw.arange(float(y.numel())).reshape(y.shape))
        want = found if want is None else want
        assert difference(found.numpy(), want.numpy()) is None
    assert "straight lines" in y.grad_fn.backward.__code__.co_filename


def test_what_rules_have_in_common_runs_once(monkeypatch):
    """Both gradients of a system need ``a^-T g``; that of an inverse solves nothing."""
    seen = []
    routine = lapack._routine
    monkeypatch.setattr(lapack, "_routine", lambda name, dtype: seen.append(name) or routine(name, dtype))
    a, b = (wrap(x.payload, requires_grad=True) for x in (draw(40, 40), draw(40, 2)))
    for operands, program in (((a, b), tw.linalg.solve), ((a,), tw.linalg.inv)):
        expected = None
        for step in range(4):
            seen.clear()
            grads = [x.payload.tobytes() for x in tw.autograd.grad(program(*operands).square().sum(), operands)]
            expected = expected or grads
            assert grads == expected
            assert len(seen) == (1 if len(operands) == 1 else 3 if step == 0 else 2)


def test_the_gradient_of_an_inverse_has_no_negative_zeros():
    """It is a difference from 0."""
    a = wrap(2 * np.eye(4, dtype=np.float32), requires_grad=True)
    (g,) = tw.autograd.grad((tw.linalg.inv(a) * wrap(np.zeros((4, 4), np.float32))).sum(), a)
    assert not np.signbit(g.payload).any()
