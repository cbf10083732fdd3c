"""Pages: one file each that asks for nothing else, and whose parts are linked by nodes and lines."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import dynamic
import static
from benchmarks import machine
from benchmarks.lab import command as laboratory
from benchmarks.lab import ladder as ladders
from benchmarks.lab.html import bars, charts, report, semantics, stages
from benchmarks.lab.target import Target, UserProgram

FILE = """
import dynamic as tw

class Net(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = tw.nn.Linear(6, 5), tw.nn.Linear(5, 2)

    def forward(self, x):
        h = self.a(x).tanh()
        return self.b(h)
"""
ENGINES = {"dynamic": dynamic, "static": static}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "mine.py"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def workload(path):
    return UserProgram(Target(str(path), "Net", "f32[8,6]", optimizer="SGD(lr=0.1)"), dynamic)


@pytest.fixture(scope="module")
def record(workload):
    found = ladders.ladder(workload, ENGINES, 0.05, 1, False, lambda text: None)
    found["once"] = {e: {s: {"import": 0.2, "first call": 0.5} for s in ("cold", "disk")} for e in ENGINES}
    told = {
        "name": workload.name,
        "key": workload.key,
        "title": workload.title,
        "bits_equal": True,
        "unstable": ["x: y"],
    }
    return {"machine": machine.describe(), "workloads": [{**told, "ladder": found}]}


class Reader(HTMLParser):
    """Notes what a page asks for, and whether its elements are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.asks, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.asks += [given[name] for name in ("src", "href", "action") if name in given]
        self.ids.append(given)
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_a_report_is_one_file_that_asks_for_nothing(record):
    page = report.page(record, ENGINES)
    assert len(page.encode()) < 2_000_000
    assert read(page).asks == []
    assert "default-src 'none'" in page
    assert re.findall(r"https?://(?!www\.w3)", page) == []
    for part in ("I will call it", "Where the eager call", "One-off cost by phase", "Memory over time", "What differs",
                 "From your line to the machine", "does not show", "UNSTABLE: x: y", "prefers-color"):  # fmt: skip
        assert part in page


def test_a_page_of_several_programs_begins_with_links_to_them(record):
    (one,) = record["workloads"]
    text = report.page({**record, "workloads": [one, {**one, "name": "again"}]}, ENGINES)
    found = read(text)
    assert found.asks == ["#p1", "#p2"]
    assert {"p1", "p2"} <= {given.get("id") for given in found.ids}
    assert text.count("again: static is") == 2


def test_files_that_measure_are_not_shown_as_the_users(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text("def f(x):\n    return (x * x).sum()\n")
    gradient = UserProgram(Target(str(path), "f", "f32[6]", grad=True), dynamic)
    assert [file["name"] for file in stages.stages(gradient, dynamic, static)["source"]] == ["plain.py"]


def test_what_belongs_together_shares_a_mark(workload):
    found = stages.stages(workload, dynamic, static)
    (file,) = [f for f in found["source"] if f["name"] == "mine.py"]
    number = FILE.splitlines().index("        h = self.a(x).tanh()") + 1
    (row,) = [r for r in file["rows"] if r["line"] == number]
    nodes = {n["id"]: n for n in found["raw"]}
    told = {(nodes[i]["op"], nodes[i]["phase"]) for i in row["ids"]}
    assert ("tanh", "forward") in told
    assert any(phase == "backward" for _, phase in told)
    computed = {i for kernel in found["kernels"] for i in kernel["ids"]}
    after = {n["id"] for n in found["passes"][-1]["graph"]} if found["passes"] else set(nodes)
    assert computed <= after | set(nodes)
    assert any(kernel["refused"] for kernel in found["kernels"])
    assert any("def k_" in kernel["text"] for kernel in found["kernels"])
    assert any(e["name"] == "tanh" and e["line"] == number for e in found["eager"])
    assert [e for e in found["eager"] if e["kind"] == "rule"]


def test_a_pass_shows_what_went_and_what_came(workload):
    for one in stages.stages(workload, dynamic, static)["passes"]:
        assert one["about"]
        assert one["gone"] or one["come"]
        assert len(one["graph"]) <= one["after"]


def test_both_engines_run_the_cases_that_tell_them_apart():
    found = {case["title"]: case for case in semantics.compared(ENGINES)}
    effect = found["A side effect of Python's"]
    assert (effect["dynamic"], effect["static"]) == ("hello\nhello", "hello")
    assert "TraceError" in found["A branch on an element"]["static"]
    assert found["A branch on an element"]["dynamic"] == "tensor([2., 2.])"
    assert found["Another shape"]["static"].count("Python runs") == 1
    again = found["What is traced again, and why"]
    assert again["dynamic"] == "nothing: every call runs Python"
    assert again["static"].splitlines() == [
        "argument 1 is False, before True", "argument 0 is float32[*, *], before float32[*]",
    ]  # fmt: skip
    assert found["A nan"]["dynamic"] == found["A nan"]["static"]


def test_the_slider_has_the_figures_of_the_record(record):
    costs = report.costs_of(record["workloads"][0])
    assert costs["static"]["once"]["disk"] == pytest.approx(0.7)
    assert costs["dynamic"]["call"] == record["workloads"][0]["ladder"]["rungs"][0]["call"]
    marker = charts.cumulative(costs, "disk")
    assert 'class="marker"' in marker


def test_the_page_says_once_when_compiling_pays_off(workload):
    """The slider's answer has the number of the verdict: both are the record's."""
    ratio = {"value": 0.1, "low": 0.1, "high": 0.1}
    once = {s: {"value": 0.5, "low": 0.5, "high": 0.5} for s in ("cold", "disk")}
    told = {
        "name": "mine", "key": workload.key, "title": workload.title, "bits_equal": True,
        "once": dict.fromkeys(ENGINES, once), "call": dict.fromkeys(ENGINES, ratio), "static_over": {"dynamic": ratio},
        "unstable": ["busy: end it (`twingrad doctor`), or use --clock processor"],
        "break_even": {"disk": {"value": 231.0}, "cold": {"value": None}},
    }  # fmt: skip
    page = report.page({"machine": machine.describe(), "workloads": [told]}, ENGINES)
    (given,) = [given for given in read(page).ids if given.get("class") == "payoff"]
    assert json.loads(given["data-even"]) == {"disk": 231.0, "cold": None}
    assert "pays off after 231 calls" in page
    assert "(<code>twingrad doctor</code>), or use <code>--clock processor</code>" in page


def test_texts_of_charts_stay_inside_them_on_phones():
    value = dict.fromkeys(("value", "low", "high", "share"), 0.4)
    big = [{"name": f"loops and traffic that fusion saves {i}", "kind": "way", **value} for i in range(3)]
    big[0]["value"] = -0.4
    once = {e: {s: {"first call": 9.0, "import": 1.0} for s in ("cold", "disk")} for e in ENGINES}
    pieces = [{"name": "t", "nbytes": 123_456_789, "first": 0, "last": 5, "offset": 0}]
    costs = {
        e: {"once": {"cold": 1.0, "disk": 0.5}, "call": dict.fromkeys(("value", "low", "high"), 0.1)} for e in ENGINES
    }
    sheet = (Path(report.__file__).parent / "page.css").read_text()
    letter = 0.55 * int(re.search(r"max-width: 40rem\) { .chart { font-size: (\d+)px", sheet).group(1))
    drawn = [
        bars.waterfall(big, 1.0), bars.phases(once), bars.arena(pieces), charts.cumulative(costs, "cold"),
        charts.sweep([(10.0, {"static": 1e-6}), (100.0, {"static": 1e-4})], "n"),
    ]  # fmt: skip
    for text in drawn:
        found = re.findall(r'<text [^>]*?x="([-\d.]+)" y="([-\d.]+)" text-anchor="(\w+)">([^<]*)', text)
        assert found
        for x, y, anchor, words in found:
            left = float(x) - {"start": 0, "middle": 0.5, "end": 1}[anchor] * letter * len(words)
            assert left >= 0, words
            assert left + letter * len(words) <= charts.WIDTH, words
            assert float(y) >= 15 or "end" not in anchor, words


def test_a_sweep_is_a_chart():
    estimate = {"value": 1e-6, "low": 1e-6, "high": 1e-6}
    key = '{{"file": "f", "name": "g", "sizes": {{"n": {}}}}}'
    workloads = [{"key": key.format(n), "call": {"dynamic": estimate, "static": estimate}} for n in (10, 100)]
    assert "overhead against size" in report._sweep(workloads)
    assert report._sweep(workloads[:1]) == ""


@pytest.mark.parametrize("name", ["page.html", "graph.svg", "graph.dot", "graph.txt", "graph.json"])
def test_a_graph_is_written_as_its_ending_says(path, tmp_path, name, capsys):
    words = [f"{path}:Net", "--args", "f32[8,6]", "--to", str(tmp_path / name)]
    assert laboratory.main("graph", words) == 0
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert "tanh" in text
    if name.endswith("html"):
        assert read(text).asks == []
        assert "Where the eager" not in text


def test_a_missing_extra_is_named(record, monkeypatch, tmp_path, capsys):
    from benchmarks import store

    store.save(tmp_path / "a.json", record)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert laboratory.main("report", [str(tmp_path / "a.json"), "--to", str(tmp_path / "r.html")]) == 2
    assert "pip install 'twingrad[lab]'" in capsys.readouterr().err


def test_files_of_pages_are_part_of_the_package():
    assert {p.name for p in Path(report.__file__).parent.glob("page.*")} == {"page.html.j2", "page.css", "page.js"}


def test_a_picture_is_data_too(tmp_path):
    x = dynamic.ones(2, requires_grad=True)
    picture = dynamic.autograd.graph.make_dot((x * x).exp().sum(), params={"x": x})
    told = json.loads(picture.save(tmp_path / "g.json").read_text())
    assert [item["label"] for item in told["items"]] == [item.label for item in picture.items]
    drawn = picture.to_networkx()
    assert drawn.number_of_nodes() == len(picture.items)
    assert sorted((a, b) for a, b, _ in drawn.edges) == sorted((made[0], reader[0]) for made, reader in picture.edges)
