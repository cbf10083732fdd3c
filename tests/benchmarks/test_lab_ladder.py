"""The ladder: the same bits on every rung, and segments that add up to the eager call."""

from types import SimpleNamespace

import numpy as np
import pytest

import dynamic
import static
from benchmarks import bits
from benchmarks.lab import allocations, console, explaining, limits, rungs, waterfall
from benchmarks.lab import ladder as ladders
from benchmarks.lab.command import run_parser
from benchmarks.lab.target import Target, UserProgram
from benchmarks.lab.ways import Way
from static.tools.kernels_apart import kernels_apart

FILE = """
import numpy as np
import dynamic as tw

def loss(x, w):
    return ((x @ w).tanh() ** 2).mean()

def loop(x):
    return tw.fori_loop(0, 5, lambda i, s: (s * x).tanh(), x)

def told(x):
    tw.print("sum {}", x.sum())
    return x * 2

def scanned(rows, c):
    return tw.scan(lambda c, a: (c * a + a, None), c, rows)[0]

def written(rows, c):
    for a in rows:
        c = c * a + a
    return c

def wrong(x):
    return x + (1e-3 if "static" in tw.__name__ else 0.0)

def make_drawing():
    w = tw.tensor(np.random.rand(6), requires_grad=True)
    def step():
        noisy = tw.nn.functional.dropout(w, 0.5) + tw.randn(6)
        return noisy.square().sum()
    return step

class Net(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = tw.nn.Linear(6, 5), tw.nn.Linear(5, 2)

    def forward(self, x):
        return self.b(self.a(x).relu())
"""
ENGINES = {"dynamic": dynamic, "static": static}


