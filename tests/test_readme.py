"""The README's script runs in both engines as it is printed, with equal bits."""

import importlib
import re
from pathlib import Path

import pytest

from benchmarks.bits import difference, unequal
from benchmarks.workload import to_array
from benchmarks.workloads.digits import batches

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
SCRIPT = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
STEPS = 50


def run(engine):
    """Run the script with `engine` step by step; return the loss and the parameters after each."""
    tw = importlib.import_module(engine)
    tw.manual_seed(0)
    history = []

    def feed():
        data = batches()
        for i in range(STEPS):
            yield data[i % len(data)]
            state = {name: to_array(p).copy() for name, p in space["model"].named_parameters()}
            history.append((to_array(space["loss"]).copy(), state))

    space = {"batches": feed()}
    exec(SCRIPT.replace("import dynamic as tw", f"import {engine} as tw"), space)
    return history


def test_same_script_same_bits():
    first, second = run("dynamic"), run("static")
    assert len(first) == len(second) == STEPS
    for step, ((loss, state), (other_loss, other_state)) in enumerate(zip(first, second, strict=True)):
        assert difference(loss, other_loss) is None, step
        assert list(unequal(f"step {step}", state, other_state)) == []
    assert first[-1][0] < 0.5 * first[0][0]  # it learns


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_links_lead_somewhere(link):
    assert (Path(__file__).resolve().parent.parent / link).exists()
