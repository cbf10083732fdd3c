import doctest
import io
import math
import sys

import pytest

from benchmarks import store, terminal
from benchmarks.lab import progress


def test_a_record_of_another_schema_is_refused(tmp_path):
    for text in ('{"schema": 999}', "[]"):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(ValueError, match="not a benchmark record"):
            store.load(tmp_path / "x.json")


def test_nan_is_refused_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        store.save(tmp_path / "x.json", {"value": math.nan})
    assert list(tmp_path.iterdir()) == []


def test_default_names_sort_by_time():
    assert store.default_path(0).name == "run-19700101-000000.json"
    assert store.default_path(1e9).name < store.default_path(1.5e9).name


@pytest.mark.parametrize("module", [terminal, progress])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


def test_piped_progress_is_plain_lines(capsys):
    moments = iter([0.0, 100.0, 200.0])
    with progress.Progress(4, lambda: next(moments)) as shown:
        shown.tell("f: bits")
        shown.finished()
        shown.finished()
        shown.tell("g: bits")
        shown.say("g: BITS DIFFER")
    assert capsys.readouterr().err.splitlines() == [
        "[0 of 4] f: bits", "[2 of 4, about 3 min left] g: bits", "g: BITS DIFFER",
    ]  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("plain", [True, False])
def test_progress_of_a_terminal_is_a_line_that_goes(monkeypatch, plain):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1") if plain else monkeypatch.delenv("NO_COLOR", raising=False)
    with progress.Progress(2) as shown:
        shown.tell("f: bits")
        shown.say("stays")
        shown.finished()
        shown.tell("g: bits")
    written = stream.getvalue()
    assert "stays" in written
    assert "1 of 2, about 1 s left: g: bits" in written
    assert ("\x1b[?25l" in written) is not plain  # rich hides the cursor
    assert "\x1b[2K" in written


@pytest.mark.parametrize(("value", "text"), [(9.9996e-4, "1.00 ms"), (9.994e-7, "999 ns"), (61.0, "61.0 s"),
                                             (-2e-6, "-2.00 us")])  # fmt: skip
def test_durations(value, text):
    assert terminal.seconds(value) == text


def test_table_is_aligned():
    assert terminal.table(["name", "n"], [["a", "10"], ["long name", "7"]]).splitlines() == [
        "| name      |  n |",
        "|-----------|---:|",
        "| a         | 10 |",
        "| long name |  7 |",
    ]
