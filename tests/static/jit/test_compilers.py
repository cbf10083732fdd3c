"""`compiler=`: each function has its compiler, the bits do not depend on it, and names that mean none are refused."""

import numpy as np
import pytest

import dynamic
import static
from benchmarks import workload
from common.compiler.compile import default_compiler
from common.core.tree import flatten
from tests.bits import assert_same_bits


def loss(x, w):
    return ((x @ w).tanh().softmax(1) * 2).sum()


def arguments():
    rng = np.random.default_rng(0)
    return rng.standard_normal((7, 33), dtype=np.float32), rng.standard_normal((33, 5), dtype=np.float32)


def test_both_compilers_give_the_same_bits_in_one_process():
    programs = [static.function(static.value_and_grad(loss), compiler=name) for name in ("llvm", "numba")]
    ours, numbas = (flatten(f(*arguments()))[0] for f in programs)
    for x, y in zip(ours, numbas, strict=True):
        assert_same_bits(x, y, "by numba")
    assert [f.explain().compiler for f in programs] == ["llvm", "numba"]
    assert "by numba" in str(programs[1].explain())
    assert programs[0].llvm != programs[1].llvm


def test_gradients_of_a_compiled_call_have_its_compiler():
    x = dynamic.tensor(np.float32([0.5, -1.0]), requires_grad=True)
    f = static.function(lambda x: (x.tanh() * x).sum(), compiler="numba")
    f(x).backward()
    y = dynamic.tensor(np.float32([0.5, -1.0]), requires_grad=True)
    (y.tanh() * y).sum().backward()
    assert_same_bits(x.grad, y.grad, "gradient")
    assert f.newest.op.halves is not None


def test_a_transform_keeps_the_compiler_of_its_function():
    f = static.grad(static.function(lambda x: (x * x).sum(), compiler="numba"))
    assert f.options.compiler == "numba"


def test_sessions_choose_a_compiler():
    with static.Graph().as_default():
        x = static.placeholder("float32", (None,))
        y = static.tanh(x) * 3
        runs = [static.Session(compiler=name).run(y, {x: [0.5, 1.0, -2.0]}) for name in ("llvm", "numba")]
    assert_same_bits(*runs, "session")


def test_the_environment_decides_for_a_process(monkeypatch):
    monkeypatch.setenv("TWINGRAD_COMPILER", "numba")
    assert default_compiler() == "numba"
    monkeypatch.setenv("TWINGRAD_COMPILER", "gcc")
    with pytest.raises(ValueError, match=r'TWINGRAD_COMPILER: compiler is "llvm" or "numba".*gcc'):
        default_compiler()


def test_an_unknown_compiler_is_refused():
    with pytest.raises(ValueError, match=r'function\(\): compiler is "llvm" or "numba"'):
        static.function(loss, compiler="gcc")
    with pytest.raises(ValueError, match=r"Session\(\): compiler"):
        static.Session(static.Graph(), compiler=3)


@pytest.mark.parametrize("name", ["f-mlp", "newton"])
def test_workloads_have_the_same_bits_by_numba(name, monkeypatch):
    (case,) = workload.discover([name])
    found = []
    for compiler in ("llvm", "numba"):
        monkeypatch.setenv("TWINGRAD_COMPILER", compiler)
        program = case.make(static)
        found.append([np.asarray(x) for given in case.inputs() for x in flatten(program.call(*given))[0]])
    for x, y in zip(*found, strict=True):
        assert_same_bits(x, y, "by numba")
