"""A budget of memory for a whole traced step: computed again is as little as keeps to it, and every bit stays."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError
from static.graph.lifetimes import computed_again
from static.passes.rematerialise import BudgetSearch, Rematerialiser, _peak
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import first

F32 = np.float32
LAYERS, ROWS, WIDTH = 10, 512, 32


def deep(tw, **options):
    """A training step of a network of many layers, and its state."""
    tw.manual_seed(3)
    layers = [part for _ in range(LAYERS) for part in (tw.nn.Linear(WIDTH, WIDTH), tw.nn.Tanh())]
    model = tw.nn.Sequential(*layers)
    optimizer = tw.optim.Adam(model.parameters(), lr=0.01)

    @tw.function(**options)
    def step(x, t):
        optimizer.zero_grad()
        loss = tw.nn.functional.mse_loss(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    rng = np.random.default_rng(4)
    given = rng.normal(size=(2, ROWS, WIDTH)).astype(F32)
    return step, given, lambda: [p.detach().numpy() for p in model.parameters()]


def block(tw, **options):
    """The gradients of a transformer block with dropout."""
    tw.manual_seed(5)
    heads, tokens, width = 4, 64, 32
    nn, F = tw.nn, tw.nn.functional
    qkv, wide, narrow = nn.Linear(width, 3 * width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    norms = [nn.LayerNorm(width), nn.LayerNorm(width)]

    def forward(x):
        apart = qkv(norms[0](x)).reshape(len(x), tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(apart[0], apart[1], apart[2], is_causal=True)
        x = x + F.dropout(y.transpose(1, 2).reshape(len(x), tokens, width), 0.1)
        return x + narrow(F.gelu(wide(norms[1](x))))

    parameters = [p for module in (qkv, wide, narrow, *norms) for p in module.parameters()]

    @tw.function(**options)
    def call(x, cotangent):
        leaf = x.detach().requires_grad_()
        return tw.autograd.grad(forward(forward(leaf)), [leaf, *parameters], cotangent)

    given = np.random.default_rng(6).normal(size=(2, 8, tokens, width)).astype(F32)
    return call, given, list


def two_calls(program, tw, **options):
    """The results and traces of two calls, and the function."""
    call, given, state = program(tw, **options)
    results = [call(*given), call(*given[::-1])]
    results = [x for result in results for x in (result if isinstance(result, (tuple, list)) else (result,))]
    return [np.asarray(getattr(x, "data", x) if tw is dynamic else x) for x in results] + state(), call


@pytest.mark.parametrize(("program", "shares"), [(deep, (0.8, 0.6, 0.4)), (block, (0.9, 0.8, 0.7))])
def test_a_budget_is_kept_to_and_changes_no_bit(program, shares):
    expected, _ = two_calls(program, dynamic)
    found, call = two_calls(program, static)
    assert_all_same_bits(found, expected, "without a budget")
    most = call.explain().arena_bytes
    assert not call.explain().recomputed
    costs = []
    for share in shares:
        found, call = two_calls(program, static, memory_budget=int(share * most))
        assert_all_same_bits(found, expected, f"within {share} of the memory")
        told = call.explain()
        assert told.arena_bytes <= share * most
        assert told.arena_without == most
        costs.append(sum(node.nanoseconds for node in told.recomputed))
        assert "computed again, to stay within the budget of memory:" in str(told)
    assert 0 < costs[0] <= costs[1] <= costs[2]


def test_nothing_is_computed_again_that_need_not_be():
    _, call = two_calls(deep, static, memory_budget=1 << 30)
    assert not call.explain().recomputed
    assert "computed again" not in str(call.explain())


def test_what_is_computed_again_runs_where_it_is_needed():
    """Half of the layers run twice, the second time after the backward pass of the others has begun."""
    _, call = two_calls(deep, static)
    most = call.explain().arena_bytes
    _, call = two_calls(deep, static, memory_budget=int(0.6 * most))
    ops = [op for kernel in call.explain().kernels for op in kernel.ops]
    assert ops.count("tanh") > LAYERS + 3
    last = max(i for i, op in enumerate(ops) if op == "tanh")
    assert ops[:last].count("mm") > 2 * LAYERS


def graph_of(program, monkeypatch):
    """The graph that a budget is kept to in."""
    graphs = []
    with monkeypatch.context() as patched:
        patched.setattr(Rematerialiser, "_within", lambda self, graph: graphs.append(graph) or graph)
        call, given, _ = program(static, memory_budget=1)
        call(*given)
    return graphs[0]


def test_graphs_are_taken_by_the_memory_that_they_need_and_not_by_estimates(monkeypatch, fresh_cache):
    graph = graph_of(deep, monkeypatch)

    def arena(given):
        """A fifth more than is estimated, of what is computed again."""
        return int(_peak(given.nodes, given)[1] * (1.0 if given is graph else 1.2))

    keeper = Rematerialiser("f", int(0.7 * arena(graph)), arena)
    found = keeper(graph)
    assert keeper.repeated
    assert arena(found) == keeper.after <= keeper.budget


@pytest.mark.parametrize("program", first(1, [deep, block]))
def test_ways_are_judged_as_if_all_nodes_were_there(monkeypatch, fresh_cache, program):
    """They are judged without the nodes that follow the last product, such as updates of parameters."""
    start = BudgetSearch(graph_of(program, monkeypatch))
    least = start.within(0)
    assert least.most < 0.5 * start.most
    for found in (start, *start._after.values(), least):
        assert _peak(found.graph.nodes, found.graph) == (found.peak, found.most)
    assert len(start._tried) > 20
    for needed, windows in start._tried:
        nodes = computed_again(start._core, start.peak, windows, start._behind)
        assert _peak(nodes, start.graph)[1] == needed


@pytest.mark.parametrize("program", first(1, [deep, block]))
def test_a_budget_that_cannot_be_kept_to_says_what_can(program):
    call, given, _ = program(static, memory_budget=10_000)
    with pytest.raises(ArgumentError, match=r"memory_budget of \w+ is 10000 bytes, but its .* at least") as error:
        call(*given)
    least, without = [int(word) for word in str(error.value).split() if word.isdigit()][1:]
    assert least < (0.5 if program is deep else 0.7) * without
    call, given, _ = program(static, memory_budget=least)
    call(*given)
    assert call.explain().arena_bytes <= least


def test_loops_over_elements_alone_have_nothing_to_compute_again():
    call = static.function(lambda x: (x - x.mean(0)).exp().sum(1), memory_budget=1)
    with pytest.raises(ArgumentError, match=r"at least (\d+) bytes, and \1 if nothing"):
        call(np.ones((64, 48), F32))


def test_gradients_inside_loops_and_users_passes_keep_to_it_as_well():
    def program(tw, **options):
        rng = np.random.default_rng(8)
        w = rng.normal(size=(16, 16)).astype(F32) / 4

        @tw.function(**options)
        def call(x, w):
            def loss(w):
                h = x
                for _ in range(8):
                    h = tw.fori_loop(0, 2, lambda i, h: tw.tanh(h @ w), h) * x
                return (h * h).sum()

            return tw.value_and_grad(loss)(w)

        return call, (rng.normal(size=(256, 16)).astype(F32), w), list

    def both(tw, **options):
        call, (x, w), _ = program(tw, **options)
        return [np.asarray(getattr(v, "data", v) if tw is dynamic else v) for v in call(x, w)], call

    expected, _ = both(dynamic)
    _, call = both(static)
    budget = int(0.9 * call.explain().arena_bytes)
    for options in ({}, {"passes": static.passes.PIPELINE + static.passes.REGIONS}, {"fuse": False}):
        found, call = both(static, memory_budget=budget, **options)
        assert_all_same_bits(found, expected, f"within a budget, {list(options)}")
        assert call.explain().arena_bytes <= budget
