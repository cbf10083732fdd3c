"""A compiled function about itself: `explain()`, `dump()`, retraces; and users' own passes."""

import re

import numpy as np
import pytest

import static
from common.core.errors import ArgumentError, CompileError, TraceError
from static.graph import Node, Value, rebuild
from static.passes import PIPELINE
from static.reports import costs
from static.running.parity import difference

F32 = np.float32


def dense(x, w):
    return (static.tanh(x @ w) * 2).sum(0)


@pytest.fixture
def compiled():
    f = static.function(dense)
    f(np.ones((64, 32), F32), np.ones((32, 16), F32))
    return f


def test_bytes_and_flops_are_counted(compiled):
    product, rest = compiled.explain().kernels
    assert product.ops == ("mm",)
    assert (product.reads, product.writes, product.flops) == (4 * (64 * 32 + 32 * 16), 4 * 64 * 16, 2 * 64 * 32 * 16)
    assert rest.ops == ("tanh", "mul", "sum")
    assert (rest.reads, rest.writes, rest.flops) == (4 * 64 * 16, 4 * 16, 3 * 64 * 16)
    assert rest.refused == ("not with mm (%2) for tanh: one of them is a kernel of its own",)


def test_costs_follow_the_newest_sizes(compiled):
    before = compiled.explain()
    compiled(np.ones((128, 32), F32), np.ones((32, 16), F32))
    after = compiled.explain()
    assert after.plans == 2
    assert [k.flops for k in after.kernels] == [2 * k.flops for k in before.kernels]


def test_a_row_is_read_once_however_often_it_is_used():
    f = static.function(lambda x, b: (x + b) * b)
    f(np.ones((8, 4), F32), np.ones(4, F32))
    (kernel,) = f.explain().kernels
    assert kernel.reads == 4 * (8 * 4 + 4)
    part = static.function(lambda x: x[:2] * 2)
    part(np.ones((8, 4), F32))
    assert part.explain().kernels[0].reads == 4 * 8


def test_arena_has_no_overlap_in_time_and_place():
    f = static.function(lambda x: (((x @ x) @ x) @ x) @ x)
    f(np.ones((32, 32), F32))
    facts = f.explain()
    assert facts.arena_bytes < facts.unshared_bytes
    for i, a in enumerate(facts.arena):
        for b in facts.arena[i + 1 :]:
            together = a.first <= b.last and b.first <= a.last
            assert not together or a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
    assert max(piece.offset + piece.nbytes for piece in facts.arena) <= facts.arena_bytes


def test_origin_of_machine_code(compiled):
    facts = compiled.explain()
    assert set(facts.machine_code) <= {"compiled", "disk"}
    assert sum(facts.machine_code.values()) == 2
    assert re.search(r"2 for 4 operations, 2 distinct \(", str(facts))


def test_kernels_that_another_function_has_made_take_no_seconds():
    def scaled(x):
        return (x * 0.8713).tanh()

    first, second = static.function(scaled), static.function(scaled)
    for f in (first, second):
        f(np.ones(8, F32))
    assert first.explain().seconds["kernels"] > 0
    assert second.explain().seconds["kernels"] == 0
    assert first.explain().machine_code == second.explain().machine_code


def test_dump_writes_every_stage(compiled, tmp_path):
    paths = compiled.dump(tmp_path / "new")
    names = [path.name for path in paths]
    assert names[:3] == ["00_traced.txt", "01_remove_dead.txt", "02_simplify.txt"]
    assert names[-1].endswith("explain.txt")
    texts = {path.name.partition("_")[2]: path.read_text() for path in paths}
    assert "= mm(" in texts["traced.txt"]
    assert "# nothing to rewrite" in texts["simplify.txt"]
    assert "group 1\n  %3 tanh" in texts["groups.txt"]
    assert re.search(r"gemm\(arg0, arg1\) -> t\d+", texts["calls.txt"])
    kernels = [text for name, text in texts.items() if name.startswith("kernel_k_")]
    assert len(kernels) == 1
    assert "tanh(" in kernels[0]
    assert compiled.dump(tmp_path / "new") == paths


def test_dump_of_an_interpreted_function_has_no_kernels(tmp_path):
    f = static.function(dense, interpret=True)
    with pytest.raises(TraceError, match="has not been traced yet"):
        f.dump(tmp_path)
    f(np.ones((4, 3), F32), np.ones((3, 2), F32))
    assert not any("kernel" in path.name for path in f.dump(tmp_path))


# ------------------------------------------------------------------------------------------------- retraces
def test_retraces_name_what_differs():
    f = static.function(lambda x, flag=True: x * 2 if flag else x * 3)
    f(np.ones(3, F32))
    f(np.ones((3, 1), np.float64))
    f(np.ones(3, np.float64))
    assert f.explain().retraces == [
        "argument 0 is float64[*, 1], before float32[*]",
        "argument 0 is float64[*], before float32[*]",
    ]
    f(np.ones(3, F32), False)
    assert "nested" in f.explain().retraces[-1]
    f(np.ones(3, F32), True)
    assert f.explain().retraces[-1] == "argument 1 is True, before False"


