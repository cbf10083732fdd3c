"""Attention block by block gives the bits of whole matrices, and never has all scores in memory."""

import math
import tracemalloc

import numpy as np
import pytest

import dynamic
import static

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

    def run():
        y = attention(q, q, q, is_causal=True)
        return y.detach().numpy().tobytes(), dynamic.autograd.grad(y.square().sum(), q)[0].numpy().tobytes()

    alone = run()
    dynamic.set_num_threads(3)
    try:
        assert run() == alone
    finally:
        dynamic.set_num_threads(1)
