"""`control_flow="guard"`: what is traced when, what a run on another path leaves as it was, what is refused."""

import math

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import IndexRangeError, ShapeError, TraceError
from common.core.tree import flatten
from common.tensor.leaf import Buffer
from tests import bits

X = np.array([1.0, 2.0, 3.0], np.float32)


def assert_same_bits(a, b):
    bits.assert_same_bits(a, b, "guarded")


def guarded(f, **options):
    return static.function(f, control_flow="guard", **options)


def branch(x):
    y = x * 2
    if x.sum().item() > 0:
        for _ in range(3):
            y = y.tanh() * x
    else:
        y = y - 1
    return y


@pytest.mark.parametrize("options", [{}, {"fuse": False}, {"interpret": True}])
def test_a_path_is_traced_when_it_first_occurs(options):
    f = guarded(branch, **options)
    for sign, traces in ((1, 1), (2, 1), (-1, 2), (1, 2), (-2, 2)):
        assert_same_bits(f(X * sign), branch(dynamic.tensor(X * sign)).payload)
        assert len(f.traces) == traces
    assert [(path.shared, path.runs) for path in f.explain().paths] == [(0, 3), (0, 2)]
    assert "if x.sum().item() > 0:` is True" in f.explain().paths[0].decisions[0]
    assert "False for the first time" in f.retraces[0]


def halved(x):
    n = 0
    while x.sum() > 1:
        x = x / 2
        n += 1
    return x * n + int(x.sum() * 3)


def test_a_loop_has_a_path_per_number_of_iterations():
    f = guarded(halved)
    for k in (1, 9, 3, 5, 9, 20, 2, 0, 7, 20):
        assert_same_bits(f(X * k), halved(dynamic.tensor(X * k)).payload)
    paths = f.explain().paths
    assert sum(path.runs for path in paths) == 10
    assert len({path.decisions for path in paths}) == len(paths) == len(f.traces)
    assert sum(len(path.decisions) - path.shared for path in paths) < sum(len(path.decisions) for path in paths)
    steps = {path.decisions[: i + 1] for path in paths for i in range(len(path.decisions))}
    shown = str(f.explain()).split("\npaths:")[1].split("\nretraces:")[0]
    assert shown.count(" is ") == len(steps), "a common beginning is shown once"


def test_new_sizes_and_both_paths_make_plans_only():
    f = guarded(lambda x: x * 2 if x.sum() > 0 else x - 1)
    for n in (3, 4, 9, 3, 4):
        for sign in (1, -1):
            f(np.full(n, sign, np.float32))
    assert (len(f.traces), f.plans_made) == (2, 6)


def test_what_is_not_on_the_path_has_no_effect():
    """State, gradients and the generator are as if only the right path had run."""

    def build(tw):
        tw.manual_seed(0)
        model = tw.nn.Linear(3, 2)
        optimizer, clipped = tw.optim.Adam(model.parameters(), lr=0.1), Buffer(np.zeros((), np.float32))

        @tw.function(control_flow="guard")
        def step(x):
            optimizer.zero_grad()
            loss = (model(tw.dropout(x, 0.3)) ** 2).sum()
            loss.backward()
            norm = sum((p.grad * p.grad).sum() for p in model.parameters()) ** 0.5
            if norm.item() > 5:
                with tw.no_grad():
                    for p in model.parameters():
                        p.grad.mul_(5 / norm)
                    clipped.add_(1)
            if loss.item() < 1e9 and loss > 0.5:
                optimizer.step()
            return loss

        return step, [*model.parameters(), clipped]

    results = []
    for tw in (dynamic, static):
        step, state = build(tw)
        losses = [np.array(step(X * (i % 7) - i % 3).payload if tw is dynamic else step(X * (i % 7) - i % 3))
                  for i in range(30)]  # fmt: skip
        results.append([*losses, *(x.payload for x in state), *(x.grad.payload for x in state[:2]), tw.get_rng_state()])
    for a, b in zip(*results, strict=True):
        assert_same_bits(np.asarray(b), np.asarray(a))
    assert len(step.traces) == 4
    assert 0 < state[-1].payload < 30


def test_gradients_of_calls_with_history():
    def f(x, w):
        y = (x * w).sum()
        return (x * w).sin().sum() if y > 0 else (x * x * w).sum()

    both = guarded(f), dynamic.function(f)
    for sign in (1, -1, -2, 3):
        given = [[dynamic.tensor(a, requires_grad=True) for a in (X * sign, X)] for _ in both]
        for call, operands in zip(both, given, strict=True):
            call(*operands).backward()
        for a, b in zip(*given, strict=True):
            assert_same_bits(a.grad.payload, b.grad.payload)
    assert len(both[0].traces) == 2
    first = static.function(static.grad(lambda x: f(x, x)), control_flow="guard")
    for sign in (1, -1):
        assert_same_bits(first(X * sign), dynamic.function(dynamic.grad(lambda x: f(x, x)))(X * sign).payload)