def test_retraces_have_a_budget():
    f = static.function(lambda x, n: x * n if n > 0 else x, max_traces=3)
    for n in range(1, 4):
        f(np.ones(3, F32), n)
    with pytest.raises(TraceError, match=r"3 times.*argument 1 is 9, the trace used it as the Python number 3"):
        f(np.ones(3, F32), 9)
    assert np.array_equal(f(np.ones(3, F32), 2), np.full(3, 2, F32))
    data = static.function(lambda x, n: x * n, max_traces=1)
    for n in range(50):
        data(np.ones(3, F32), float(n))


@pytest.mark.parametrize("options", [{"max_traces": 0}, {"passes": (3,)}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ArgumentError, match="max_traces is at least 1"):
        static.function(dense, **options)


# ------------------------------------------------------------------------------------------------- users' passes
def replaced(graph, name, make):
    """The graph with the operands of each node `name` replaced by `make(node)`."""
    nodes = []
    for node in graph.nodes:
        if node.name == name:
            copy = Node(
                node.id, node.op, make(node), node.attrs, [v.spec for v in node.outputs], node.source, node.scope
            )
            copy.outputs = node.outputs
            nodes.append(copy)
        else:
            nodes.append(node)
    return rebuild(graph, nodes, {})


def swap_factors(graph):
    """x * y becomes y * x."""
    return replaced(graph, "mul", lambda node: node.operands[::-1])


def round_factors(graph):
    """x * 0.1 becomes x * 0.1000001."""
    return replaced(graph, "mul", lambda node: tuple(x if type(x) is Value else 0.1000001 for x in node.operands))


def forget_order(graph):
    """The nodes in the wrong order."""
    return type(graph)(graph.inputs, graph.nodes[::-1], graph.outputs, graph.effects)


def tenth(x):
    return x * 0.1


def test_a_users_pass_runs_and_is_reported():
    f = static.function(tenth, passes=(*PIPELINE, swap_factors))
    assert np.array_equal(f(np.ones(3, F32)), np.full(3, 0.1, F32))
    assert f.explain().passes[-1].name == "swap_factors"
    assert str(f.newest.graph.nodes[-1]).endswith("mul(0.1, %0)")


def test_a_pass_that_changes_bits_is_refused():
    f = static.function(tenth, passes=(round_factors,))
    with pytest.raises(CompileError, match=r"round_factors changes bits of result 0, made by mul at .*ulp away"):
        f(np.ones(3, F32))


def test_a_pass_that_breaks_the_graph_is_refused():
    with pytest.raises(CompileError, match=r"after forget_order: .*not defined before it"):
        static.function(tenth, passes=(forget_order,))(np.ones(3, F32))


def test_the_check_of_a_pass_leaves_state_alone():
    weight = static.nn.Parameter(np.ones(3, F32))

    def step(x):
        with static.no_grad():
            weight.mul_(x)
        return weight * 1

    f = static.function(step, passes=(*PIPELINE, swap_factors))
    f(np.full(3, 2, F32))
    assert np.array_equal(weight.numpy(), np.full(3, 2, F32))


def test_difference_in_words():
    x = np.array([1.0, 2.0], F32)
    assert difference(x, x.copy()) == ""
    assert difference(np.zeros(1, F32), -np.zeros(1, F32)).startswith("element (0,) is 0.0 before and -0.0 after, 0")
    assert "2 ulp" in difference(x, x + np.float32(2.3e-7))
    assert "3 ulp" in difference(np.array([1e-45], F32), np.array([-3e-45], F32))
    assert difference(x, x.astype(np.float64)) == "float32[2] becomes float64[2]"
    assert costs.amount(0, "B") == "0 B"
    assert costs.amount(2.5e15, "flop") == "2.5e+03 Tflop"


@pytest.mark.parametrize(("groups", "stride"), [(1, 1), (2, 2)])
def test_a_convolution_and_its_gradients_count_two_operations_per_output_and_weight(groups, stride):
    def loss(x, w, b):
        return (static.nn.functional.conv2d(x, w, b, stride=stride, padding=1, groups=groups) ** 2).sum()

    f = static.function(static.value_and_grad(loss, argnums=(0, 1, 2)))
    f(np.ones((2, 4, 8, 8), np.float32), np.ones((6, 4 // groups, 3, 3), np.float32), np.ones(6, np.float32))
    found = [kernel.flops for kernel in f.explain().kernels if kernel.name.startswith("conv")]
    assert found == [2 * (2 * 6 * (8 // stride) ** 2) * (4 // groups * 9)] * 3


def test_kernels_of_loops_say_how_often_they_run():
    def rows(x):
        return static.scan(lambda c, a: (c * a, None), x[0], x)[0]

    def steps(x):
        return static.while_loop(lambda c: c.sum() < 100, lambda c: c + 1, x[0])

    x = np.ones((5, 4), np.float32)
    scan, loop = static.function(rows), static.function(steps)
    scan(x), loop(x)
    inside = [k for k in scan.explain().kernels if "mul" in k.ops]
    assert [k.times for k in inside] == [5]
    assert "(5 times)" in str(inside[0])
    assert [k.times for k in scan.explain().kernels if k.name == "loop"] == [0]
    assert {k.times for k in loop.explain().kernels if "add" in k.ops} == {None}
