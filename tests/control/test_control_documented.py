"""Promises of jax.lax' documentation on control flow, in both engines, inside a `function` and outside."""

from collections import namedtuple

import numpy as np
import pytest

from common.core.errors import ArgumentError, DTypeError, ShapeError

Pair = namedtuple("Pair", ["low", "high"])
X = np.array([1.0, 2.0, 3.0], np.float32)


# ------------------------------------------------------------------------------------------------- scan


def scanned(f, init, xs, length=None, reverse=False):
    """The meaning of scan in plain Python: xs and ys are lists."""
    xs = [None] * length if xs is None else xs
    carry, ys = init, []
    for x in reversed(xs) if reverse else xs:
        carry, y = f(carry, x)
        ys.append(y)
    return carry, ys[::-1] if reverse else ys


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_means_a_loop(run, reverse):
    step = lambda c, x: (c * 2 + x, c - x)  # noqa: E731
    expected = scanned(step, 1.0, [1.0, 2.0, 3.0], reverse=reverse)
    assert run(lambda tw, x: tw.scan(step, 1.0, x, None, reverse), X) == expected
    assert run(lambda tw, x: tw.scan(step, 1.0, x, 3, reverse), X) == expected


def test_scan_without_xs_runs_length_times_and_f_gets_none(run):
    fibonacci = lambda c, x: ((c[1], c[0] + c[1]), (c[0] if x is None else x))  # noqa: E731
    expected = scanned(fibonacci, (0, 1), None, 10)
    assert run(lambda tw: tw.scan(fibonacci, (0, 1), None, 10)) == expected
    assert run(lambda tw: tw.scan(fibonacci, (0, 1), length=10)) == expected
    assert run(lambda tw: tw.scan(fibonacci, (0, 1), length=0)) == ((0, 1), [])
    assert run(lambda tw, n: tw.scan(fibonacci, (0, 1), length=n.shape[0]), np.zeros(10)) == expected


def test_carry_xs_and_ys_may_be_none(run):
    assert run(lambda tw, x: tw.scan(lambda c, v: (None, v * 2), None, x), X) == (None, [2.0, 4.0, 6.0])
    assert run(lambda tw, x: tw.scan(lambda c, v: (c + v, None), 0.0, x), X) == (6.0, None)
    assert run(lambda tw, x: tw.scan(lambda c, v: (c + v["x"], v["none"]), 0.0, {"x": x, "none": None}), X) == (
        6.0,
        None,
    )


def test_xs_and_ys_are_trees_with_a_common_first_dimension(run):
    def step(carry, xs):
        return Pair(carry.low + xs["a"], carry.high), {"sum": xs["a"] + xs["b"][0].sum(), "pair": (xs["a"],)}

    carry, ys = run(lambda tw, x: tw.scan(step, Pair(0.0, 7), {"a": x, "b": [x.reshape(3, 1) * 10]}), X)
    assert carry == Pair(6.0, 7)
    assert ys == {"sum": [11.0, 22.0, 33.0], "pair": ([1.0, 2.0, 3.0],)}


@pytest.mark.parametrize("unroll", [0, 1, 2, 100, True, False])
def test_unroll_changes_nothing(run, unroll):
    step = lambda c, x: (c * 2 + x, c - x)  # noqa: E731
    expected = scanned(step, 1.0, [1.0, 2.0, 3.0])
    assert run(lambda tw, x: tw.scan(step, 1.0, x, None, False, unroll), X) == expected
    assert run(lambda tw, x: tw.fori_loop(0, 3, lambda i, c: c + i, x, unroll=unroll), X) == [4.0, 5.0, 6.0]


@pytest.mark.parametrize("wrong", [-1, 1.5, "all"])
def test_unroll_and_batch_size_are_not_negative(run, wrong):
    calls = (
        lambda tw, x: tw.scan(lambda c, v: (c, v), 0.0, x, unroll=wrong),
        lambda tw, x: tw.fori_loop(0, 3, lambda i, c: c, x, unroll=wrong),
        lambda tw, x: tw.map(lambda v: v, x, batch_size=wrong),
    )
    for call in calls:
        with pytest.raises(ArgumentError, match=r"at least [01]"):
            run(call, X)
    with pytest.raises(ArgumentError, match="at least 1"):
        run(lambda tw, x: tw.map(lambda v: v, x, batch_size=0), X)


def test_the_length_must_be_that_of_xs(run):
    with pytest.raises(ValueError, match=r"`length` argument of 4 which disagrees with leading axis sizes \[3"):
        run(lambda tw, x: tw.scan(lambda c, v: (c, v), 0.0, x, 4), X)


