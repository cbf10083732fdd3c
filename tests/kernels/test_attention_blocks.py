"""Attention block by block gives the bits of whole matrices, and never has all scores in memory."""

import math
import tracemalloc

import numpy as np
import pytest

import dynamic
import static
from common.ops.linalg.attention_masked import masked_softmax

attention = dynamic.nn.functional.scaled_dot_product_attention
rng = np.random.default_rng(0)
# heights of blocks are 64 and 256: none, one and several, whole and not
SIZES = ((2,), 5, 7, 4, 3), ((2, 1), 70, 130, 6, 2), ((), 520, 300, 3, 2), ((1,), 600, 70, 2, 4)


def whole(query, key, value, causal):
    """The same without a kernel of its own."""
    scores = dynamic.matmul(query * (1 / math.sqrt(query.shape[-1])), key.transpose(-2, -1))
    if causal:
        seen = np.tri(query.shape[-2], key.shape[-2], dtype=bool)
        scores = dynamic.where(dynamic.tensor(seen), scores, -math.inf)
    return dynamic.matmul(dynamic.softmax(scores, -1), value)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_have_the_bits_of_whole_matrices(dtype, causal):
    for lead, m, n, d, o in SIZES:
        given = [rng.normal(size=(*lead, *shape)).astype(dtype) for shape in ((m, d), (n, d), (n, o), (m, o))]
        found = []
        for f in (lambda *x: attention(*x, is_causal=causal), lambda *x: whole(*x, causal)):
            leaves = [dynamic.tensor(x, requires_grad=True) for x in given[:3]]
            y = f(*leaves)
            grads = dynamic.autograd.grad(y, leaves, dynamic.tensor(given[3]))
            found.append([x.detach().numpy().tobytes() for x in (y, *grads)])
        assert found[0] == found[1], (lead, m, n, d, o)


def masks(lead, m, n, dtype):
    """Masks of all shapes that broadcast, the last row of some seeing nothing."""
    for shape in ((m, n), (*lead[:1], *(1,) * (len(lead) - 1), 1, n), (*(1,) * (len(lead) - 1), *lead[-1:], m, n)):
        seen = rng.random(shape) < 0.6
        seen[..., 1 - shape[-2] :, :] &= shape[-2] == 1
        yield seen
        yield np.where(seen, rng.normal(size=shape), -np.inf).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_masked_blocks_have_the_bits_of_whole_matrices(dtype):
    def masked(query, key, value, mask):
        scores = dynamic.matmul(query * (1 / math.sqrt(query.shape[-1])), key.transpose(-2, -1))
        return dynamic.matmul(masked_softmax(scores, mask), value)

    for lead, m, n, d, o in (((2, 3), 7, 5, 4, 3), ((2, 2), 70, 130, 6, 2), ((2,), 300, 70, 2, 4)):
        given = [rng.normal(size=(*lead, *shape)).astype(dtype) for shape in ((m, d), (n, d), (n, o), (m, o))]
        for mask in masks(lead, m, n, dtype):
            found = []
            for f in (attention, masked):
                leaves = [dynamic.tensor(x, requires_grad=x.dtype.kind == "f") for x in (*given[:3], mask)]
                y = f(*leaves)
                wanted = [x for x in leaves if x.requires_grad]
                grads = dynamic.autograd.grad(y, wanted, dynamic.tensor(given[3]))
                found.append([x.detach().numpy().tobytes() for x in (y, *grads)])
            assert found[0] == found[1], (lead, m, n, mask.shape, mask.dtype)


