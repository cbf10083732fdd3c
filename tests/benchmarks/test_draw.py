"""The picture of a run: what it shows is what was measured."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import draw, stats, store
from benchmarks.draw import _total


def workload(name, static_call, static_once):
    """A record of an engine that takes 1 ms a call, after 0.1 s from the disk, and of another one."""
    eager, compiled, eager_once, compiled_once = ([np.full(5, x)] for x in (1e-3, static_call, 0.1, static_once))
    after = stats.break_even(*eager, *compiled, *eager_once, *compiled_once)
    once = {"dynamic": 0.1, "static": static_once}
    return {
        "name": name,
        "call": {"dynamic": {"value": 1e-3}, "static": {"value": static_call}},
        "once": {e: {"cold": {"value": 9 * s}, "disk": {"value": s}} for e, s in once.items()},
        "break_even": {"cold": after.as_json(), "disk": after.as_json()},
    }


RECORD = {"workloads": [workload("never", 2e-3, 0.2), workload("sooner", 5e-4, 0.2), {"name": "threads", "call": {}}]}


def test_engines_have_cost_the_same_where_compiling_has_paid_off():
    after = RECORD["workloads"][1]["break_even"]["disk"]["value"]
    assert after == 200
    assert _total(RECORD["workloads"][1], "static", "disk", after) == _total(
        RECORD["workloads"][1], "dynamic", "disk", after
    )
    assert RECORD["workloads"][0]["break_even"]["disk"]["value"] is None


def test_a_panel_per_workload_with_one_off_costs(tmp_path, capsys):
    path = tmp_path / "run.json"
    store.save(path, RECORD)
    assert draw.main([str(path), "--to", str(tmp_path / "a.svg")]) == 0
    texts = [e.text for e in ElementTree.parse(tmp_path / "a.svg").iter() if e.tag.endswith("}text")]
    assert {"never", "sooner", "dynamic, empty cache", "static, from the disk cache"} <= {*texts}
    assert texts.count("compiling has paid off") == 1  # also if only the second panel has the mark
    assert "threads" not in texts
    assert str(path) in capsys.readouterr().out
    text = (tmp_path / "a.svg").read_text("utf-8")
    dark = text[text.index("@media (prefers-color-scheme: dark)") : text.index("</style>")]
    styles = " ".join(re.findall('style="([^"]*)"', text))
    for color in (*draw.COLORS.values(), "#ffffff", "#000000"):  # each has another one on a dark page
        assert color in styles
        assert re.search(f'{color}"] {{ (fill|stroke): #\\w+ !important', dark)
    draw.draw(RECORD, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()  # nothing of the clock in it


def test_what_cannot_be_drawn(tmp_path, capsys, monkeypatch):
    path = tmp_path / "run.json"
    store.save(path, {"workloads": RECORD["workloads"][2:]})
    assert draw.main([str(path)]) == 2
    assert "one-off costs" in capsys.readouterr().err
    assert draw.main([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
    store.save(path, RECORD)
    assert draw.main([str(path), "--to", str(tmp_path / "a.nonsense")]) == 2
    assert "nonsense" in capsys.readouterr().err
    monkeypatch.setattr(store, "default_path", lambda: tmp_path / "runs" / "run-2.json")
    monkeypatch.setattr("sys.argv", ["benchmarks", "draw", "--to", str(tmp_path / "a.svg")])
    assert command.main() == 2
    assert "`python3 -m benchmarks` makes one" in capsys.readouterr().err
    for name in ("run-2.json", "run-10.json"):
        store.save(tmp_path / "runs" / name, RECORD)
    assert store.newest().name == "run-2.json"  # names sort by time
    assert command.main() == 0


@pytest.mark.parametrize("name", ["a.png", "a.pdf"])
def test_other_formats(tmp_path, name):
    draw.draw(RECORD, tmp_path / name)
    assert (tmp_path / name).stat().st_size > 10_000
