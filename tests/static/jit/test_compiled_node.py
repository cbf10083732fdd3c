"""A compiled function called on tensors that need gradients: one node, both directions compiled, equal bits."""

import gc
import weakref

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, GradientError, GraphFreedError
from static.running import interpreter
from tests.bits import assert_all_same_bits

F32 = np.float32


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def small_model():
    dynamic.manual_seed(3)
    nn = dynamic.nn
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3), nn.GELU())


def results(engine, f, arrays, parameters=(), **options):
    """Value and all gradients of the sum of squares of `f`, called as `engine.function(f)` in the eager engine."""
    for p in parameters:
        p.grad = None
    leaves = [dynamic.tensor(x, requires_grad=x.dtype.kind == "f") for x in arrays]
    y = engine.function(f, **options)(*(x * 2 if x.requires_grad else x for x in leaves))
    (y * y).sum().backward()
    return [y.data, *(x.grad.data for x in leaves if x.requires_grad), *(p.grad.data for p in parameters)]


@pytest.mark.parametrize("options", [{}, {"fuse": False}, {"interpret": True}])
def test_bits_are_those_of_the_eager_function(rng, options):
    model = small_model()

    def f(x, labels):
        y = model(x)
        return dynamic.nn.functional.cross_entropy(y, labels, reduction="none") + y.softmax(-1).sum(-1)

    arrays = [rng.standard_normal((6, 4)).astype(F32), rng.integers(0, 3, 6)]
    parameters = list(model.parameters())
    eager = results(dynamic, f, arrays, parameters)
    assert_all_same_bits(eager, results(static, f, arrays, parameters, **options), "gradients")


def test_both_directions_are_compiled(rng, monkeypatch):
    def refuse(*args):
        raise AssertionError("interpreted")

    monkeypatch.setattr(interpreter, "run_node", refuse)
    f = static.function(lambda x: (x @ x).tanh())
    x = dynamic.tensor(rng.standard_normal((3, 3)).astype(F32), requires_grad=True)
    y = f(x)
    half = f.newest.op.backward_half
    assert "program" not in vars(half)  # nothing of the backward half before it is asked for
    y.sum().backward()
    assert half.program.frame.calls


def test_the_node(rng):
    weight = dynamic.nn.Parameter(rng.standard_normal((3, 2)).astype(F32))
    f = static.function(lambda x, y: (x @ weight, x * 2, y))
    x = dynamic.tensor(np.ones((2, 3), F32), requires_grad=True)
    a, b, c = f(x, dynamic.tensor(np.ones(2, F32)))
    assert a.grad_fn.name() == "CompiledBackward"
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)
    assert not c.requires_grad
    assert [node.variable is t for (node, _), t in zip(a.grad_fn.next_functions, (x, weight), strict=True)] == [
        True
    ] * 2
    b.sum().backward()  # the other result has no cotangent
    assert np.array_equal(x.grad.data, np.full((2, 3), 2, F32))
    assert weight.grad is None  # as in the eager engine: absent, not zero


