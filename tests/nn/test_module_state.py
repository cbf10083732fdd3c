"""Saving and loading by PyTorch's protocol: versions, hooks, and classes that save in their own way."""

import copy

import numpy as np
import pytest

import dynamic
import static

ENGINES = pytest.mark.parametrize("engine", [dynamic, static])


@ENGINES
def test_a_class_saves_and_loads_in_its_own_way(engine):
    class Custom(engine.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.below = engine.nn.Parameter(np.ones(2, np.float32)), engine.nn.Linear(2, 2)

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            destination[prefix + "saved"] = self.w.data + 1

        def _load_from_state_dict(self, state_dict, prefix, *rest):
            self.w.data.copy_(state_dict[prefix + "saved"] - 1)

    one, two = engine.nn.Sequential(Custom()), engine.nn.Sequential(Custom())
    with engine.no_grad():
        one[0].w[0] = 10
    state = one.state_dict()
    assert sorted(state) == ["0.below.bias", "0.below.weight", "0.saved"]
    two.load_state_dict(state)
    assert two[0].w.tolist() == [10, 1]
    np.testing.assert_array_equal(two[0].below.weight.detach(), one[0].below.weight.detach().numpy())


@ENGINES
@pytest.mark.parametrize("own", [True, False])
def test_a_class_renames_what_old_states_have(engine, own):
    class Renamed(engine.nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *rest):
            if own:  # a dictionary of its own
                state_dict = {k.replace("kernel", "weight"): v for k, v in state_dict.items()}
            else:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel")
            super()._load_from_state_dict(state_dict, prefix, *rest)

    layer = engine.nn.Sequential(Renamed(2, 1))
    layer.load_state_dict({"0.kernel": np.full((1, 2), 3, np.float32), "0.bias": np.full(1, 4, np.float32)})
    assert (layer[0].weight.tolist(), layer[0].bias.tolist()) == ([[3, 3]], [4])
    with pytest.raises(RuntimeError, match=r"size mismatch for 0\.weight"):
        layer.load_state_dict({"0.kernel": np.zeros((2, 2), np.float32), "0.bias": np.zeros(1, np.float32)})
    assert layer[0].bias.tolist() == [4]


@ENGINES
def test_states_know_versions(engine):
    net = engine.nn.Sequential(engine.nn.BatchNorm1d(3), engine.nn.Tanh())
    state = net.state_dict()
    assert state._metadata == {"": {"version": 1}, "0": {"version": 2}, "1": {"version": 1}}
    assert copy.deepcopy(state)._metadata == state.copy()._metadata == state._metadata
    net(engine.ones(4, 3))
    del state["0.num_batches_tracked"]
    with pytest.raises(RuntimeError, match="Missing key"):
        net.load_state_dict(state)
    state._metadata["0"]["version"] = 1  # these did not count batches
    net.load_state_dict(state)
    assert net[0].num_batches_tracked.item() == 0


@ENGINES
def test_hooks_before_loading_change_names_and_add_errors(engine):
    net, seen = engine.nn.Sequential(engine.nn.Linear(1, 1)), []

    def old(state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "weight"] = state.pop(prefix + "kernel")

    net[0]._register_load_state_dict_pre_hook(old)
    handle = net[0].register_load_state_dict_pre_hook(lambda module, *rest: seen.append((module is net[0], len(rest))))
    net.load_state_dict({"0.kernel": np.ones((1, 1), np.float32), "0.bias": np.ones(1, np.float32)})
    assert seen == [(True, 7)]
    assert net[0].weight.item() == 1
    handle.remove()
    net[0].register_load_state_dict_pre_hook(lambda *args: args[-1].append("the hook's error"))
    with pytest.raises(RuntimeError, match="the hook's error"):
        net.load_state_dict({"0.kernel": np.zeros((1, 1), np.float32), "0.bias": np.zeros(1, np.float32)})
    assert net[0].weight.item() == 1


@ENGINES
def test_hooks_after_loading_change_what_is_missing(engine):
    net = engine.nn.Sequential(engine.nn.Linear(1, 1))
    handle = net[0].register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.append("more"))
    with pytest.raises(RuntimeError, match=r"Missing.*more"):
        net.load_state_dict(net.state_dict())
    handle.remove()
    handle = net[0].register_load_state_dict_post_hook(lambda module, keys: keys.unexpected_keys.clear())
    assert net.load_state_dict({**net.state_dict(), "extra": np.ones(1)}).unexpected_keys == []
    handle.remove()
    net[0].register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(RuntimeError, match="not expected to return"):
        net.load_state_dict(net.state_dict())


