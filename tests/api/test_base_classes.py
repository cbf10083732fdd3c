"""Base classes of modules that programs' own classes have, and helpers of those who write modules."""

import importlib

import numpy as np
import pytest

import dynamic
import static

#: Base classes by their place in PyTorch, classes of theirs, and classes that are none.
BASES = {
    "batchnorm._BatchNorm": ("BatchNorm1d BatchNorm2d BatchNorm3d", "InstanceNorm2d GroupNorm LayerNorm"),
    "batchnorm._NormBase": ("BatchNorm1d InstanceNorm3d", "GroupNorm"),
    "instancenorm._InstanceNorm": ("InstanceNorm1d InstanceNorm2d InstanceNorm3d", "BatchNorm1d"),
    "conv._ConvNd": ("Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d", "Linear Unfold"),
    "conv._ConvTransposeNd": ("ConvTranspose1d ConvTranspose2d ConvTranspose3d", "Conv1d Conv2d Conv3d"),
    "dropout._DropoutNd": ("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout", "Identity"),
    "loss._Loss": ("MSELoss L1Loss CrossEntropyLoss BCEWithLogitsLoss KLDivLoss CTCLoss HuberLoss", "Softmax"),
    "loss._WeightedLoss": ("CrossEntropyLoss NLLLoss BCELoss MultiMarginLoss MultiLabelSoftMarginLoss", "MSELoss"),
    "pooling._AdaptiveAvgPoolNd": ("AdaptiveAvgPool1d AdaptiveAvgPool2d", "AvgPool2d AdaptiveMaxPool2d"),
    "pooling._AdaptiveMaxPoolNd": ("AdaptiveMaxPool1d AdaptiveMaxPool3d", "MaxPool2d AdaptiveAvgPool2d"),
    "pooling._AvgPoolNd": ("AvgPool1d AvgPool2d AvgPool3d", "MaxPool2d LPPool2d"),
    "pooling._LPPoolNd": ("LPPool1d LPPool2d LPPool3d", "AvgPool2d"),
    "pooling._MaxPoolNd": ("MaxPool1d MaxPool2d MaxPool3d", "MaxUnpool2d AvgPool2d"),
    "pooling._MaxUnpoolNd": ("MaxUnpool1d MaxUnpool2d MaxUnpool3d", "MaxPool2d"),
    "rnn.RNNBase": ("RNN LSTM GRU", "LSTMCell"),
}


@pytest.mark.parametrize("place", BASES)
@pytest.mark.parametrize("engine", [dynamic, static])
def test_base_classes_are_those_of_pytorch(engine, place):
    module, _, name = place.partition(".")
    base = getattr(importlib.import_module(f"{engine.__name__}.nn.modules.{module}"), name)
    own, other = BASES[place]
    assert all(issubclass(getattr(engine.nn, kind), base) for kind in own.split())
    assert not any(issubclass(getattr(engine.nn, kind), base) for kind in other.split())


@pytest.mark.parametrize("engine", [dynamic, static])
def test_losses_of_users_take_a_weight_from_their_base(engine):
    base = importlib.import_module(f"{engine.__name__}.nn.modules.loss")._WeightedLoss

    class Smoothed(base):
        def __init__(self, weight=None, reduction="mean", smoothing=0.25):
            super().__init__(weight=weight, reduction=reduction)
            self.smoothing = smoothing

        def forward(self, input, target):
            target = target * (1 - self.smoothing) + 0.5 * self.smoothing
            return engine.nn.functional.binary_cross_entropy_with_logits(
                input, target, self.weight, reduction=self.reduction
            )

    weight, logits, target = np.array([1.0, 3.0]), np.array([0.3, -1.2]), np.array([1.0, 0.0])
    smooth = target * 0.75 + 0.125
    expected = weight * (np.log1p(np.exp(logits)) - smooth * logits)
    loss = Smoothed(engine.tensor(weight), reduction="sum")
    np.testing.assert_allclose(float(loss(engine.tensor(logits), engine.tensor(target))), expected.sum(), rtol=1e-12)
    assert list(loss.state_dict()) == ["weight"]
    assert base(engine.tensor(weight), None, None, "none").reduction == "none"  # in PyTorch's places
    assert base(engine.tensor(weight), size_average=False).reduction == "sum"


@pytest.mark.parametrize("engine", [dynamic, static])
def test_convolutions_of_users_give_their_base_all_arguments(engine):
    base = importlib.import_module(f"{engine.__name__}.nn.modules.conv")._ConvNd

    class Doubled(base):
        def __init__(self):
            super().__init__(2, 3, (3, 3), (1, 1), (1, 2), (1, 1), False, (0, 0), 1, True, "zeros")

        def forward(self, x):
            return engine.nn.functional.conv2d(x, self.weight * 2, self.bias, self.stride, self.padding)

    layer, x = Doubled(), engine.ones(1, 2, 4, 5)
    same = engine.nn.Conv2d(2, 3, 3, padding=(1, 2))
    same.load_state_dict({"weight": layer.weight * 2, "bias": layer.bias})
    assert layer(x).detach().numpy().tobytes() == same(x).detach().numpy().tobytes()
    assert (layer.transposed, engine.nn.ConvTranspose2d(1, 1, 2).transposed) == (False, True)
    assert repr(layer).removeprefix("Doubled") == repr(same).removeprefix("Conv2d")


@pytest.mark.parametrize("engine", [dynamic, static])
@pytest.mark.parametrize("base", ["batchnorm._BatchNorm", "instancenorm._InstanceNorm"])
def test_normalisations_of_users_say_which_inputs_they_take(engine, base):
    module, name = base.split(".")

    class Any(getattr(importlib.import_module(f"{engine.__name__}.nn.modules.{module}"), name)):
        def _check_input_dim(self, input):
            if input.dim() != 6:
                raise ValueError("expected 6D input")

    layer, x = Any(2), np.random.default_rng(3).normal(size=(3, 2, 2, 1, 2, 2))
    over = (0, 2, 3, 4, 5) if name == "_BatchNorm" else (2, 3, 4, 5)
    centred = x - x.mean(over, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(over, keepdims=True) + 1e-5)
    np.testing.assert_allclose(layer.double()(engine.tensor(x)).detach().numpy(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="expected 6D"):
        layer(engine.ones(2, 2, 2))


@pytest.mark.parametrize("engine", [dynamic, static])
def test_copies_of_a_layer_have_parameters_of_their_own(engine):
    place = importlib.import_module(f"{engine.__name__}.nn.modules.transformer")
    copies = place._get_clones(engine.nn.Linear(2, 2), 3)
    assert len({id(layer.weight) for layer in copies}) == len(copies) == 3
    assert all(layer.weight.tolist() == copies[0].weight.tolist() for layer in copies)
    assert place._get_activation_fn("gelu")(engine.tensor(0.5)).item() == engine.nn.functional.gelu(engine.tensor(0.5))
    with pytest.raises(RuntimeError, match="should be relu/gelu"):
        place._get_activation_fn("tanh")
