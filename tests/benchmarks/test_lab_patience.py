"""A call that does not end: its line is told, then it is ended; and imports of submodules in a user's file."""

import os
import signal
import sys

import pytest

import dynamic
import static
from benchmarks import bits, run
from benchmarks.lab import patience, source
from benchmarks.lab.progress import Progress
from benchmarks.lab.target import Target, UserProgram

ENDLESS = """
import dynamic as tw

def loop(x):
    return tw.while_loop(lambda s: (s > -1).all(), lambda s: s.abs(), x)

def python(x):
    while True:
        x = x * 0.5
    return x

def ends(x):
    return x * 2
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "mine.py").write_text(ENDLESS)
    return tmp_path / "mine.py"


@pytest.mark.parametrize("first", [0.05, 9.0])
def test_a_loop_that_is_endless_in_compiled_code_alone_is_ended(path, monkeypatch, first):
    if sys.platform != "linux":
        return  # where nobody presses
    monkeypatch.setattr(patience, "GRACE", 0.2)
    pressed, before = [], signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    try:
        program = UserProgram(Target(str(path), "loop", args="f32[3]"), static)
        mine = patience.Patience(lambda _: None, limit=60, first=first)
        watched = mine.of(program)
        call = watched.make(static).call
        endless = [abs(x) for x in watched.inputs()[0]]
        ends = [-x - 2 for x in endless]
        call(*ends)
        mine.limit = 0.4
        with pytest.raises(patience.TookTooLong, match=r"takes longer than 0.4 s; it was at .*call\(\*endless\)"):
            call(*endless)
        assert not pressed  # that was nobody's press
        call(*ends)
        os.kill(os.getpid(), signal.SIGINT)
        assert pressed == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_press_during_a_watched_call_is_the_users():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born deaf to it
    try:
        with pytest.raises(KeyboardInterrupt):
            patience.Patience(pytest.fail, limit=60).call(lambda: os.kill(os.getpid(), signal.SIGINT), "it")()
    finally:
        signal.signal(signal.SIGINT, before)


LINES = {"loop": "mine.py:5: return tw.while_loop(lambda s: (s > -1)", "python": "mine.py:"}


@pytest.mark.parametrize(("name", "line"), LINES.items())
def test_a_call_without_end_is_told_by_its_line_and_ended(path, name, line):
    said = []
    program = UserProgram(Target(str(path), name, args="f32[3]"), dynamic)
    watched = patience.Patience(said.append, limit=0.4, first=0.2).of(program)
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(patience.TookTooLong, match=r"takes longer than 0.4 s; it was at .*--limit SECONDS"):
        watched.make(dynamic).call(*(abs(x) for x in watched.inputs()[0]))
    assert said
    assert all("one call has taken" in text for text in said)
    assert any(line in text for text in said)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_run_reports_it(path, capsys):
    program = UserProgram(Target(str(path), "python", args="f32[3]"), dynamic)
    engines = {"dynamic": dynamic, "static": static}
    effort = run.without_starts(run.Effort(seconds=0.1, cold=0, disk=0, limit=0.3))
    result = run.measure(program, engines, effort, (), Progress(1))
    assert not result.passed
    assert not result.calls
    assert result.error.startswith("TookTooLong: one call of mine:python in dynamic takes longer than 0.3 s; it was at")
    said = capsys.readouterr().err
    assert "x = x * 0.5" in said or "while True:" in said  # the two lines of the loop


def test_a_program_that_ends_is_left_alone(path):
    program = UserProgram(Target(str(path), "ends", args="f32[3]"), dynamic)
    watched = patience.Patience(pytest.fail, limit=60).of(program)
    assert (watched.key, watched.name) == (program.key, program.name)
    assert list(bits.mismatches(watched, dynamic, static)) == []


def test_what_a_file_imports_from_a_submodule_is_found_before_anybody_imported_it(tmp_path):
    file = tmp_path / "uses.py"
    file.write_text("from torch.utils.tensorboard import SummaryWriter\nfrom torch.utils.data import DataLoader\n")
    for engine in (dynamic, static):
        module = source.load(file, engine, engine.__name__)
        assert [module.SummaryWriter.__name__, module.DataLoader.__name__] == ["SummaryWriter", "DataLoader"]
    file.write_text("import numpy\nfrom torch.utils.nowhere import Thing\n")
    with pytest.raises(source.NoSuchPart, match=r"uses.py:2: there is no dynamic.utils.nowhere"):
        source.load(file, dynamic, "dynamic")
