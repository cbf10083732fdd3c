"""The multilabel margin loss of many classes, of which the eager engine leaves out the terms of no label."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_same_bits
from tests.helpers.wrapped import wrap


def _defined(x, t):
    """The definition, term by term."""
    found = []
    for row, given in zip(x.astype(np.float64), t.tolist(), strict=True):
        labels = given[: next((i for i, c in enumerate(given) if c < 0), len(given))]
        others = [c for c in range(len(row)) if c not in labels]
        found.append(sum(max(0.0, 1 - row[c] + row[i]) for c in labels for i in others) / len(row))
    return np.array(found)


@pytest.mark.parametrize("most", [0, 1, 7, 210])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_terms_of_no_label_change_no_bit(most, dtype):
    rng = np.random.default_rng(most)
    x = rng.normal(size=(5, 210)).astype(dtype)
    t = rng.integers(0, 210, x.shape)
    for row, length in enumerate((most, most // 2, 0, most, 0)):
        t[row, length : length + 1] = -1

    def loss(tw, x, t):
        return tw.nn.functional.multilabel_margin_loss(x, t, reduction="none")

    eager = wrap(x, requires_grad=True)
    y = loss(dynamic, eager, wrap(t))
    (g,) = dynamic.autograd.grad((y * y).sum(), [eager])
    compiled = static.function(static.value_and_grad(lambda x, t: (loss(static, x, t) ** 2).sum()))
    assert_same_bits(y, static.function(lambda x, t: loss(static, x, t))(x, t), "loss")
    assert_same_bits(g, compiled(x, t)[1], "gradient")
    np.testing.assert_allclose(y.detach().numpy(), _defined(x, t), rtol=1e-5 if dtype == "float32" else 1e-12)
