"""Programs of a user's: a file is found, run by either engine, and measured; what is missing is said."""

import json
import subprocess
import sys
from argparse import Namespace

import numpy as np
import pytest

import dynamic
import static
from benchmarks import __main__ as command
from benchmarks import bits, measure, oneoff, run, store
from benchmarks.bootstrap import ROOT
from benchmarks.lab import arguments, failures, source, stability, verdict
from benchmarks.lab import command as laboratory
from benchmarks.lab.activity import Activity
from benchmarks.lab.target import Target, UserProgram, find, is_target

FILE = '''
import numpy as np
import torch
import dynamic.nn.functional as F
from static import nn
from benchmarks.lab.program import program

def loss(x, w):
    """The loss of a row"""
    return {"loss": ((x @ w).tanh() ** 2).mean(), "more": [x.sum()]}

@program("f32[n,n]", n=4, grad=True, sweep="n=3,5")
def trace(x):
    return (x @ x).sum()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return F.relu(self.layer(x))

def make(tw):
    model = Net()
    optimizer = tw.optim.Adam(model.parameters(), lr=0.1)

    @tw.function
    def step(x, t):
        optimizer.zero_grad()
        value = F.cross_entropy(model(x), t)
        value.backward()
        optimizer.step()
        return value

    return step, (torch.ones(4, 3).numpy(), torch.zeros(4, dtype=torch.int64).numpy())

class Sized(nn.Module):
    def __init__(self, n):
        super().__init__()

    def forward(self, x):
        return x

class Doubled(nn.Module):
    def forward(self, x):
        return x * 2

def drawn(x):
    return x + float(np.random.rand())

def branch(x):
    return x * 2 if x.sum() > 0 else x
'''


@pytest.fixture
def path(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


def user(path, name, **options):
    return UserProgram(Target(str(path), name, **options), dynamic)


KINDS = {
    "loss": {"args": "f32[4,3], f32[3,2]"},
    "trace": {},
    "Net": {"args": "f32[4,3], i64[4]<2", "loss": "cross_entropy", "optimizer": "SGD(lr=0.1, momentum=0.9)"},
    "make": {},
    "Doubled": {"args": "f32[3]"},
    "branch": {"args": "f32[3]", "control_flow": "guard"},
    "branch converted": {"args": "f32[3]", "control_flow": "convert"},
    "branch with its gradient": {"args": "f32[3]", "control_flow": "convert", "grad": True},
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_program_runs_in_both_engines_with_the_same_bits(path, name):
    workload = user(path, name.partition(" ")[0], **KINDS[name])
    assert list(bits.mismatches(workload, dynamic, static)) == []
    again = find(workload.key, static)  # as a new process finds it
    assert again.key == workload.key
    inputs = zip(workload.inputs(), again.inputs(), strict=True)
    assert all(np.array_equal(a, b) for one, other in inputs for a, b in zip(one, other, strict=True))


def test_a_module_without_parameters_is_called_and_not_trained(path):
    assert user(path, "Doubled", args="f32[3]").title == "as written"
    assert user(path, "Net", args="f32[4,3]").title == "forward and backward"


def test_a_program_that_draws_from_numpy_is_told_why_it_differs(path):
    found = list(bits.mismatches(user(path, "drawn", args="f32[3]"), dynamic, static))
    assert found[0].startswith("step 2: result: 3 of 3 elements")
    assert "numpy.random, which a compiled program does once" in found[-1]


@pytest.mark.parametrize(("name", "count"), [("Net", 2), ("make", 2), ("loss", 0)])
def test_state_that_a_program_changes_is_compared(path, name, count):
    program = user(path, name, **KINDS[name]).make(static)
    assert len(program.parameters()) == count
    program.call(*user(path, name, **KINDS[name]).inputs()[0])
    assert len(program.state()) > count if count else not program.state()


def test_a_planted_difference_between_the_engines_is_found(path):
    path.write_text("import dynamic as tw\ndef f(x):\n    return x + (1e-3 if tw.__name__ == 'static' else 0.0)\n")
    assert any("step 1: result" in line for line in bits.mismatches(user(path, "f", args="f64[3]"), dynamic, static))


def test_the_engine_takes_the_place_of_every_engine_that_is_imported(path):
    module = source.load(path, static, "static")
    assert module.torch is static
    assert module.nn is static.nn
    assert module.loss.__code__.co_firstlineno == FILE.splitlines().index("def loss(x, w):") + 1


def test_files_beside_it_get_the_engine_too(path):
    beside = path.parent / "user.py"
    beside.write_text(
        "from mine import Net as Other, loss\nimport json\ndef make(tw):\n    import mine\n    return mine.Net()\n"
    )
    for engine in (dynamic, static):
        module = source.load(beside, engine, engine.__name__)
        assert module.Other.__mro__[1] is engine.nn.Module
        assert module.make(engine).__class__ is module.Other
        assert module.json is json


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("nothing", {}, "it has: loss, trace, Net, make, Sized, Doubled, drawn, branch"),
        ("", {}, None),  # make is meant
        ("loss", {}, "takes (x, w)"),
        ("loss", {"args": "f32[3"}, "no argument"),
        ("loss", {"args": "f32[k], f32[2]"}, "size 'k' has no number"),
    ],
)
def test_what_is_missing_is_said(path, name, options, told):
    if told is None:
        assert user(path, name, **options).target.name == "make"
        return
    with pytest.raises((LookupError, ValueError)) as error:
        user(path, name, **options).inputs()
    assert told in error.value.args[0]


