"""Modules as text, and their attributes: as PyTorch has them."""

import pytest

import dynamic as tw
import static

nn = tw.nn


def test_every_kind_prints_what_it_was_made_of():
    shown = {
        "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)": nn.LayerNorm(3),
        "GroupNorm(2, 4, eps=1e-05, affine=False, bias=False)": nn.GroupNorm(2, 4, affine=False),
        "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=False, track_running_stats=True)":
            nn.BatchNorm1d(3, bias=False),
        "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)":
            nn.InstanceNorm2d(3),
        "Dropout(p=0.5, inplace=False)": nn.Dropout(),
        "Dropout2d(p=0.3, inplace=True)": nn.Dropout2d(0.3, True),
        "FeatureAlphaDropout(p=0.1, inplace=False)": nn.FeatureAlphaDropout(0.1),
        "CrossEntropyLoss()": nn.CrossEntropyLoss(ignore_index=3),
        "HuberLoss()": nn.HuberLoss(delta=2.0),
        "TripletMarginWithDistanceLoss(\n  (distance_function): PairwiseDistance()\n)":
            nn.TripletMarginWithDistanceLoss(),
        "AvgPool1d(kernel_size=(3,), stride=(2,), padding=(0,))": nn.AvgPool1d(3, 2),
        "RNNCell(3, 4, nonlinearity=relu)": nn.RNNCell(3, 4, nonlinearity="relu"),
        "LSTMCell(3, 4, bias=False)": nn.LSTMCell(3, 4, bias=False),
        "LazyLinear(in_features=0, out_features=3, bias=False)": nn.LazyLinear(3, bias=False),
        "LazyConv1d(0, 4, kernel_size=(3,), stride=(1,), padding=(1,))": nn.LazyConv1d(4, 3, padding=1),
        "LazyConv2d(0, 4, kernel_size=(3, 3), stride=(1, 1), groups=2)": nn.LazyConv2d(4, 3, groups=2),
        "LazyBatchNorm2d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)":
            nn.LazyBatchNorm2d(),
        "LazyInstanceNorm1d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)":
            nn.LazyInstanceNorm1d(),
        "MultiheadAttention(\n  (out_proj): NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)"
        "\n)": nn.MultiheadAttention(4, 2),
        "ModuleList(\n  (0-1): 2 x Tanh()\n  (2): ReLU()\n  (3): Tanh()\n)":
            nn.ModuleList([nn.Tanh(), nn.Tanh(), nn.ReLU(), nn.Tanh()]),
        "ModuleList()": nn.ModuleList(None),
        "ParameterList()": nn.ParameterList(None),
        "ParameterList(\n    (0): Parameter containing: [float32 of size 2x3]\n"
        "    (1): Parameter containing: [float32 of size 3]\n)":
            nn.ParameterList([tw.zeros(2, 3), tw.zeros(3)]),
        "ParametrizedLinear(\n  in_features=2, out_features=3, bias=True\n  (parametrizations): ModuleDict(\n"
        "    (weight): ParametrizationList(\n      (0): _WeightNorm()\n    )\n  )\n)":
            nn.utils.parametrizations.weight_norm(nn.Linear(2, 3)),
    }  # fmt: skip
    assert {text: repr(module) for text, module in shown.items()} == {text: text for text in shown}


def test_modules_keep_what_they_were_made_of_under_pytorchs_names():
    assert [layer.mode for layer in (nn.LSTM(2, 3), nn.GRU(2, 3), nn.RNN(2, 3), nn.RNN(2, 3, nonlinearity="relu"))] == [
        "LSTM", "GRU", "RNN_TANH", "RNN_RELU"]  # fmt: skip
    assert [cell(2, 3, bias=b).bias for cell in (nn.GRUCell, nn.LSTMCell, nn.RNNCell) for b in (False, True)] == [
        False, True] * 3  # fmt: skip
    assert nn.Upsample(scale_factor=2).name == "Upsample"
    lazy = nn.LazyConv2d(4, 3, stride=2)
    assert (lazy.in_channels, lazy.out_channels, lazy.kernel_size, lazy.stride) == (0, 4, (3, 3), (2, 2))
    with pytest.raises(ValueError, match="padding_mode must be one of"):
        nn.LazyConv2d(4, 3, padding_mode="none")


@pytest.mark.parametrize("kind", [nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_dropout_of_any_kind_is_written_over_its_input(kind):
    x = tw.ones(2, 5, *(3,) * {"Dropout1d": 1, "Dropout3d": 3}.get(kind.__name__, 2))
    tw.manual_seed(5)
    y = kind(0.5, inplace=True)(x)
    assert y is x
    tw.manual_seed(5)
    assert kind(0.5)(tw.ones_like(x)).numpy().tobytes() == x.numpy().tobytes()
    assert kind(0.5, inplace=True).eval()(x) is x
    leaf = tw.ones(2, 5, requires_grad=True)
    assert tw.nn.functional.dropout(leaf, 0.5, training=False, inplace=True) is leaf


@pytest.mark.parametrize(
    "options", [{}, {"bidirectional": True, "num_layers": 2}, {"bias": False}, {"proj_size": 2}], ids=str
)
def test_recurrent_layers_list_their_weights(options):
    layer = tw.nn.LSTM(2, 3, **options)
    listed = [name for names in layer._all_weights for name in names]
    assert sorted(listed) == sorted(name for name, _ in layer.named_parameters())
    assert len(layer._all_weights) == layer.num_layers * (1 + layer.bidirectional)
    for names, weights in zip(layer._all_weights, layer.all_weights, strict=True):
        assert all(getattr(layer, name) is weight for name, weight in zip(names, weights, strict=True))
    for names in layer._all_weights:  # how the forget gate of an LSTM is opened
        for name in (name for name in names if "bias" in name):
            getattr(layer, name).data[3:6].fill_(1.0)
    assert layer._get_name() == "LSTM"


@pytest.mark.parametrize("engine", [tw, static], ids=lambda e: e.__name__)
@pytest.mark.parametrize("kind", ["Sequential", "ModuleList"])
def test_modules_in_order_change_as_lists_do(engine, kind):
    made = getattr(engine.nn, kind)
    kinds = engine.nn.ReLU, engine.nn.Tanh, engine.nn.Sigmoid, engine.nn.Identity
    relu, tanh, sigmoid, identity = (k() for k in kinds)
    layers = made(relu, tanh) if kind == "Sequential" else made([relu, tanh])
    assert layers.insert(1, sigmoid) is layers
    assert layers.extend([identity]) is layers
    assert list(layers) == [relu, sigmoid, tanh, identity]
    assert [name for name, _ in layers.named_children()] == ["0", "1", "2", "3"]
    assert layers.pop(1) is sigmoid
    assert layers.pop() is identity
    layers += [sigmoid]
    layers[0] = identity
    assert list(layers) == [identity, tanh, sigmoid]
    del layers[0]
    assert [name for name, _ in layers.named_children()] == ["0", "1"]
    joined = layers + layers
    assert type(joined) is made
    assert list(joined) == [tanh, sigmoid] * 2
    x = engine.tensor([0.5, -1.0])
    if kind == "Sequential":
        assert layers(x).tolist() == engine.sigmoid(engine.tanh(x)).tolist()
        assert list(layers * 2) == list(2 * layers) == list(joined)
    with pytest.raises(TypeError, match="not a Module subclass"):
        layers.insert(0, "relu")
