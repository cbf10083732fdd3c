"""Attention of several heads is remembered by the ops that it applies, also where it returns no weights."""

import numpy as np
import pytest

import dynamic as tw
import static
from common.nn import multi_head
from dynamic.eager.remembered import OFTEN
from tests.bits import assert_all_same_bits


def _masks(kind, tw):
    later = np.triu(np.ones((5, 5), bool), 1)
    hidden = np.arange(5) >= np.array([[5], [3], [4]])
    return {
        "": {}, "later": {"attn_mask": tw.tensor(later)}, "hidden": {"key_padding_mask": tw.tensor(hidden)},
        "causal": {"attn_mask": tw.tensor(later), "is_causal": True},
    }[kind]  # fmt: skip


def _layer(tw):
    layer, rng = tw.nn.MultiheadAttention(8, 2, batch_first=True), np.random.default_rng(0)
    for p in layer.parameters():
        p.data.copy_(tw.tensor(rng.standard_normal(p.shape).astype(np.float32)))
    return layer, rng.standard_normal((3, 5, 8)).astype(np.float32)


def _results(tw, layer, x, kind, wanted, recorded):
    x = tw.tensor(x, requires_grad=recorded)
    with tw.set_grad_enabled(recorded):
        y, weights = layer(x, x, x, need_weights=wanted, **_masks(kind, tw))
    assert (weights is None) == (not wanted)
    assert (y.grad_fn is not None) == recorded
    if not recorded:
        return [y, *[weights] * wanted]
    return [y, *[weights] * wanted, *tw.autograd.grad((y * y).sum(), [x, *layer.parameters()])]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("kind", ["", "later", "hidden", "causal"])
def test_lines_have_the_bits_of_the_function(kind, wanted, recorded, monkeypatch):
    layer, x = _layer(tw)
    first = _results(tw, layer, x, kind, wanted, recorded)
    for _ in range(OFTEN + 3):
        assert_all_same_bits(_results(tw, layer, x, kind, wanted, recorded), first, kind)
    calls, check = [], multi_head._check_ranks
    monkeypatch.setattr(multi_head, "_check_ranks", lambda *given: (calls.append(given), check(*given))[1])
    assert_all_same_bits(_results(tw, layer, x, kind, wanted, recorded), first, kind)
    assert not calls
    layer, x = _layer(static)
    weights = (lambda y: y) if wanted else lambda y: y[:1]
    compiled = static.function(lambda x: weights(layer(x, x, x, need_weights=wanted, **_masks(kind, static))))
    assert_all_same_bits(compiled(x), first[: 1 + wanted], "compiled")
    assert calls


def test_other_arguments_are_other_lines():
    """Dropout is never remembered, wrong sizes are told after many calls too."""
    rng = np.random.default_rng(0)
    x, w, b = (tw.tensor(rng.standard_normal(s).astype(np.float32)) for s in ((5, 3, 8), (24, 8), (8, 8)))

    def call(dropped, heads=2):
        attend = tw.nn.functional.multi_head_attention_forward
        return attend(x, x, x, 8, heads, w, None, None, None, False, dropped, b, None, need_weights=False)

    plain = np.asarray(call(0.0)[0])
    for _ in range(2 * OFTEN):
        assert (np.asarray(call(0.5)[0]) != plain).any()
        np.testing.assert_array_equal(call(0.0)[0], plain)
        with pytest.raises(ValueError, match="not divisible by num_heads"):
            call(0.0, 3)
