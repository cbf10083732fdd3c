"""Losses against formulas in plain numpy, one element at a time; values that their short forms would get wrong."""

import math

import numpy as np
import pytest

import common.ops.functional as F
import dynamic as tw
from common.core.errors import ArgumentError, ShapeError
from tests.helpers.wrapped import wrap

RNG = np.random.default_rng(50)
X, Y = RNG.normal(size=(2, 6, 4))
U, V = RNG.uniform(0.05, 0.95, (2, 6, 4))
W, T, S = RNG.uniform(0.5, 2, 4), np.array([0, 3, -100, 2, 1, 3]), RNG.choice([-1, 1], (6, 4))
LOG = np.log(np.exp(X) / np.exp(X).sum(1, keepdims=True))


def ours(f, *arrays):
    return f(*map(wrap, arrays)).numpy()


def each(f, *arrays):
    return np.array([f(*values) for values in zip(*(a.ravel() for a in arrays), strict=True)]).reshape(arrays[0].shape)


def classes(weight=None, smoothing=0.0):
    """Losses and weights of cross-entropy, row by row."""
    weight = np.ones(4) if weight is None else weight
    rows = [(0.0, 0.0) if t < 0 else
            (-(1 - smoothing) * weight[t] * LOG[i, t] - smoothing * (weight * LOG[i]).sum() / 4, weight[t])
            for i, t in enumerate(T)]  # fmt: skip
    return np.array(rows).T


def bce(x, t):
    return -t * math.log(x) - (1 - t) * math.log(1 - x)


def huber(x, y, delta=1.0):
    d = abs(x - y)
    return d * d / 2 if d <= delta else delta * (d - delta / 2)


plain, (smooth, weights) = classes()[0], classes(W, 0.3)
FORMULAS = {
    "cross_entropy": (F.cross_entropy, (X, T), plain.sum() / 5),
    "cross_entropy, none": (lambda x, t: F.cross_entropy(x, t, reduction="none"), (X, T), plain),
    "cross_entropy, weights": (F.cross_entropy, (X, T, W), classes(W)[0].sum() / classes(W)[1].sum()),
    "cross_entropy, smooth": (
        lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.3), (X, T, W), smooth.sum() / weights.sum()
    ),
    "cross_entropy, probabilities": (F.cross_entropy, (X, U, W), -(LOG * U * W).sum() / 6),
    "cross_entropy, smooth probabilities": (
        lambda x, t: F.cross_entropy(x, t, label_smoothing=0.3, reduction="none"), (X, U),
        -(LOG * (0.7 * U + 0.3 / 4)).sum(1),
    ),
    "cross_entropy, more dimensions": (
        lambda x, t: F.cross_entropy(F.reshape(F.transpose(x, 0, 1), 1, 4, 2, 3), F.reshape(t, 1, 2, 3)), (X, T),
        plain.sum() / 5,
    ),
    "nll_loss": (lambda x, t: F.nll_loss(x, t, ignore_index=3), (X, T.clip(0)), -(2 * X[[0, 2], 0].sum() + 2 *
                 X[3, 2] + 2 * X[4, 1]) / 8),
    "l1_loss": (F.l1_loss, (X, Y), np.abs(X - Y).mean()),
    "smooth_l1_loss": (
        lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=0.5),
        (X, Y),
        each(lambda x, y: huber(x, y, 0.5) / 0.5, X, Y),
    ),
    "huber_loss": (lambda x, y: F.huber_loss(x, y, "sum"), (X, Y), each(huber, X, Y).sum()),
    "binary_cross_entropy": (F.binary_cross_entropy, (U, V, W), (each(bce, U, V) * W).mean()),
    "with logits": (F.binary_cross_entropy_with_logits, (X, V), each(bce, 1 / (1 + np.exp(-X)), V).mean()),
    "with logits, positive weight": (
        lambda x, t, p: F.binary_cross_entropy_with_logits(x, t, pos_weight=p, reduction="none"), (X, V, W),
        -W * V * np.log(1 / (1 + np.exp(-X))) - (1 - V) * np.log(1 / (1 + np.exp(X))),
    ),
    "kl_div": (F.kl_div, (X, U), (U * (np.log(U) - X)).mean()),
    "kl_div, logarithms": (
        lambda x, t: F.kl_div(x, t, reduction="batchmean", log_target=True), (X, Y), (np.exp(Y) * (Y - X)).sum() / 6
    ),
    "hinge_embedding_loss": (
        lambda x, y: F.hinge_embedding_loss(x, y, 0.5, reduction="none"),
        (X, S),
        np.where(S == 1, X, np.maximum(0, 0.5 - X)),
    ),
    "margin_ranking_loss": (
        lambda a, b, y: F.margin_ranking_loss(a, b, y, 0.3), (X, Y, S), np.maximum(0, -S * (X - Y) + 0.3).mean()
    ),
    "soft_margin_loss": (F.soft_margin_loss, (X, S), np.log(1 + np.exp(-S * X)).mean()),
    "cosine_similarity": (
        F.cosine_similarity, (X, Y), (X * Y).sum(1) / np.sqrt((X * X).sum(1) * (Y * Y).sum(1))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    f, arrays, expected = FORMULAS[name]
    assert np.allclose(ours(f, *arrays), expected, rtol=1e-12, atol=1e-14)


def gradient(f, *values):
    leaves = [tw.tensor(v, dtype=tw.float64, requires_grad=True) for v in values]
    f(*leaves).sum().backward()
    return [x.grad.tolist() for x in leaves]


def test_logits_far_from_zero():
    x, t = tw.tensor([1000.0, -1000.0, 1000.0, -1000.0]), tw.tensor([1.0, 0.0, 0.0, 1.0])
    assert F.binary_cross_entropy_with_logits(x, t, reduction="none").tolist() == [0, 0, 1000, 1000]
    (g, _) = gradient(lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="sum"), [1000.0, -1000.0, 0.0],
                      [0.0, 1.0, 0.5])  # fmt: skip
    assert g == [1, -1, 0]


