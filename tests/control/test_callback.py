"""`pure_callback`: Python called from programs, in order, with the same arguments and results in both engines."""

import threading

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, DTypeError, GradientError, ShapeError, StateError
from common.tensor.leaf import Buffer
from common.transforms.gradcheck import gradcheck, gradgradcheck
from tests.bits import assert_all_same_bits, assert_same_bits

F32 = np.float32
X = np.random.default_rng(2).standard_normal((3, 4)).astype(F32)
OPTIONS = [{}, {"interpret": True}, {"fuse": False}, {"control_flow": "guard"}]


def like(tw, x, dtype=None):
    return tw.ShapeDtypeStruct(x.shape, x.dtype if dtype is None else dtype)


def program(tw, seen):
    def solve(a, how, *, shift):
        seen.append((a.copy(), how, shift, a.flags.writeable, a.flags.c_contiguous))
        return {"sorted": np.sort(a, axis=-1), "order": (np.argsort(a, axis=-1), a.sum(dtype=F32) * shift.astype(F32))}

    def f(x, k):
        h = x.t() * 2
        spec = {"sorted": like(tw, h), "order": (like(tw, h, np.int64), tw.ShapeDtypeStruct((), F32))}
        r = tw.pure_callback(solve, spec, h, "quick", shift=k)
        again = tw.pure_callback(lambda s: s + 1, r["sorted"], r["sorted"] @ h.t())
        return r["sorted"] * r["order"][1] + again.sum(), r["order"][0], tw.gather(h, 1, r["order"][0])

    return f


def square(tw, x):
    return tw.pure_callback(np.square, like(tw, x), x)


def plain(x):
    return np.asarray(x.payload if hasattr(x, "payload") else x)


@pytest.mark.parametrize("options", OPTIONS)
def test_both_engines_call_it_alike(options):
    told = {tw: [] for tw in (dynamic, static)}
    x = X[:, :3]
    expected = [plain(y) for y in dynamic.function(program(dynamic, told[dynamic]))(x, 0.5)]
    f = static.function(program(static, told[static]), **options)
    for n in (3, 3, 2):
        if n == 2:
            expected = [plain(y) for y in dynamic.function(program(dynamic, told[dynamic]))(x[:2, :2], 0.5)]
            told[static].clear()
            told[dynamic] = told[dynamic][-1:]
        assert_all_same_bits(list(f(x[:n, :n], 0.5)), expected, f"{n} rows")
    (a, *rest), (b, *others) = told[static][-1], told[dynamic][-1]
    assert_same_bits(a, b, "what is passed")
    assert rest == others == ["quick", 0.5, False, True]
    assert rest[1].shape == ()


@pytest.mark.parametrize("options", OPTIONS[:4])
def test_order_of_calls_and_prints_in_loops_and_branches(options, capsys):
    def build(tw):
        def told(word, a):
            print("called", word, a)
            return a * 2

        def call(word, a):
            return tw.pure_callback(told, a, word, a)

        def f(x):
            tw.print("begin")
            call("nobody reads this", x)
            y = tw.while_loop(lambda s: s < 10, lambda s: call("while", s) + 1, x)
            tw.print("between", y)
            y = tw.cond(y > 12, lambda y: call("big", y), lambda y: (tw.print("small"), y)[1], y)
            tw.pure_callback(lambda: print("nothing in, nothing out"), None)
            return tw.scan(lambda h, v: (call("row", h), v), y, tw.stack([x, x]))[0]

        return tw.function(f, **(options if tw is static else {}))

    for value in (1.0, 0.2, 5.0):
        lines = []
        for tw in (dynamic, static):
            result = build(tw)(F32(value))
            lines.append((capsys.readouterr().out.split("\n"), float(plain(result))))
        assert lines[0] == lines[1]
    assert len(lines[0][0]) == 9


def test_outside_a_trace():
    y = static.pure_callback(np.square, static.ShapeDtypeStruct((3, 4), F32), X)
    assert type(y) is static.Tensor
    assert_same_bits(y, X * X, "arrays")
    y = dynamic.pure_callback(np.square, dynamic.tensor(X), dynamic.tensor(X))
    assert type(y) is dynamic.Tensor
    kept = np.zeros(2, F32)
    y = dynamic.pure_callback(lambda: kept, dynamic.ShapeDtypeStruct((2,), F32))
    kept[0] = 5
    assert y.tolist() == [0, 0], "a result is a copy"


def test_the_gradient_needs_a_function_around_it():
    x = dynamic.tensor(X, requires_grad=True)
    message = (
        r"the gradient of square, called at .*test_callback.py:\d+ in square, is not known.*autograd.Function.*detach"
    )
    y = square(dynamic, x)
    assert y.grad_fn.name() == "PureCallbackBackward"
    for call in (lambda: y.sum().backward(), lambda: static.function(lambda x: square(static, x))(x)):
        with pytest.raises(GradientError, match=message):
            call()
    (g,) = dynamic.autograd.grad((y.detach() * x).sum(), x)
    assert_same_bits(g.payload, X * X, "around it")
    with pytest.raises(GradientError, match=message):
        static.function(static.grad(lambda x: square(static, x).sum()))(X)
    assert not square(dynamic, x.detach()).requires_grad
    with dynamic.no_grad():
        assert not square(dynamic, x).requires_grad