@ENGINES
def test_prefixes_of_wrappers_are_taken_away(engine):
    net = engine.nn.Linear(2, 2)
    wrapped = engine.nn.ModuleDict({"module": net}).state_dict()
    engine.nn.modules.utils.consume_prefix_in_state_dict_if_present(wrapped, "module.")
    assert set(wrapped) == {"weight", "bias"}
    assert wrapped._metadata == {"": {"version": 1}}
    net.load_state_dict(wrapped)
    consume = engine.nn.modules.utils.consume_prefix_in_state_dict_if_present
    for state, prefix in ((None, "a."), ({"a.b": 1}, None), ({5: 1}, "a."), (engine.ones(2), "a.")):
        with pytest.raises(TypeError, match=r"consume_prefix_in_state_dict_if_present\(\)"):
            consume(state, prefix)
    with pytest.raises(TypeError, match="dict-like, got list"):
        net.load_state_dict([])


@ENGINES
def test_batch_norm_that_no_longer_follows_keeps_its_statistics(engine):
    norm = engine.nn.BatchNorm1d(2)
    norm.track_running_stats = False
    y = norm(engine.tensor([[0.0, 1.0], [2.0, 3.0]]))
    assert (norm.running_mean.tolist(), norm.num_batches_tracked.item()) == ([0, 0], 0)
    np.testing.assert_allclose(y.detach(), [[-1, -1], [1, 1]], atol=1e-4)  # by the batch
    np.testing.assert_allclose(norm.eval()(engine.ones(1, 2)).detach(), 1, atol=1e-4)


@ENGINES
def test_containers_and_parameters_take_what_pytorchs_take(engine):
    nn = engine.nn
    assert nn.Parameter().shape == (0,)
    assert list(nn.ParameterDict({"b": nn.Parameter(), "a": nn.Parameter()})) == ["a", "b"]
    assert list(nn.ParameterDict([("b", nn.Parameter()), ("a", nn.Parameter())])) == ["b", "a"]
    several = nn.ParameterList([nn.Parameter()])
    several += [nn.Parameter()]
    assert len(several) == 2
    assert not [name for name in dir(several) if name.isdigit()]
    with pytest.raises(IndexError, match="out of range"):
        nn.Sequential(nn.Tanh()).insert(3, nn.Tanh())
    assert nn.Embedding.from_pretrained(engine.tensor([[1, 2]])).weight.dtype == engine.int64
    net = nn.Module()
    net.register_buffer("b", engine.ones(1), persistent=False)
    net.b = nn.Parameter(engine.ones(1))
    assert list(net.state_dict()) == ["b"]


@ENGINES
def test_losses_warn_of_sizes_that_are_broadcast(engine):
    F, x, t = engine.nn.functional, engine.ones(3, 1), engine.zeros(3)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        with pytest.warns(UserWarning, match=r"target size \(torch.Size\(\[3\]\)\) that is different to the input"):
            loss(x, t)
        loss(x, t.reshape(3, 1))
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        engine.nn.init.kaiming_uniform_(engine.zeros(0, 3))
    with pytest.warns(UserWarning, match="channel-wise 1D dropout"):
        F.dropout2d(engine.ones(1, 2, 3))


@ENGINES
def test_classes_may_be_bytes(engine):
    scores = engine.tensor([[0.1, 0.7, 0.2]] * 3).log()
    classes = engine.tensor([1, 2, 0])
    for loss in (engine.nn.functional.nll_loss, engine.nn.functional.cross_entropy):
        assert loss(scores, classes.to(engine.uint8)).item() == loss(scores, classes).item()
    packed = engine.nn.utils.rnn.pack_sequence([engine.ones(2)])
    assert [getattr(packed, n)().data.dtype for n in ("short", "char", "byte")] == ["int16", "int8", "uint8"]


class Marked:
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.given = args, kwargs


@ENGINES
def test_the_next_base_is_initialised_where_a_class_asks_for_it(engine):
    class Net(engine.nn.Module, Marked):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    assert not hasattr(Net(), "given")
    with pytest.raises(TypeError, match=r"takes none, but got an argument 'b'"):
        Net(b=2)
    Net.call_super_init = True
    assert Net(1, b=2).given == ((1,), {"b": 2})


@ENGINES
def test_layers_refuse_what_has_no_meaning(engine):
    nn = engine.nn
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.GroupNorm(4, 4).eval()(engine.ones(1, 4))
    assert nn.GroupNorm(4, 4)(engine.ones(2, 4)).shape == (2, 4)
    with pytest.raises(TypeError, match="found element of type float at pos 2"):
        nn.Unflatten(1, (2, 5, 5.0))
    assert nn.Unflatten(1, [2, -1])(engine.ones(3, 4)).shape == (3, 2, 2)
    with pytest.raises(RuntimeError, match="1D target tensor expected"):
        nn.functional.cosine_embedding_loss(engine.ones(5, 2), engine.ones(5, 2), engine.ones(5, 1))
    assert isinstance(nn.LSTM(2, 3), nn.RNNBase)
