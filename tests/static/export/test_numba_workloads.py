"""Each workload as a numba module: its bits over three steps, state included; formatted, with the user's lines."""

import re
import subprocess
import sys
from itertools import cycle, islice

import numpy as np
import pytest

import static
from benchmarks.workload import discover
from common.core.errors import ArgumentError
from common.core.tree import flatten
from static.export import python_layout
from tests.static.export.test_held_graph import assert_same_bits
from tests.static.export.test_numba_module import loaded

SAMPLED, SHOWN = "a-float32", ("gaussian-process", "lenet", "newton")
WORKLOADS = {w.name: w for w in discover()}


def written(workload, path):
    program, batches = workload.make(static), list(islice(cycle(workload.inputs()), 3))
    return static.export_numba(program.call, path, *batches[0], name="step"), program, batches


@pytest.mark.parametrize(
    "name", [SAMPLED, *(pytest.param(x, marks=pytest.mark.slow) for x in WORKLOADS if x != SAMPLED)]
)
def test_a_workload_has_its_bits(tmp_path, name):
    made, program, batches = written(WORKLOADS[name], tmp_path / "step.py")
    step, state = loaded(made.path, "step"), [x.copy() for x in made.state.values()]
    for batch in batches:
        found = step(*batch, *state)
        wanted, _ = flatten(program.call(*batch))
        for a, b in zip(found if isinstance(found, tuple) else [found], wanted, strict=False):
            assert_same_bits(a, b.detach())
    after = static.export_numba(program.call, tmp_path / "again.py", *batches[0], name="step").state
    for found, (key, wanted) in zip(state, after.items(), strict=True):
        assert found.tobytes() == wanted.tobytes(), key


@pytest.mark.parametrize(
    "name", [*SHOWN, *(pytest.param(x, marks=pytest.mark.slow) for x in WORKLOADS if x not in SHOWN)]
)
def test_a_file_is_formatted_and_says_for_which_lines_it_is(tmp_path, name):
    made, *_ = written(WORKLOADS[name], tmp_path / "step.py")
    for arguments in (["check", "--select", "E,F,W,I"], ["format", "--diff"]):
        given = [sys.executable, "-m", "ruff", *arguments, "--isolated", "--line-length", "120", str(made.path)]
        done = subprocess.run(given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    text = made.path.read_text()
    imports = {line for line in text.splitlines() if re.match(r"(from|import) ", line)}
    assert imports <= {"import numpy as np", "from numba import njit", "from numba.extending import intrinsic"}
    calls = re.findall(r"^ +(?:#.*|(?:status = )?(?:kernel|gemm)\w*\(.*)$", text[text.index("def compute") :], re.M)
    assert calls[0].lstrip().startswith("# ")
    assert re.search(r"# \w+\.py:\d+: \w", text)


def test_every_line_of_a_fused_kernel_is_named(tmp_path):
    def curve(x):
        y = x * 2
        z = y + 1
        return z.tanh()

    text = static.export_numba(
        curve, tmp_path / "f.py", next(iter(WORKLOADS["a-float32"].inputs()))[0]
    ).path.read_text()
    assert [line.split(": ")[1] for line in re.findall(r"# \S+\.py:\d+: .*", text)] == [
        "y = x * 2", "z = y + 1", "return z.tanh()",
    ]  # fmt: skip


@pytest.mark.slow
def test_names_of_state_are_no_names_of_the_file(tmp_path):
    model, x = static.nn.Module(), np.arange(6, dtype=np.float32).reshape(2, 3)
    for name in ("t0", "c0", "kernel0", "float32", "status", "x0_0", "x0_flat", "compute"):
        setattr(model, name, static.nn.Parameter(x[0] + 1))

    def product(x):
        for y in model.parameters():
            x = x * y
        return x.sum(0)

    made = static.export_numba(product, tmp_path / "f.py", x)
    assert_same_bits(loaded(made.path, "product")(x, *made.state.values()), static.function(product)(x).detach())
    for name in ("kernel0", "float32", "flattened"):
        with pytest.raises(ArgumentError, match="the name of what it needs"):
            static.export_numba(product, tmp_path / "g.py", x, name=name)


def test_long_lines_are_broken_in_their_brackets():
    names = [f"argument{i}" for i in range(12)]
    sums = " + ".join(f"{name} * (rows - 1)" for name in names)
    text = "\n".join([
        f"def f({', '.join(names)}):",
        f"    y = np.empty(({sums}) // 1024, float32)",
        f"    z = {sums}",
        f"    g({', '.join(names[:9])})",
        f"    if not ({sums} == 400):",
        "        y = float64(1e+21)",
        f"    return {', '.join(names)}",
        "",
    ])  # fmt: skip
    made = python_layout.laid_out(text)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "120", "-"],
        input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert made == done.stdout
