"""Forward mode through branches and loops, against central differences, in both engines, compiled and not."""

from importlib import import_module

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import NotDefinedError
from tests.helpers.proofs import rotated

RNG = np.random.default_rng(0)
X, W = np.array([0.3, 1.2, -0.7]), np.array([0.5, -0.4, 0.9])
ROWS = RNG.standard_normal((4, 3))
PROGRAMS = {
    "cond, a captured tensor": lambda tw, x, w: tw.cond(x.sum() > 0, lambda x: (x * x).sin() * w, lambda x: -x, x),
    "cond, the other branch": lambda tw, x, w: tw.cond(x.sum() < 0, lambda x: x * w, lambda x: x.exp(), x),
    "cond, a number": lambda tw, x, w: tw.cond(x.sum() < 0, lambda x: x.sum(), lambda x: 1, x),
    "cond, a number beside": lambda tw, x, w: tw.cond(x.sum() > 0, lambda x: x.prod(), lambda x: 1, x),
    "switch": lambda tw, x, w: tw.switch(1, [lambda x: x, lambda x: (x * w).exp(), lambda x: x.sin()], x),
    "while": lambda tw, x, w: tw.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, (c[1] * w).sin()), (0, x))[1],
    "while, of the elements": lambda tw, x, w: tw.while_loop(lambda c: c.sum() < 9, lambda c: c * c + 1 + w, x),
    "while, of which few states are kept": lambda tw, x, w: tw.while_loop(
        lambda c: c[0] < 7, lambda c: (c[0] + 1, (c[1] * w).sin() + x), (0, x), checkpoint=2
    )[1],
    "such a loop in a loop": lambda tw, x, w: tw.fori_loop(
        0, 2, lambda i, c: tw.while_loop(lambda c: c.sum() < 9, lambda c: c * c + 1 + w, c * 0.1, checkpoint=3), x
    ),
    "fori": lambda tw, x, w: tw.fori_loop(0, 4, lambda i, c: (c * w).sin() + x, x),
    "no iteration": lambda tw, x, w: tw.fori_loop(0, 0, lambda i, c: c * w, x),
    "scan": lambda tw, x, w: tw.scan(lambda c, r: ((c * r).sin(), c + r * w), x, tw.tensor(ROWS) * w),
    "scan, backwards": lambda tw, x, w: tw.scan(lambda c, r: (c * r, (c, r + x)), w, tw.tensor(ROWS) + x, reverse=True),
    "scan of a constant": lambda tw, x, w: tw.scan(lambda c, r: (c + r, c), tw.zeros(3, dtype=tw.float64), ROWS),
    "map": lambda tw, x, w: tw.map(lambda r: (r * x).exp() * w, tw.tensor(ROWS)),
    "branches in a loop": lambda tw, x, w: tw.fori_loop(
        0, 3, lambda i, c: tw.cond(c.sum() > 0, lambda c: c * w, lambda c: c.exp(), c), x
    ),
    "a loop in a branch": lambda tw, x, w: tw.cond(
        x.sum() > 0, lambda x: tw.fori_loop(0, 2, lambda i, c: c * w + x, x), lambda x: x, x
    ),
}  # fmt: skip


def _flat(results):
    listed = results if isinstance(results, tuple) else (results,)
    return [y for part in listed for y in (part if isinstance(part, tuple) else (part,))]


def pushed(tw, program):
    """The program's tangents, as a function of x, w and their tangents."""
    forward = import_module(f"{tw.__name__}.autograd.forward_ad")

    def push(x, w, dx, dw):
        with forward.dual_level():
            ys = _flat(program(tw, forward.make_dual(x, dx), forward.make_dual(w, dw)))
            tangents = [forward.unpack_dual(y).tangent for y in ys]
        return tuple(tw.zeros_like(y.detach()) if t is None else t for y, t in zip(ys, tangents, strict=True))

    return push


def arrays(tensors):
    return [np.array(y.detach().numpy()) for y in tensors]


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_tangents_are_those_of_differences(program):
    dx, dw = RNG.standard_normal((2, 3))

    def moved(step):
        return arrays(_flat(program(dynamic, dynamic.tensor(X + step * dx), dynamic.tensor(W + step * dw))))

    expected = [(a - b) / 2e-6 for a, b in zip(moved(1e-6), moved(-1e-6), strict=True)]
    found = []
    for tw in (dynamic, static):
        push = pushed(tw, program)
        for run in (push, tw.function(push)):
            given = arrays(run(*map(tw.tensor, (X, W, dx, dw))))
            for tangent, slope in zip(given, expected, strict=True):
                np.testing.assert_allclose(tangent, slope, atol=1e-8, rtol=1e-6)
            found.append([tangent.tobytes() for tangent in given])
    assert all(bits == found[0] for bits in found)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_tangents_have_gradients(tw, program):
    inputs = [tw.tensor(x, requires_grad=True) for x in (X, W, *RNG.standard_normal((2, 3)))]
    push = pushed(tw, program)

    def tied(*xs):  # every tangent depends on every input
        return tuple(t + 0 * sum(x.sum() for x in xs) for t in push(*xs))

    assert tw.autograd.gradcheck(tied, inputs, fast_mode=True)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_a_branch_runs_once(tw):
    forward, runs = import_module(f"{tw.__name__}.autograd.forward_ad"), []

    def branch(x):
        runs.append(isinstance(x.payload, np.ndarray))
        return x * tw.rand(3)

    tw.manual_seed(3)
    with forward.dual_level():
        y = tw.cond(True, branch, lambda x: x, forward.make_dual(tw.ones(3), tw.ones(3)))
        assert forward.unpack_dual(y).tangent.tolist() == y.tolist()  # one draw
    assert runs == [True]


