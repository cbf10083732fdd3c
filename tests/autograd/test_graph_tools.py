"""Looking at the recorded graph: walks, the order of a pass, what is saved, and why an input is not reached."""

import inspect

import networkx as nx
import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import GradientError, GraphFreedError
from common.core.op import REGISTRY
from common.tensor import hook_handles
from common.tensor.node import Node
from dynamic.autograd import Function, grad, graph


def leaf(*values):
    return tw.tensor(list(values), requires_grad=True)


class Twice(Function):
    """A node that is no op's."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + x

    @staticmethod
    def backward(ctx, g):
        return g + g


@tw.function
def inside(x):
    return (x * x).tanh()


def diamond(x, w):
    shared = x * w
    return ((shared.exp() + shared.sin()) * shared).sum()


def several(x, w):
    low, high = (x * w).split(1)
    return (low * high).sum() + w.sum()


PROGRAMS = {
    "diamond": diamond,
    "several results": several,
    "a function": lambda x, w: (Twice.apply(x * w) * w).sum(),
    "a region": lambda x, w: (inside(x * w) + w).sum(),
    "in place": lambda x, w: (x * w).mul_(2).sum(),
    "one leaf": lambda x, w: (x * 2 + x).sum(),
    "a choice": lambda x, w: (tw.where(x > 1, x, w) * (x / 2).sign()).sum(),
    "an operand without a rule": lambda x, w: REGISTRY["softplus_scaled"](x, 1.0, w.exp()).sum(),
    "a view": lambda x, w: ((x * w)[1:] * w[0]).sum(),
}


def handled(root, **options):
    """The nodes that a backward pass handles, as told by hooks on all of them."""
    seen = []
    for node in graph.iter_graph(root):
        if isinstance(node, Node):
            node.register_hook(lambda inputs, outputs, node=node: seen.append(node))
    root.backward(**options)
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("some", [False, True])
def test_execution_order_is_that_of_the_pass(name, some):
    x, w = leaf(1.0, 2.0), leaf(3.0, -1.0)
    root = PROGRAMS[name](x, w)
    options = {"inputs": [x]} if some else {}
    expected = graph.execution_order(root, **options)
    numbers = [node._sequence_nr() for node in expected]
    assert numbers == sorted(set(numbers), reverse=True)
    assert handled(root, **options) == expected
    assert expected


def test_only_nodes_on_a_path_to_the_inputs_are_in_the_order():
    x, w = leaf(1.0), leaf(2.0)
    other = w.exp()
    root = x * x + other
    assert other.grad_fn in graph.execution_order(root)
    assert other.grad_fn not in graph.execution_order(root, inputs=[x])
    middle = x * 3
    last = middle.exp()
    assert [n.name() for n in graph.execution_order(last, middle)] == ["ExpBackward0"]


def test_every_node_once():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    root = diamond(x, w)
    nodes = list(graph.iter_graph([root, root]))
    assert len(nodes) == len(set(nodes))
    names = [node.name() for node in nodes]
    assert names == ["SumBackward0", "MulBackward0", "AddBackward0", "SinBackward0", "ExpBackward0", "MulBackward0",
                     "AccumulateGrad", "AccumulateGrad"]  # fmt: skip
    assert [node.variable for node in nodes[-2:]] == [x, w]
    reached, waiting = set(), [root.grad_fn]
    while waiting:  # the same by PyTorch's means
        node = waiting.pop()
        if node is not None and node not in reached:
            reached.add(node)
            waiting += [n for n, _ in node.next_functions]
    assert reached == set(nodes)


def test_a_leaf_and_a_constant_as_roots():
    x = leaf(1.0)
    assert [n.variable for n in graph.iter_graph(x)] == [x]
    assert list(graph.iter_graph(tw.tensor(1.0))) == graph.execution_order(tw.tensor(1.0)) == []


def test_walks_do_not_recurse():
    x = y = leaf(1.0)
    for _ in range(30_000):
        y = y + x
    assert sum(1 for _ in graph.iter_graph(y)) == 30_001
    assert len(graph.execution_order(y, x)) == 30_000
    assert graph.saved_report(y).total == 0


# ------------------------------------------------------------------ networkx


def test_networkx_shows_operands_as_they_are_read():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    root = diamond(x, w)
    found = graph.to_networkx(root)
    assert nx.is_directed_acyclic_graph(found)
    assert list(nx.get_node_attributes(found, "op").values()) == [
        "input", "input", "mul", "exp", "sin", "add", "mul", "sum",
    ]  # fmt: skip
    assert list(found.edges(data="operands")) == [
        (0, 2, (0,)), (1, 2, (1,)), (2, 3, (0,)), (2, 4, (0,)), (2, 6, (1,)), (3, 5, (0,)), (4, 5, (1,)), (5, 6, (0,)),
        (6, 7, (0,)),
    ]  # fmt: skip
    assert found.nodes[7]["node"] is root.grad_fn
    assert found.nodes[0]["node"].variable is x


def test_both_engines_have_one_schema():
    program = static.function(lambda x, w: diamond(x, w))
    program(np.ones(3, np.float32), np.ones(3, np.float32))
    compiled, recorded = program.graph, graph.to_networkx(diamond(leaf(1.0, 2.0), leaf(3.0, 4.0)))
    for one in (compiled, recorded):
        assert type(one) is nx.DiGraph
        assert list(one) == sorted(one)
        assert all(type(key) is int and a < b for key in one for a, b in one.out_edges(key))
        assert all(data.keys() >= {"node", "op"} for _, data in one.nodes(data=True))
        assert {frozenset(data) for *_, data in one.edges(data=True)} == {frozenset({"operands", "results"})}

    def ops(one):
        return {(one.nodes[a]["op"], one.nodes[b]["op"], at) for a, b, at in one.edges(data="operands")}

    assert ops(compiled) == ops(recorded)


# ------------------------------------------------------------------ saved values


def test_saved_values_have_pytorchs_names():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    node = (x * w).grad_fn
    assert node._saved_self is x
    assert node._saved_other is w
    y = x.exp()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    assert (x**3).grad_fn._saved_exponent == 3
    with pytest.raises(AttributeError, match="it saves \\['_saved_self', '_saved_other'\\]"):
        _ = node._saved_result
    (x * w).sum().backward()
    y.sum().backward()
    with pytest.raises(GraphFreedError, match="directly access saved tensors"):
        _ = y.grad_fn._saved_result


def test_the_report_counts_a_storage_once():
    x, w = tw.zeros(1000).requires_grad_(), tw.zeros(1000).requires_grad_()
    y = x.exp()  # saves y
    z = y * w  # saves y again, and the leaf
    report = graph.saved_report((z * z[:]).sum())  # saves z twice
    assert report.total == 8000
    assert report.by_op == {"ExpBackward0": 4000, "MulBackward0": 4000}
    assert report.leaves == 4000
    (first, *_) = report.storages
    assert (first.node, first.nodes, first.nbytes, first.shape) == (y.grad_fn, 2, 4000, (1000,))


def test_the_report_counts_whole_storages_of_views():
    x = tw.zeros(1000).requires_grad_()
    part = (x + 1)[:10]
    assert graph.saved_report(part * part).total == 4000


def test_the_report_names_lines_and_modules():
    model = tw.nn.Sequential(tw.nn.Linear(4, 8), tw.nn.Tanh(), tw.nn.Linear(8, 1))
    x = tw.zeros(16, 4)
    line = inspect.currentframe().f_lineno + 1
    y = model(x)
    report = graph.saved_report(y.exp().sum())
    assert report.by_module == {"2": 16 * 8 * 4, "0": 16 * 4 * 4, "": 16 * 4}
    assert report.by_line == {f"{__file__}:{line}": 16 * 12 * 4, f"{__file__}:{line + 1}": 16 * 4}
    text = str(report)
    assert text.startswith("saved for backward: 832 bytes, and 160 bytes of leaves\n")
    assert "            512  2\n" in text
    assert f"            768  {__file__}:{line}\n" in text


def test_the_report_looks_into_regions_functions_and_checkpoints():
    x = tw.zeros(1000).requires_grad_()
    y = x + 1
    assert graph.saved_report(inside(y)).by_op == {"MulBackward0": 4000, "TanhBackward0": 4000}
    assert graph.saved_report(Twice.apply(y)).by_op == {"TwiceBackward": 4000}
    again = tw.utils.checkpoint.checkpoint(lambda t: t.exp().sin(), y, use_reentrant=False)
    assert graph.saved_report(again).total == 4000  # the argument only


def test_what_is_packed_or_freed_is_not_in_memory():
    x = tw.zeros(1000).requires_grad_()
    with graph.saved_tensors_hooks(lambda t: None, lambda p: tw.zeros(1000)):
        y = (x + 1).exp()
    assert graph.saved_report(y).total == 0
    z = (x + 1).exp().sum()
    assert graph.saved_report(z).total == 4000
    z.backward()
    assert graph.saved_report(z).total == 0


# ------------------------------------------------------------------ edges of gradients


def test_a_gradient_edge_stands_for_its_tensor():
    x = leaf(1.0, 2.0)
    y = x * 3
    a, b = graph.get_gradient_edge(x), graph.get_gradient_edge(y)
    assert a.node.variable is x
    assert (b.node, b.output_nr) == (y.grad_fn, 0)
    total = (y * y).sum()
    assert [g.tolist() for g in grad(total, [a, b], retain_graph=True)] == [[18.0, 36.0], [6.0, 12.0]]
    assert grad(total, b)[0].tolist() == [6.0, 12.0]
    with pytest.raises(RuntimeError, match="gradient edge for a Tensor that does not require gradients"):
        graph.get_gradient_edge(y.detach())


# ------------------------------------------------------------------ inputs that are not reached

UNUSED = "appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."


def message(outputs, inputs):
    with pytest.raises(GradientError) as caught:
        grad(outputs, inputs)
    return str(caught.value)


def test_unused_parameters_are_named():
    model = tw.nn.Sequential(tw.nn.Linear(2, 3), tw.nn.Linear(3, 1))
    text = message(model[0](tw.zeros(1, 2)).sum(), list(model.parameters()))
    assert f"(input 2, parameter '1.weight'; input 3, parameter '1.bias') {UNUSED}" in text
    assert "the outputs do not use it" in text


def test_the_line_that_reads_a_detached_value_is_named():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    line = inspect.currentframe().f_lineno + 1
    y = x.detach() * w
    text = message(y.sum(), [w, x])
    assert f"(input 1, of shape (2,)) {UNUSED}" in text
    assert f"MulBackward0 at {__file__}:{line} reads its values, but without its history" in text


def test_an_input_made_after_the_outputs_is_told():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    line = inspect.currentframe().f_lineno + 1
    late = x[0]
    assert f"SelectBackward0 at {__file__}:{line}, which ran after the outputs were made" in message(y, late)


def test_a_refused_pass_frees_nothing():
    x, w = leaf(1.0), leaf(2.0)
    y = (x * x).sum()
    message(y, [x, w])
    assert grad(y, x)[0].tolist() == [2.0]


def test_a_rule_that_gives_nothing_is_an_unused_input():
    class Stop(Function):
        @staticmethod
        def forward(ctx, x):
            return x + 0

        @staticmethod
        def backward(ctx, g):
            return None

    x = leaf(1.0)
    line = inspect.currentframe().f_lineno + 1
    text = message(Stop.apply(x).sum(), x)
    assert f"(input 0, of shape (1,)) {UNUSED} StopBackward at {__file__}:{line} uses it, but no gradient" in text


def test_inputs_without_gradient_are_named():
    model = tw.nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    with pytest.raises(GradientError, match="does not require grad \\(input 1, parameter 'bias'\\)"):
        grad(model(tw.zeros(1, 2)).sum(), list(model.parameters()))


def test_tools_leave_no_hooks_behind(monkeypatch):
    monkeypatch.setattr(hook_handles, "hooks_seen", False)
    root = diamond(leaf(1.0, 2.0), leaf(3.0, 4.0))
    for tool in (graph.iter_graph, graph.execution_order, graph.saved_report, graph.to_networkx):
        tool(root)
    assert not hook_handles.hooks_seen


@pytest.mark.parametrize("engine", [tw, static])
def test_hooks_on_several_tensors_expect_only_those_that_a_pass_reaches(engine):
    a, b, c = (engine.ones(2, requires_grad=True) for _ in range(3))
    seen = []
    engine.autograd.graph.register_multi_grad_hook((a, b, c), lambda grads: seen.append([g is not None for g in grads]))
    y = (b * c).sum()
    y.backward(inputs=(b, c), retain_graph=True)
    y.backward(inputs=(a,), retain_graph=True)  # no way leads there
    y.backward(inputs=(a, c), retain_graph=True)
    assert seen == [[False, True, True], [False, False, True]]


@pytest.mark.parametrize("engine", [tw, static])
@pytest.mark.parametrize("name", ["grad", "jacrev", "jacfwd", "hessian"])
def test_hooks_on_saved_values_hold_in_transforms(engine, name):
    x = engine.tensor([0.5, 1.0], dtype=engine.float64)
    wanted = {"hessian": np.diag(-np.sin(x.numpy()))}.get(name, np.cos(x.numpy()))
    counts = [0, 0]

    def pack(saved):
        counts[0] += 1
        return saved.clone()

    def unpack(saved):
        counts[1] += 1
        return saved

    with engine.autograd.graph.saved_tensors_hooks(pack, unpack):
        found = getattr(engine.func, name)(lambda x: x.sin().sum())(x)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
    assert engine is static or min(counts) > 0


def test_an_instance_of_a_function_is_no_node():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Twice()
    for name in ("name", "next_functions", "register_hook", "metadata"):
        with pytest.raises(RuntimeError, match=f"Attribute '{name}' is invalid"):
            getattr(made, name)
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        made.other  # noqa: B018
