"""Attention and transformers: against loops in numpy, against each other's forms, and the other engine's bits."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from tests.bits import assert_all_same_bits

RNG = np.random.default_rng(8)
N, M, BATCH, WIDTH, HEADS = 4, 5, 2, 6, 2


def draw(*shape):
    return dynamic.tensor(RNG.normal(size=shape))


def by_hand(module, q, k, v, mask):
    """Attention head by head, query by query; q, k, v without a batch."""
    weights = np.split(module.in_proj_weight.detach().numpy(), 3)
    biases = np.split(module.in_proj_bias.detach().numpy(), 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((q, k, v), weights, biases, strict=True))
    found, head = np.zeros_like(q), WIDTH // HEADS
    for h in range(HEADS):
        part = slice(h * head, (h + 1) * head)
        for i, row in enumerate(q[:, part]):
            p = np.exp(k[:, part] @ row / np.sqrt(head)) * ~mask[i]
            found[i, part] = (p / p.sum()) @ v[:, part]
    return found @ module.out_proj.weight.detach().numpy().T + module.out_proj.bias.detach().numpy()


@pytest.mark.parametrize("batch_first", [False, True])
def test_heads_one_after_the_other(batch_first):
    module = dynamic.nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first, dtype=np.float64)
    q, k, v = draw(N, BATCH, WIDTH), draw(M, BATCH, WIDTH), draw(M, BATCH, WIDTH)
    mask, hidden = RNG.random((N, M)) < 0.3, np.zeros((BATCH, M), bool)
    mask[:, 0], hidden[1, 2:] = False, True
    given = [x.transpose(0, 1) for x in (q, k, v)] if batch_first else [q, k, v]
    for need_weights in (False, True):
        y, p = module(*given, dynamic.tensor(hidden), need_weights, dynamic.tensor(mask))
        assert (p is None) is not need_weights
        y = y.transpose(0, 1) if batch_first else y
        for b in range(BATCH):
            expected = by_hand(module, *(x.numpy()[:, b] for x in (q, k, v)), mask | hidden[b])
            np.testing.assert_allclose(y.detach().numpy()[:, b], expected, rtol=1e-12, atol=1e-13)


def test_queries_without_keys_get_zeros_and_no_gradient_is_nan():
    q, k, v = (draw(3, 2).requires_grad_() for _ in range(3))
    mask = np.array([[True, False, True], [False] * 3, [True] * 3])
    for given in (mask, np.where(mask, 0.0, -np.inf)):
        y = dynamic.nn.functional.scaled_dot_product_attention(q, k, v, dynamic.tensor(given))
        assert (y.detach().numpy()[1] == 0).all()
        assert all(np.isfinite(g.numpy()).all() for g in dynamic.autograd.grad(y.sum(), (q, k, v)))


def model(engine, **options):
    engine.manual_seed(4)
    return engine.nn.Transformer(WIDTH, HEADS, 1, 2, 8, dropout=0.2, dtype=np.float64, **options)


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "activation": "gelu", "bias": False}], ids=str)
def test_bits_of_transformers(options):
    """Results, gradients and what is dropped; other lengths are no new trace."""
    made = []
    for engine in (dynamic, static):
        net, found = model(engine, **options), []

        def loss(src, tgt, net=net):
            mask = net.generate_square_subsequent_mask(tgt.shape[0], dtype=np.float64)
            return net(src, tgt, tgt_mask=mask, tgt_is_causal=True).square().sum()

        run = engine.function(engine.value_and_grad(loss))
        engine.manual_seed(5)
        for n in (8, 9):  # no matrices of queries and keys that are written out, each size in a trace of its own
            found += run(*(np.random.default_rng(n).normal(size=(m, BATCH, WIDTH)) for m in (n, n + 1)))
        made.append([np.asarray(x.detach()) for x in found])
    assert len(run.traces) == 1
    assert_all_same_bits(*made[::-1], "transformer")


def test_the_hint_that_a_mask_is_causal_changes_nothing_else():
    layer = dynamic.nn.TransformerEncoderLayer(WIDTH, HEADS, 8, dropout=0.0, dtype=np.float64)
    encoder = dynamic.nn.TransformerEncoder(layer, 2, dynamic.nn.LayerNorm(WIDTH, dtype=np.float64))
    x, mask = draw(N, BATCH, WIDTH), dynamic.nn.Transformer.generate_square_subsequent_mask(N)
    told, read = encoder(x, mask, is_causal=True), encoder(x, mask)
    np.testing.assert_allclose(told.detach().numpy(), read.detach().numpy(), rtol=1e-12)
    first = encoder(x[:2], mask[:2, :2]).detach().numpy()
    np.testing.assert_allclose(told.detach().numpy()[:2], first, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m, x: m(x, x, x, is_causal=True), ArgumentError, "Need attn_mask"),
        (lambda m, x: m(x[:, :, :4], x, x), ShapeError, "was expecting embedding dimension of 6, but got 4"),
        (lambda m, x: m(x, x[0], x), ShapeError, "expected `key` and `value` to be 3-D"),
        (lambda m, x: m(x, x, x[1:]), ShapeError, "key shape"),
        (lambda m, x: m(x, x, x, attn_mask=x[0]), ShapeError, "The shape of the attn_mask"),
        (lambda m, x: m(x, x, x, dynamic.ones(2, 4, dtype=dynamic.int64)), DTypeError, "only bool and floating types"),
        (lambda m, x: type(m)(6, 4), ArgumentError, "divisible by num_heads"),
        (lambda m, x: dynamic.nn.TransformerEncoderLayer(6, 2, activation="sin"), ArgumentError, "relu/gelu"),
        (lambda m, x: dynamic.nn.Transformer(6, 2, device="cuda"), DeviceError, "device 'cuda' is not available"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call, error, said):
    with pytest.raises(error, match=said):
        call(dynamic.nn.MultiheadAttention(WIDTH, HEADS, dtype=np.float64), draw(N, BATCH, WIDTH))
