"""Public functions that remember which ops they come to give the same results, by the same tape, as in their words."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import dynamic
import dynamic.nn.functional as F
from benchmarks.ops_calls import CALLS
from common.core.tree import flatten
from dynamic.eager import remembered
from tests.bits import assert_all_same_bits
from tests.conftest import ROOT
from tests.helpers.cases import CASES, DATA_DEPENDENT
from tests.helpers.proofs import core, no, share
from tests.helpers.wrapped import wrap

COSTLY = {
    "avg_pool2d", "max_pool2d", "kthvalue", "median(1)", "cosine_similarity", "topk", "sort", "softmax", "layer_norm",
    "gather", "clamp", "flip", "roll", "attention", "sinc", "cumsum(1)", "argmax", "take", "max(1)", "pad",
    "einsum", "scatter", "linear",
}  # fmt: skip


def operands(case, seed, recorded):
    arrays = case.draw(np.random.default_rng(seed), "float32", 4)
    return [wrap(x, requires_grad=recorded and x.dtype.kind == "f") for x in arrays]


def tape(y):
    """Names of nodes and edges below a result, in the order of a walk."""
    found, left, seen = [], [(y.grad_fn, 0)], set()
    while left:
        node, output = left.pop()
        found.append((None if node is None else node.name(), output))
        if node is not None and node not in seen:
            seen.add(node)
            left += node.next_functions
    return found


def gradients(results, tensors):
    leaves = [x for x in tensors if x.requires_grad]
    chosen = [y for y in results if y.requires_grad]
    if not leaves or not chosen:
        return []
    seeds = [wrap(np.random.default_rng(5).normal(size=y.shape).astype(y.dtype)) for y in chosen]
    return [g.numpy() for g in dynamic.autograd.grad(chosen, leaves, seeds, allow_unused=True) if g is not None]


@pytest.mark.parametrize("name", core(sorted(set(CASES) - set(DATA_DEPENDENT)), no, lambda name: share(name, 5) > 0))
def test_what_is_remembered_is_what_is_done(name):
    """Other numbers of the same forms; bits, tape, gradients, with and without a record."""
    for case in CASES[name][:2]:
        first = operands(case, 1, False)
        case.f(*first)
        line = remembered._learnt(case.f, first)
        if not line:
            continue
        for recorded in (True, False):
            pairs = []
            for f in (line, case.f):
                tensors = operands(case, 2, recorded)
                results, shape = flatten(f(*tensors))
                shown = [(y.requires_grad, y._is_view(), y._base is None) for y in results]
                pairs.append((shape, [tape(y) for y in results], shown))
                pairs.append([y.numpy(force=True) for y in results] + gradients(results, tensors))
            assert pairs[0] == pairs[2], case.label
            assert_all_same_bits(pairs[1], pairs[3], case.label)


def often(f, *arguments, **options):
    """The last of as many calls as it takes to be remembered, and one more."""
    for _ in range(remembered.OFTEN):
        f(*arguments, **options)
    return f(*arguments, **options)


TENSORS_ONLY = {
    "embedding_bag",
    "native_batch_norm",
    "native_group_norm",
    "triangular_solve",
}  # as their cases are told


def test_arrays_are_taken_beside_a_tensor():
    """Any argument may be an array, whichever of them decides what is remembered."""
    for name in sorted(set(CASES) - set(DATA_DEPENDENT) - TENSORS_ONLY):
        case = CASES[name][0]
        first, *others = operands(case, 1, False)
        if others:
            expected = flatten(case.f(first, *others))[0]
            found = flatten(case.f(first, *(x.numpy() for x in others)))[0]
            assert_all_same_bits([*map(np.asarray, found)], [*map(np.asarray, expected)], name)


def test_costly_functions_are_remembered(monkeypatch):
    learn, made = remembered._learnt, []
    monkeypatch.setattr(remembered, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    chosen = [call for call in CALLS if call.name in COSTLY]
    assert {call.name for call in chosen} == COSTLY
    for call in chosen:
        often(call.f, dynamic, *map(wrap, call.operands(np.random.default_rng(0), 1000)))
        assert made, call.name
        assert all(made), call.name
        made.clear()


def test_arguments_that_are_equal_and_not_the_same_are_told_apart():
    x = wrap(np.array([[-1.0, 0.0, 2.0]], np.float32))
    i = wrap(np.array([[1, 2, 3]]))
    assert often(dynamic.clamp, i, 0, 2).dtype == np.int64
    assert often(dynamic.clamp, i, 0.0, 2.0).dtype == np.float32
    assert [str(often(F.threshold, x, 1.0, value)[0, 0].item()) for value in (0.0, -0.0)] == ["0.0", "-0.0"]
    assert often(dynamic.roll, x, (1,), (1,)).tolist() == dynamic.roll(x, [1], [1]).tolist()
    with pytest.raises(TypeError):
        dynamic.roll(x, (1.0,), (1.0,))
    assert [str(often(dynamic.where, x > 5, value, x * 0 + 1)[0, 0].item()) for value in (0.0, -0.0)] == ["1.0", "1.0"]
    assert often(dynamic.maximum, i, i * 0 + 2).tolist() == [[2, 2, 3]]
    assert [often(dynamic.lerp, x, x + 1, weight).tolist()[0][2] for weight in (0.5, 1, True)] == [2.5, 3.0, 3.0]
    often(dynamic.softmax, x, 1)
    with pytest.raises((TypeError, ValueError)):
        dynamic.softmax(x, 1.0)


def test_tensors_and_tuples_are_arguments_of_any_name(monkeypatch):
    """`dist` calls its second tensor `other`; the tuples of `pad` and `rot90` are no forms."""
    learn, made = remembered._learnt, []
    monkeypatch.setattr(remembered, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    x, y = (wrap(np.random.default_rng(n).normal(size=(2, 3, 5, 4)).astype(np.float32)) for n in (3, 4))
    for f in (
        lambda x, y: dynamic.dist(x, y, 1.0),
        lambda x, y: F.pad(x, (1, 2, 1, 1), mode="reflect") * 1,
        lambda x, y: dynamic.rot90(y, 1, (2, 3)),
        lambda x, y: dynamic.matmul(x, y.transpose(2, 3)),
    ):
        made.clear()
        wanted = f(x, y)
        assert_all_same_bits([wanted.numpy()], [often(f, x, y).numpy()], "remembered")
        assert all(made)
        assert made
        assert_all_same_bits([f(y, x).numpy()], [f(y * 1, x * 1).numpy()], "of other numbers")
    x.requires_grad = True
    (grad,) = dynamic.autograd.grad(dynamic.dist(x, y, 1.0), x)
    assert grad.tolist() == dynamic.sign(x - y).tolist()


@pytest.mark.parametrize("recorded", [True, False])
def test_a_line_writes_to_operands_when_all_is_read(monkeypatch, recorded):
    """The running statistics of batch_norm; two that are one tensor, or share memory, are written in words."""
    learn, made = remembered._learnt, []
    monkeypatch.setattr(remembered, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    rng = np.random.default_rng(3)
    x = wrap(rng.normal(size=(6 + recorded, 4)).astype(np.float32), requires_grad=recorded)

    def step(norm, mean, var):
        y = norm(x, mean, var, training=True)
        grads = dynamic.autograd.grad(y, x, y.detach()) if recorded else ()
        return [z.numpy(force=True) for z in (y, mean, var, *grads)]

    def in_words(x, mean, var, training):
        from common.ops import functional

        return functional.batch_norm(x, mean, var, training=training)

    def states(kind):
        memory = np.linspace(1, 2, 5).astype(np.float32)
        if kind == "one":
            one = wrap(memory[:4].copy())
            return one, one
        if kind == "parts":
            whole = wrap(memory.copy())
            return whole[:4], whole[1:]
        return wrap(memory[:4].copy()), wrap(memory[1:].copy())

    for kind in ("apart", "one", "parts"):
        for _ in range(remembered.OFTEN + 2):
            ours, theirs = states(kind), states(kind)
            assert_all_same_bits(step(F.batch_norm, *ours), step(in_words, *theirs), kind)
    assert made
    assert all(made)
    mean, var = states("apart")
    y = F.batch_norm(x, mean, var, training=True) * mean  # mean is saved after it was written
    if recorded:
        mean.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_a_line_forgets_what_nothing_reads_any_more():
    x = wrap(np.random.default_rng(0).normal(size=(1, 1, 300, 300)).astype(np.float32))
    grid = wrap(np.random.default_rng(1).uniform(-1, 1, (1, 300, 300, 2)).astype(np.float32))
    wanted = F.grid_sample(x, grid, align_corners=False).numpy()
    for _ in range(remembered.OFTEN + 1):
        F.grid_sample(x, grid, align_corners=False)
    tracemalloc.start()
    found = F.grid_sample(x, grid, align_corners=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_all_same_bits([found.numpy()], [wanted], "grid_sample")
    assert peak < 30 * x.payload.nbytes  # all that is computed on the way is more than twice as much


def test_modules_remember_their_functions(monkeypatch):
    learn, made = remembered._learnt, []
    monkeypatch.setattr(remembered, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    x = wrap(np.random.default_rng(0).normal(size=(3, 4, 6, 11)).astype(np.float32))  # sizes of this test only
    nn = dynamic.nn
    for module in (
        nn.GroupNorm(2, 4), nn.BatchNorm2d(4), nn.BatchNorm2d(4).eval(), nn.AdaptiveAvgPool2d((4, 4)), nn.MaxPool2d(2),
        nn.ReflectionPad2d(1), nn.Conv2d(4, 3, 3), nn.Flatten(), nn.PixelShuffle(2), nn.Upsample(scale_factor=2),
    ):  # fmt: skip
        made.clear()
        first = module(x)
        last = often(module, x)
        assert made, module
        assert all(made), module
        assert_all_same_bits([first.detach().numpy()], [last.detach().numpy()], str(module))


FIRST = """
import static
import dynamic
from dynamic.eager import remembered