@pytest.fixture
def user(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return lambda name, **options: UserProgram(Target(str(path), name, **options), dynamic)


def climbed(workload):
    return ladders.ladder(workload, ENGINES, 0.05, 1, False, lambda text: None)


PROGRAMS = {
    "loss": ({"args": "f32[8,6], f32[6,3]"}, True, True),
    "loss with gradient": ({"args": "f32[8,6], f32[6,3]", "grad": True}, False, True),
    "Net": ({"args": "f32[8,6]", "optimizer": "Adam(lr=0.01)"}, False, True),
    "loop": ({"args": "f32[16]"}, True, False),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_segments_of_the_waterfall_add_up_to_the_eager_call(user, name):
    options, has_tapeless, has_kernels = PROGRAMS[name]
    found = climbed(user(name.partition(" ")[0], **options))
    names = [rung["name"] for rung in found["rungs"]]
    assert (rungs.NO_GRAD in names) is has_tapeless
    assert names[-5:] == list(rungs.STATIC)
    eager = found["rungs"][0]["call"]["value"]
    assert sum(segment["value"] for segment in found["waterfall"]) == pytest.approx(eager)
    assert found["waterfall"][-1]["name"] == "remainder"
    timed = [kernel for kernel in found["kernels"] if "seconds" in kernel]
    assert bool(timed) is has_kernels
    counts = {rung["name"]: rung["kernel_calls"] for rung in found["rungs"]}
    assert counts[rungs.FUSED] <= counts[rungs.SINGLE]
    allocated = {rung["name"]: rung["allocations"] for rung in found["rungs"]}
    assert 1 <= allocated[rungs.PLANNED] <= allocated[rungs.RECORDING]
    moved = {rung["name"]: rung["moved_bytes"] for rung in found["rungs"]}
    assert moved[rungs.FUSED] <= moved[rungs.SINGLE]


def test_arrays_are_counted_and_live_on():
    x = dynamic.tensor(np.ones((30, 30), np.float32))
    f = static.function(lambda x: (x * 2 + 1).tanh().sum())
    calls = {4: lambda: (x * 2 + 1).tanh().sum(), 1: lambda: f(x), 2: lambda: np.zeros(3).copy(), 0: lambda: None}
    for expected, call in calls.items():
        call()
        with allocations.counted() as found:
            result = call()
        assert found.arrays == expected
        with allocations.counted() as found:
            pass
        assert found.arrays == 0
        del result  # frees what the other allocator made
    with pytest.raises(ZeroDivisionError), allocations.counted():
        1 / 0  # noqa: B018
    grown = np.empty(2)
    with allocations.counted() as found:
        grown.resize(1000, refcheck=False)
    assert found.arrays == 0
    assert grown.size == 1000


def test_each_rung_draws_what_the_first_draws(user):
    workload = user("make_drawing")
    assert len(ladders.check(workload, dynamic, static)) == 7
    assert list(bits.mismatches(workload, dynamic, static)) == []
    seeded = dynamic.get_rng_state()
    assert list(bits.mismatches(workload, dynamic, static)) == []
    assert np.array_equal(dynamic.get_rng_state(), seeded)


def test_a_difference_on_a_rung_ends_the_ladder_before_anything_is_timed(user, monkeypatch):
    monkeypatch.setattr(ladders.measure, "interleave", None)  # would fail if it were called
    with pytest.raises(ladders.NotTheSame, match="graph, node by node: step 1: result"):
        climbed(user("wrong", args="f64[4]"))


def test_a_rung_that_only_the_state_tells_apart_is_found(user, monkeypatch):
    workload = user("Net", args="f32[8,6]", optimizer="SGD(lr=0.1)")
    first, *_, last = rungs.climb(workload, dynamic, static)
    last.program.named_parameters[0][1].data[0, 0] += 1e-3
    assert rungs.differences(workload, first, last)


def test_a_program_that_calls_python_has_no_kernels_apart(user, capsys):
    found = climbed(user("told", args="f32[4]"))
    assert "the compiled call" in [segment["name"] for segment in found["waterfall"]]


def test_kernels_apart_work_on_copies():
    model = static.nn.Linear(3, 2)
    optimizer = static.optim.SGD(model.parameters(), lr=0.1)

    @static.function
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = np.ones((4, 3), np.float32)
    step(x)
    step(x)
    apart = kernels_apart(step, x)
    before = model.weight.detach().numpy().copy()
    for _ in range(3):
        assert [run() for run in apart.each] == [0] * len(apart.each)
        assert apart.whole() == apart.empty() == 0
    assert np.array_equal(before, model.weight.detach().numpy())
    assert len(apart.each) == len(step.explain().kernels)


def test_kernels_whose_results_are_kept_do_nothing():
    step = static.function(lambda x: (x * static.exp(static.arange(x.shape[0]).float() / 9)).sum())
    x = np.ones(40, np.float32)
    step(x)
    apart = kernels_apart(step, x)
    kept = [kernel.kept for kernel in step.explain().kernels]
    assert [run is apart.empty for run in apart.each] == kept == [True, True, False]
    assert [run() for run in apart.each] == [0, 0, 0]
    assert apart.whole() == 0


def test_each_kernel_is_timed_where_the_program_has_it():
    """A kernel alone, over and over, would read indices where later results lie: a pooling's gradient crashed."""
    order = []
    apart = SimpleNamespace(each=[lambda i=i: order.append(i) for i in range(5)], empty=lambda: None)
    found = ladders._each(apart, 0.0)
    assert [len(samples) for samples in found] == [7] * 5
    assert order == list(range(5)) * (len(order) // 5)


@pytest.mark.parametrize("length", [3, 7])
def test_what_a_loop_moves_is_counted_as_often_as_it_iterates(user, length):
    """A scan by hand: in the graph it has `length` times the bytes of its body, and so have its kernels."""
    scanned = climbed(user("scanned", args=f"f32[{length},6], f32[6]"))
    written = climbed(user("written", args=f"f32[{length},6], f32[6]"))
    for name in ("graph, node by node", rungs.SINGLE):
        ours, theirs = ({r["name"]: r for r in found["rungs"]}[name] for found in (scanned, written))
        assert ours["flops"] == theirs["flops"] == 2 * 6 * length
        assert theirs["moved_bytes"] <= ours["moved_bytes"] <= 2 * theirs["moved_bytes"]


def test_a_way_keeps_what_it_made_and_overrules_options():
    way = Way(static, fuse=False)
    f = way.function(lambda x: x * 2 + 1, fuse=True)
    assert f.options.fuse is False
    assert way.made == [f]
    assert way.nn is static.nn


def test_limits_are_of_this_machine():
    assert limits.bandwidth(static, 1000) > 0
    assert limits.bandwidth(static, 1000) == limits.bandwidth(static, 1000)
    assert limits.peak(static, "float64") > 0


def test_differences_of_medians_add_up():
    rng = np.random.default_rng(0)
    samples = {name: 1e-6 * rng.lognormal(size=50) * k for k, name in enumerate(
        [*rungs.STATIC, rungs.RECORDING, rungs.NO_GRAD, waterfall.KERNELS, waterfall.EMPTY], 1)}  # fmt: skip
    shares = waterfall.waterfall(samples, [], [], {})
    assert sum(s["value"] for s in shares) == pytest.approx(np.median(samples[rungs.RECORDING]))
    assert all(s["low"] <= s["value"] <= s["high"] for s in shares[:-1])


@pytest.mark.parametrize("wide", [40, 60, 90])
def test_a_table_that_does_not_fit_goes_on_below(monkeypatch, wide):
    monkeypatch.setattr(console, "width", lambda: wide)
    names = ["rung", "per call", "as fast", "kernels", "moves", "arrays", "peak"]
    rows = [["graph, node by node", *(f"{k} things" for k in range(6))], ["eager", *"abcdef"]]
    lines = console.columns(rows, names)
    assert all(len(line) <= wide for line in lines)
    assert all(any(cell in line for line in lines) for row in (names, *rows) for cell in row)
    assert lines.count("") == {40: 5, 60: 1, 90: 0}[wide]


def test_the_terminal_shows_every_rung_in_eighty_columns(user, capsys):
    found = climbed(user("loss", args="f32[8,6], f32[6,3]"))
    phases = {"import": 0.4, "build": 0.1, "trace": 0.2, "passes": 0.1, "lower": 0.1, "kernels": 0.7, "disk": 0.1}
    found["once"] = {"dynamic": {"cold": {"import": 0.4, "first call": 2.0}}, "static": {"cold": phases}}
    explaining.show("mine:loss", found)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert all(
        any(line.strip().startswith(name) for line in lines) for name in (*rungs.STATIC, "remainder", "static cold")
    )


def test_explain_takes_what_run_takes():
    options = run_parser("explain").parse_args(["a.py:f", "--args", "f32[3]", "--threads", "2"])
    assert (options.targets, options.threads) == (["a.py:f"], 2)