def test_certain_probabilities():
    x, t = [0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]
    losses = F.binary_cross_entropy(tw.tensor(x), tw.tensor(t), reduction="none")
    assert losses.tolist() == [0, 0, 100, 100]
    assert gradient(lambda x: F.binary_cross_entropy(x, tw.tensor(t), reduction="none"), x) == [[0, 0, -1e12, 1e12]]


def test_where_nothing_is_expected_nothing_is_lost():
    assert F.kl_div(tw.tensor([-np.inf, -1.0]), tw.tensor([0.0, 1.0]), reduction="none").tolist()[1] == 1.0
    ((slope,),) = gradient(lambda t: F.kl_div(tw.tensor([-2.0]), t, reduction="sum"), [0.0])
    assert np.isnan(slope)  # PyTorch's; the limit is -inf


def test_the_middle_of_a_parabola_has_a_second_derivative():
    for loss in (F.smooth_l1_loss, F.huber_loss):
        x = tw.tensor([0.0], requires_grad=True)
        (g,) = tw.autograd.grad(loss(x, tw.zeros(1)), x, create_graph=True)
        assert tw.autograd.grad(g, x)[0].tolist() == [1.0]


def test_huber_loss_is_a_parabola_up_to_delta_and_at_it():
    x = tw.tensor([-3.0, -2.0, 1.0, 2.0, 5.0], requires_grad=True)
    losses = F.huber_loss(x, tw.zeros(5), "none", delta=2.0)
    (g,) = tw.autograd.grad(losses.sum(), x, create_graph=True)
    assert [losses.tolist(), g.tolist()] == [[4.0, 2.0, 0.5, 2.0, 8.0], [-2.0, -2.0, 1.0, 2.0, 2.0]]
    assert tw.autograd.grad(g.sum(), x)[0].tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_vectors_of_length_zero_are_similar_to_nothing():
    x, y = gradient(lambda x, y: F.cosine_similarity(x, y, dim=0, eps=0.5), [0.0, 0.0], [3.0, 4.0])
    assert x == pytest.approx([1.2, 1.6])
    assert y == [0.0, 0.0]


