"""Losses: a softmax in clusters, and what losses took before `reduction`."""

import warnings

import pytest


def adaptive_softmax(tw):
    m = tw.nn.AdaptiveLogSoftmaxWithLoss(6, 12, cutoffs=[3, 7], div_value=2.0, head_bias=True, dtype=tw.float64)
    assert [tuple(p.shape) for p in m.parameters()] == [(5, 6), (5,), (3, 6), (4, 3), (1, 6), (5, 1)]
    assert [n for n, _ in m.named_parameters()][:3] == ["head.weight", "head.bias", "tail.0.0.weight"]
    x = tw.linspace(-1, 1, 24, dtype=tw.float64).reshape(4, 6)
    logs = m.log_prob(x)
    assert tw.allclose(logs.exp().sum(1), tw.ones(4, dtype=tw.float64))
    target = tw.tensor([0, 2, 6, 11])
    output, loss = m(x, target)
    assert tw.allclose(output, logs[tw.arange(4), target])
    assert tw.allclose(loss, -output.mean())
    assert tw.equal(m.predict(x), logs.argmax(1))
    assert tw.allclose(m(x[1], target[1]).output, output[1])
    assert tw.autograd.gradcheck(lambda x: m(x, target).loss, (x.requires_grad_(),))
    for cutoffs in ([3, 3], [4, 2], [12], [0, 3]):
        with pytest.raises(ValueError, match="cutoffs should be a sequence of unique, positive integers"):
            tw.nn.AdaptiveLogSoftmaxWithLoss(6, 12, cutoffs)
    with pytest.raises(RuntimeError, match="same size in the batch dimension"):
        m(x, target[:2])


def older_words_for_reductions(tw):
    functional = tw.nn.functional
    x, y, classes = tw.tensor([[0.5, -1.0], [2.0, 0.25]]), tw.ones(2, 2), tw.tensor([1, 0])
    wanted = [({}, "mean"), ({"size_average": False}, "sum"), ({"reduce": False}, "none"),
              ({"size_average": True, "reduce": True}, "mean")]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for older, reduction in wanted:
            for name, target in (("mse_loss", y), ("l1_loss", y), ("nll_loss", classes), ("cross_entropy", classes)):
                function = getattr(functional, name)
                value = function(x, target, reduction=reduction)
                assert tw.equal(function(x, target, **older), value)
                places = [older.get("size_average"), older.get("reduce")]
                if name in ("nll_loss", "cross_entropy"):
                    assert tw.equal(function(x, target, None, places[0], -100, places[1]), value)
                else:
                    assert tw.equal(function(x, target, *places), value)
            for kind, target in ((tw.nn.MSELoss, y), (tw.nn.CrossEntropyLoss, classes), (tw.nn.BCEWithLogitsLoss, y)):
                assert kind(**older).reduction == reduction
                assert tw.equal(kind(**older)(x, target), kind(reduction=reduction)(x, target))
        assert tw.equal(functional.mse_loss(x, y, "sum"), functional.mse_loss(x, y))  # a word is true
        assert tw.nn.MSELoss("sum").reduction == "mean"
        assert tw.equal(functional.l1_loss(x, y, reduction="elementwise_mean"), functional.l1_loss(x, y))
        assert tw.nn.MSELoss(False).reduction == "sum"
        assert tw.nn.L1Loss(None, False).reduction == "none"
        assert tw.nn.SmoothL1Loss(None, None, "sum", 0.5).beta == 0.5
        assert tw.nn.HingeEmbeddingLoss(0.5, False).reduction == "sum"
        assert tw.nn.MultiMarginLoss(1, 0.5, None, None, False).reduction == "none"
        assert tw.nn.PoissonNLLLoss(False, True, None, 1e-6, None, "sum").reduction == "sum"
        assert tw.nn.TripletMarginLoss(0.5, 2.0, 1e-6, True, False).reduction == "sum"
    loss = tw.nn.CrossEntropyLoss(tw.ones(2), None, 0, None, "sum", 0.25)
    assert (loss.ignore_index, loss.reduction, loss.label_smoothing) == (0, "sum", 0.25)


def classes_of_a_linear_layer(tw):
    loss = tw.nn.LinearCrossEntropyLoss(3, 4, out_features=(2,), bias=True, dtype=tw.float64, ignore_index=1)
    assert [(n, tuple(p.shape)) for n, p in loss.named_parameters()] == [("linear.weight", (8, 3)),
                                                                         ("linear.bias", (8,))]  # fmt: skip
    x, target = tw.linspace(-1, 1, 15, dtype=tw.float64).reshape(5, 3), tw.arange(10).reshape(5, 2) % 4
    logits = loss.linear(x).reshape(5, 4, 2)
    assert tw.allclose(loss(x, target), tw.nn.functional.cross_entropy(logits, target, ignore_index=1))
    with pytest.raises(RuntimeError, match="expected equal input and linear_weight last dimensions"):
        loss(x[:, :2], target)
    with pytest.raises(RuntimeError, match="label_smoothing to be in range"):
        tw.nn.LinearCrossEntropyLoss(3, 4, label_smoothing=2.0)


def fractional_pooling(tw):
    x = tw.linspace(-1, 1, 2 * 3 * 7 * 6, dtype=tw.float64).sin().reshape(2, 3, 7, 6) * 10
    samples = tw.linspace(0, 0.99, 12, dtype=tw.float64).reshape(2, 3, 2)
    pool = tw.nn.FractionalMaxPool2d(2, output_size=(3, 4), return_indices=True, _random_samples=samples)
    values, places = pool(x)
    assert tuple(values.shape) == (2, 3, 3, 4)
    assert tw.equal(x.flatten(2).gather(2, places.flatten(2)).reshape(values.shape), values)
    wanted = tw.tensor([[0, 2, 3, 5], [0, 2, 4, 5]])  # columns of the first and the last image's windows start there
    assert (places[0, 0] % 6 - wanted[0]).clamp(0, 1).equal(places[0, 0] % 6 - wanted[0])
    assert tuple(tw.nn.FractionalMaxPool3d(2, output_ratio=0.5)(tw.ones(1, 1, 6, 4, 8)).shape) == (1, 1, 3, 2, 4)
    with pytest.raises(ValueError, match="either an output size, or a pooling ratio"):
        tw.nn.FractionalMaxPool2d(2)
    with pytest.raises(ValueError, match="output_ratio must be between 0 and 1"):
        tw.nn.FractionalMaxPool2d(2, output_ratio=1.5)
