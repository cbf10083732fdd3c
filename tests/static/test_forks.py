"""The common beginning of paths as a program of its own: when there is one, what it hands over, and equal bits."""

import numpy as np
import pytest

import dynamic
import static
from common.tensor.leaf import Buffer
from static.tracing import branching, forks
from tests.bits import assert_all_same_bits, assert_same_bits

F32 = np.float32
RNG = np.random.default_rng(3)
X = RNG.standard_normal((4, 6)).astype(F32)
W = RNG.standard_normal((6, 6)).astype(F32)


@pytest.fixture
def always(monkeypatch):
    """Forks from the first change on, whatever the beginning costs; counts what runs: beginnings, and rests."""
    monkeypatch.setattr(forks, "WORTHWHILE", -1e18)
    monkeypatch.setattr(branching, "SECOND", 1)
    return counting(monkeypatch)


def counting(monkeypatch):
    count = {"beginnings": 0, "rests": 0}

    def note(name, method):
        def counted(self, *args):
            count[name] += 1
            return method(self, *args)

        return counted

    monkeypatch.setattr(forks.Fork, "run", note("beginnings", forks.Fork.run))
    monkeypatch.setattr(forks.Rest, "__call__", note("rests", forks.Rest.__call__))
    return count


def guarded(f, **options):
    return static.function(f, control_flow="guard", **options)


def three_ways(x):
    h = static.tanh(x @ W)
    s = h.sum() * 1
    if h[0, 0].item() > 0:
        return h * s, x
    if s.item() > 0:
        return h @ W.T - x, s
    return h.exp(), h


@pytest.mark.parametrize("options", [{}, {"fuse": False}, {"interpret": True}])
def test_bits_of_all_paths_in_any_order(always, options):
    f = guarded(three_ways, **options)
    for x in RNG.standard_normal((40, 4, 6)).astype(F32):
        expected = three_ways(dynamic.tensor(x))
        assert_all_same_bits(f(x), [y.payload for y in expected], "a path")
    assert len(f.traces) == 3
    assert always["beginnings"] > 25
    assert always["rests"] >= always["beginnings"]
    assert sum(path.runs for path in f.explain().paths) == 40


def test_gradients_of_calls_with_history(always):
    w, sizes = dynamic.nn.Parameter(W), (4, 2, 4, 3)

    def f(x):
        h = dynamic.tanh(x @ w)
        return (h * h).sum() if h.sum() > 0 else (h.exp() * x).sum()

    both = guarded(f), dynamic.function(f)
    for n in sizes * 3:
        for sign in (1, -1, 1, 1, -1):
            found = []
            for call in both:
                w.grad, x = None, dynamic.tensor(abs(X[:n]) @ abs(W) * sign * np.sign(W.sum()), requires_grad=True)
                y = call(x)
                (g,) = dynamic.autograd.grad(y, x, create_graph=True)
                (g * g).sum().backward()
                found.append([y.payload, g.payload, x.grad.payload, w.grad.payload])
            assert_all_same_bits(*found, f"{n} rows, {sign}")
    assert len(both[0].traces) == 2
    assert always["rests"] > 30


def test_state_and_draws(always):
    found = []
    for tw in (dynamic, static):
        tw.manual_seed(5)
        seen = Buffer(np.zeros(6, F32))

        @tw.function(control_flow="guard")
        def f(x, tw=tw, seen=seen):
            with tw.no_grad():
                seen.add_(x.sum(0))
            y = tw.dropout(x @ W, 0.4)
            if y.sum() > 0:
                with tw.no_grad():
                    seen.mul_(y.mean(0))
                return y * tw.rand(6)
            return y - seen

        results = [np.asarray(f(X * (i % 3 - 1) + i % 2)) for i in range(12)]
        found.append([*results, seen.payload, tw.get_rng_state()])
    assert_all_same_bits(*found, "state")
    assert always["rests"] > 5


def test_a_loop_has_a_path_per_number_of_iterations(always):
    def halved(x):
        y = x @ x.T
        while y.sum() > 1:
            y = y / 2
        return y

    f = guarded(halved)
    for k in (1, 9, 3, 5, 9, 20, 2, 0, 7, 20) * 2:
        assert_same_bits(f(X * k), halved(dynamic.tensor(X * k)).payload, str(k))
    assert always["rests"]


def test_printing_before_the_decision_is_not_repeated(always, capsys):
    def f(x):
        static.print(x.sum())
        if x.sum() > 0:
            return x * 2
        static.print("below")
        return x

    f = guarded(f)
    for sign in (1, -1, 1, -1):
        f(np.float32([sign]))
    assert capsys.readouterr().out.split() == ["tensor(1.)", "tensor(-1.)", "below"] * 2
    assert not always["rests"], "what is printed belongs to the whole path"


def test_it_is_made_where_it_pays_and_the_path_changes(monkeypatch):
    count = counting(monkeypatch)

    def f(x):
        for _ in range(3):
            x = (x @ weight).tanh()
        return x * 2 if x.sum() > 0 else x - 1

    weight = np.eye(160, dtype=F32)

    def made(g):
        return [x.fork is not None for x in g._forks.values()]

    small, large = guarded(f), guarded(f)
    few, many = np.ones((2, 160), F32), np.ones((200, 160), F32)
    for g, x in ((small, few), (large, many)):
        for sign in (1, 1, -1, -1):  # the first change is a new path, as many functions have one once
            g(x * sign)
        assert made(g) == [False]
        g(x)
    assert (made(small), made(large)) == ([False], [True])
    assert len(small._after) == 1
    calls = forks.STEADY + 5
    for _ in range(calls):
        assert_same_bits(large(many), f(dynamic.tensor(many)).payload, "steady")
    assert 0 < count["rests"] < calls
    assert large._last is not None, "the whole path is tried first again"
    before = count["rests"]
    large(-many)
    large(many)
    assert count["rests"] == before + 1


def test_a_new_path_and_new_facts(always):
    layer = dynamic.nn.Linear(6, 6)

    def f(x):
        h = layer(x)
        s = h.sum().item()
        if s > 10:
            return h * 3
        return h if s > 0 else -h

    g = guarded(f)

    def check(scale):
        with dynamic.no_grad():
            x = np.abs(X) * scale * F32(np.sign(layer.weight.sum().item()))
            assert_same_bits(g(x), f(dynamic.tensor(x)).payload, str(scale))

    for scale in (0.01, -1, 0.01, -1, 100, -1, 100, 0.01):
        check(scale)
    layer.weight = dynamic.nn.Parameter(W)
    for scale in (-1, 100, -1, 100):
        check(scale)
    assert always["rests"] > 4