@pytest.mark.parametrize(
    ("returned", "sets"),
    [
        ("(torch.ones(3), torch.zeros(3))", 2 * [(1, 0)]),
        ("[torch.ones(3), torch.zeros(3)]", 2 * [(1, 0)]),
        ("[(torch.ones(3), torch.zeros(3)), (torch.zeros(3), torch.ones(3))]", [(1, 0), (0, 1)]),
        ("torch.ones(3).numpy()", 2 * [(1,)]),
    ],
)
def test_the_files_own_inputs_are_arrays_of_one_call_or_of_several(path, returned, sets):
    several = "x, y" if "," in returned else "x"
    path.write_text(f"import torch\ndef f({several}):\n    return x\ndef inputs():\n    return {returned}\n")
    found = user(path, "f", grad=True)
    assert [tuple(int(x[0]) for x in one) for one in found.inputs()] == sets
    assert all(isinstance(x, np.ndarray) for one in found.inputs() for x in one)
    assert not list(bits.mismatches(found, dynamic, static))


def test_arguments_have_fixed_seeds_and_their_own_text():
    parsed = arguments.parse("f32[2,n], i64[5]<3, bool[4], 0.5, (1, 2)")
    first, again = (arguments.arrays(parsed, {"n": 3}, 0) for _ in range(2))
    assert first[0].tobytes() == again[0].tobytes()
    assert first[0].dtype == np.float32
    assert first[1].max() < 3
    assert first[3:] == (0.5, (1, 2))
    assert arguments.described(first) == "f32[2,3], i64[5], bool[4], 0.5, (1, 2)"


def test_words_that_name_files():
    assert is_target("a.py:f")
    assert is_target("a.py")
    assert not is_target("chain")
    assert Target.parse("a.py:f").name == "f"
    assert Target.parse("a.py").name == ""


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(measure, "keep_to", lambda count: [])
    report = {"import_seconds": 0.1, "build_seconds": 0.0, "first_call_seconds": 0.1, "peak_bytes": 5e6}
    monkeypatch.setattr(oneoff, "cold_and_disk", lambda *_: {"cold": [report], "disk": [report]})
    monkeypatch.setattr(run, "QUICK", run.Effort(seconds=0.01, cold=1, disk=1))


def test_the_verdict_comes_first_and_lines_fit_the_terminal(path, quick, tmp_path, capsys):
    record = tmp_path / "r.json"
    assert laboratory.main("run", [f"{path}:trace", "--quick", "--json", str(record)]) == 0
    lines = capsys.readouterr().out.splitlines()
    verdicts = [line for line in lines if line.startswith(("mine:trace (n=3): static", "mine:trace (n=5): static"))]
    assert len(verdicts) == 2
    assert lines.index(verdicts[0]) < 4
    assert max(map(len, lines)) <= 80
    stored = json.loads(record.read_text())
    assert [w["name"] for w in stored["workloads"]] == ["mine:trace (n=3)", "mine:trace (n=5)"]
    assert stored["schema"] == store.SCHEMA