learn, made = remembered._learnt, []
remembered._learnt = lambda *given: made.append(learn(*given)) or made[-1]
nn, x = dynamic.nn, dynamic.ones(2, 4, 6, 6)
for module in (nn.Conv2d(4, 3, 3), nn.ConvTranspose2d(4, 3, 3), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d((4, 4))):
    made.clear()
    for _ in range(remembered.OFTEN):
        module(x)
    assert made and all(made), module
"""


def test_modules_remember_their_functions_where_static_is_imported_first():
    subprocess.run([sys.executable, "-c", FIRST], check=True, cwd=ROOT)


def test_operators_of_several_ops_are_remembered(monkeypatch):
    learn, made = remembered._learnt, []
    monkeypatch.setattr(remembered, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    v, m, stack = (wrap(np.random.default_rng(n).normal(size=(3,) * n).astype(np.float32)) for n in (1, 2, 3))
    for f, pair in (
        (lambda x, y: x @ y, (v, m)),
        (lambda x, y: x @ y, (m, v)),
        (lambda x, y: x @ y, (stack, m)),
        (lambda x, y: x // y, (m, v)),
        (lambda x, y: x % y, (m, 2.0)),
        (lambda x, y: x & y, (m > 0, v > 0)),
        (lambda x, y: ~x, (m.int(), None)),
    ):
        made.clear()
        wanted = f(*pair)
        assert_all_same_bits([wanted.numpy()], [often(f, *pair).numpy()], "remembered")
        assert made
        assert all(made)
    x, y = v.clone().requires_grad_(), m.clone().requires_grad_()
    first = dynamic.autograd.grad((dynamic.unsqueeze(x, 0).mm(y)).sum(), (x, y))
    again = dynamic.autograd.grad((x @ y).sum(), (x, y))
    assert_all_same_bits([g.numpy() for g in first], [g.numpy() for g in again], "gradients")
    with pytest.raises(TypeError):
        m @ "two"


def test_keys_of_tensors_of_ints_are_remembered_and_masks_are_not(monkeypatch):
    learn, made = remembered._learnt, []
    monkeypatch.setattr(remembered, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    numbers = np.arange(35, dtype=np.float32).reshape(5, 7)
    x, i, j = wrap(numbers, requires_grad=True), wrap(np.array([1, 4, -5])), wrap(np.array([0, 6, 2]))
    for key, places in (((i, j), np.s_[[1, 4, 0], [0, 6, 2]]), ((i, 2), np.s_[[1, 4, 0], 2]), (i, np.s_[[1, 4, 0]])):
        made.clear()
        y = often(lambda x, key=key: x[key], x)
        assert all(made)
        assert made
        assert y.tolist() == numbers[places].tolist()
        assert y.grad_fn.name() == "IndexBackward0"
        slope = np.zeros_like(numbers)
        slope[places] = 1
        assert dynamic.autograd.grad(y.sum(), x)[0].tolist() == slope.tolist()
        put = often(lambda x, key=key: dynamic.index_put(x, key if type(key) is tuple else (key,), x.sum()), x.detach())
        assert float(put.numpy()[places].min()) == numbers.sum()
        with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 0 with size 5"):
            x[(wrap(np.array([1, 9, 2])), *key[1:]) if type(key) is tuple else wrap(np.array([1, 9, 2]))]
    for count in (2, 3):
        mask = wrap(np.arange(5) < count)
        assert often(lambda x, mask=mask: x[mask, 1], x).tolist() == numbers[:count, 1].tolist()
        whole = wrap(numbers < count)
        assert often(lambda x, m=whole: dynamic.masked_select(x, m), x.detach()).tolist() == list(range(count))


def test_sequences_of_tensors_are_remembered_by_their_forms():
    def joined(*given):
        return [y.tolist() for y in flatten(given)[0]]

    x, y, z = (wrap(np.arange(n, dtype=np.float32)) for n in (2, 3, 3))
    pairs = often(dynamic.cartesian_prod, x, y)
    assert pairs.tolist() == [[a, b] for a in range(2) for b in range(3)]
    assert dynamic.cartesian_prod(y, x).shape == (6, 2)
    assert dynamic.cartesian_prod(x, z * 2)[5].tolist() == [1, 4]
    grids = often(dynamic.meshgrid, [x, y], indexing="xy")
    assert joined(*grids) == joined(*dynamic.meshgrid(x, y, indexing="xy")) != joined(*dynamic.meshgrid([x, y]))
    product = often(dynamic.einsum, "i,j->ij", x, y)
    assert product.tolist() == dynamic.einsum("i,j->ij", [x, y]).tolist() == [[0, 0, 0], [0, 1, 2]]
    assert dynamic.einsum("i,j->ji", x, y).shape == (3, 2)
    x.requires_grad = True
    often(dynamic.einsum, "i,j->ij", x, y).sum().backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="einsum"):
        dynamic.einsum("i,i->", x, y)
    broadcast = often(dynamic.broadcast_tensors, y, wrap(np.ones((2, 1), np.float32)))
    assert broadcast[0]._base is y


def test_errors_come_as_ever():
    x, i = wrap(np.ones((2, 3), np.float32)), wrap(np.zeros((2, 1), np.int64))
    often(dynamic.gather, x, 1, i)
    with pytest.raises(IndexError, match=r"gather\(\): index out of range"):
        dynamic.gather(x, 1, i + 7)
    with pytest.raises(IndexError):
        often(dynamic.gather, x, 5, i)


def test_draws_and_writes_are_not_remembered():
    x = wrap(np.ones((8, 4), np.float32))
    dynamic.manual_seed(3)
    drawn = [F.dropout(x).tolist() for _ in range(remembered.OFTEN + 2)]
    dynamic.manual_seed(3)
    assert [F.dropout(x).tolist() for _ in range(len(drawn))] == drawn
    assert drawn[-1] != drawn[-2]
    mean, var = dynamic.zeros(4), dynamic.ones(4)
    often(F.batch_norm, x, mean, var, training=True)
    assert mean[0].item() == pytest.approx(1 - 0.9 ** (remembered.OFTEN + 1))


def test_what_depends_on_elements_is_not_remembered():
    """Same forms, other elements: results have sizes and places that no form says."""
    calls = {
        "masked_select": lambda tw, x, m, i: tw.masked_select(x, m),
        "masked_scatter": lambda tw, x, m, i: tw.masked_scatter(x, m, x * 2),
        "index_put": lambda tw, x, m, i: tw.index_put(x, (m,), x[0] * 0),
        "nonzero": lambda tw, x, m, i: tw.nonzero(m),
        "unique": lambda tw, x, m, i: tw.unique(i),
        "bincount": lambda tw, x, m, i: tw.bincount(i),
        "one_hot": lambda tw, x, m, i: tw.nn.functional.one_hot(i).sum(1),
        "repeat_interleave": lambda tw, x, m, i: tw.repeat_interleave(x, i),
    }
    rng = np.random.default_rng(0)
    for name, f in calls.items():
        for _ in range(remembered.OFTEN + 2):
            x, m, i = rng.normal(size=6).astype(np.float32), rng.random(6) > 0.5, rng.integers(0, 4, 6)
            wanted = {
                "masked_select": x[m], "masked_scatter": np.where(m, 2 * x[np.maximum(np.cumsum(m) - 1, 0)], x),
                "index_put": np.where(m, 0, x), "nonzero": np.argwhere(m),
                "unique": np.unique(i), "bincount": np.bincount(i), "one_hot": np.ones(6),
                "repeat_interleave": x.repeat(i),
            }[name]  # fmt: skip
            np.testing.assert_array_equal(f(dynamic, *map(wrap, (x, m, i))).numpy(), wanted, name)


def test_views_belong_to_their_base():
    x = dynamic.zeros(2, 3, requires_grad=True) * 1
    y = often(dynamic.ravel, x)
    y[0] = 5.0
    assert x[0, 0].item() == 5.0
    assert x.grad_fn.name() == "CopySlices"


def test_lines_forget():
    memory = remembered.Memory()
    for n in range(600):
        memory.meet((dynamic.ones(2), n), lambda x, n: dynamic.sinc(x))
    assert len(memory._calls) <= 257
