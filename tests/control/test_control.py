"""The meaning of control flow, in both engines, inside a `function` and outside; and refusals."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError, TraceError

X = np.array([1.0, 2.0, 3.0], np.float32)


def test_cond_takes_any_scalar_and_any_tree(run):
    f = lambda tw, p, x: tw.cond(p, lambda a, b: {"s": a["x"] + b}, lambda a, b: {"s": a["x"] - b}, {"x": x}, x)  # noqa: E731
    for p in (np.array(True), np.array(2), np.array(-0.5)):
        assert run(f, p, X) == {"s": [2, 4, 6]}
    for p in (np.array(False), np.array(0), np.array(-0.0)):
        assert run(f, p, X) == {"s": [0, 0, 0]}
    assert run(lambda tw, x: tw.cond(True, lambda: x, lambda: x * 2), X) == [1, 2, 3]


def test_only_the_branch_that_is_taken_runs(run):
    f = lambda tw, x, i: tw.cond(x.sum() > 0, lambda: x * 2, lambda: tw.index_select(x, 0, i).sum() * x)  # noqa: E731
    bad = np.array([0, 7])
    assert run(f, X, bad) == [2, 4, 6]
    with pytest.raises(IndexRangeError):
        run(f, -X, bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda tw: tw.nn.init.ones_(tw.empty(3)),
        lambda tw: tw.optim.SGD([tw.nn.Parameter(X)], lr=0.5).param_groups[0]["lr"],
    ],
    ids=["init", "group"],
)
def test_a_branch_that_is_not_taken_may_use_state(run, make):
    def f(tw, x):
        def other():
            make(tw)
            return x * 2

        return tw.cond(x.sum() > 0, lambda: x + 1, other)

    assert run(f, X) == [2, 3, 4]


def test_switch_moves_an_index_into_range(run):
    f = lambda tw, i, x: tw.switch(i, [lambda x: x, lambda x: x * 10, lambda x: x * 100], x)  # noqa: E731
    assert [run(f, np.array(i), X)[0] for i in (-7, 0, 1, 2, 3)] == [1, 1, 10, 100, 100]
    assert run(f, np.array(1, np.uint8), X) == [10, 20, 30]
    assert run(lambda tw, x: tw.switch(0, [lambda: x]), X) == [1, 2, 3]


def test_while_loop_carries_trees_and_may_not_run_at_all(run):
    def f(tw, n, x):
        return tw.while_loop(lambda s: s["i"] < n, lambda s: {"x": s["x"] * 2, "i": s["i"] + 1}, {"i": 0, "x": x})

    assert run(f, np.array(3), X) == {"i": 3, "x": [8, 16, 24]}
    assert run(f, np.array(-1), X) == {"i": 0, "x": [1, 2, 3]}


def test_fori_loop_bounds(run):
    f = lambda tw, low, high, x: tw.fori_loop(low, high, lambda i, s: s + i, x)  # noqa: E731
    for low, high in ((0, 4), (2, 3), (3, 3), (5, 1), (-2, 1)):
        expected = [v + sum(range(low, high)) for v in (1, 2, 3)]
        assert run(f, low, high, X) == expected
        assert run(f, np.array(low), np.array(high), X) == expected
    assert run(lambda tw, x: tw.fori_loop(0, x.shape[0], lambda i, s: s * 2, x), X) == [8, 16, 24]


def test_scan_stacks_where_the_rows_stand(run):
    f = lambda tw, x: tw.scan(lambda c, v: (c + v, (c, v * 2)), 0.0, x)  # noqa: E731
    assert run(f, X) == (6, ([0, 1, 3], [2, 4, 6]))
    backwards = lambda tw, x: tw.scan(lambda c, v: (c + v, (c, v * 2)), 0.0, x, reverse=True)  # noqa: E731
    assert run(backwards, X) == (6, ([5, 3, 0], [2, 4, 6]))
    assert run(lambda tw, x: tw.scan(lambda c, _: (c * 2, None), x, length=3), X) == ([8, 16, 24], None)
    assert run(lambda tw, x: tw.scan(lambda c, v: (c, v["b"]), x, {"a": x, "b": x * 3}, length=3), X)[1] == [3, 6, 9]
    assert run(lambda tw, x: tw.scan(lambda c, v: (c, v), x, x[:0]), X) == ([1, 2, 3], [])
    assert run(lambda tw, x: tw.map(lambda v: (v * v, None), x), X) == ([1, 4, 9], None)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_segments_do_not_change_what_a_scan_returns(run, size):
    xs = np.arange(7, dtype=np.float32)
    for reverse in (False, True):
        results = [
            run(lambda tw, x, k=k, r=reverse: tw.scan(step, x[0], {"x": x}, reverse=r, checkpoint=k), xs)
            for k in (None, size)
        ]
        assert results[0] == results[1]


def step(c, v):
    return c * 0.5 + v["x"], {"y": c * v["x"]}


def test_numbers_take_the_dtype_that_the_loop_gives_them(run):
    wide = X.astype(np.float64)
    total = lambda tw, x: tw.scan(lambda c, v: (c + v, c), 0, x)[0] / 3  # noqa: E731
    assert run(total, wide) == 2
    dtypes = []
    run(lambda tw, x: dtypes.append(tw.scan(lambda c, v: (c + v, c), 0.0, x)[0].dtype) or x, wide)
    run(lambda tw, x: dtypes.append(tw.fori_loop(0, 3, lambda i, c: c + i, 0).dtype) or x, X)
    assert dtypes == [np.float64, np.int64]


def test_dictionaries_may_come_back_in_another_order(run):
    f = lambda tw, x: tw.fori_loop(0, 2, lambda i, s: {"b": s["b"] + i, "a": s["a"] * 2}, {"a": x, "b": 0})  # noqa: E731
    assert run(f, X) == {"a": [4, 8, 12], "b": 1}


def test_a_result_shares_no_memory_with_an_operand():
    x = dynamic.tensor(X)
    y = dynamic.cond(True, lambda x: x, lambda x: x, x)
    z = dynamic.while_loop(lambda x: x.sum() < 0, lambda x: x, x)
    w = dynamic.cond(True, lambda: x, lambda: x)
    for result in (y, z, w):
        result.mul_(0)
    assert x.tolist() == [1, 2, 3]


def test_fori_loop_counts_from_and_to_floats(run):
    assert run(lambda tw, x: tw.fori_loop(0, 2.5, lambda i, s: s + i, x), X) == [4, 5, 6]  # 0, 1, 2
    assert run(lambda tw, x: tw.fori_loop(x.sum() / 4, 4, lambda i, s: s * i, x), X) == [13.125, 26.25, 39.375]
    a = np.array(1.5, np.float32)
    loop = lambda tw, a: tw.fori_loop(a, a + 2, lambda i, s: s * i + 1, a)  # noqa: E731
    assert run(lambda tw, a: tw.grad(lambda a: loop(tw, a))(a), a) == 3 * a * a + 2 * a + 1  # of (a a + 1) (a + 1) + 1


def test_values_that_only_the_other_branch_uses_have_a_gradient_of_zero(run):
    if not run.inside:
        return
    w = run.engine.nn.Parameter(np.array([5.0, 6.0, 7.0], np.float32))

    def f(tw, x):
        w.grad = None
        tw.cond(x.sum() > 0, lambda: x * 2, lambda: x * w).sum().backward()
        return w.grad * 1

    assert run(f, X) == [0, 0, 0]
    assert run(f, -X) == [-1, -2, -3]


ERRORS = {
    "structure": (lambda tw, x: tw.cond(True, lambda: (x, x), lambda: [x, x]), ArgumentError,
                  r"(?s)false_fun output is a .*list.*true_fun \(<lambda> at .*.py:\d+\) is\s+\(float32.*\["),
    "branch shapes": (lambda tw, x: tw.cond(True, lambda: x[:2], lambda: x), ShapeError, "must have the same shapes"),
    "branch dtypes": (lambda tw, x: tw.switch(0, [lambda: x, lambda: x > 1]), DTypeError, r"(?s)branches\[1\].*bool"),
    "carried shape": (lambda tw, x: tw.while_loop(lambda s: s.sum() < 9, lambda s: s[:2], x), ShapeError,
                      r"(?s)while_loop: init is\s+float32.*but what <lambda> at .*test_control.py:\d+ carries on is"),
    "endless": (lambda tw, x: tw.fori_loop(0, np.inf, lambda i, s: s, x), ArgumentError, "upper must be a number"),
    "carried dtype": (lambda tw, x: tw.fori_loop(0, 2, lambda i, s: s.to(np.float64), x), DTypeError, r"\.to\(dtype\)"),
    "carried structure": (lambda tw, x: tw.scan(lambda c, v: ((c, c), v), x, x), ArgumentError, "same structure"),
    "no pair": (lambda tw, x: tw.scan(lambda c, v: c + v, x.sum(), x), ArgumentError, r"pair, got float32\[\]\."),
    "lengths": (lambda tw, x: tw.scan(lambda c, v: (c, v), 0, (x, x[:2])), ShapeError, "sizes: 3, 2"),
    "no length": (lambda tw, x: tw.scan(lambda c, v: (c, v), x), ArgumentError, "length must be given"),
    "segments": (lambda tw, x: tw.scan(lambda c, v: (c, v), 0, x, checkpoint=0), ArgumentError, "checkpoint is 0"),
    "0-d rows": (lambda tw, x: tw.map(lambda v: v, x.sum()), ShapeError, "0-d leaf"),
    "negative length": (lambda tw, x: tw.scan(lambda c, v: (c, c), x, length=-1), ArgumentError, "not be negative"),
    "condition": (lambda tw, x: tw.while_loop(lambda s: s > 0, lambda s: s, x), ShapeError, "must be a scalar"),
    "pred": (lambda tw, x: tw.cond(x, lambda: x, lambda: x), ShapeError, "Pred must be a scalar, 0-d"),
    "index": (lambda tw, x: tw.switch(x.sum(), [lambda: x]), DTypeError, "Index type must be an integer"),
    "no branches": (lambda tw, x: tw.switch(0, [], x), ArgumentError, "Empty branch sequence"),
    "index as text": (lambda tw, x: tw.switch("two", [lambda: x]), ArgumentError, "must be an integer, got two"),
    "bounds": (lambda tw, x: tw.fori_loop(0, x.sum() > 0, lambda i, s: s, x), DTypeError, "upper must be a number"),
    "leaf": (lambda tw, x: tw.cond(True, lambda s: x, lambda s: x, "text"), ArgumentError, "type str.*tree_util"),
    "result": (lambda tw, x: tw.cond(True, lambda: "text", lambda: x), ArgumentError, "leaf of type str"),
    "in place": (lambda tw, x: tw.cond(x.sum() > 0, lambda x: x.add_(1), lambda x: x, x), ArgumentError, "in place"),
    "in place, carried": (lambda tw, x: tw.fori_loop(0, 2, lambda i, s: s.add_(1), x), ArgumentError, "in place; w"),
    "in place, asked": (lambda tw, x: tw.while_loop(lambda s: s.add_(1).sum() < 9, lambda s: s + 1, x), ArgumentError,
                        "while_loop: .* in place; write to a clone"),
    "other branch": (lambda tw, x: tw.cond(True, lambda x: x, lambda x: -x if x.sum() > 0 else x, x), TraceError,
                     "inside it|while_loop"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_both_sides(run, name):
    f, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        run(f, X)


def test_gradients_that_are_left_in_grad_are_refused_in_a_trace():
    w = static.nn.Parameter(X)

    def f(x):
        def body(i, s):
            (s * w).sum().backward()
            return s

        return static.fori_loop(0, 2, body, x)

    with pytest.raises(TraceError, match=r"sets `.grad` of a tensor of shape \(3,\)"):
        static.function(f)(X)
    assert w.grad is None