def test_masked_gradients_of_gradients_are_those_of_differences():
    """Of a sum of gradients, against central differences in float64."""
    q, k, v = (rng.normal(size=(4, *shape)) for shape in ((3, 2), (5, 2), (5, 3)))
    for shape in ((3, 5), (2, 1, 5), (4, 3, 5)):
        mask = rng.normal(size=shape)
        mask = mask if len(shape) == 2 else np.repeat(mask, 4 // shape[0], 0)
        operands = [q, k, v, mask]
        weights = [rng.normal(size=x.shape) for x in operands]

        def slopes(operands, twice, weights=weights):
            leaves = [dynamic.tensor(x, requires_grad=True) for x in operands]
            grads = dynamic.autograd.grad(attention(*leaves).square().sum(), leaves, create_graph=twice)
            y = sum((g * dynamic.tensor(w)).sum() for g, w in zip(grads, weights, strict=True))
            return [g.numpy() for g in dynamic.autograd.grad(y, leaves)] if twice else y.item()

        second = slopes(operands, True)
        for i, x in enumerate(operands):
            step = np.zeros_like(x)
            step.flat[x.size // 2] = 1e-5
            ends = [slopes([*operands[:i], x + sign * step, *operands[i + 1 :]], False) for sign in (1, -1)]
            assert second[i].flat[x.size // 2] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-7)


def test_masked_attention_is_one_kernel_in_both_engines_and_under_vmap():
    x = rng.normal(size=(3, 2, 6, 4)).astype(np.float32)
    seen = rng.random((3, 6)) < 0.7
    functional = static.nn.functional

    def f(x, seen):
        return functional.scaled_dot_product_attention(x, x, x, seen[:, None, None, :])

    compiled = static.function(f)
    ours = attention(*[dynamic.tensor(x)] * 3, dynamic.tensor(seen)[:, None, None, :])
    assert compiled(x, seen).numpy().tobytes() == ours.numpy().tobytes()
    assert "attention_masked" in str(compiled.newest.raw)
    each = dynamic.vmap(lambda x, s: attention(x, x, x, s[None, None, :]))(dynamic.tensor(x), dynamic.tensor(seen))
    assert each.numpy().tobytes() == ours.numpy().tobytes()
    alike = dynamic.vmap(lambda x: attention(x, x, x, dynamic.tensor(seen[:1])))(dynamic.tensor(x))
    assert alike.numpy().tobytes() == attention(*[dynamic.tensor(x)] * 3, dynamic.tensor(seen[:1])).numpy().tobytes()


@pytest.mark.parametrize("operand", range(3))
def test_an_operand_that_is_not_finite_reaches_what_products_of_whole_matrices_reach(operand):
    given = [rng.normal(size=(1, 200, 4)).astype(np.float32) for _ in range(3)]
    given[operand][0, 100, 2] = np.inf
    ours, other = (f(*map(dynamic.tensor, given)).numpy() for f in (
        lambda *x: attention(*x, is_causal=True), lambda *x: whole(*x, True)))  # fmt: skip
    assert np.isnan(ours).any()
    assert np.array_equal(ours, other, equal_nan=True)
    f = static.function(lambda *x: static.nn.functional.scaled_dot_product_attention(*x, is_causal=True))
    assert np.array_equal(f(*given).numpy(), ours, equal_nan=True)


def test_no_matrix_of_all_scores():
    q = dynamic.tensor(rng.normal(size=(2000, 4)).astype(np.float32), requires_grad=True)
    attention(q, q, q).sum().backward()
    tracemalloc.start()
    attention(q, q, q).sum().backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2000 * 2000 * 4 / 2  # scratch of 256 rows is 4 MB; the scores are 16, and there were several of them


def test_threads_share_a_batch():
    q = dynamic.tensor(rng.normal(size=(6, 600, 3)).astype(np.float32), requires_grad=True)

    seen = dynamic.tensor(rng.random((3, 1, 600)) < 0.7)
    added = dynamic.tensor(rng.normal(size=(600, 600)).astype(np.float32))

    def run():
        found = []
        for options in ({"is_causal": True}, {"attn_mask": seen.repeat(2, 1, 1)}, {"attn_mask": added}):
            y = attention(q, q, q, **options)
            found += [y.detach().numpy().tobytes(), dynamic.autograd.grad(y.square().sum(), q)[0].numpy().tobytes()]
        return found

    alone = run()
    dynamic.set_num_threads(3)
    try:
        assert run() == alone
    finally:
        dynamic.set_num_threads(1)
