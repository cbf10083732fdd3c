"""Weights computed from others, pruned or averaged: against numpy, and the other engine's bits."""

import copy

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError
from tests.bits import assert_all_same_bits

X = np.random.default_rng(2).normal(size=(4, 3))


def test_weight_norm_takes_length_and_direction_apart():
    made = []
    for engine in (dynamic, static):
        engine.manual_seed(1)
        layer = engine.nn.Linear(3, 2, dtype=np.float64)
        before = layer.weight.detach().numpy().copy()
        layer = engine.nn.utils.parametrizations.weight_norm(layer)
        names = [name for name, _ in layer.named_parameters()]
        assert names == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
        np.testing.assert_allclose(layer.weight.detach().numpy(), before, rtol=1e-14)
        run = engine.function(engine.value_and_grad(lambda x, layer=layer: layer(x).square().sum()))
        made.append([np.asarray(a.detach()) for a in run(X)])
        again = copy.deepcopy(layer)
        assert again.weight.tolist() == layer.weight.tolist()
        engine.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        assert type(layer) is engine.nn.Linear
        assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]
    assert_all_same_bits(*made[::-1], "weight norm")


def test_spectral_norm_divides_by_the_largest_singular_value():
    layer = dynamic.nn.utils.parametrizations.spectral_norm(dynamic.nn.Linear(3, 3, dtype=np.float64), "weight", 50)
    assert abs(np.linalg.norm(layer.weight.detach().numpy(), 2) - 1) < 1e-6


def test_pruned_elements_stay_zero():
    layer, prune = dynamic.nn.Linear(4, 4), dynamic.nn.utils.prune
    smallest = np.sort(np.abs(layer.weight.detach().numpy()).ravel())
    prune.l1_unstructured(layer, "weight", 4)
    prune.l1_unstructured(layer, "weight", 0.5)
    left = np.abs(layer.weight.detach().numpy())
    assert (left == 0).sum() == 10
    np.testing.assert_array_equal(np.sort(left.ravel())[10:], smallest[10:])
    layer(np.ones((2, 4), np.float32)).sum().backward()
    assert ((layer.weight_orig.grad.numpy() == 0) == (left == 0)).all()
    prune.ln_structured(layer, "weight", 1, 2, 0)
    prune.remove(layer, "weight")
    assert not prune.is_pruned(layer)
    assert (layer.weight.detach().numpy() == 0).all(1).any()
    with pytest.raises(ArgumentError, match="has to be pruned before"):
        prune.remove(layer, "weight")


def test_averages_of_models():
    model = dynamic.nn.Linear(3, 2, dtype=np.float64)
    averaged, seen = dynamic.optim.swa_utils.AveragedModel(model), []
    for i in range(3):
        with dynamic.no_grad():
            model.weight.copy_(model.weight * (i + 1))
        averaged.update_parameters(model)
        seen.append(model.weight.detach().numpy().copy())
    np.testing.assert_allclose(averaged.module.weight.detach().numpy(), np.mean(seen, 0), rtol=1e-14)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_a_parameter_pruned_again_lists_what_pruned_it(engine):
    """Names and weights are those of PyTorch 2.13 for the same calls."""
    prune, layer = engine.nn.utils.prune, engine.nn.Linear(4, 3)
    with engine.no_grad():
        layer.weight.copy_(engine.tensor(np.arange(1, 13, dtype=np.float32).reshape(3, 4)))
    prune.l1_unstructured(layer, "weight", 3)
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.L1Unstructured)
    prune.ln_structured(layer, "weight", 1, 2, dim=1)
    prune.custom_from_mask(layer, "weight", engine.tensor([[1.0, 1.0, 1.0, 0.0]] * 3))
    (hook,) = layer._forward_pre_hooks.values()
    assert (hook._tensor_name, len(hook), hook[0]) == ("weight", 3, next(iter(hook)))
    assert [type(x).__name__ for x in hook] == ["L1Unstructured", "LnStructured", "CustomFromMask"]
    assert layer.weight.tolist() == [[0, 0, 0, 0], [0, 6, 7, 0], [0, 10, 11, 0]]
    prune.identity(layer, "bias")
    bias = next(x for x in layer._forward_pre_hooks.values() if x._tensor_name == "bias")
    with pytest.raises(ArgumentError, match="acting on the parameter named 'weight'"):
        hook.add_pruning_method(bias)
    prune.remove(layer, "weight")
    assert list(layer._forward_pre_hooks.values()) == [bias]


