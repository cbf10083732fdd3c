"""Parametrizations: what registering one after another keeps and refuses, and orthogonal weights."""

import numpy as np
import pytest

import dynamic
import static

ENGINES = pytest.mark.parametrize("engine", [dynamic, static])


def of(engine, forward, inverse=None):
    """A module with this `forward`, and `right_inverse` if there is one."""
    space = {"forward": lambda self, *xs: forward(*xs)}
    if inverse is not None:
        space["right_inverse"] = lambda self, x: inverse(x)
    return type("Function", (engine.nn.Module,), space)()


@ENGINES
def test_a_further_parametrization_applies_to_what_the_attribute_is(engine):
    parametrize, layer = engine.nn.utils.parametrize, engine.nn.Linear(3, 2)
    before, trained = layer.weight.detach().clone(), layer.weight
    parametrize.register_parametrization(layer, "weight", of(engine, lambda x: x + 1))
    parametrize.register_parametrization(layer, "weight", of(engine, lambda x: 2 * x, lambda x: x / 2))
    np.testing.assert_array_equal(layer.weight.detach(), ((before + 1) * 2).numpy())
    assert layer.parametrizations.weight.original is trained  # an optimiser may have it


@ENGINES
def test_the_inverse_of_the_first_writes_to_the_one_parameter(engine):
    layer = engine.nn.Linear(2, 2)
    before, trained = layer.weight.detach().clone(), layer.weight
    engine.nn.utils.parametrize.register_parametrization(layer, "weight", of(engine, lambda x: 2 * x, lambda x: x / 2))
    assert layer.parametrizations.weight.original is trained
    np.testing.assert_array_equal(layer.weight.detach(), before.numpy())
    np.testing.assert_array_equal(trained.detach(), (before / 2).numpy())


@ENGINES
@pytest.mark.parametrize(
    ("forward", "inverse", "words"),
    [
        (lambda x: (x, x), None, "must return a tensor"),
        (lambda x: x.to(np.float64), None, "may not change the dtype"),
        (lambda x: x[:-1], None, "may not change the shape"),
        (lambda x: x, lambda x: (x, x), "right_inverse must return a tensor"),
        (lambda x: x, lambda x: x.to(np.float64), "must have the same dtype"),
        (lambda x: x, lambda x: x[:-1], "must have the same shape"),
    ],
)
def test_a_further_parametrization_keeps_shape_and_dtype(engine, forward, inverse, words):
    parametrize, layer = engine.nn.utils.parametrize, engine.nn.Linear(3, 4)
    parametrize.register_parametrization(layer, "weight", of(engine, lambda x: x))
    with pytest.raises(ValueError, match=words):
        parametrize.register_parametrization(layer, "weight", of(engine, forward, inverse))
    assert len(layer.parametrizations.weight) == 1


@ENGINES
@pytest.mark.parametrize(
    ("inverse", "words"),
    [
        (lambda x: None, "Tensor or a Sequence of"),
        (lambda x: (None, x), "element 0 of the sequence with type NoneType"),
        (lambda x: x.to(np.float64), "outputs one tensor, it may not change the dtype"),
    ],
)
def test_the_first_inverse_gives_tensors(engine, inverse, words):
    parametrize, layer = engine.nn.utils.parametrize, engine.nn.Linear(3, 4)
    with pytest.raises(ValueError, match=words):
        parametrize.register_parametrization(layer, "weight", of(engine, lambda *xs: xs[-1], inverse))
    assert not parametrize.is_parametrized(layer)


@ENGINES
def test_parametrizations_go_to_another_module(engine):
    parametrize, nn = engine.nn.utils.parametrize, engine.nn
    one, other = nn.Linear(3, 3), nn.Module()
    parametrize.register_parametrization(one, "weight", of(engine, lambda x: 2 * x, lambda x: x / 2))
    parametrize.register_parametrization(one, "bias", of(engine, lambda x, y: x + y, lambda x: (x, x * 0)))
    assert parametrize.transfer_parametrizations_and_params(one, other, "weight") is other
    assert not hasattr(other, "bias")
    parametrize.transfer_parametrizations_and_params(one, other, "bias")
    for name in ("weight", "bias"):
        np.testing.assert_array_equal(getattr(one, name).detach(), getattr(other, name).detach().numpy())
    assert other.parametrizations.bias.original1 is one.parametrizations.bias.original1


@ENGINES
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("based", [True, False])
def test_a_weight_stays_orthogonal_in_training(engine, shape, kind, based):
    engine.manual_seed(1)
    layer = engine.nn.Module()
    layer.weight = engine.nn.Parameter(engine.randn(*shape, dtype=engine.float64))
    first = layer.weight.detach().numpy().copy()
    engine.nn.utils.parametrizations.orthogonal(layer, "weight", kind, use_trivialization=based)
    if based or kind == "householder":  # the orthogonal factor of the matrix that was there
        wide = shape[-2] < shape[-1]
        q, r = np.linalg.qr(np.swapaxes(first, -1, -2) if wide else first)
        q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
        np.testing.assert_allclose(layer.weight.detach(), np.swapaxes(q, -1, -2) if wide else q, atol=1e-12)
    optimizer = engine.optim.SGD(layer.parameters(), lr=0.01)
    target = engine.randn(*shape, dtype=engine.float64)
    for _ in range(3):
        optimizer.zero_grad()
        loss = (layer.weight - target).square().sum()
        loss.backward()
        optimizer.step()
    w = layer.weight.detach().numpy()
    gram = w @ np.swapaxes(w, -1, -2) if shape[-2] < shape[-1] else np.swapaxes(w, -1, -2) @ w
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=1e-12)
    assert ((layer.weight - target).square().sum() < loss).item()
    if based or kind == "householder":  # an orthogonal matrix can be assigned
        layer.weight = engine.tensor(w)
        np.testing.assert_allclose(layer.weight.detach(), w, atol=1e-12)
    else:
        with pytest.raises(NotImplementedError, match="not possible to assign"):
            layer.parametrizations.weight[0].right_inverse(engine.tensor(w))


@ENGINES
def test_orthogonal_refuses(engine):
    orthogonal, layer = engine.nn.utils.parametrizations.orthogonal, engine.nn.Linear(3, 4)
    for name, kind, words in (("foo", None, "has no parameter"), ("bias", None, "1 dimensions"),
                              ("weight", "foo", "has to be one of")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            orthogonal(layer, name, kind)
    orthogonal(layer)
    with pytest.raises(ValueError, match="of shape"):
        layer.weight = engine.zeros(3, 3)


@ENGINES
def test_states_of_the_former_hooks_are_loaded(engine):
    nn, rng = engine.nn, np.random.default_rng(0)
    g, v, b = (rng.normal(size=size).astype(np.float32) for size in ((2, 1), (2, 3), 2))
    layer = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)))
    layer.load_state_dict({"0.weight_g": g, "0.weight_v": v, "0.bias": b})
    wanted = g * v / np.linalg.norm(v, axis=1, keepdims=True)
    np.testing.assert_allclose(layer[0].weight.detach(), wanted, rtol=1e-6)
    layer = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))).eval()
    u, w = b / np.linalg.norm(b), v[0] / np.linalg.norm(v[0])
    layer.load_state_dict({"0.weight_orig": v, "0.weight_u": u, "0.weight_v": w, "0.bias": b})
    np.testing.assert_allclose(layer[0].weight.detach(), v / (u @ v @ w), rtol=1e-5)