def test_an_interrupted_run_is_resumed(path, quick, tmp_path, monkeypatch, capsys):
    record, measured = tmp_path / "r.json", []
    real = run.measure

    def once(workload, *rest):
        if measured:
            raise KeyboardInterrupt
        measured.append(workload.name)
        return real(workload, *rest)

    monkeypatch.setattr(run, "measure", once)
    monkeypatch.setattr(stability, "objections", lambda calls, activity: [])
    assert laboratory.main("run", [f"{path}:trace", "--quick", "--json", str(record)]) == 130
    assert f"--resume {record}" in capsys.readouterr().out.replace("\n", " ")
    again = []
    monkeypatch.setattr(run, "measure", lambda w, *rest: (again.append(w.name), real(w, *rest))[1])
    assert laboratory.main("run", [f"{path}:trace", "--quick", "--resume", str(record)]) == 0
    assert again == ["mine:trace (n=5)"]
    assert json.loads(record.read_text())["complete"] is True


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.py:f"], "there is no file"),
        (["LACKS:f"], "No module named 'nobody_has_this'"),
        (["FILE:Sized", "--args", "f32[2,3]"], "Sized is made with (n): write `def make(tw)"),
        (["FILE:loss"], "takes (x, w)"),
        (["FILE:trace", "--threads", "999"], "--threads is from 1 to"),
        (["FILE:trace", "--sweep", "n"], "--sweep is a name and numbers"),
        (["FILE:trace", "--peers", "caffe"], "there is no peer 'caffe'"),
        (["FILE:Net", "--args", "f32[2,3]", "--optimizer", "SGDD(lr=1)"], "there is no optimiser 'SGDD'"),
        (["FILE:Net", "--args", "f32[2,3], i64[2]<2", "--loss", "cross_entropyy"], "not 'cross_entropyy'"),
        (["FILE:loss", "--args", "f32[2,3]"], "does not take the 1 of --args: missing a required argument: 'w'"),
    ],
)
def test_a_command_that_cannot_be_followed_ends_with_2_and_one_line(path, quick, words, told, capsys):
    (path.parent / "lacks.py").write_text("import nobody_has_this\n")
    words = [word.replace("FILE", str(path)).replace("LACKS", str(path.parent / "lacks.py")) for word in words]
    code = laboratory.main("run", [*words, "--quick"])
    output = capsys.readouterr()
    assert code in (1, 2)
    assert told in output.err + output.out


WRONG = """
def choose(x):
    return x if x.sum() > 0 else -x

def own(x):
    return {"a": x}["b"]
"""


@pytest.mark.parametrize("word", ["run", "explain", "graph"])
@pytest.mark.parametrize(("name", "line", "told"), [("choose", 3, "TraceError: "), ("own", 6, "KeyError: 'b'")])
def test_a_program_that_fails_is_told_by_its_own_lines(quick, tmp_path, word, name, line, told, capsys):
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    assert laboratory.main(word, [f"{file}:{name}", "--args", "f32[4]", "--quick"]) == 1
    error = capsys.readouterr().err
    assert f'File "{file}", line {line}, in {name}' in error
    assert told in error
    assert error.count('File "') == 1


def test_a_failure_that_is_not_the_users_keeps_its_traceback():
    def inside(x):
        return np.linalg.cholesky(x)

    with pytest.raises(np.linalg.LinAlgError) as caught:
        inside(-np.eye(2))
    assert failures.own_lines(caught.value) == []
    assert "Traceback" in failures.told(caught.value)


def test_a_word_that_is_no_command_is_named(capsys):
    for word, told in (("rum", "did you mean 'run'?"), ("mine.py:f", "to measure a file: run mine.py:f")):
        with pytest.raises(SystemExit) as ended:
            command.refuse_unknown([word])
        assert ended.value.code == 2
        assert f"there is no command {word!r}; {told}" in capsys.readouterr().err
    command.refuse_unknown(["--quick"])


def test_run_of_a_workload_says_how_workloads_are_chosen(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "run", "digits"])
    with pytest.raises(SystemExit):
        command.main()
    assert "run measures FILE.py:NAME; a workload of the project is -k digits" in capsys.readouterr().err