def test_a_way_of_pruning_computes_its_mask_of_any_tensor():
    method = dynamic.nn.utils.prune.L1Unstructured(2)
    t = dynamic.tensor([3.0, 1.0, 2.0, 4.0])
    assert method.compute_mask(t, dynamic.ones(4)).tolist() == [1, 0, 0, 1]  # as in PyTorch 2.13
    assert method.prune(t).tolist() == [3, 0, 0, 4]
    assert method.prune(t, dynamic.tensor([0.0, 1.0, 1.0, 1.0])).tolist() == [0, 0, 0, 4]


def _l1_left(w: np.ndarray, mask: np.ndarray, amount: float | int) -> np.ndarray:
    """The mask (...) without the least of the elements that are left, by numpy."""
    alive = np.flatnonzero(mask)
    count = amount if isinstance(amount, int) else round(amount * alive.size)
    gone = alive[np.argsort(np.abs(w * mask).ravel()[alive], kind="stable")[:count]]
    return np.where(np.isin(np.arange(w.size), gone).reshape(w.shape), 0, mask)


def _slices_left(w: np.ndarray, mask: np.ndarray, amount: float | int, dim: int) -> np.ndarray:
    """The mask (...) without the slices of least norm of those of which anything is left, by numpy."""
    others = tuple(i for i in range(w.ndim) if i != dim)
    alive = np.flatnonzero(mask.sum(others))
    count = amount if isinstance(amount, int) else round(amount * alive.size)
    norms = np.sqrt(((w * mask).astype(np.float64) ** 2).sum(others))
    gone = alive[np.argsort(norms[alive], kind="stable")[:count]]
    return mask * ~np.isin(np.arange(w.shape[dim]), gone).reshape([-1 if i == dim else 1 for i in range(w.ndim)])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("engine", [dynamic, static])
def test_a_parameter_pruned_again_is_pruned_among_what_is_left(engine, seed):
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((6, 5, 2)).astype(np.float32)
    layer, prune, mask = engine.nn.Module(), engine.nn.utils.prune, np.ones(w.shape, np.float32)
    layer.w = engine.nn.Parameter(w)
    for _ in range(4):
        amount, dim = [1, 0.25, 0.5][rng.integers(3)], int(rng.integers(3))
        if rng.integers(2):
            prune.l1_unstructured(layer, "w", amount)
            mask = _l1_left(w, mask, amount)
        else:
            amount = 1 if dim == 2 and mask.sum((0, 1)).all() else 0.25
            prune.ln_structured(layer, "w", amount, 2, dim)
            mask = _slices_left(w, mask, amount, dim)
        np.testing.assert_array_equal(layer.w_mask.numpy(), mask)
        np.testing.assert_array_equal(layer.w.detach().numpy(), w * mask)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_users_ways_of_pruning_see_what_they_ask_for(engine):
    prune, seen = engine.nn.utils.prune, []

    class Last(prune.BasePruningMethod):
        def __init__(self, kind):
            self.PRUNING_TYPE, self.dim = kind, 1

        def compute_mask(self, t, default_mask):
            seen.append(tuple(t.shape))
            mask = default_mask.clone()
            mask.view(-1)[-1] = 0
            return mask

    layer = engine.nn.Linear(3, 2)
    for kind in ("unstructured", "unstructured", "structured", "global"):
        Last.apply(layer, "weight", kind)
    assert seen == [(2, 3), (5,), (2, 3), (2, 3)]  # as in PyTorch 2.13
    assert layer.weight_mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    with pytest.raises(ArgumentError, match="Unrecognized PRUNING_TYPE 'rows'"):
        Last.apply(layer, "weight", "rows")
    other = engine.nn.Linear(3, 2)
    with pytest.raises(ArgumentError, match="smaller than the number of parameters to prune=6"):
        prune.l1_unstructured(other, "weight", 7)
    assert "weight" in dict(other.named_parameters())
    assert not prune.is_pruned(other)
    assert len(layer._forward_pre_hooks) == 1
