"""The passport of bits: a sample of it as expected in both engines, and what it says where a bit differs."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features

from benchmarks.bootstrap import ROOT
from benchmarks.passport import command
from benchmarks.passport.emulated import emulator
from benchmarks.passport.exact_numbers import ExactNumbers
from benchmarks.passport.programs import depends_on_the_machine, programs

COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
SAMPLE = (
    "op/tanh",
    "op/pow",
    "op/sum",
    "op/mm",
    "op/dot",
    "op/view_set",
    "op/conv",
    "training/loops",
    "training/ranks",
    "workload/e-tiny-mlp",
)


def chosen(*names):
    return [word for name in names for word in ("-k", name)]


@pytest.mark.quick
def test_a_sample_is_as_expected_in_both_engines(capsys):
    assert command.main(["--check", *chosen(*SAMPLE)]) == 0
    assert "as expected" in capsys.readouterr().out.splitlines()[-1]


def test_each_program_has_its_hash_and_the_page_shows_that_in_all():
    expected = command.Expected.read()
    names = {p.name for p in programs()}
    missing = [f"python -m benchmarks passport --write -k {name}" for name in sorted(names - set(expected.programs))]
    assert not missing, missing
    assert set(expected.programs) == names
    page = (ROOT / "docs" / "passport.md").read_text(encoding="utf-8")
    assert f" {expected.total}  {len(expected.programs) - len(expected.of_the_machine)} programs, " in page
    assert expected.of_the_machine <= set(expected.programs)
    counted = {name: h.results for name, h in expected.programs.items() if name not in expected.of_the_machine}
    assert command.in_all(counted) == expected.total
    for program in programs(["op/eigh", "op/zeta", "op/inv", "op/solve", "op/expm1"]):
        assert depends_on_the_machine(program) == (program.name in expected.of_the_machine)


@pytest.mark.parametrize(
    "way",
    [
        ["--no-fuse"],
        ["--interpret"],
        ["--through", "saved"],
        *([["--through", "library"]] if COMPILER else []),
        *([["--through", "arm64"]] if emulator() else []),
        pytest.param(["--through", "module"], marks=pytest.mark.slow),
    ],
)
def test_other_ways(way, capsys):
    assert command.main(["--check", *way, "--engine", "static", *chosen("op/asinh", "op/cholesky")]) == 0
    lines = capsys.readouterr().out.splitlines()
    (cholesky,) = [line for line in lines if line.startswith("op/cholesky")]
    assert ("cannot run" in cholesky) == (way[-1] in ("library", "arm64"))


NEEDED = {"x86-64-v2": "sse4.2", "x86-64-v3": "avx2", "x86-64-v4": "avx512vl"}


@pytest.mark.parametrize(
    "way",
    [
        ["--target", "x86-64-v2"],
        *(pytest.param(["--target", target], marks=pytest.mark.slow) for target in ("x86-64-v3", "x86-64-v4")),
        pytest.param(["--threads", "2"], marks=pytest.mark.slow),
        pytest.param(["--compiler", "numba"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_ways_that_need_a_new_process(way):
    if way[0] == "--target" and NEEDED[way[1]] not in [x for x, has in get_host_cpu_features().items() if has]:
        return  # a processor that cannot run such code
    words = ["--check", "--engine", "static", *way, *chosen("op/tanh", "op/dot")]
    command = [sys.executable, "-m", "benchmarks", "passport", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as expected" in done.stdout.splitlines()[-1]


def test_a_difference_is_named_and_new_programs_are_no_difference(tmp_path, monkeypatch, capsys):
    record = json.loads(command.EXPECTED.read_text(encoding="utf-8"))
    given, result = record["programs"]["op/tanh"].split()
    record["programs"]["op/tanh"] = f"{given} 0123456789abcdef"
    record["programs"]["op/asinh"] = f"0123456789abcdef {result}"
    del record["programs"]["op/acosh"]
    monkeypatch.setattr(command, "EXPECTED", tmp_path / "expected.json")
    command.EXPECTED.write_text(json.dumps(record), encoding="utf-8")
    run = ["--engine", "dynamic", *chosen("op/tanh", "op/asinh", "op/acosh")]
    assert command.main(["--check", *run]) == 1
    said = capsys.readouterr().out
    assert f"{result}  expected 0123456789abcdef" in said
    assert "its inputs differ" in said
    assert "op/acosh                               is new" in said
    assert command.main(["--write", *run]) == 0
    assert command.main(["--check", *run]) == 0
    assert f"{given} {result}" == json.loads(command.EXPECTED.read_text(encoding="utf-8"))["programs"]["op/tanh"]


def test_unknown_names_and_options_are_refused(capsys):
    for arguments in (["-k", "nonsense"], ["--threads", "0"], ["--target", "arm"]):
        with pytest.raises(SystemExit) as ended:
            command.main(arguments)
        assert ended.value.code == 2
    assert "no program's name contains 'nonsense'" in capsys.readouterr().err


def test_numbers_are_those_of_the_definition():
    """Words by Python's integers: the first of SplitMix64 from seed 0."""
    state, words = 0, []
    for _ in range(3):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ z >> shift) * factor % 2**64
        words.append(z ^ z >> 31)
    assert words[0] == 0xE220A8397B1DCDAF
    assert ExactNumbers(0).uniform(size=3).tolist() == [(w >> 11) * 2.0**-53 for w in words]
    numbers = ExactNumbers("a text")
    assert sorted(numbers.permutation(5)) == [0, 1, 2, 3, 4]
    assert set(numbers.integers(2, 4, size=50).tolist()) == {2, 3}
    assert set(numbers.choice([1.5, -1.0], (5, 5)).ravel().tolist()) == {1.5, -1.0}
    x = numbers.normal(size=10_000)
    assert abs(x.mean()) < 0.05
    assert abs(x.std() - 1) < 0.05
    assert isinstance(numbers.uniform(), np.float64)
