"""Hostile programs of several steps, and what they have found."""

import os
import subprocess
import sys
from typing import Any

import pytest

import dynamic
import static
from common.core.errors import ArgumentError, EscapedTracerError
from tests.conftest import ROOT
from tests.helpers import hostile
from tests.helpers.hostile_scripts import Script
from tests.helpers.proofs import examples

ENGINES = pytest.mark.parametrize("tw", [dynamic, static])
UNBOUND: Any = dynamic.Tensor  # its methods are called without a tensor


def test_a_sample_of_hostile_scripts(tmp_path):
    trace = tmp_path / "running"
    command = [sys.executable, "-m", "tests.helpers.hostile", "--scripts", str(examples(40)), "--seed", "5",
               "--trace-file", str(trace)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
    running = "" if done.returncode in (0, 1) else f"the process died in: {trace.read_text(encoding='utf-8')}"
    assert done.returncode == 0, f"{running}\n{done.stdout}\n{done.stderr[-3000:]}"


def test_the_scripts_see(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    script = Script(3, 5, lambda error: f"{type(error).__name__}" if isinstance(error, ZeroDivisionError) else None)
    monkeypatch.setattr(script, "tensor", lambda: 1 // 0)
    assert hostile.complaint(script) is None
    assert script.wrong[0] == "step 1: ZeroDivisionError"


def test_a_script_that_is_interrupted_leaves_no_block_open(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    script = Script(3, 5, lambda error: None)

    def late(*_):
        for block in (dynamic.no_grad(), static.Graph().as_default(), dynamic.inference_mode()):
            block.__enter__()
            script.open.append(block)
        raise hostile.TooLong

    monkeypatch.setattr(script, "tensor", late)
    assert "not back" in str(hostile.complaint(script))
    static.reset_default_graph()  # refuses inside a block
    assert dynamic.ones(1, requires_grad=True).mul(2).requires_grad


@ENGINES
def test_a_format_of_several_numbers(tw):
    assert f"{tw.tensor(0.5):.2f}" == "0.50"
    assert f"{tw.ones(2)}" == str(tw.ones(2))
    with pytest.raises(ArgumentError, match=r"unsupported format string passed to Tensor.__format__: '.2f'"):
        f"{tw.ones(2):.2f}"


@pytest.mark.parametrize("act", [lambda x: x * 2, lambda x: x.sum(), lambda x: x.numpy(), lambda x: x[0], float])
def test_a_tensor_of_a_branch_that_ran_for_its_shapes_is_used_afterwards(act):
    kept = []
    dynamic.cond(True, lambda x: x, lambda x: kept.append(x) or x * 1, dynamic.ones(3))
    with pytest.raises(EscapedTracerError, match="ran for its shapes only"):
        act(kept[0])


@pytest.mark.parametrize("name", ["expand", "view", "permute", "reshape", "unsqueeze"])
def test_a_method_without_its_tensor(name):
    with pytest.raises(ArgumentError, match=name):
        getattr(UNBOUND, name)((1, 2), 1)


def test_a_method_that_was_often_called_without_its_tensor():
    for _ in range(30):  # views that are remembered
        dynamic.ones(2, 3).t()
        dynamic.ones(2, 3).view(6)
    for name, sizes in (("t", ()), ("view", (6,))):
        with pytest.raises(ArgumentError, match=name):
            getattr(dynamic.Tensor, name)(None, *sizes)


@ENGINES
@pytest.mark.filterwarnings("ignore")
def test_no_method_is_confused_without_its_tensor(tw):
    """Each, called on the class with something else in the tensor's place; what fits no parameters is Python's."""
    wrong = {}
    for name in (name for name in dir(tw.Tensor) if not name.startswith("__")):
        method = getattr(tw.Tensor, name, None)
        for given in ((0,), (0.5, 0), ("x",), (None,), ([], 1)) if callable(method) else ():
            try:
                method(*given)
            except Exception as error:
                if told := hostile.objection(error):
                    wrong[name] = told
    assert wrong == {}


@ENGINES
@pytest.mark.parametrize(("n", "part", "shape"), [(0, slice(None), (0, 0)), (2, slice(0, 0), (0, 2))])
def test_jacobians_of_nothing(tw, n, part, shape):
    x = tw.ones(n)
    for made in (tw.func.jacrev, tw.func.jacfwd):
        jacobian = made(lambda t: t.sin()[part])
        assert jacobian(x).shape == tw.function(jacobian)(x).shape == shape
    hessian = tw.func.hessian(lambda t: t.sin().sum())
    assert hessian(tw.ones(0)).shape == tw.function(hessian)(tw.ones(0)).shape == (0, 0)


@ENGINES
@pytest.mark.parametrize("compiled", [False, True])
def test_what_runs_example_by_example_runs_for_none(tw, compiled):
    def row(t):
        u = t * 1
        u[1:] *= 0.5  # a write to a view has no rule
        return u

    for mapped in (tw.vmap(row), tw.grad(lambda x: tw.vmap(row)(x).sum())):
        run = tw.function(mapped) if compiled else mapped
        assert run(tw.ones(0, 3)).shape == (0, 3)
        assert run(tw.ones(2, 3)).shape == (2, 3)


NESTED: list[Any] = []
NESTED.append(NESTED)
ENDLESS: list[Any] = [1]
ENDLESS.append(ENDLESS)
DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]
LOADERS: Any = dynamic.utils.data


@pytest.mark.parametrize("values", [NESTED, DEEP, ENDLESS])
@pytest.mark.parametrize("tw", [dynamic, static])
def test_lists_without_end_are_no_tensor(tw, values):
    for make in (tw.tensor, tw.Tensor, tw.FloatTensor, tw.as_tensor, lambda x: tw.Tensor(x, requires_grad=True)):
        with pytest.raises(ArgumentError, match=r"nested too deeply, or (one )?contains itself"):
            make(values)


@pytest.mark.parametrize(
    "of",
    [
        lambda: LOADERS.BatchSampler(iter([1]), 2, False), lambda: LOADERS.SequentialSampler(iter([1])),
        lambda: LOADERS.DataLoader([1], sampler=iter([1])), lambda: LOADERS.Subset([1], iter([0])),
    ],
)  # fmt: skip
def test_the_length_of_what_has_none(of):
    with pytest.raises(ArgumentError, match="has no len"):
        len(of())
