"""The profiler: what it measures, that it changes nothing, and that it is gone afterwards."""

import inspect
import json
import threading
import time

import numpy as np
import pytest

import dynamic as tw
import static
from common.core import mode
from common.core.errors import ArgumentError
from common.tensor import hook_handles
from dynamic.profiler import profile, record_function


def leaf(*values):
    return tw.tensor(list(values), requires_grad=True)


def names(p, kind=None):
    return [e.name for e in p.events() if kind in (None, e.kind)]


def test_ops_and_rules_in_their_order():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with profile() as p:
        line = inspect.currentframe().f_lineno + 1
        y = (x * w).sum()
        y.backward()
    assert names(p) == ["mul", "sum", "ones_like", "backward", "SumBackward0", "MulBackward0"]
    mul, total, _, whole, *rules = p.events()
    assert (mul.input_shapes, total.input_shapes) == ([[2], [2]], [[2]])
    assert mul.source[:2] == rules[1].source[:2] == (__file__, line)
    assert whole.source[:2] == (__file__, line + 1)
    assert [e.sequence_nr for e in rules] == [total.sequence_nr, mul.sequence_nr]
    assert total.sequence_nr == y.grad_fn._sequence_nr()
    assert whole.start_ns <= rules[0].start_ns < rules[0].end_ns <= rules[1].start_ns < rules[1].end_ns <= whole.end_ns


def test_times_are_those_of_a_clock():
    x = tw.zeros(1000, 1000)
    x.exp()
    with profile() as p:
        start = time.perf_counter_ns()
        for _ in range(3):
            x.exp()
        wall = (time.perf_counter_ns() - start) / 1e3
        with record_function("pause"):
            time.sleep(0.02)
    (ops, pause) = p.key_averages()
    assert (ops.key, ops.count) == ("exp", 3)
    assert 0.5 * wall <= ops.cpu_time_total <= wall
    assert ops.cpu_time == ops.cpu_time_total / 3
    assert pause.cpu_time_total >= 20_000


def test_time_inside_is_counted_once():
    x = leaf(1.0, 2.0)
    with profile() as p, record_function("outer"):
        with record_function("inner"):
            y = x * x
        y.sum().backward(create_graph=True)
    events = p.events()
    outer = events[0]
    assert names(p, "user") == ["outer", "inner"]
    assert events.self_cpu_time_total == pytest.approx(outer.cpu_time_total)
    assert all(0 <= e.self_cpu_time_total <= e.cpu_time_total for e in events)
    rule = next(e for e in events if e.name == "MulBackward0")  # its ops are recorded, and lie inside
    inside = [e for e in events if e.kind == "op" and rule.start_ns <= e.start_ns < rule.end_ns]
    assert inside
    assert rule.end_ns - rule.start_ns - rule.self_ns == sum(e.end_ns - e.start_ns for e in inside)


def test_an_op_that_converts_first_does_not_count_that():
    x, w = tw.zeros(300_000), tw.zeros(300_000, dtype=tw.float64)
    with profile() as p:
        _ = x * w
    assert names(p) == ["to", "mul"]
    to, mul = p.events()
    assert to.end_ns <= mul.start_ns


def program(x, w):
    y = (x * w).tanh() @ w
    low, high = y.split(1)
    z = tw.where(low > 0, high, low).exp().sum()
    z.backward()
    return z, x.grad, w.grad


def test_bits_are_those_of_a_run_without():
    def inputs():
        rng = np.random.default_rng(7)
        return [tw.from_numpy(rng.standard_normal((2, 2)).astype(np.float32)).requires_grad_() for _ in range(2)]

    plain = program(*inputs())
    with profile() as p:
        watched = program(*inputs())
    assert [a.numpy().tobytes() for a in map(tw.Tensor.detach, plain)] == [
        a.detach().numpy().tobytes() for a in watched
    ]
    assert {"MmBackward0", "SplitBackward0", "WhereBackward0"} <= set(names(p, "rule"))


