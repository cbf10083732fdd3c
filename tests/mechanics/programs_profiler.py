"""The profiler's shape."""

import json
import tempfile
from pathlib import Path


def _profiled(tw, **options):
    x = tw.tensor([[1.0, 2.0]], requires_grad=True)
    kinds = tw.profiler.ProfilerActivity
    with tw.profiler.profile(activities=[kinds.CPU], **options) as p, tw.profiler.record_function("my part"):
        (x * x).tanh().sum().backward()
    return p


def averages_and_table(tw):
    found = {e.key.removeprefix("aten::"): e for e in _profiled(tw).key_averages()}
    assert {"mul", "tanh", "sum", "my part", "MulBackward0", "TanhBackward0"} <= set(found)
    assert found["my part"].count == 1
    assert found["my part"].cpu_time_total >= found["tanh"].cpu_time_total > 0
    assert found["my part"].cpu_time_total > found["my part"].self_cpu_time_total
    table = _profiled(tw).key_averages().table(sort_by="cpu_time_total", row_limit=100)
    for text in ("Name", "Self CPU %", "CPU total", "CPU time avg", "# of Calls", "Self CPU time total: ", "my part"):
        assert text in table
    assert "Input Shapes" in _profiled(tw, record_shapes=True).key_averages(group_by_input_shape=True).table()


def chrome_trace_with_arrows(tw):
    p = _profiled(tw)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        p.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    names = [e["name"] for e in events if e.get("ph") == "X"]
    assert "my part" in names
    assert any(name.endswith("MulBackward0") for name in names)
    starts = {e["id"] for e in events if e.get("ph") == "s" and e["cat"] == "fwdbwd"}
    ends = {e["id"] for e in events if e.get("ph") == "f" and e["cat"] == "fwdbwd"}
    assert starts == ends
    assert starts


def _steps(tw, count, **plan):
    """Per call of on_trace_ready the step, and how often what was recorded."""
    ready = []

    def note(p):
        found = {e.key.removeprefix("aten::"): e.count for e in p.key_averages()}
        ready.append((p.step_num, found.get("mul", 0), found.get("tanh", 0)))

    x, profiler = tw.tensor([1.0, 2.0]), tw.profiler
    plan = profiler.schedule(**plan)
    kinds = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=kinds, schedule=plan, on_trace_ready=note) as p:
        for step in range(count):
            y = x * step
            if step % 2:
                y.tanh()
            p.step()
    return ready


def scheduled_steps(tw):
    plan = tw.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(step).name for step in range(10)] == [
        "NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE",
    ]  # fmt: skip
    assert _steps(tw, 10, wait=1, warmup=1, active=2, repeat=2, skip_first=1) == [(5, 2, 1), (9, 2, 1)]
    assert _steps(tw, 4, wait=0, warmup=1, active=5, repeat=1) == [(4, 3, 2)]


def events_and_options_of_the_table(tw):
    layer, x = tw.nn.Linear(4, 3), tw.randn(5, 4)
    with tw.autograd.profiler.profile(record_shapes=True) as p, tw.autograd.profiler.record_function("outer"):
        (layer(x) * 2).tanh()
    found = [e for e in p.function_events if e.name.removeprefix("aten::") in ("mul", "tanh")]
    assert [e.name.removeprefix("aten::") for e in found] == ["mul", "tanh"]
    assert found[1].input_shapes == [[5, 3]]
    assert str(p) == p.table()
    assert "outer" in str(p)
    assert p.self_cpu_time_total > 0
    table = p.table(header="TITLE", row_limit=10, max_src_column_width=300, max_name_column_width=20)
    assert "TITLE" in table
    top = p.table(top_level_events_only=True)
    assert "outer" in top
    assert "tanh" not in top