def test_ignored_classes_have_no_gradient():
    x = tw.tensor(X, requires_grad=True)
    for options in ({}, {"reduction": "sum"}, {"weight": tw.tensor(W), "label_smoothing": 0.1}):
        x.grad = None
        F.cross_entropy(x, tw.tensor(T), **options).backward()
        assert (x.grad[2] == 0).all()
        assert (x.grad[:2] != 0).all()
    assert np.isnan(F.cross_entropy(x, tw.tensor([-100] * 6)).item())
    with pytest.raises(IndexError, match="out of range"):
        F.cross_entropy(x, tw.tensor(T), ignore_index=-1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.cross_entropy(tw.zeros(2, 3), tw.tensor([0, 1]), tw.ones(2)), ShapeError, "for all 3 classes"),
        (lambda: F.cross_entropy(tw.zeros(2, 3), tw.zeros(3, 2)), ShapeError, "Expected input batch_size"),
        (
            lambda: F.cross_entropy(tw.zeros(2, 3, 4), tw.zeros(2, 5, dtype=tw.int64)),
            ShapeError,
            "Expected target size",
        ),
        (lambda: F.cross_entropy(tw.zeros(2, 3), tw.tensor([0, 1]), label_smoothing=2), ArgumentError, "Got: 2"),
        (lambda: F.binary_cross_entropy(tw.zeros(2), tw.zeros(2, 1)), ShapeError, "different to the input size"),
        (lambda: F.smooth_l1_loss(tw.zeros(2), tw.zeros(2), beta=-1), ArgumentError, "negative values for beta"),
        (lambda: F.huber_loss(tw.zeros(2), tw.zeros(2), delta=0), ArgumentError, "non-positive values for delta"),
        (lambda: F.kl_div(tw.zeros(2), tw.zeros(2), "batch"), ArgumentError, "not a valid value for reduction"),
    ],
)
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_modules_are_the_functions():
    x, y, t, w = (tw.tensor(a) for a in (X, Y, T, W))
    u, v, s = tw.tensor(U), tw.tensor(V), tw.tensor(S)
    nn = tw.nn
    pairs = [
        (nn.CrossEntropyLoss(w, label_smoothing=0.1)(x, t), F.cross_entropy(x, t, w, label_smoothing=0.1)),
        (nn.NLLLoss(ignore_index=-100, reduction="sum")(x, t), F.nll_loss(x, t, reduction="sum")),
        (nn.BCELoss()(u, v), F.binary_cross_entropy(u, v)),
        (nn.BCEWithLogitsLoss(pos_weight=w)(x, v), F.binary_cross_entropy_with_logits(x, v, pos_weight=w)),
        (nn.MSELoss()(x, y), F.mse_loss(x, y)),
        (nn.L1Loss()(x, y), F.l1_loss(x, y)),
        (nn.SmoothL1Loss(beta=0.5)(x, y), F.smooth_l1_loss(x, y, beta=0.5)),
        (nn.HuberLoss("sum", 0.5)(x, y), F.huber_loss(x, y, "sum", 0.5)),
        (
            nn.KLDivLoss(reduction="batchmean", log_target=True)(x, y),
            F.kl_div(x, y, reduction="batchmean", log_target=True),
        ),
        (nn.SoftMarginLoss()(x, s), F.soft_margin_loss(x, s)),
        (nn.HingeEmbeddingLoss(0.5)(x, s), F.hinge_embedding_loss(x, s, 0.5)),
        (nn.MarginRankingLoss(0.5, reduction="sum")(x, y, s), F.margin_ranking_loss(x, y, s, 0.5, reduction="sum")),
        (nn.PoissonNLLLoss(False, True, eps=0.1)(u, v), F.poisson_nll_loss(u, v, False, True, eps=0.1)),
        (nn.GaussianNLLLoss(full=True, eps=0.5)(x, y, u), F.gaussian_nll_loss(x, y, u, True, 0.5)),
        (nn.TripletMarginLoss(2.0, 3, 0.1, True)(x, y, u), F.triplet_margin_loss(x, y, u, 2.0, 3, 0.1, True)),
        (
            nn.CosineEmbeddingLoss(0.1, reduction="none")(x, y, s[:, 0]),
            F.cosine_embedding_loss(x, y, s[:, 0], 0.1, reduction="none"),
        ),
        (
            nn.MultiLabelSoftMarginLoss(w, reduction="sum")(x, v),
            F.multilabel_soft_margin_loss(x, v, w, reduction="sum"),
        ),
        (nn.PairwiseDistance(3, 0.1, True)(x, y), F.pairwise_distance(x, y, 3, 0.1, True)),
        (nn.CosineSimilarity(0)(x, y), F.cosine_similarity(x, y, 0)),
        (nn.Identity(3, name=4)(x), x),
    ]  # fmt: skip
    for a, b in pairs:
        assert a.tolist() == b.tolist()
    assert list(nn.CrossEntropyLoss(w).state_dict()) == ["weight"]
    assert list(nn.CrossEntropyLoss().state_dict()) == []
    assert list(nn.MultiLabelSoftMarginLoss(w).state_dict()) == ["weight"]


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_dropout_draws_the_same_mask_in_both_engines(p):
    import static

    def masks(engine):
        engine.manual_seed(5)
        drop = engine.nn.Dropout(p)
        f = engine.function(lambda x: (drop(x), drop(x)))
        runs = [np.asarray(y).tobytes() for _ in range(3) for y in f(np.ones(1000, np.float32))]
        drop.eval()
        assert np.asarray(engine.function(lambda x: drop(x))(np.ones(3, np.float32))).tolist() == [1, 1, 1]
        return runs

    assert masks(tw) == masks(static)
    assert len(set(masks(tw))) == (6 if p else 1)
    kept = np.frombuffer(masks(tw)[0], np.float32)
    assert set(kept.tolist()) == ({0.0, float(np.float32(1 / 0.7))} if p else {1.0})
