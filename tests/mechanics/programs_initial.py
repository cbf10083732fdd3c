"""Initial values: what `reset_parameters` and `reset_running_stats` do."""

import pytest


def parameters_are_drawn_anew(tw):
    nn = tw.nn
    made = [
        nn.Linear(3, 2), nn.Linear(3, 2, bias=False, dtype=tw.float64),
        nn.Conv2d(2, 4, 3, padding=1, groups=2, bias=False),
        nn.Conv1d(2, 4, 3, padding="same", padding_mode="circular"),
        nn.ConvTranspose2d(2, 4, 3, stride=2, output_padding=1),
        nn.BatchNorm1d(3), nn.BatchNorm2d(3, affine=False), nn.InstanceNorm1d(3, affine=True), nn.GroupNorm(1, 2),
        nn.LayerNorm(3, bias=False), nn.RMSNorm(3), nn.Embedding(4, 2, padding_idx=1), nn.EmbeddingBag(4, 2),
        nn.Bilinear(2, 3, 4), nn.PReLU(2), nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2), nn.GRU(2, 3, bias=False),
        nn.RNN(2, 3, nonlinearity="relu"), nn.LSTMCell(2, 3), nn.GRUCell(2, 3, bias=False),
        nn.AdaptiveLogSoftmaxWithLoss(16, 9, [2, 5]),
    ]  # fmt: skip
    for module in made:
        ones = [tw.equal(p, tw.ones_like(p)) for p in module.parameters()]
        kept = list(module.parameters())
        with tw.no_grad():
            for p in kept:
                p.fill_(7)
        assert module.reset_parameters() is None
        assert all(p is q for p, q in zip(kept, module.parameters(), strict=True))
        assert not any((p == 7).any() for p in kept)
        assert [tw.equal(p, tw.ones_like(p)) for p in kept] == ones
    weights = []
    for _ in range(2):
        tw.manual_seed(3)
        made[0].reset_parameters()
        weights.append(made[0].weight.detach().clone())
    assert tw.equal(*weights)
    assert float(weights[0].abs().max()) <= 3**-0.5
    norm = nn.BatchNorm1d(2)
    norm(tw.tensor([[1.0, 2.0], [3.0, 6.0]]))
    assert norm.running_mean.tolist() != [0.0, 0.0]
    norm.reset_running_stats()
    assert norm.running_mean.tolist() == [0.0, 0.0]
    assert norm.running_var.tolist() == [1.0, 1.0]
    assert norm.num_batches_tracked.item() == 0
    for name in ("Tanh", "Dropout", "Flatten"):
        assert not hasattr(getattr(nn, name)(), "reset_parameters")


def scripts_ask_for_fans_by_their_private_names(tw):
    weight = tw.empty(6, 4, 3, 3)
    assert tw.nn.init._calculate_fan_in_and_fan_out(weight) == (36, 54)
    assert [tw.nn.init._calculate_correct_fan(weight, mode) for mode in ("fan_in", "FAN_OUT")] == [36, 54]
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        tw.nn.init._calculate_fan_in_and_fan_out(tw.empty(3))
