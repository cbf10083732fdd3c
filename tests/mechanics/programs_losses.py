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
                assert tw.equal(function(x, target, **older), function(x, target, reduction=reduction))
            for kind, target in ((tw.nn.MSELoss, y), (tw.nn.CrossEntropyLoss, classes), (tw.nn.BCEWithLogitsLoss, y)):
                assert kind(**older).reduction == reduction
                assert tw.equal(kind(**older)(x, target), kind(reduction=reduction)(x, target))