def slope(tw, program):
    """The gradient with respect to x and w, in each way that is not recorded, of what the program adds up to."""

    def total(x, w):
        return sum((y * y).sum() for y in _flat(program(tw, x, w)))

    return tw.func.grad(total, argnums=(0, 1))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_tangents_of_gradients_are_those_of_differences(program):
    dx, dw = RNG.standard_normal((2, 3))

    def moved(step):
        return arrays(slope(dynamic, program)(dynamic.tensor(X + step * dx), dynamic.tensor(W + step * dw)))

    expected = [(a - b) / 2e-6 for a, b in zip(moved(1e-6), moved(-1e-6), strict=True)]
    found = []
    for tw in (dynamic, static):
        push = pushed(tw, lambda tw, x, w: slope(tw, program)(x, w))
        for run in (push, tw.function(push)):
            given = arrays(run(*map(tw.tensor, (X, W, dx, dw))))
            for tangent, wanted in zip(given, expected, strict=True):
                np.testing.assert_allclose(tangent, wanted, atol=1e-6, rtol=1e-6)
            found.append([tangent.tobytes() for tangent in given])
    assert all(bits == found[0] for bits in found)


#: Programs whose gradients can be differentiated at an open level.
HIGHER = {x: PROGRAMS[x] for x in ("cond, a captured tensor", "while", "scan, backwards", "a loop in a branch")}


@pytest.mark.parametrize(("name", "ways"), rotated(HIGHER, ["curve, rows", "product, recorded"]))
def test_tangents_of_higher_derivatives(name, ways):
    """Of a gradient of a gradient, of a product with a tangent, and of all rows of a Jacobian, recorded and mapped."""
    v, dx, dw = (dynamic.tensor(r) for r in RNG.standard_normal((3, 3)))

    def total(tw, x, w):
        return sum((y * y).sum() for y in _flat(HIGHER[name](tw, x, w)))

    all_ways = {
        "curve": lambda tw, x, w: tw.func.grad(lambda x: (tw.func.grad(lambda x: total(tw, x, w))(x) * v).sum())(x),
        "product": lambda tw, x, w: tw.func.jvp(lambda x: total(tw, x, w), (x,), (v,))[1],
        "rows": lambda tw, x, w: tw.func.jacrev(tw.func.grad(lambda x: total(tw, x, w)))(x),
        "recorded": lambda tw, x, w: tw.autograd.functional.hessian(lambda x: total(tw, x, w), x, create_graph=True),
    }
    for way in ways.split(", "):
        program = all_ways[way]
        expected = dynamic.func.jvp(lambda x, w, f=program: f(dynamic, x, w), (X, W), (dx, dw))[1]
        bits = set()
        for tw in (dynamic, static):
            push = pushed(tw, program)
            for run in (push, tw.function(push)):
                (given,) = arrays(run(*map(tw.tensor, (X, W, dx.numpy(), dw.numpy()))))
                np.testing.assert_allclose(given, expected.numpy(), atol=1e-9, rtol=1e-9, err_msg=way)
                bits.add(given.tobytes())
        assert len(bits) == 1, way


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_gradients_of_tangents_of_gradients(tw):
    """A level inside of what is differentiated: the tangent of a gradient has a gradient, regions between or not."""

    def program(x):
        return tw.fori_loop(0, 3, lambda i, c: tw.cond(c.sum() > 0, lambda c: c.sin() * x, lambda c: c * x, c), x).sum()

    for f in (program, tw.function(program), lambda x: (x.sin() * x * x).sum()):
        push = pushed(tw, lambda tw, x, w, f=f: tw.func.grad(f)(x))
        total = tw.func.grad(lambda x, push=push: push(x, tw.tensor(W), tw.tensor(W), tw.tensor(W))[0].sum())
        third = tw.func.jacrev(tw.func.jacrev(tw.func.grad(f)))(tw.tensor(X)).numpy()
        np.testing.assert_allclose(total(tw.tensor(X)).numpy(), np.einsum("ijk,j->k", third, W), rtol=1e-9)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_what_carries_no_tangents_is_refused(tw):
    forward = import_module(f"{tw.__name__}.autograd.forward_ad")
    x, w = tw.tensor(X, requires_grad=True), tw.tensor(W)
    with forward.dual_level():
        y = tw.while_loop(lambda c: c.sum() < 9, lambda c: c * c + 1, forward.make_dual(x, w), checkpoint=4)
        with pytest.raises(NotDefinedError, match=r"forward AD with the gradient of while_loop\(\)"):
            tw.autograd.grad(y.sum(), x, create_graph=True)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_a_captured_tangent_is_no_history(tw):
    forward, x = import_module(f"{tw.__name__}.autograd.forward_ad"), tw.tensor(X)
    with forward.dual_level():
        w = forward.make_dual(tw.tensor(W), x)
        y = tw.fori_loop(0, 2, lambda i, c: c * w, w)
        z = tw.while_loop(lambda c: c.sum() < 9, lambda c: c * c + w + 1, w, checkpoint=2)
        assert not any(part.requires_grad for result in (y, z) for part in forward.unpack_dual(result))
