"""Programs as networkx DAGs: traced, edited, checked and compiled, with the bits and gradients of the function."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import static
from common.core.errors import ArgumentError, CompileError, GraphError, StateError, TwingradError
from static.passes import PIPELINE, from_graph, on_dag
from static.passes.merge_equal import merge_equal
from tests import bits
from tests.helpers.programs import Program, inputs, programs
from tests.helpers.proofs import examples

F32 = np.float32


def assert_same_bits(x, y):
    bits.assert_same_bits(np.asarray(x), np.asarray(y), "through networkx")


few = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])


def gradients(f, arrays):
    """Results, and the gradients of all that has some, of a call on leaves."""
    leaves = [static.tensor(x.copy()) for x in arrays]
    for x in leaves:
        if x.dtype.kind == "f":
            x.requires_grad_()
    results = f(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    wanted = [y for y in results if y.requires_grad]
    if wanted:
        static.autograd.backward(wanted, [static.ones_like(y) for y in wanted])
    return [*(y.detach().numpy() for y in results), *(x.grad.numpy() for x in leaves if x.grad is not None)]


def agree(f, g, *arrays):
    first, second = gradients(f, arrays), gradients(g, arrays)
    assert len(first) == len(second)
    for x, y in zip(first, second, strict=True):
        assert_same_bits(x, y)


def mixed(x, w):
    h = static.softmax(x @ w, -1).detach() * x.tanh() + static.nn.functional.layer_norm(x, (4,))
    with static.no_grad():
        scale = h.std() + 1
    return (h / scale).sum(0), h[1:].mean()


X = np.random.default_rng(0).normal(size=(3, 4)).astype(F32)
W = np.random.default_rng(1).normal(size=(4, 4)).astype(F32)


def test_a_traced_program_compiles_to_the_same_bits_and_gradients_at_new_sizes():
    dag = static.trace(mixed, X, W)
    again = static.from_networkx(dag)
    compiled = static.function(mixed)
    for n in (3, 7, 2):
        agree(compiled, again, np.resize(X, (n, 4)) * 0.5, W)
    assert len(again.traces) == 1


def test_second_derivatives_are_those_of_the_function():
    def f(x):
        return static.logsumexp(x.sin() * x, -1).sum()

    g = static.from_networkx(static.trace(f, X))
    assert_same_bits(
        static.grad(lambda x: (static.grad(f)(x) ** 2).sum())(X).numpy(),
        static.grad(lambda x: (static.grad(g)(x) ** 2).sum())(X).numpy(),
    )


@seed(0)
@settings(few, max_examples=examples(12))
@given(programs())
def test_random_programs_survive_the_way_through_networkx(program: Program):
    rng = np.random.default_rng(60)
    dag = static.trace(program.run, *inputs(rng, 5, 33, "float32"))
    agree(static.function(program.run), static.from_networkx(dag), *inputs(rng, 4, 3, "float32"))


@seed(1)
@settings(few, max_examples=examples(4))
@given(programs(most=5, control=True))
def test_random_control_flow_survives_too(program: Program):
    rng = np.random.default_rng(61)
    dag = static.trace(program.run, *inputs(rng, 4, 3, "float32"))
    agree(static.function(program.run), static.from_networkx(dag), *inputs(rng, 4, 3, "float32"))


def test_a_step_writes_to_the_same_parameters():
    def made():
        model = static.nn.Linear(4, 2)
        optimizer = static.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        static.nn.init.ones_(model.weight)
        static.nn.init.zeros_(model.bias)

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return model, step

    (one, step), (two, other) = made(), made()
    compiled, again = static.function(step), static.from_networkx(static.trace(other, X))
    for _ in range(3):
        assert_same_bits(compiled(X).detach(), again(X).detach())
        assert_same_bits(one.weight.detach().numpy(), two.weight.detach().numpy())
        assert_same_bits(one.bias.grad.numpy(), two.bias.grad.numpy())


def test_a_program_relies_on_what_gradients_were():
    p = static.nn.Parameter(np.ones(3, F32))

    def f():
        (p * 2).sum().backward()

    g = static.from_networkx(static.trace(f))
    g()
    with pytest.raises(StateError, match="zero_grad"):
        g()


def test_an_edited_program_computes_what_it_says():
    def f(x):
        return (x * 2).exp().sum(0)

    dag = static.trace(f, X)
    (node,) = (i for i, op in dag.nodes(data="op") if op == "exp")
    dag.nodes[node]["op"] = "tanh"
    agree(static.from_networkx(dag), static.function(lambda x: (x * 2).tanh().sum(0)), X)
    two = static.trace(lambda x: x.exp() + x.exp() * x.exp(), X)
    merged = from_graph(merge_equal)(two)
    assert [op for _, op in merged.nodes(data="op")] == ["input", "exp", "mul", "add"]
    agree(static.from_networkx(merged), static.function(lambda x: (y := x.exp()) + y * y), X)


def test_a_program_is_built_by_hand():
    dag = nx.DiGraph()
    dag.add_node(0, op="input", specs=[static.ShapeDtypeStruct((2, 3), F32)])
    dag.add_node(1, op="sum", attrs={"dim": (1,), "keepdim": False})
    dag.add_node(2, op="mul", numbers={1: 0.5})
    dag.add_edges_from([(0, 1), (1, 2)])
    agree(static.from_networkx(dag), static.function(lambda x: x.sum(1) * 0.5), X)


def broken(edit):
    dag = static.trace(lambda x, y: (x * y).exp().sum(0), X, X)
    edit(dag)
    return dag


CASES = {
    "a cycle": (lambda d: d.add_edge(4, 2, operands=(2,), results=(0,)), GraphError, r"cycle.*%2 \(mul\).*%3 \(exp\)"),
    "an unknown op": (lambda d: d.nodes[3].update(op="expo"), GraphError, r"%3 \(expo at .*test_held.*no op 'expo'"),
    "no op": (lambda d: d.nodes[3].pop("op"), GraphError, "there is no op None"),
    "too few operands": (lambda d: d.remove_edge(1, 2), GraphError, "operands at the positions|has 1 operands; mul"),
    "doubled": (lambda d: d.edges[1, 2].update(operands=(0,)), GraphError, "two operands 0"),
    "too many": (lambda d: d.add_edge(0, 3, operands=(1,), results=(0,)), GraphError, "has 2 operands; exp takes 1"),
    "a missing result": (lambda d: d.edges[2, 3].update(results=(1,)), GraphError, "reads result 1 of %2"),
    "a wrong spec": (
        lambda d: d.nodes[3].update(specs=(d.nodes[4]["specs"][0],)), GraphError, "has spec float32.*; its operands",
    ),
    "a wrong dtype": (
        lambda d: d.nodes[3].update(specs=(d.nodes[3]["specs"][0]._replace(dtype=np.dtype("f8")),)), GraphError,
        "result 0 has spec float64",
    ),
    "an attribute": (lambda d: d.nodes[4]["attrs"].update(axis=1), GraphError, "sum takes dim, keepdim"),
    "a dimension": (lambda d: d.nodes[4]["attrs"].update(dim=(7,)), GraphError, "%4.*its operands give"),
    "a dangling output": (lambda d: d.graph.update(outputs=[(9, 0)]), GraphError, "no result of a node"),
    "an unnamed input": (lambda d: d.graph.update(inputs=[(0, 0)]), GraphError, "do not name"),
    "a string": (lambda d: d.add_node("a", op="exp"), ArgumentError, "nodes are ints"),
    "a number": (lambda d: d.nodes[3].update(numbers={0: "x"}), GraphError, "no Python number|two operands"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_program_is_refused(name):
    edit, error, told = CASES[name]
    with pytest.raises(error, match=told) as raised:
        static.from_networkx(broken(edit))
    assert isinstance(raised.value, TwingradError)


def test_only_directed_graphs_are_programs():
    for wrong in (nx.Graph(), nx.MultiDiGraph(), None, 3):
        with pytest.raises(ArgumentError, match="DiGraph"):
            static.from_networkx(wrong)


def test_the_trace_of_a_matrix_is_a_number():
    assert static.trace(static.ones(3, 3)).item() == 3


def test_a_pass_over_networkx_is_annotated_or_wrapped():
    def drop_clones(dag: nx.DiGraph) -> nx.DiGraph:
        for node in [i for i, op in dag.nodes(data="op") if op == "clone"]:
            ((source, _, data),) = dag.in_edges(node, data=True)
            for _, reader, read in list(dag.out_edges(node, data=True)):
                assert not dag.has_edge(source, reader)
                dag.add_edge(source, reader, operands=read["operands"], results=data["results"] * len(read["operands"]))
            dag.remove_node(node)
        return dag

    f = static.function(lambda x: x.clone().exp().clone().sin(), passes=(*PIPELINE, drop_clones))
    agree(f, static.function(lambda x: x.exp().sin()), X)
    assert [node.name for node in f.newest.graph.nodes if node.name == "clone"] == []
    assert f.explain().passes[-1].name == "drop_clones"


def test_a_pass_over_networkx_must_keep_bits_and_return_the_dag():
    def change(dag: nx.DiGraph) -> nx.DiGraph:
        for node in dag:
            if dag.nodes[node]["op"] == "exp":
                dag.nodes[node]["op"] = "tanh"
        return dag

    with pytest.raises(CompileError, match="change changes bits"):
        static.function(lambda x: x.exp(), passes=[change])(X)
    with pytest.raises(CompileError, match="returns None"):
        static.function(lambda x: x.exp(), passes=[on_dag(lambda dag: None)])(X)