class Square(dynamic.autograd.Function):
    """x^2 by numpy, any number of times differentiable."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return dynamic.pure_callback(np.square, x, x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return Double.apply(x) * g


class Double(dynamic.autograd.Function):
    """2 x by numpy."""

    @staticmethod
    def forward(ctx, x):
        return dynamic.pure_callback(lambda a: a * 2, x, x)

    @staticmethod
    def backward(ctx, g):
        return g * 2


@pytest.mark.parametrize("options", OPTIONS[:3])
def test_gradients_of_any_order_with_a_function_around_it(options):
    def f(x):
        return dynamic.scan(lambda h, row: (Square.apply(h) * row + h, None), x[0], Square.apply(x))[0]

    found = []
    for g in (dynamic.function(f), static.function(f, **options)):
        x = dynamic.tensor(X / 2, requires_grad=True)
        (d,) = dynamic.autograd.grad(g(x).sum(), x, create_graph=True)
        (d * d).sum().backward()
        found.append([d.payload, x.grad.payload])
    assert_all_same_bits(*found, "derivatives")
    x = dynamic.tensor(X.astype(np.float64) / 2, requires_grad=True)
    assert gradcheck(static.function(f, **options), (x,))
    assert gradgradcheck(static.function(f, **options), (x,))


@pytest.mark.parametrize("options", OPTIONS[:4])
def test_an_exception_leaves_state_as_it_is(options):
    class Mine(Exception):
        pass

    def refuse(a):
        if a.sum() > 0:
            raise Mine("positive")
        return a

    seen = Buffer(np.zeros(2, F32))

    def f(x):
        with static.no_grad():
            seen.add_(1)
        y = static.pure_callback(refuse, x, x * 2)
        with static.no_grad():
            seen.add_(y)
        return y + seen

    g = static.function(f, **options)
    for _ in range(2):
        with pytest.raises(Mine, match="positive"):
            g(np.ones(2, F32))
        assert seen.payload.tolist() == [0, 0]
    assert g(np.zeros(2, F32)).tolist() == [1, 1]
    assert seen.payload.tolist() == [1, 1]


@pytest.mark.parametrize("tw", [dynamic, static])
def test_results_are_what_was_declared(tw):
    def call(result, spec):
        return tw.function(lambda x: tw.pure_callback(lambda a: result, spec, x))(X)

    spec = tw.ShapeDtypeStruct((2,), F32)
    place = r"pure_callback: <lambda>, called at .*test_callback.py:\d+ in <lambda>,"
    with pytest.raises(ShapeError, match=place + r" returned float32\[3\] as result 0, not float32\[2\]"):
        call(np.zeros(3, F32), spec)
    with pytest.raises(DTypeError, match=place + r" returned float64\[2\] as result 0, not float32\[2\].*\.astype"):
        call(np.zeros(2), spec)
    with pytest.raises(ArgumentError, match=place + " returned .* nested otherwise"):
        call((np.zeros(2, F32),) * 2, spec)
    with pytest.raises(ArgumentError, match=r"has a int, but its leaves need a shape and a dtype"):
        call(None, (3, 4))
    with pytest.raises(ArgumentError, match="takes a callable, not int"):
        tw.pure_callback(3, None)
    with pytest.raises(DTypeError, match="complex64"):
        tw.ShapeDtypeStruct((), np.complex64)
    assert repr(spec) == "ShapeDtypeStruct(shape=(2,), dtype=float32)"


def test_other_programs_may_be_called_but_not_itself():
    inner = static.function(lambda x: (static.print("inner"), x * 2)[1])
    outer = static.function(lambda x: static.pure_callback(lambda a: inner(a) + 1, x, x) * 3)
    assert_same_bits(outer(X), (X * 2 + 1) * 3, "a program in a program")

    @static.function
    def endless(x):
        return static.pure_callback(endless, x, x)

    with pytest.raises(StateError, match="called by what it calls itself"):
        endless(X)

    @static.function
    def wrong(x):
        return static.pure_callback(lambda a: wrong.target(dynamic.tensor(a[1:])) if len(a) > 1 else a * 2, x[:1], x)

    assert_same_bits(wrong(X), X[2:] * 2, "its Python function")


def test_eager_code_inside_is_not_recorded():
    def slope(a):
        x = dynamic.tensor(a, requires_grad=True)
        (x * x).sum().backward()
        return x.grad

    def f(x):
        y = static.pure_callback(slope, x, x)
        return y * 2 if y.sum() > 0 else y

    for options in ({}, {"interpret": True}):
        g = static.function(f, control_flow="guard", **options)
        for sign in (1, -1):
            x = np.abs(X) * F32(sign)
            assert_same_bits(g(x), f(dynamic.tensor(x)).payload, "slopes")


def test_threads_and_tools(tmp_path):
    f = static.function(lambda x: square(static, x * 2) + 1)
    results, inputs = [None] * 4, [X * F32(k) for k in range(4)]

    def work(k):
        for _ in range(20):
            results[k] = f(inputs[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert_all_same_bits(results, [(x * 2) ** 2 + 1 for x in inputs], "threads")
    assert static.compare(f, (X,)) is None
    assert static.nan_watch(f, X) is None
    assert "callback(%" in f.source or "square" in str(f.newest.graph)
    f.dump(tmp_path)


def test_in_a_session():
    with static.Graph().as_default(), static.Session() as session:
        x = static.placeholder(static.float32, (None,))
        y = square(static, x) + 1
        assert session.run(y, {x: np.float32([1, 2, 3])}).tolist() == [2, 5, 10]
