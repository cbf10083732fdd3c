"""The graph: regions, verification, saving, networkx, the passes one by one."""

import networkx as nx
import numpy as np
import pytest

import static
from common.core.errors import ArgumentError, CompileError
from common.core.op import REGISTRY
from common.core.spec import Spec
from static import passes
from static.graph import Effect, Graph, Node, Value, serialize
from static.graph.verify import verify
from static.running.interpreter import interpret

HERE = ("test", 1, "test")
F32 = np.dtype(np.float32)


def program(x, t):
    h = static.softmax(x * 2.5, -1)
    return (h[:, 1:] * x.shape[0]).sum(), static.nn.functional.cross_entropy(x, t)


def traced(function, *args):
    compiled = static.function(function, interpret=True)
    compiled(*args)
    return compiled.newest


def arguments():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 4)).astype(np.float32), np.array([0, 3, 1, 2, 0])


def test_saved_graph_computes_the_same_bits():
    trace = traced(program, *arguments())
    text = serialize.dump(trace.graph)
    loaded = serialize.load(text)
    assert str(loaded) == str(trace.graph)
    assert serialize.dump(loaded) == text
    env = trace.env(list(arguments()))
    for a, b in zip(interpret(trace.graph, arguments(), env), interpret(loaded, arguments(), env), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_load_refuses_other_formats_and_unknown_ops():
    with pytest.raises(ArgumentError, match="format 99"):
        serialize.load('{"format": 99}')
    text = serialize.dump(traced(program, *arguments()).graph).replace('"op": "exp"', '"op": "expo"')
    with pytest.raises(ArgumentError, match="'expo'"):
        serialize.load(text)


def small_graph():
    x = Node(0, None, (), {"name": "arg0"}, (Spec((3,), F32),), HERE)
    y = Node(1, REGISTRY["mul"], (x.outputs[0], x.outputs[0]), {}, (Spec((3,), F32),), HERE)
    return Graph([x.outputs[0]], [x, y], [y.outputs[0]], [])


def test_regions_are_printed_verified_and_saved():
    f = static.function(lambda x: static.cond(x.sum() > 0, lambda x: (x * 2).sin(), lambda x: x - 1, x))
    f(np.ones(3, np.float32))
    outer = f.newest.graph
    (node,) = (node for node in outer.nodes if node.regions)
    verify(outer, "test")
    assert "branch0:" in str(outer)
    again = serialize.load(serialize.dump(outer))
    assert str(again) == str(outer)
    node.attrs["branch0"].nodes.reverse()
    with pytest.raises(CompileError, match=f"in branch0 of %{node.id}"):
        verify(outer, "test")


def test_verify_finds_undefined_operands_and_wrong_writes():
    graph = small_graph()
    stranger = Node(7, None, (), {}, (Spec((3,), F32),), HERE).outputs[0]
    graph.nodes[1].operands = (stranger, stranger)
    with pytest.raises(CompileError, match="not defined before"):
        verify(graph, "a pass")
    graph = small_graph()
    wide = Node(2, REGISTRY["mul"], (1.0, graph.outputs[0]), {}, (Spec((3,), np.dtype(np.float64)),), HERE)
    graph.nodes.append(wide)
    graph.effects.append(Effect(graph.inputs[0], wide.outputs[0]))
    with pytest.raises(CompileError, match="is written to"):
        verify(graph, "a pass")


def test_dag_is_the_program():
    f = static.function(lambda x: (x * x).sum())
    f(np.ones(3, np.float32))
    dag = f.graph
    assert nx.is_directed_acyclic_graph(dag)
    assert [dag.nodes[i]["op"] for i in nx.lexicographical_topological_sort(dag)] == ["input", "mul", "sum"]
    assert dag.edges[0, 1]["operands"] == (0, 1)
    assert dag.nodes[1]["node"].source[0] == __file__


def test_explanation_measures_the_graph():
    f = static.function(lambda x: ((x * x).exp() + x.tanh()).sum())
    f(np.ones(3, np.float32))
    facts = f.explain()
    assert (facts.nodes, facts.edges, facts.depth, facts.width) == (6, 6, 5, 2)
    assert [neck.split()[0] for neck in facts.necks] == ["add", "sum"]
    assert "graph: 6 nodes, 6 edges, longest path of 5 nodes" in str(facts)


def names(graph):
    return [node.name for node in graph.nodes if node.op is not None]


def raw(function, *args):
    return traced(function, *args).raw


def test_remove_dead_keeps_what_is_returned():
    def f(x):
        x.exp()
        return x.tanh()

    assert names(raw(f, np.ones(2, np.float32))) == ["exp", "tanh"]
    assert names(passes.remove_dead(raw(f, np.ones(2, np.float32)))) == ["tanh"]


def test_merge_equal_tells_numbers_apart():
    def f(x):
        return x.exp() + x.exp(), x + 0.0, x + -0.0, x + 0, x + 1, x + True

    merged = names(passes.merge_equal(raw(f, np.ones(2, np.float32))))
    assert merged.count("exp") == 1
    assert merged.count("add") == 6  # 0.0, -0.0 and 0 are three numbers, 1 and True are two


def test_simplify_only_what_is_exact():
    def f(x):
        return x * 1, x / 1, -(-x), 1.0 * x, x**1, x**1.0, x + 0, x * 0, x**0.5

    assert sorted(names(passes.remove_dead(passes.simplify(raw(f, np.ones(2, np.float32)))))) == ["add", "mul", "pow"]


def test_the_gradient_of_a_square_is_a_product():
    f = static.function(static.grad(lambda x: ((x - 1) ** 2).sum()))
    f(np.ones(2, np.float32))
    assert [node.operands[1] for node in f.newest.graph.nodes if node.name == "pow"] == [2]


def test_fold_constants_uses_the_programs_kernels():
    def f(x):
        c = static.full((), 3.0).exp()
        return x * c

    graph = passes.remove_dead(passes.fold_constants(raw(f, np.ones(2, np.float32))))
    assert names(graph) == ["full", "mul"]
    full = next(node for node in graph.nodes if node.name == "full")
    assert np.float32(full.attrs["value"]) == static.exp(np.float32(3.0))


def test_passes_leave_sizes_alone():
    f = static.function(lambda x: x * x.shape[0])
    assert f(np.ones(3, np.float32)).tolist() == [3, 3, 3]
    assert f(np.ones(2, np.float32)).tolist() == [2, 2]
    assert len(f.traces) == 1
    assert isinstance(f.newest.graph.inputs[0], Value)
