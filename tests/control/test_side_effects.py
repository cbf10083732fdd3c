"""`print` and `assert_`: never left out, in order, the same text in both engines, in loops and branches too."""

import io
import sys
import threading

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, CheckError
from common.tensor.leaf import Buffer
from static.graph import serialize

X = np.array([1.0, 2.0, 3.0], np.float32)
OPTIONS = [{}, {"interpret": True}, {"fuse": False}, {"control_flow": "guard"}]


def lines(capsys, f, *args):
    """The lines that a call prints, and its error."""
    try:
        f(*args)
    except CheckError as error:
        print("failed:", str(error).split("\n")[0])
    return capsys.readouterr().out.split("\n")


def program(tw):
    def f(x):
        tw.print("start", x)

        def row(h, v):
            tw.print("row", v, h.sum(), sep="|")
            tw.assert_(v < 5, "too large")
            return h + v, None

        h, _ = tw.scan(row, x[0], x)
        y = tw.cond(h > 3, lambda: (tw.print("big"), h * 2)[1], lambda: (tw.print("small"), h)[1])
        z = tw.while_loop(lambda s: s < 100, lambda s: (tw.print("while", s), s * 3)[1], y + 1)
        tw.fori_loop(0, 2, lambda i, s: (tw.print("nobody reads this loop", i), s)[1], x[0])
        tw.cond(z > 0, lambda: tw.print("nor this branch"), lambda: tw.print("never"))
        tw.print("end", {"a": 1}, end="!\n")
        return z

    return f


@pytest.mark.parametrize("options", OPTIONS)
def test_both_engines_print_the_same(options, capsys):
    fast, slow = static.function(program(static), **options), dynamic.function(program(dynamic))
    for x in (X, X / 9, X * 2, X):
        first = lines(capsys, slow, x)
        assert lines(capsys, fast, x) == first
        assert ("failed: too large" in first) is bool(x[2] > 5)
    assert len(first) == 12


@pytest.mark.parametrize("options", OPTIONS[:2])
def test_gradients_print_what_the_program_prints_once(options, capsys):
    fast, slow = (tw.function(tw.grad(program(tw)), **options) for tw in (static, dynamic))
    for x in (X, X / 9):
        assert lines(capsys, fast, x) == lines(capsys, slow, x)
    calls = [static.function(program(static), **options), dynamic.function(program(dynamic))]
    told = [lines(capsys, lambda f=f: f(dynamic.tensor(X, requires_grad=True)).backward()) for f in calls]
    assert told[0] == told[1]


def test_a_run_that_is_repeated_prints_once(capsys):
    def long(tw):
        body = lambda s: (s[0] + 1, (tw.print(s[0]), s[1] * 1.01)[1])  # noqa: E731
        return tw.function(tw.grad(lambda x: tw.while_loop(lambda s: s[0] < 150, body, (0.0 * x, x))[1]))

    for options in OPTIONS[:2]:
        told = lines(capsys, static.function(long(static), **options), np.array(1.0))
        assert told == lines(capsys, long(dynamic), np.array(1.0))
        assert len(told) == 151

    def paths(x):
        static.print("before", x)
        if x.sum() > 0:
            static.print("positive")
            return x * 2
        static.print("negative")
        if x.sum() < -7:
            static.print("very")
        return x

    f = static.function(paths, control_flow="guard")
    for sign in (1, -1, -2, 1, -2, 1, -1):
        assert lines(capsys, f, X * sign) == lines(capsys, paths, dynamic.tensor(X * sign))


def test_a_hook_may_print_a_cotangent(capsys):
    def f(x):
        y = x * 2
        y.register_hook(lambda g: static.print("gradient", g))
        return y.sin().sum()

    told = []
    for call in (static.function(f), dynamic.function(f)):
        x = dynamic.tensor(X, requires_grad=True)
        told.append(lines(capsys, lambda call=call, x=x: call(x).backward()))
    assert told[0] == told[1]
    assert told[0][0].startswith("gradient tensor([")


def test_a_failed_assertion_writes_no_state():
    seen = Buffer(np.zeros(3, np.float32))

    @static.function
    def f(x):
        with static.no_grad():
            seen.copy_(x)
        static.assert_(x > 0, "must be positive")
        return x.sqrt()

    f(X)
    with pytest.raises(CheckError, match=r"must be positive\n  in .*test_side_effects.py:\d+ in f") as caught:
        f(-X)
    assert isinstance(caught.value, AssertionError)
    assert seen.payload.tolist() == [1, 2, 3]
    for tw in (dynamic, static):
        with pytest.raises(CheckError):
            tw.assert_(X > 1)
        with pytest.raises(ArgumentError, match="the message is a str"):
            tw.assert_(True, 3)


def test_converted_assertions():
    def f(x):
        for v in x:
            assert v > 0, "each is positive"
        return x

    for tw in (static, dynamic):
        g = tw.function(f, control_flow="convert")
        g(X)
        with pytest.raises(CheckError, match="each is positive"):
            g(-X)


def test_graphs_with_acts_are_saved_and_shown():
    f = static.function(program(static))
    f(X)
    graph = f.newest.graph
    assert str(serialize.load(serialize.dump(graph))) == str(graph)
    assert "print(" in f.source
    assert "print" in str(f.explain())


def test_what_printing_raises_comes_out_and_threads_wait(monkeypatch):
    @static.function
    def f(x):
        y = x * 2
        static.print(y)
        return (y * y).sum()

    class Broken(io.StringIO):
        def write(self, text):
            raise OSError("full")

    f(X)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Broken())
        with pytest.raises(OSError, match="full"):
            f(X)
    results = []
    arrays = [X * i for i in range(8)]
    threads = [threading.Thread(target=lambda x=x: results.append((x[0], float(f(x))))) for x in arrays for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(y == 4 * 14 * x * x for x, y in results)
    assert len(results) == 16


def test_sessions_act_in_runs_that_have_what_they_depend_on(capsys):
    graph = static.Graph()
    with graph.as_default():
        x, other = (static.placeholder(static.float32, [None], name=name) for name in "xy")
        y = x * 2
        static.print("y", y)
        static.assert_(y > 0, "positive")
        total, unrelated = y.sum(), other.sum()
    with static.Session(graph) as session:
        assert session.run(total, {x: np.ones(3, np.float32)}) == 6
        assert capsys.readouterr().out == "y tensor([2., 2., 2.])\n"
        assert session.run(unrelated, {other: np.ones(3, np.float32)}) == 3
        assert capsys.readouterr().out == ""
        with pytest.raises(CheckError, match="positive"):
            session.run(total, {x: -np.ones(3, np.float32)})


@pytest.mark.parametrize("tw", [dynamic, static])
@pytest.mark.parametrize("name", ["_assert", "_assert_async"])
def test_pytorchs_own_names_of_assertions(tw, name):
    checked = tw.function(lambda x: (getattr(tw, name)((x > 0).all(), "negative"), x * 2)[1])
    assert checked(tw.ones(2)).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="negative"):
        checked(-tw.ones(2))
    assert name not in tw.__all__