def test_one_tensor_as_two_arguments():
    x = dynamic.tensor([1.0, 2.0], requires_grad=True)
    static.function(lambda a, b: a * b)(x, x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_captured_tensors_with_history():
    x = dynamic.tensor([1.0, 2.0], requires_grad=True)
    h = x * 3
    y = static.function(lambda a: a * h)(dynamic.tensor([1.0, 1.0]))
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_no_history_where_none_is_wanted():
    x = dynamic.tensor([1.0, 2.0], requires_grad=True)
    f = static.function(lambda a: a * 2)
    with dynamic.no_grad():
        assert f(x).grad_fn is None
    assert f(x).requires_grad
    assert f(x.detach()).grad_fn is None
    assert f(np.ones(2, F32)).grad_fn is None

    def step(a):
        loss = (a * a).sum()
        loss.backward()
        return loss

    assert static.function(step)(x).grad_fn is None


def test_a_second_backward_is_refused_unless_retained():
    x = dynamic.tensor([1.0, 2.0], requires_grad=True)
    f = static.function(lambda a: a * a)
    y = f(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(GraphFreedError, match="CompiledBackward"):
        y.backward()


def test_overwriting_what_is_kept_is_noticed():
    x = dynamic.tensor([1.0, 2.0], requires_grad=True) * 1
    y = static.function(lambda a: a * a)(x)
    with dynamic.no_grad():
        x.mul_(2)
    with pytest.raises(GradientError, match=r"modified by an inplace operation.*CompiledBackward"):
        y.sum().backward()


def test_writes_from_outside_are_noticed():
    array = np.ones(2, F32)
    x = dynamic.from_numpy(array)
    x.requires_grad_()
    y = static.function(lambda a: a * a)(x)
    array[0] = 5
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        y.sum().backward()


def test_new_sizes_compile_nothing(rng):
    f = static.function(lambda a: (a @ a.T).exp())
    for n in (3, 5, 8):
        x = dynamic.tensor(rng.standard_normal((n, 2)).astype(F32), requires_grad=True)
        f(x).sum().backward()
        eager = dynamic.tensor(x.data, requires_grad=True)
        dynamic.function(lambda a: (a @ a.T).exp())(eager).sum().backward()
        assert_all_same_bits([x.grad.data], [eager.grad.data], f"{n} rows")
    assert len(f.traces) == 1


def test_random_draws_are_those_of_the_call(rng):
    drop = dynamic.nn.Dropout(0.5)
    data, found = rng.standard_normal((8, 8)).astype(F32), []
    for engine in (dynamic, static):
        dynamic.manual_seed(11)
        x = dynamic.tensor(data, requires_grad=True)
        f = engine.function(lambda a: drop(a * a))
        for _ in range(2):
            y = f(x)
            y.sum().backward()
        found.append([y.data, x.grad.data])
    assert_all_same_bits(*found, "a dropout")


def test_cheap_ops_are_computed_again_and_nothing_is_kept_twice():
    f = static.function(lambda a, b: (a * 2 + 1) * (b - 3))
    x, y = (dynamic.tensor(np.ones(1000, F32), requires_grad=True) for _ in range(2))
    f(x, y)
    assert [v.node.name for v in f.newest.op.halves.kept] == ["input", "input"]
    assert len(f.newest.graph.outputs) == 1
    g = static.function(lambda a: a.exp() * 2)
    g(x)
    assert [v.node.name for v in g.newest.op.halves.kept] == ["exp"]
    assert g.explain().kept[0][1] == 4000


def test_nothing_is_leaked():
    gc.disable()
    try:
        f = static.function(lambda a: (a * a).exp())
        x = dynamic.tensor(np.ones(1000, F32), requires_grad=True)
        y = f(x)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------------------------------------- modules
def train(model, data, labels, steps=5):
    optimizer = dynamic.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = dynamic.nn.functional.cross_entropy(model(data), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_compiled_module_takes_the_place_of_the_module(rng):
    data = dynamic.tensor(rng.standard_normal((16, 4)).astype(F32))
    labels = dynamic.tensor(rng.integers(0, 3, 16))
    plain, compiled = small_model(), small_model()
    fast = static.compile(compiled)
    assert fast.state_dict().keys() == plain.state_dict().keys()
    assert isinstance(fast, dynamic.nn.Sequential)
    losses = train(plain, data, labels)
    np.testing.assert_allclose(train(fast, data, labels), losses, rtol=1e-5)
    assert losses[-1] < losses[0]
    assert fast[0].weight is compiled[0].weight
    assert np.array_equal(compiled(data).detach().numpy(), fast(data).detach().numpy())


def test_training_and_eval_are_different_programs(rng):
    model = dynamic.nn.Sequential(dynamic.nn.Linear(4, 64), dynamic.nn.Dropout(0.5))
    fast, x = static.compile(model), dynamic.tensor(np.ones((2, 4), F32))
    assert (fast(x) == 0).any()
    model.eval()
    assert not (fast(x) == 0).any()
    assert np.array_equal(fast(x).detach().numpy(), model(x).detach().numpy())
    fast.train()
    assert model.training
    assert (fast(x) == 0).any()


def test_what_a_program_relies_on_is_looked_at_again():
    scale = dynamic.nn.Parameter(np.ones(2, F32))
    model = dynamic.nn.Linear(2, 2)
    f = static.function(lambda x: model(x * scale).sum().backward())
    x = np.ones((1, 2), F32)
    f(x)
    scale.requires_grad = False
    scale.grad = None
    f(x)
    assert scale.grad is None
    assert f.explain().retraces == ["requires_grad of a tensor of shape (2,) is False now, it was True"]
    model.weight = dynamic.nn.Parameter(np.zeros((2, 2), F32))
    f(x)
    assert model.weight.grad is not None
    assert f.explain().retraces[-1] == "Linear.weight is another Parameter now, it was another Parameter"


def deep_network():
    rng = np.random.default_rng(70)
    weights = [dynamic.tensor(rng.normal(size=(32, 32)).astype(F32) / 6, requires_grad=True) for _ in range(6)]

    def loss(x):
        for w in weights:
            x = static.softmax(static.dropout(static.tanh(x @ w), 0.1), 1) + x
        return (x * x).mean()

    x = dynamic.tensor(rng.normal(size=(100, 32)).astype(F32), requires_grad=True)
    return loss, x, weights


def gradients_with(budget):
    loss, x, weights = deep_network()
    dynamic.manual_seed(3)
    f = static.function(loss, memory_budget=budget)
    f(x).backward()
    return [x.grad.data, *(w.grad.data for w in weights)], f


def own_bytes(f):
    """Bytes that a function keeps, and that would not exist otherwise."""
    halves = f.newest.op.halves
    given = {value.key for value in (*halves.forward.inputs, *halves.forward.outputs[: f.newest.op.results])}
    return sum(int(np.prod([int(n) for n in v.shape])) * v.dtype.itemsize for v in halves.kept if v.key not in given)


def test_a_budget_of_memory_is_kept_to_and_changes_no_bit():
    expected, f = gradients_with(None)
    most = own_bytes(f)
    kept = [most]
    for share in (0.7, 0.4, 0.15, 0.02):
        found, f = gradients_with(int(share * most))
        assert_all_same_bits(found, expected, f"{share} of what is kept without a budget")
        assert own_bytes(f) <= share * most
        kept.append(own_bytes(f))
    assert kept == sorted(kept, reverse=True)
    assert kept[1] > 0.3 * most, "no more is computed again than the budget asks for"


def test_a_budget_that_nothing_keeps_to_is_refused():
    f = static.function(lambda x: static.fori_loop(0, 3, lambda i, s: s * s, x), memory_budget=0)
    with pytest.raises(ArgumentError, match=r"memory_budget is 0 bytes, but [0-9]+ have to be kept"):
        f(dynamic.tensor(np.ones(50, F32), requires_grad=True))
