"""Weights that are normalised under PyTorch's former names: what is kept, what is computed, and how it learns."""

import copy
import pickle

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

ENGINES = pytest.mark.parametrize("engine", [dynamic, static])
X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


def steps(engine, make, count=4):
    """What a layer computes in steps of training, and its state after them."""
    engine.manual_seed(0)
    layer = make(engine.nn)
    optimizer = engine.optim.SGD(layer.parameters(), lr=0.1)

    @engine.function
    def step(x):
        optimizer.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(X).item() for _ in range(count)]
    return [np.float64(losses), *(x.detach().numpy() for x in layer.state_dict().values())]


@pytest.mark.parametrize("make", [
    lambda nn: nn.utils.weight_norm(nn.Linear(3, 2)), lambda nn: nn.utils.weight_norm(nn.Linear(3, 2), dim=None),
    lambda nn: nn.utils.spectral_norm(nn.Linear(3, 2), n_power_iterations=2),
    lambda nn: nn.Sequential(
        nn.Unflatten(1, (3, 1)), nn.utils.spectral_norm(nn.ConvTranspose1d(3, 2, 2)), nn.Flatten()
    ),
])  # fmt: skip
def test_both_engines_train_them_with_the_same_bits(make):
    found = [steps(engine, make) for engine in (dynamic, static)]
    assert_all_same_bits(found[1], found[0], "trained")
    assert found[0][0][-1] < found[0][0][0]


@ENGINES
def test_a_length_and_a_direction_are_trained(engine):
    layer = engine.nn.Linear(3, 2)
    weight = layer.weight.detach().numpy().copy()
    assert engine.nn.utils.weight_norm(layer) is layer
    assert type(layer) is engine.nn.Linear
    assert [(name, tuple(p.shape)) for name, p in layer.named_parameters()] == [
        ("bias", (2,)), ("weight_g", (2, 1)), ("weight_v", (2, 3)),
    ]  # fmt: skip
    np.testing.assert_allclose(layer.weight.detach(), weight, rtol=1e-6)
    np.testing.assert_allclose(layer.weight_g.detach()[:, 0], np.linalg.norm(weight, axis=1), rtol=1e-6)
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks on the same parameter weight"):
        engine.nn.utils.weight_norm(layer)
    with engine.no_grad():
        layer.weight_g.mul_(2)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        np.testing.assert_allclose(other(X).detach(), X @ (2 * weight).T + other.bias.detach().numpy(), rtol=1e-4)
    engine.nn.utils.remove_weight_norm(layer)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]
    np.testing.assert_allclose(layer.weight.detach(), 2 * weight, rtol=1e-6)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        engine.nn.utils.remove_weight_norm(layer)


@ENGINES
def test_a_weight_is_divided_by_its_largest_singular_value(engine):
    layer = engine.nn.utils.spectral_norm(engine.nn.Linear(3, 2), n_power_iterations=5)
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    before = layer.weight_u.numpy().copy()
    layer.eval()(X)
    assert (layer.weight_u.numpy() == before).all()
    for _ in range(20):
        layer.train()(X)
    assert np.linalg.svd(layer.weight.detach())[1][0] == pytest.approx(1, rel=1e-5)
    weight = layer.weight.detach().numpy()
    engine.nn.utils.remove_spectral_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight"]
    assert not layer._forward_pre_hooks
    np.testing.assert_array_equal(layer.weight.detach(), weight)
    for wrong in ({"n_power_iterations": 0}, {"name": "scale"}):
        with pytest.raises(ValueError, match=r"to be positive|no parameter 'scale'"):
            engine.nn.utils.spectral_norm(layer, **wrong)


@ENGINES
def test_recurrent_weights_can_be_normalised(engine):
    lstm = engine.nn.utils.weight_norm(engine.nn.LSTM(3, 4), "weight_hh_l0")
    lstm(X[None])[0].sum().backward()
    assert lstm.weight_hh_l0_g.grad.shape == (16, 1)
