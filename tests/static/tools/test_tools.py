"""A compiled program looked at op by op: `debug`, `nan_watch`, `compare`."""

import io

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, TraceError
from static.graph import Node, rebuild
from static.tools.peer_programs import evaluator
from tests.bits import assert_same_bits
from tests.helpers.cases import CASES

F32 = np.float32


@pytest.fixture
def weight():
    return static.nn.Parameter(np.full((2, 2), 0.5, F32))


@pytest.fixture
def loss(weight):
    def loss(x):
        h = (x @ weight).tanh()
        y = (h * h).sum()
        y.backward()
        return y

    return loss


def line_of(f, offset):
    return f"{f.__code__.co_filename}({f.__code__.co_firstlineno + offset}){f.__name__}()"


def debug(f, *args, commands):
    out = io.StringIO()
    results = static.debug(f, *args, stdin=io.StringIO("\n".join(commands) + "\n"), stdout=out)
    return results, out.getvalue()


# ------------------------------------------------------------------------------------------------- debug
def test_the_debugger_stops_at_the_users_lines(loss):
    x = np.ones((3, 2), F32)
    results, text = debug(loss, x, commands=["p operands[0].shape", "s", "p result.shape", "s", "s", "c"])
    stops = [line.split("> ")[-1] for line in text.splitlines() if line.endswith("loss()")]
    assert stops == [line_of(loss, n) for n in (1, 1, 2, 2)]
    assert "-> h = (x @ weight).tanh()" in text
    assert "forward: %2: float32[arg0.shape[0]=3, 2] = mm(%0, %1" in text
    assert text.count("(3, 2)") == 2
    assert np.array_equal(results[0], static.function(lambda x: ((x @ np.full((2, 2), 0.5, F32)).tanh() ** 2).sum())(x))


def test_the_debugger_goes_on_into_the_backward_pass(loss, weight):
    _, text = debug(loss, np.ones((3, 2), F32), commands=["s"] * 6 + ["p phase", "p sorted(values)[:3]", "c"])
    assert "'backward'" in text
    assert "['%0', '%1', '%2']" in text
    assert weight.grad is None  # nothing outside is changed


def test_the_debugger_takes_breakpoints_and_can_be_left(loss):
    line = loss.__code__.co_firstlineno + 2
    results, text = debug(loss, np.ones((3, 2), F32), commands=[f"b {__file__}:{line}", "c", "p node.name", "q"])
    assert "Breakpoint 1 at" in text
    assert "'mul'" in text
    assert results is None
    _, text = debug(loss, np.ones((3, 2), F32), commands=["s", "c"])
    assert text.count("loss()") == 2  # no breakpoint is left for the next call


def test_the_debugger_shows_the_values_of_the_compiled_call():
    f = static.function(lambda x: (x.exp() * 2).sum())
    x = np.linspace(0, 1, 100, dtype=F32)
    results, _ = debug(f, x, commands=["c"])
    assert_same_bits(results[0], f(x), "result")


# ------------------------------------------------------------------------------------------------- nan_watch
def test_the_first_nan_is_found_with_its_line():
    def f(x):
        y = x - 2
        z = y.log()
        return (z * 0).sum()

    found = static.nan_watch(f, np.array([3.0, 1.0, 0.5], F32))
    assert (found.op, found.phase, found.kind, found.index) == ("log", "forward", "nan", (1,))
    assert found.source == (__file__, f.__code__.co_firstlineno + 2, "f")
    assert found.operands == ("-1.0",)
    assert "`z = y.log()` makes nan at element (1,) of finite operands (-1.0)" in str(found)
    assert static.nan_watch(f, np.array([3.0], F32)) is None


def test_nans_of_the_backward_pass_are_found():
    p = static.nn.Parameter(np.array([1.0, 0.0], F32))

    def f():
        p.sqrt().sum().backward()

    found = static.nan_watch(static.function(f))
    assert (found.phase, found.kind, found.source[1]) == ("backward", "inf", f.__code__.co_firstlineno + 1)
    assert p.grad is None