def test_nothing_stays_behind(monkeypatch):
    monkeypatch.setattr(hook_handles, "hooks_seen", False)
    before = len(mode.tracing)
    with profile() as p:
        leaf(1.0).exp().sum().backward()
    count = len(p.events())
    leaf(1.0).exp().sum().backward()
    assert (len(mode.tracing), hook_handles.hooks_seen, mode.profiling.get()) == (before, False, None)
    assert len(p.events()) == count


def test_an_exception_in_a_rule_leaves_the_profile_whole():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: 1 / 0)
    with profile() as p, record_function("part"):
        with pytest.raises(ZeroDivisionError):
            y.sum().backward()
        x.exp()
    assert names(p, "user") == ["part"]
    assert names(p)[-1] == "exp"
    assert p.events().self_cpu_time_total == pytest.approx(p.events()[0].cpu_time_total)


def test_a_profile_sees_its_own_thread():
    def other():
        leaf(1.0).exp().backward()

    with profile() as p:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        leaf(1.0).sin()
    assert names(p) == ["sin"]


def test_as_decorators():
    p = profile()

    @p
    @record_function("step")
    def step():
        leaf(1.0).exp()

    step()
    step()
    assert names(p) == ["step", "exp"] * 2


def test_compiled_calls_and_regions():
    @static.function
    def compiled(a):
        return static.tanh(a) * 2

    @tw.function
    def region(x):
        return (x * x).exp()

    x = leaf(1.0, 2.0)
    with profile() as p:
        for _ in range(2):
            out = compiled(np.ones(3, np.float32))
        region(x).sum().backward()
    assert out.tolist() == compiled(np.ones(3, np.float32)).tolist()
    assert names(p, "compiled") == ["compiled"] * 2
    assert p.events()[0].input_shapes == [[3]]
    assert p.events()[0].source[0] == __file__
    assert names(p, "rule") == ["SumBackward0", "RegionBackward", "ExpBackward0", "MulBackward0"]


def test_the_table():
    x = leaf(1.0, 2.0)
    with profile() as p:
        for _ in range(3):
            _ = x * x
        x[:1].exp()
        x.exp()
    rows = p.key_averages()
    assert [(e.key, e.count) for e in rows if e.key != "view"][:1] == [("mul", 3)]
    text = rows.table(sort_by="count", row_limit=1)
    assert len(text.splitlines()) == 6
    assert text.splitlines()[3].split()[0] == "mul"
    assert text.splitlines()[3].endswith(" 3")
    shaped = p.key_averages(group_by_input_shape=True)
    assert [e.input_shapes for e in shaped if e.key == "exp"] == [[[1]], [[2]]]
    assert "[[2], [2]]" in str(shaped)
    by_line = p.key_averages(group_by_stack_n=1)
    assert len([e for e in by_line if e.key == "exp"]) == 2
    assert f"{__file__}(" in str(by_line)
    assert p.table() == str(rows)
    with pytest.raises(ArgumentError, match="sort_by should be one of"):
        rows.table(sort_by="cuda_time")
    assert "Self CPU time total: " in profile().table()


def test_arrows_lead_from_ops_to_their_rules(tmp_path):
    x = leaf(1.0, 2.0)
    with profile() as p:
        y = (x * x).exp().sum()
        y.backward(retain_graph=True)
        y.backward()
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    at = {(e["ts"], e["name"]): e["args"]["Sequence number"] for e in events if "Sequence number" in e.get("args", ())}
    arrows = {}
    for e in events:
        if e["ph"] in "sf":
            assert e["cat"] == "fwdbwd"
            (found,) = [(name, number) for (ts, name), number in at.items() if ts == e["ts"]]
            arrows.setdefault(e["id"], []).append(found)
    names = [(a[0], b[0]) for a, b in arrows.values()]
    assert names == [("sum", "SumBackward0"), ("exp", "ExpBackward0"), ("mul", "MulBackward0")] * 2
    assert all(a[1] == b[1] for a, b in arrows.values())