def test_the_command_line_reaches_the_laboratory(path):
    done = subprocess.run([sys.executable, "-m", "benchmarks", "run", f"{path}:nothing"], cwd=ROOT, text=True,
                          capture_output=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert command.LABORATORY[0] == "run"


def test_reasons_for_mistrust_name_a_remedy():
    rng = np.random.default_rng(0)
    quiet = {
        name: seconds * (1 + 0.001 * rng.standard_normal(60)) for name, seconds in (("dynamic", 2.0), ("static", 1.0))
    }
    assert stability.objections(quiet, Activity(0.0, 0.0, 1.0)) == []
    busy = stability.objections(quiet, Activity(1.7, 0.1, 1.0))
    assert "1.7 cores" in busy[0]
    assert "--clock processor" in busy[0]
    assert "took 10 %" in busy[1]
    drifting = {**quiet, "static": quiet["static"] * np.linspace(1, 1.2, 60)}
    told = stability.objections(drifting, None)
    assert any("static to dynamic drifted by" in line and "cpupower" in line for line in told)
    assert not stability.enough(drifting, 0.5)
    noisy = {**quiet, "static": np.exp(rng.standard_normal(60))}
    assert any("% wide" in line for line in stability.objections(noisy, None))


def test_a_clock_that_slows_a_whole_round_down_is_no_drift_of_a_ratio():
    def slower(by):
        return {name: seconds * np.linspace(1, by, 60) for name, seconds in (("dynamic", 2.0), ("static", 1.0))}

    assert stability.objections(slower(1.2), None) == []
    assert stability.enough(slower(1.2), 0.01)
    assert ["times drifted by" in line for line in stability.objections(slower(1.6), None)] == [True]


def test_verdicts_point_in_one_direction():
    ratio = {"value": 2.0, "low": 1.9, "high": 2.1}
    base = {"name": "f", "bits_equal": True, "static_over": {"dynamic": ratio}}
    assert verdict.verdict({**base, "break_even": {"disk": {"value": None}}}) == (
        "f: static is 0.50x as fast as dynamic, never pays off, same bits."
    )
    same = {"value": 1.0, "low": 0.99, "high": 1.01}
    equal = {**base, "static_over": {"dynamic": same}, "break_even": {"disk": {"value": 38.0}}}
    assert verdict.verdict(equal) == "f: static and dynamic are as fast as each other, to 1 %, same bits."
    assert "BITS DIFFER" in verdict.verdict({"name": "f", "bits_equal": False, "differences": ["x"]})


def test_a_module_that_takes_other_arguments_is_told_what_a_loss_is_for(path):
    with pytest.raises(ValueError, match=r"Net.forward\(x\) does not take 2 arguments: .*: --loss mse_loss"):
        user(path, "Net", args="f32[4,3], f32[4,2]").make(dynamic)
    user(path, "Net", args="f32[4,3], f32[4,2]", loss="mse_loss").make(dynamic)
    with pytest.raises(ValueError, match=r"does not take the first 2 of 3 arguments, the last is for --loss"):
        user(path, "Net", args="f32[4,3], f32[4,2], f32[4,2]", loss="mse_loss").make(dynamic)


def test_peers_that_are_missing_are_named(monkeypatch):
    from benchmarks import peers

    monkeypatch.setattr(peers, "find_spec", lambda package: None)
    assert peers.chosen("all") == (
        [],
        [
            "without torch and torch.compile: torch is not installed (pip install torch)",
            "without jax and jax.jit: jax is not installed (pip install jax)",
            "without pytensor.python and pytensor: pytensor is not installed (pip install pytensor)",
            "without tinygrad and tinygrad.jit: tinygrad is not installed (pip install tinygrad)",
            "without autograd: autograd is not installed (pip install autograd)",
            "without numba: numba is not installed (pip install numba)",
        ],
    )
    assert peers.chosen(None) == ([], [])
    monkeypatch.setattr(peers, "find_spec", lambda package: package)
    monkeypatch.setattr(peers.shutil, "which", lambda program: None)
    needs = "tinygrad compiles with clang, which is not installed (apt-get install clang)"
    assert peers.chosen("tinygrad.jit, jax") == (["jax"], [f"without tinygrad.jit: {needs}"])


def test_options_are_those_of_a_namespace():
    options = laboratory.run_parser().parse_args(["a.py:f", "--size", "n=3"])
    assert isinstance(options, Namespace)
    assert options.size == ["n=3"]