def test_arguments_that_are_not_finite_are_no_findings():
    assert static.nan_watch(lambda x: x * 2, np.array([np.nan, np.inf])) is None
    found = static.nan_watch(lambda x, y: (x * 2).sum() + (y * 1e30 * 1e30).sum(), np.array([np.nan]), np.ones(2, F32))
    assert (found.op, found.kind) == ("mul", "inf")


def test_watching_leaves_state_alone():
    count = static.nn.Parameter(np.zeros(2, F32))

    def f(x):
        with static.no_grad():
            count.add_(x)
        return (count / 0.0).sum()

    found = static.nan_watch(f, np.ones(2, F32))
    assert (found.op, found.operands) == ("div", ("1.0", "0.0"))
    assert count.tolist() == [0.0, 0.0]


def test_what_cannot_be_traced_is_refused():
    with pytest.raises(TraceError, match="cannot be recorded"):
        static.nan_watch(lambda x: x if x.sum() > 0 else -x, np.ones(2, F32))


# ------------------------------------------------------------------------------------------------- compare
@pytest.mark.parametrize("way", ["dynamic", "interpreter", "unfused"])
def test_all_ways_agree(loss, way):
    assert dynamic.Tensor is not None
    x = np.random.default_rng(0).standard_normal((5, 2)).astype(F32)
    assert static.compare(loss, [x], way, "compiled") is None


#: Functions that divide by a size, which is a number of no dtype of its own.
MEANS = [name for name in CASES if name.endswith(("loss", "norm", "entropy"))]
MEANS += ["mean", "var", "std", "var_mean", "std_mean", "quantile", "kl_div", "binary_cross_entropy_with_logits"]


def test_the_engines_run_means_alike_op_by_op():
    for name in MEANS:
        case = CASES[name][0]
        operands = case.draw(np.random.default_rng(0), "float32", 5)
        assert static.compare(case.f, operands, "compiled", "dynamic") is None, name


def broken_tanh(graph):
    """tanh becomes sin."""
    from common.core.op import REGISTRY

    nodes = []
    for node in graph.nodes:
        if node.name != "tanh":
            nodes.append(node)
            continue
        copy = Node(node.id, REGISTRY["sin"], node.operands, {}, [v.spec for v in node.outputs], node.source)
        copy.outputs = node.outputs
        nodes.append(copy)
    return rebuild(graph, nodes, {})


def test_the_first_op_that_differs_is_named(loss):
    found = static.compare(loss, np.ones((3, 2), F32), "compiled", broken_tanh)  # the one argument
    assert (found.op, found.source[1], found.compared) == ("tanh", loss.__code__.co_firstlineno + 1, 1)
    assert "ulp away; 6 of 6 elements differ" in str(found)
    assert "0.7615941 here and 0.84147096 there" in str(found)


def test_wrong_ways_are_refused(loss):
    x = np.ones((3, 2), F32)
    with pytest.raises(ArgumentError, match="there is no mode 'fast'"):
        static.compare(loss, [x], "fast")


def test_a_peer_judges_every_op_by_itself(loss, monkeypatch):
    """The table of counterparts is tried with a peer made of numpy: the real ones are not needed."""

    class Peer:
        @staticmethod
        def from_numpy(x):
            return x.view(Tensor)

        tanh, mul, exp = (staticmethod(f) for f in (np.tanh, np.multiply, np.exp))

        @staticmethod
        def sum(x, dim, keepdim):
            return np.sum(x, axis=dim, keepdims=keepdim)

    class Tensor(np.ndarray):
        def numpy(self):
            return np.asarray(self)

    monkeypatch.setattr("static.tools.peer_programs.find_spec", lambda name: object())
    monkeypatch.setattr("static.tools.peer_programs.import_module", lambda name: Peer)
    found = static.compare(lambda x: (x * 2).tanh().exp(), [np.linspace(-3, 3, 1000, dtype=F32)], "torch")
    assert found is not None
    assert found.op in ("tanh", "exp")
    assert found.compared >= 1
    assert static.compare(lambda x: (x * 2).sum(), [np.arange(9, dtype=F32)], "torch") is None


def test_a_peer_that_is_missing_is_refused(monkeypatch):
    monkeypatch.setattr("static.tools.peer_programs.find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match="jax is not installed"):
        evaluator("jax")