def test_the_carry_keeps_its_shape_and_dtype(run):
    with pytest.raises(TypeError, match="carries on is"):
        run(lambda tw, x: tw.scan(lambda c, v: (c.to(np.float64), v), x[0], x), X)
    with pytest.raises(ShapeError):
        run(lambda tw, x: tw.scan(lambda c, v: (x, v), x[0], x), X)


# ------------------------------------------------------------------------------------------ while_loop, fori_loop


def test_while_loop_means_while(run):
    collatz = lambda tw, n: tw.while_loop(  # noqa: E731
        lambda s: s[0] != 1,
        lambda s: (tw.cond(s[0] % 2 > 0, lambda n: 3 * n + 1, lambda n: n // 2, s[0]), s[1] + 1),
        (n, 0),
    )
    for n in (1, 6, 27):
        value, steps = n, 0
        while value != 1:
            value, steps = (3 * value + 1 if value % 2 else value // 2), steps + 1
        assert run(collatz, np.array(n)) == (1, steps)


def test_a_while_loop_that_does_not_run_returns_init(run):
    assert run(lambda tw, x: tw.while_loop(lambda s: s["x"].sum() < 0, lambda s: {"x": s["x"] * 2}, {"x": x}), X) == {
        "x": [1.0, 2.0, 3.0]
    }


def test_the_condition_is_one_value_and_the_carry_keeps_its_type(run):
    with pytest.raises(ShapeError, match="must be a scalar, 0-d"):
        run(lambda tw, x: tw.while_loop(lambda s: s < 3, lambda s: s + 1, x), X)
    with pytest.raises(DTypeError, match="while_loop"):
        run(lambda tw, x: tw.while_loop(lambda s: s.sum() < 3, lambda s: s > 0, x), X)
    with pytest.raises(ArgumentError, match="same structure"):
        run(lambda tw, x: tw.while_loop(lambda s: s.sum() < 3, lambda s: (s, s), x), X)


@pytest.mark.parametrize(("low", "high"), [(0, 5), (3, 3), (4, 1), (-3, 2)])
def test_fori_loop_means_for(run, low, high):
    value = 1.0
    for i in range(low, high):
        value = value * 2 + i
    body = lambda i, c: c * 2 + i  # noqa: E731
    assert run(lambda tw: tw.fori_loop(low, high, body, 1.0)) == value
    assert run(lambda tw, a, b: tw.fori_loop(a, b, body, 1.0), np.array(low), np.array(high)) == value


@pytest.mark.parametrize("bounds_are_data", [False, True])
def test_fori_loop_is_differentiable_in_reverse_whatever_its_bounds(run, bounds_are_data):
    """JAX: only with a trip count that is known when the program is traced."""

    def power(tw, x, n):
        return tw.fori_loop(0, n if bounds_are_data else 5, lambda i, c: c * x, 1.0)

    def derivatives(tw, x, n):
        first = tw.grad(lambda x: power(tw, x, n))
        return first(x), tw.grad(lambda x: first(x))(x)

    assert run(derivatives, np.array(2.0), np.array(5)) == (5 * 2.0**4, 20 * 2.0**3)


# ------------------------------------------------------------------------------------------------- cond, switch, map


def test_cond_takes_operands_or_captures_them(run):
    for flag in (True, False):
        expected = [2.0, 4.0, 6.0] if flag else [-1.0, -2.0, -3.0]
        assert run(lambda tw, p, x: tw.cond(p, lambda x: x * 2, lambda x: -x, x), np.array(flag), X) == expected
        assert run(lambda tw, p, x: tw.cond(p, lambda: x * 2, lambda: -x), np.array(flag), X) == expected


def test_pred_is_one_number_or_truth_value(run):
    call = lambda tw, p, x: tw.cond(p, lambda: x, lambda: -x)  # noqa: E731
    for p in (np.array(3), np.array(-0.5), np.array(np.nan), 1, True):
        assert run(call, p, X) == [1.0, 2.0, 3.0]
    for p in (np.array([True]), np.array([True, False]), np.ones((1, 1))):
        with pytest.raises(ShapeError, match="Pred must be a scalar, 0-d"):
            run(call, p, X)


def test_a_branch_that_is_not_taken_leaves_no_nan_in_the_gradient(run):
    """Where `where` would multiply an infinite slope with zero."""
    root = lambda tw, x: tw.cond(x > 0, lambda x: tw.sqrt(x), lambda x: x * 0.5, x)  # noqa: E731
    slope = lambda tw, x: tw.grad(lambda x: root(tw, x))(x)  # noqa: E731
    assert run(slope, np.array(0.0)) == 0.5
    assert run(slope, np.array(4.0)) == 0.25
    rows = lambda tw, x: tw.grad(lambda x: tw.map(lambda v: root(tw, v), x).sum())(x)  # noqa: E731
    assert run(rows, np.array([0.0, 4.0, -1.0])) == [0.5, 0.25, 0.5]


@pytest.mark.parametrize(("index", "taken"), [(-(2**40), 0), (-1, 0), (0, 0), (1, 1), (2, 2), (3, 2), (2**40, 2)])
def test_switch_clamps_its_index(run, index, taken):
    branches = [lambda x: x, lambda x: x + 10, lambda x: x + 20]
    assert run(lambda tw, i, x: tw.switch(i, branches, x), np.array(index), X) == (X + 10 * taken).tolist()
    assert run(lambda tw, x: tw.switch(index, branches, x), X) == (X + 10 * taken).tolist()


def test_switch_takes_integers_only(run):
    for wrong in (np.array(1.0), np.array(True), 0.5):
        with pytest.raises(DTypeError, match="Index type must be an integer"):
            run(lambda tw, i, x: tw.switch(i, [lambda: x, lambda: -x]), wrong, X)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 10])
def test_map_stacks_what_f_returns(run, batch_size):
    f = lambda v: {"twice": v["a"] * 2, "both": (v["a"] + v["b"], None)}  # noqa: E731
    found = run(lambda tw, x: tw.map(f, {"a": x, "b": x * x}, batch_size=batch_size), X)
    assert found == {"twice": [2.0, 4.0, 6.0], "both": ([2.0, 6.0, 12.0], None)}
    assert run(lambda tw, x: tw.map(lambda v: v * 2, x[:0]), X) == []


def test_constructs_nest_and_see_what_is_around_them(run):
    """A matrix power by squaring, written with a loop whose body chooses, inside a map over exponents."""

    def powers(tw, w, exponents):
        def power(n):
            def body(s):
                base, result, n = s
                result = tw.cond(n % 2 > 0, lambda: result @ base, lambda: result)
                return base @ base, result, n // 2

            return tw.while_loop(lambda s: s[2] > 0, body, (w, tw.eye(2, dtype=w.dtype), n))[1]

        return tw.map(power, exponents)

    w = np.array([[1.0, 1.0], [1.0, 0.0]])
    found = run(powers, w, np.array([0, 1, 5, 10]))
    assert found == [np.linalg.matrix_power(w, n).tolist() for n in (0, 1, 5, 10)]


# ------------------------------------------------------------------------------------------------- associative_scan


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_associative_scan_means_a_loop(run, axis, reverse):
    x = np.arange(1.0, 13.0).reshape(3, 4) / 7
    rows = list(np.moveaxis(x, axis, 0))
    totals = [rows.pop(-1 if reverse else 0)]
    for row in rows[::-1] if reverse else rows:
        totals.append(totals[-1] * 0.5 * row + row)
    expected = np.stack(totals[::-1] if reverse else totals, axis)
    f = lambda tw, x: tw.associative_scan(lambda a, b: a * 0.5 * b + b, x, reverse, axis)  # noqa: E731
    np.testing.assert_array_equal(run(f, x), expected)


def test_associative_scan_of_none_one_and_many(run):
    f = lambda tw, x: tw.associative_scan(lambda a, b: Pair(a.low + b.low, a.high * b.high), Pair(x, x))  # noqa: E731
    for n in (0, 1, 2, 7):
        x = np.arange(1.0, n + 1)
        assert run(f, x) == (np.cumsum(x).tolist(), np.cumprod(x).tolist())


def test_associative_scan_refuses(run):
    add = lambda a, b: a + b  # noqa: E731
    for call, error, text in (
        (lambda tw, x: tw.associative_scan(3, x), TypeError, "callable"),
        (lambda tw, x: tw.associative_scan(add, ()), ValueError, "no tensors"),
        (lambda tw, x: tw.associative_scan(lambda a, b: a, (x, x[:2])), ValueError, r"saw: \[3, 2\]"),
        (lambda tw, x: tw.associative_scan(add, x.sum()), ShapeError, "0-d leaf"),
        (lambda tw, x: tw.associative_scan(add, x, axis=1), IndexError, "out of range"),
        (lambda tw, x: tw.associative_scan(lambda a, b: (a, b), x), TypeError, "associative_scan body function carry"),
    ):
        with pytest.raises(error, match=text):
            run(call, X)


# ------------------------------------------------------------------------------------------------- dynamic slices


def test_dynamic_slices_move_into_range(run):
    x = np.arange(20.0).reshape(4, 5)
    for i in range(-6, 7):
        at = min(max(i + 4 if i < 0 else i, 0), 2)
        f = lambda tw, x, i: tw.dynamic_slice(x, (i, 1), (2, 3))  # noqa: E731
        assert run(f, x, np.array(i)) == x[at : at + 2, 1:4].tolist()
        written = x.copy()
        written[at : at + 2] = -1
        g = lambda tw, x, i: tw.dynamic_update_slice_in_dim(x, x[:2] * 0 - 1, i, axis=0)  # noqa: E731
        assert run(g, x, np.array(i)) == written.tolist()


def test_dynamic_slices_refuse(run):
    for call, error, text in (
        (lambda tw, x: tw.dynamic_slice(x, (0,), (4,)), ShapeError, "less than or equal"),
        (lambda tw, x: tw.dynamic_slice(x, (0, 0), (2,)), ShapeError, "one entry per dimension"),
        (lambda tw, x: tw.dynamic_slice(x, (0,), (2, 2)), ShapeError, "one entry per dimension"),
        (lambda tw, x: tw.dynamic_slice(x, (x[0],), (2,)), DTypeError, "integers"),
        *(
            (lambda tw, x, wrong=wrong: tw.dynamic_slice(x, wrong, (2,)), TypeError, "must be integers")
            for wrong in (None, "a", ("a",), (None,), (1.0,), (True,), {})
        ),
        (lambda tw, x: tw.dynamic_update_slice(x, tw.tensor([1]), (0,)), DTypeError, "match"),
        (lambda tw, x: tw.dynamic_update_slice(x, x.sum(), (0,)), ShapeError, "rank"),
    ):
        with pytest.raises(error, match=text):
            run(call, X)


# ------------------------------------------------------------------------------------------------- messages


NAMED = {
    "carry, length": (lambda tw, x: tw.scan(lambda c, v: ((c[0],), v), (x, x), x), TypeError,
                      r"The input carry c is a tuple of length 2 but .* is a tuple of length 1, so the lengths do not"),
    "carry, dtype": (lambda tw, x: tw.scan(lambda c, v: ({"a": c["a"] > 0}, v), {"a": x}, x), TypeError,
                     r"carry component c\['a'\] has type float32\[3\] but .* has type bool\[3\], so the dtypes do not"),
    "carry, two": (lambda tw, x: tw.fori_loop(0, 1, lambda i, s: Pair(s.low[:2], s.high > 0), Pair(x, x)), TypeError,
                   r"(?s)  \* the input carry component s.low has .*shapes do not match;\n  \* the .* s.high has"),
    "carry, keys": (lambda tw, x: tw.while_loop(lambda s: s["t"] < 1, lambda s: {"T": s["t"]}, {"t": 0.0}), TypeError,
                    r"with pytree metadata \('t',\) but .* with pytree metadata \('T',\)"),
    "cond, kinds": (lambda tw, x: tw.cond(True, lambda: {"a": x}, lambda: {"a": (x, x)}), TypeError,
                    r"true_fun output at path \['a'\] is a pytree leaf but false_fun output at path \['a'\] is a <"),
    "switch, shapes": (lambda tw, x: tw.switch(1, [lambda: (x, x), lambda: (x, x[:2])]), TypeError,
                       r"output of branches\[0\] at path \[1\] has type float32\[3\] but .* has type float32\[2\]"),
    "pred": (lambda tw, x: tw.cond(None, lambda: x, lambda: x), TypeError, "cond predicate is None"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_messages_name_the_leaf(run, name):
    f, error, text = NAMED[name]
    with pytest.raises(error, match=text):
        run(f, X)


def test_a_size_is_a_number_like_others(run):
    assert run(lambda tw, x: tw.tensor(x.shape[0]) * x, X) == [3, 6, 9]
    assert run(lambda tw, x: tw.as_tensor(x.shape[0] + 1) + x, X) == [5, 6, 7]
    assert run(lambda tw, x: tw.index_fill(x, 0, tw.tensor([1]), x.shape[0]), X) == [1, 3, 3]
    assert run(lambda tw, x: tw.masked_fill(x, x > 2, x.shape[0] * 2), X) == [1, 2, 6]