def test_what_may_fail_or_never_end_waits_for_the_decision_before_it():
    f = guarded(lambda x, i: x[i] if i.max() < 3 else x * 0)
    assert f(X, np.array([0, 2])).tolist() == [1, 3]
    assert f(X, np.array([5, 6])).tolist() == [0, 0, 0]
    with pytest.raises(IndexRangeError):
        guarded(lambda x, i: x[i] if i.max() < 9 else x)(X, np.array([7]))

    def root(x):
        if x.min() > 0:
            return static.while_loop(lambda y: (y < 100).all(), lambda y: y * 2, x)
        return x

    f = guarded(root)
    assert f(X).max() >= 100
    assert f(-X).tolist() == [-1, -2, -3], "the first path would run forever"


def test_a_check_behind_a_decision_waits_for_it_though_it_could_run_before():
    """Nodes that write state wait, here also those that decide; the check of the index does not overtake them."""
    seen = Buffer(np.zeros(3, np.float32))

    @static.function(control_flow="guard")
    def f(x, i):
        with static.no_grad():
            seen.copy_(x * 2)
        return x[i] if seen.sum() > 0 else x * 0

    assert f(X, np.array([0, 2])).tolist() == [1, 3]
    assert f(-X, np.array([5, 6])).tolist() == [0, 0, 0]
    assert seen.payload.tolist() == [-2, -4, -6]


def test_numbers_of_items_are_pythons_own():
    assert guarded(lambda x: {2: x, 3: x * 2}.get(x.sum().long().item(), x * 0))(X / 2).tolist() == [1, 2, 3]
    f = guarded(lambda x: 1.0 / x.sum().item() * x)
    assert_same_bits(f(X), np.asarray(1.0 / np.float64(6) * X, np.float32))
    with pytest.raises(ZeroDivisionError):
        f(X * 0)
    counts = guarded(lambda n, x: sum((x * i for i in range(n.item())), start=x * 0))
    for n in (0, 3, 1, 3):
        assert counts(np.array(n), X).tolist() == (X * sum(range(n))).tolist()
    assert len(counts.traces) == 3
    assert guarded(lambda x: x * sum(x.tolist()))(X).tolist() == [6, 12, 18]
    assert guarded(lambda x: x * int(x.sum() / 4))(X).tolist() == [1, 2, 3]
    power = guarded(lambda x: x * x.sum().item() ** 0.3)
    assert_same_bits(power(X), (dynamic.tensor(X) * 6.0**0.3).payload)
    with pytest.raises(ShapeError, match="ambiguous"):
        guarded(lambda x: x if x > 0 else -x)(X)


def test_budget_and_refusals_name_the_line():
    f = guarded(lambda x: x * math.sin(x.sum()), max_traces=3)
    for k in range(3):
        f(X * k)
    with pytest.raises(TraceError, match=r"3 times, its max_traces(.|\n)*test_guard.py:\d+ `.*math.sin.*is 18.0 for"):
        f(X * 3)
    with pytest.raises(TraceError, match=r"test_guard.py:\d+(.|\n)*control_flow=.guard"):
        static.function(branch)(X)
    inside = guarded(lambda x: static.scan(lambda h, v: (h + v if v > 0 else h, None), x[0], x)[0])
    with pytest.raises(TraceError, match="inside a loop, a branch or a backward pass"):
        inside(X)
    with pytest.raises(TraceError, match="formatted"):
        guarded(lambda x: x * len(f"{x.sum().item():.3f}"))(X)
    with pytest.raises(TraceError, match="elements"):
        guarded(lambda x: x * x.numpy())(X)


def test_a_value_from_outside_may_decide_in_a_loop():
    def f(x):
        total = x.sum()
        return static.fori_loop(0, 3, lambda _, y: y + x if total > 0 else y - x, x)

    g = guarded(f)
    assert [g(X * s).tolist() for s in (1, -1)] == [[4, 8, 12], [2, 4, 6]]


def test_debugging_follows_the_path_of_the_call():
    f = guarded(branch)
    for x in (X, -X):
        assert static.compare(f, (x,)) is None
        assert static.nan_watch(f, x) is None
    f(X)
    with dynamic.autograd.detect_anomaly():
        assert f(dynamic.tensor(-X)).tolist() == (-X * 2 - 1).tolist()
    assert "expect(" in f.source


@pytest.mark.parametrize("transform", ["grad", "value_and_grad", "jacrev", "hessian", "jvp", "vjp"])
def test_transforms_of_a_guarded_function_are_guarded(transform):
    def f(x):
        return (x * x * x).sum() if x.sum().item() > 0 else (x * x).sum()

    def applied(tw, f, x):
        make = getattr(tw, transform, None) or getattr(tw.func, transform)
        if transform == "jvp":
            return flatten(make(f, (x,), (x,)))[0]
        if transform == "vjp":
            y, pullback = make(f, x)
            return flatten((y, pullback(y)))[0]
        return flatten(make(f)(x))[0]

    for x in (X, -X):
        eager = applied(dynamic, f, dynamic.tensor(x))
        for got, expected in zip(applied(static, guarded(f), x), eager, strict=True):
            assert_same_bits(got, expected)
    twice = static.grad(lambda x: static.grad(guarded(f))(x).sum(), 0)
    with pytest.raises(TraceError, match="guard"):
        twice(X)
    again = static.func.jacrev(static.func.jacrev(guarded(f)))
    assert_same_bits(again(-X), np.diag(np.full(3, 2, np.float32)))
