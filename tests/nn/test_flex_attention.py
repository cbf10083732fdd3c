"""`flex_attention`: against its formula, written for one query at a time, and `scaled_dot_product_attention`."""

import importlib
import math

import numpy as np
import pytest

import dynamic
import static

R = np.random.default_rng(7)
Q, K, V = (R.standard_normal((2, 4, n, size)).astype(np.float32) for n, size in ((5, 8), (7, 8), (7, 6)))
BIAS = R.standard_normal((4, 5, 7)).astype(np.float32)


@pytest.fixture(params=[dynamic, static], ids=["dynamic", "static"])
def engine(request):
    return request.param


def flex(engine):
    return importlib.import_module(f"{engine.__name__}.nn.attention.flex_attention")


def by_definition(score, attends):
    """Results and logarithms of sums; `score` and `attends` are of Python numbers."""
    result, lse = np.zeros((2, 4, 5, 6)), np.full((2, 4, 5), -np.inf)
    for b, h, q in np.ndindex(2, 4, 5):
        keys = [k for k in range(7) if attends(b, h, q, k)]
        if keys:
            scores = [score(float(Q[b, h, q].astype(float) @ K[b, h, k]) / math.sqrt(8), b, h, q, k) for k in keys]
            lse[b, h, q] = np.logaddexp.reduce(scores)
            result[b, h, q] = np.exp(np.array(scores) - lse[b, h, q]) @ V[b, h, keys]
    return result, lse


def everywhere(b, h, q, k):
    return q == q


def causal(b, h, q, k):
    return q >= k


def no_key_for_the_first(b, h, q, k):
    return (q > 0) & (k < 3 + b)


def plain(score, b, h, q, k):
    return score


def distance(score, b, h, q, k):
    return score - (q - k) * (q - k) * 0.25 / (h + 1)


@pytest.mark.parametrize("attends", [everywhere, causal, no_key_for_the_first])
@pytest.mark.parametrize("score", [plain, distance])
def test_results_are_those_of_the_definition_and_bits_those_of_the_other_engine(score, attends):
    found = []
    for engine in (dynamic, static):
        module = flex(engine)

        def run(q, k, v, module=module):
            mask = module.create_block_mask(attends, 2, None, 5, 7)
            return module.flex_attention(q, k, v, score, mask, return_lse=True)

        program = engine.function(engine.value_and_grad(lambda *x, run=run: (run(*x)[0].sin().sum(), run(*x)),
                                                        argnums=(0, 1, 2), has_aux=True))  # fmt: skip
        (_, (result, lse)), gradients = program(*(engine.tensor(x) for x in (Q, K, V)))
        found.append([x.numpy() for x in (result, lse, *gradients)])
    assert [x.tobytes() for x in found[0]] == [x.tobytes() for x in found[1]]
    wanted, logarithms = by_definition(score, attends)
    np.testing.assert_allclose(found[0][0], wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[0][1], logarithms, rtol=1e-5)
    assert np.isfinite(found[0][2]).all()


def test_it_is_the_usual_attention_where_nothing_is_changed(engine):
    q, k, v = (engine.tensor(x) for x in (Q, K, V))
    usual = engine.nn.functional.scaled_dot_product_attention(q, k, v)
    np.testing.assert_allclose(flex(engine).flex_attention(q, k, v).numpy(), usual.numpy(), rtol=1e-5, atol=1e-6)
    shared = flex(engine).flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True, scale=0.5)
    wanted = engine.nn.functional.scaled_dot_product_attention(
        q, k[:, [0, 0, 1, 1]], v[:, [0, 0, 1, 1]], scale=0.5
    )  # fmt: skip
    np.testing.assert_allclose(shared.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_masks_are_joined_and_tensors_are_indexed(engine):
    module = flex(engine)
    bias, document = engine.tensor(BIAS), engine.tensor([0, 0, 1, 1, 1, 2, 2])
    both = module.and_masks(causal, lambda b, h, q, k: document[q] == document[k])
    dense = module.create_mask(both, None, None, 5, 7)
    rows, columns = np.indices((5, 7))
    of = document.numpy()
    assert np.array_equal(dense[0, 0].numpy(), (rows >= columns) & (of[rows] == of[columns]))
    either = module.or_masks(causal, lambda b, h, q, k: k == 6)
    assert np.array_equal(module.create_mask(either, 1, 1, 5, 7)[0, 0].numpy(), (rows >= columns) | (columns == 6))
    q, k, v = (engine.tensor(x) for x in (Q, K, V))
    found, told = module.flex_attention(q, k, v, lambda s, b, h, q, k: s + bias[h, q, k],
                                        return_aux=module.AuxRequest(max_scores=True))  # fmt: skip
    usual = engine.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    np.testing.assert_allclose(found.numpy(), usual.numpy(), rtol=1e-4, atol=1e-5)
    assert told.lse is None
    assert told.max_scores.shape == (2, 4, 5)
    blocks = module.create_block_mask(causal, None, None, 5, 7, BLOCK_SIZE=(2, 4))
    assert blocks.to_dense().tolist() == [[[[1, 0], [1, 0], [1, 1]]]]
    assert (blocks.numel(), blocks.seq_lengths) == (35, (5, 7))
    assert repr(blocks) == "BlockMask(shape=(1, 1, 5, 7), sparsity=8.57%)"


def test_what_does_not_fit_is_told(engine):
    module = flex(engine)
    q, k, v = (engine.tensor(x) for x in (Q, K, V))
    with pytest.raises(ValueError, match=r"block_mask is of \(4, 7\) queries and keys, not \(5, 7\)"):
        module.flex_attention(q, k, v, block_mask=module.create_block_mask(causal, None, None, 4, 7))
    with pytest.raises(ValueError, match="query has 4 heads, key 3"):
        module.flex_attention(q, k[:, :3], v[:, :3], enable_gqa=True)
    with pytest.raises(ValueError, match="have 4 dimensions"):
        module.flex_attention(q[0], k[0], v[0])
    with pytest.raises(ValueError, match="mask_mod is a function, not int"):
        module.create_block_mask(3, None, None, 4, 7)
    with pytest.raises(ValueError, match="BLOCK_SIZE must be at least 1"):
        module.create_block_mask(causal, None, None, 4, 7, BLOCK_SIZE=0)
    with pytest.raises(RuntimeError, match="no GPU"):
        module.create_block_mask(causal, None, None, 4, 7, device="cuda")


def test_buffers_that_are_not_saved(engine):
    module = engine.nn.Module()
    module.kept, module.made = engine.nn.Buffer(engine.ones(1)), engine.nn.Buffer(engine.ones(2), persistent=False)
    assert (list(module.state_dict()), [name for name, _ in module.named_buffers()]) == (["kept"], ["kept", "made"])
