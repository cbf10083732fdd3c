"""In-place writes and views: values and gradients of the compiled program are those of the eager one, bit by bit."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ShapeError, TraceError
from tests.helpers import in_place
from tests.helpers.proofs import first

X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
W = np.float32(0.75)


def both(program):
    """Bits of value and gradients, eager and compiled, at two sizes."""
    found = []
    for tw in (dynamic, static):
        f = tw.function(tw.value_and_grad(program, argnums=(0, 1)))
        for rows in (4, 3):
            value, (gx, gw) = f(X[:rows], np.array(W))
            found.append([np.asarray(a).tobytes() for a in (value, gx, gw)])
    return found[:2], found[2:]


@pytest.mark.parametrize("seed", first(10, range(24), core=2))
def test_random_programs(seed):
    program = in_place.make(seed)
    eager, compiled = both(lambda x, w: in_place.run(program, x, w))
    assert eager == compiled, in_place.describe(program)


def copies_of_what_is_out_of_order(x, w):
    y = x * w
    y[1:].contiguous().mul_(w)  # the rows themselves
    y.t().contiguous().add_(x.t())  # a copy
    y[:, ::2].contiguous().mul_(2)  # a copy
    y.expand(2, *y.shape)[1].contiguous().add_(1)
    return (y * y.t().contiguous().t()).sum()


def rows_one_by_one(x, w):
    out = x * 0
    for i in range(3):
        out[i] = x[i] * w
        out[i].add_(w)
    return (out * out).sum()


def view_of_a_view(x, w):
    y = x * w
    part = y[1:][:, ::2]
    part.mul_(w)
    y.add_(x)
    return (part * y[1:][:, ::2]).sum() + y.sum()


def base_before_view(x, w):
    y = x * 2
    v = y.reshape(-1)
    y.mul_(w)
    v[:3] = 1.0
    return (y * v.reshape(y.shape)).sum()


def parts_of_a_split(x, w):
    y = x * w
    a, b = y.split([2, 4], 1)
    y.mul_(x)
    return (a.sum() * b).sum()


def diagonal(x, w):
    y = x @ x.T
    y.diagonal().mul_(w)
    return (y * y).sum()


PROGRAMS = [
    copies_of_what_is_out_of_order,
    rows_one_by_one,
    view_of_a_view,
    base_before_view,
    parts_of_a_split,
    diagonal,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program):
    eager, compiled = both(program)
    assert eager == compiled


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_against_finite_differences(program):
    x, w = X.astype(np.float64), np.array(0.75)
    rng = np.random.default_rng(1)
    dx, dw = rng.standard_normal(x.shape), rng.standard_normal()
    f = dynamic.function(dynamic.value_and_grad(program, argnums=(0, 1)))
    at = lambda s: float(np.asarray(f(x + s * dx, np.asarray(w + s * dw))[0]))  # noqa: E731
    gx, gw = f(x, w)[1]
    slope = np.sum(np.asarray(gx) * dx) + float(gw) * dw
    assert abs((at(1e-6) - at(-1e-6)) / 2e-6 - slope) < 1e-6 * max(1, abs(slope))


def test_writes_to_views_of_arguments_reach_the_caller():
    """Without gradients, a compiled program writes through views of its arguments as the eager one does."""

    def clear(x):
        x[1].zero_()
        x.T[0].add_(1.0)
        return x.sum()

    arrays = [X.copy(), X.copy()]
    sums = [np.asarray(tw.function(clear)(a)).tobytes() for tw, a in zip((dynamic, static), arrays)]
    assert sums[0] == sums[1]
    assert np.asarray(arrays[0]).tobytes() == np.asarray(arrays[1]).tobytes() != X.tobytes()


def test_writes_to_views_of_parameters_are_effects():
    parameters = [dynamic.nn.Parameter(X) for _ in range(2)]
    for tw, p in zip((dynamic, static), parameters):

        def step(scale, tw=tw, p=p):
            with tw.no_grad():
                p[1:].mul_(scale)
                p[0, ::2] = 7.0
            return (p * 2).sum()

        compiled = tw.function(step)
        compiled(np.array(0.5, np.float32))
        compiled(np.array(0.25, np.float32))
    assert parameters[0].numpy().tobytes() == parameters[1].numpy().tobytes()


def test_second_order():
    def slope(tw):
        inner = tw.grad(lambda x: view_of_a_view(x * x, x[0, 0]))
        return tw.function(tw.grad(lambda x: (inner(x) * x).sum()))(X)

    assert np.asarray(slope(dynamic)).tobytes() == np.asarray(slope(static)).tobytes()


@pytest.mark.parametrize("tw", [dynamic, static], ids=lambda tw: tw.__name__)
def test_what_repeats_is_written_once(tw):
    """An element that `expand` repeats takes one value for all of its places, and no others, also without history."""
    mask = np.array([[True, False], [False, False]])

    def filled(x):
        y = x * 1
        e = y.expand(2, 2)
        e.copy_(e)
        e.masked_fill_(tw.tensor(mask), 0.5)
        return y

    def placed(x):
        y = x * 1
        e = y.expand(2, 2)
        e.index_fill_(1, tw.tensor([1]), 0.5)
        e.index_put_((tw.tensor([1]), tw.tensor([0])), tw.tensor([0.25]))
        return y

    def indexed(x):
        y = x * 1
        y.reshape(2, 1).expand(2, 2)[tw.tensor([1])] = 0.5
        return y

    def added(x):
        e = (x * 1).expand(2, 2)
        e.add_(1.0)
        return e

    x = tw.tensor([3.0, 4.0])
    for written, expected in ((filled, [0.5, 4.0]), (placed, [0.25, 0.5]), (indexed, [3.0, 0.5])):
        with pytest.warns(UserWarning, match="expanded tensors is deprecated"):
            assert tw.function(written)(x).tolist() == expected
    with pytest.raises(ShapeError, match="more than one element of the written-to tensor"):
        tw.function(added)(x)


#: Views of `y`, (n, 6), that are no arrays in C order, and shapes in which they are looked at.
RESHAPED = {
    "columns": (lambda y: y[:, :4], lambda n: [(n, 2, 2), (n, 1, 4)], lambda n: [(4 * n,)]),
    "every other": (lambda y: y[:, ::2], lambda n: [(3 * n,), (n, 3, 1)], lambda n: []),
    "turned": (lambda y: y.t(), lambda n: [(2, 3, n)], lambda n: [(6 * n,)]),
    "a part of a split": (lambda y: y.split(4, 1)[0], lambda n: [(n, 2, 2)], lambda n: []),
    "repeated": (lambda y: y.expand(2, *y.shape), lambda n: [(2, 6 * n), (2, n, 2, 3)], lambda n: [(2 * n, 6)]),
    "moved": (lambda y: y[:, None, :, None].transpose(1, 2), lambda n: [(6 * n,), (n, 2, 3)], lambda n: []),
}


@pytest.mark.parametrize("name", RESHAPED)
def test_views_under_other_shapes(name):
    shown, allowed, copied = RESHAPED[name]

    def read(x, w):
        y = x * w
        v = shown(y)
        return sum((v.view(shape) * w).square().sum() for shape in allowed(y.shape[0]))

    def written(x, w):
        y = x * w
        for shape in allowed(y.shape[0]):
            shown(y).reshape(shape)[1:].mul_(w)
        for shape in copied(y.shape[0]):
            shown(y).reshape(shape).mul_(3)
        return (y * y.t().reshape(y.shape)).sum()

    def refused(x, w):
        return (shown(x * w).view(copied(x.shape[0])[0])).sum()

    for program in (read, *([] if name in ("repeated", "a part of a split") else [written])):
        if name == "every other" and program is written:
            with pytest.raises(TraceError, match="shares memory with another"):
                both(program)
            continue
        eager, compiled = both(program)
        assert eager == compiled
    if copied(4):
        for tw in (dynamic, static):
            with pytest.raises(ShapeError, match="contiguous subspaces"):
                tw.function(refused)(X, np.array(W))


def base_after_its_reshape(x):
    y = x * 1
    r = y[:, ::2].reshape(-1)
    y.mul_(2)
    return r * 1


def reshape_of_what_is_gone(x):
    y = x * 1
    y[:, ::2].reshape(-1).mul_(2)
    return y * 1


def view_of_a_reshape(x):
    y = x * 1
    y[:, ::2].reshape(-1)[1:].mul_(2)
    return y * 1


@pytest.mark.parametrize("program", [base_after_its_reshape, reshape_of_what_is_gone, view_of_a_reshape])
def test_reshapes_that_no_size_shows_are_not_written(program):
    """Where a reshape shows memory in this call only, a write to it, or to what it shows, is refused, never lost."""
    with pytest.raises(TraceError, match="shares memory with another"):
        static.function(program)(X)


@pytest.mark.parametrize("program", [base_after_its_reshape, reshape_of_what_is_gone, view_of_a_reshape])
@pytest.mark.parametrize("columns", [6, None])
def test_reshapes_of_open_sizes_are_written_or_refused(program, columns):
    with static.Graph().as_default():
        x = static.placeholder("float32", [None, columns])
        y = program(x)
        session = static.Session()
    for shown in (X, X[:1]) if columns else (X, X[:, :5], X[:1]):
        try:
            found = session.run(y, {x: shown})
        except ShapeError as error:
            if columns or "sizes" not in str(error):
                raise
            continue
        assert found.tobytes() == np.asarray(dynamic.function(program)(shown)).tobytes()


def test_a_reshape_of_what_nobody_else_shows_is_written():
    def program(x, w):
        r = (x * w)[:, ::2].reshape(3 * x.shape[0])
        r.mul_(2)
        return (r * r).sum()

    eager, compiled = both(program)
    assert eager == compiled
