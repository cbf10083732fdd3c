"""Utilities of modules: layers fused with the normalisation behind them, modules made without drawing, containers."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, MissingKeyError, StateError

ENGINES = pytest.mark.parametrize("engine", [dynamic, static])


def _norm(engine, kind, channels, rng, affine=True):
    norm = getattr(engine.nn, kind)(channels, affine=affine, dtype=np.float64).eval()
    for name, buffer in norm.named_buffers():
        if name != "num_batches_tracked":
            buffer.copy_(engine.tensor(rng.uniform(0.5, 2, channels)))
    for p in norm.parameters():
        p.data.copy_(engine.tensor(rng.normal(size=channels)))
    return norm


@ENGINES
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transpose", [False, True])
def test_a_convolution_takes_over_the_normalisation_behind_it(engine, transpose, bias, affine):
    rng = np.random.default_rng(0)
    kind = engine.nn.ConvTranspose2d if transpose else engine.nn.Conv2d
    conv = kind(3, 4, 2, bias=bias, dtype=np.float64).eval()
    norm, x = _norm(engine, "BatchNorm2d", 4, rng, affine), engine.tensor(rng.normal(size=(2, 3, 5, 5)))
    fused = engine.nn.utils.fuse_conv_bn_eval(conv, norm, transpose)
    np.testing.assert_allclose(fused(x).detach().numpy(), norm(conv(x)).detach().numpy(), rtol=1e-12, atol=1e-12)
    assert (conv.bias is None) is not bias
    assert type(fused) is kind


@ENGINES
def test_a_linear_layer_takes_over_the_normalisation_behind_it(engine):
    rng = np.random.default_rng(1)
    linear, norm = engine.nn.Linear(3, 4, dtype=np.float64).eval(), _norm(engine, "BatchNorm1d", 4, rng)
    x, fuse = engine.tensor(rng.normal(size=(5, 3))), engine.nn.utils.fusion.fuse_linear_bn_eval
    found = fuse(linear, norm)(x).detach().numpy()
    np.testing.assert_allclose(found, norm(linear(x)).detach().numpy(), rtol=1e-12)
    with pytest.raises(StateError, match="only for eval"):
        fuse(linear.train(), norm)
    with pytest.raises(StateError, match="num_features"):
        fuse(engine.nn.Linear(3, 5).eval(), norm)
    with pytest.raises(StateError, match="no running statistics"):
        fuse(linear.eval(), engine.nn.BatchNorm1d(4, track_running_stats=False).eval())


@ENGINES
def test_a_module_made_without_drawing_leaves_the_stream_as_it_is(engine):
    engine.manual_seed(3)
    expected = engine.rand(4).tolist()
    engine.manual_seed(3)
    made = engine.nn.utils.skip_init(engine.nn.Linear, 2, out_features=5)
    assert made.weight.shape == (5, 2)
    assert engine.rand(4).tolist() == expected
    with pytest.raises(ArgumentError, match="Expected a Module"):
        engine.nn.utils.skip_init(len)
    with pytest.raises(ArgumentError, match="'device'"):
        engine.nn.utils.skip_init(engine.nn.ReLU)


@ENGINES
def test_a_dictionary_of_parameters_is_one(engine):
    a, b = (engine.nn.Parameter([x]) for x in (1.0, 2.0))
    table = engine.nn.ParameterDict([("b", b), ("a", a)])
    assert list(reversed(table)) == ["a", "b"]
    assert table.get("c") is None
    assert table.get("a", 5) is a
    assert table.setdefault("a", b) is a
    assert table.setdefault("c", engine.tensor([3.0])).tolist() == [3]
    assert table.popitem()[0] == "c"
    assert list((table | {"d": a}).keys()) == ["b", "a", "d"]
    assert list(({"d": a} | table).keys()) == ["d", "b", "a"]
    table |= {"e": b}
    copied = table.copy()
    assert copied["e"] is b
    assert list(copied.fromkeys(["x", "y"], a).keys()) == ["x", "y"]
    with pytest.raises(MissingKeyError):
        table["z"]


@ENGINES
def test_names_that_public_programs_use(engine):
    lstm = engine.nn.LSTM(2, 3, num_layers=2, bidirectional=True)
    assert [p.name for p in lstm._flat_weights] == [name for name, _ in lstm.named_parameters()]
    assert engine.nn.functional.grad is engine.nn.grad
    twice = engine.nn.Sequential(engine.nn.ReLU(), engine.nn.Tanh())
    twice *= 2
    assert [type(x).__name__ for x in twice] == ["ReLU", "Tanh"] * 2
    checkpoint, x = engine.utils.checkpoint, engine.ones(2, requires_grad=True)
    checkpoint.set_device_states(*checkpoint.get_device_states(x))
    detached, number = checkpoint.detach_variable((x * 2, 3))
    assert (detached.requires_grad, detached.is_leaf, number) == (True, True, 3)
    with pytest.warns(UserWarning, match="None of the inputs"):
        checkpoint.check_backward_validity([x.detach()])


@ENGINES
def test_tensors_as_one_vector_and_back(engine):
    utils = importlib.import_module(f"{engine.__name__}._utils")
    tensors = [engine.tensor([[1.0, 2.0], [3.0, 4.0]]), engine.tensor(5.0), engine.zeros(0)]
    flat = utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [1, 2, 3, 4, 5]
    back = utils._unflatten_dense_tensors(flat, tensors)
    assert [x.tolist() for x in back] == [x.tolist() for x in tensors]
    flat += 1  # they are views
    assert back[1].item() == 6


@ENGINES
def test_tensors_are_taken_together_up_to_a_size(engine):
    take = importlib.import_module(f"{engine.__name__}._utils")._take_tensors
    tensors = [engine.full((n,), n, dtype=engine.float32) for n in (2, 3, 9, 1, 1)]
    tensors.insert(2, engine.tensor([7, 8]))
    found = [[x.tolist() for x in group] for group in take(tensors, 20)]
    assert found == [[[2, 2], [3, 3, 3]], [[9] * 9], [[1], [1]], [[7, 8]]]


@ENGINES
@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(0, 4, 1), (1, 2, 0.5), (-1, 0.75, 0.25), (5, 1, -2), (2, 3, 2), (3, 3, 1), (-0.5, -2, -0.5)],
)
def test_a_range_has_its_end(engine, start, end, step):
    count = int((end - start) / step) + 1  # exact in binary for these numbers
    found = engine.range(start, end, step)
    assert found.tolist() == [start + i * step for i in range(count)]
    assert found.dtype == np.float32
    assert engine.range(start, end, step, dtype=engine.float64).tolist() == found.tolist()
    with pytest.raises(ArgumentError, match="inconsistent with step sign"):
        engine.range(start, end + step, -step)


@ENGINES
def test_functions_of_an_engine_in_a_class_get_no_module(engine):
    class Net(engine.nn.Module):
        act, scale = engine.relu, engine.nn.functional.softplus
        own = lambda self, x: x + 1  # noqa: E731

        def forward(self, x):
            return self.act(x) + self.scale(x) * 0 + self.own(x)

    class Linear(engine.nn.Linear):
        forward = engine.nn.Linear.forward

    assert Net()(engine.tensor([-1.0, 2.0])).tolist() == [0, 5]
    assert Linear(2, 3)(engine.ones(2)).shape == (3,)


@ENGINES
@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_layers_compute_the_weight_of_a_convolution_by_its_inner_method(engine, mode):
    class Scaled(engine.nn.Conv2d):
        def forward(self, x):
            return self._conv_forward(x, self.weight * 2, None)

    class Shifted(engine.nn.Conv2d):
        def _conv_forward(self, input, weight, bias):
            return super()._conv_forward(input, weight, bias) + 1

    plain = engine.nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode)
    x = engine.randn(1, 2, 4, 5)
    assert plain._reversed_padding_repeated_twice == [2, 2, 1, 1]
    for kind, expected in ((Scaled, plain._conv_forward(x, plain.weight * 2, None)), (Shifted, plain(x) + 1)):
        layer = kind(2, 3, 3, padding=(1, 2), padding_mode=mode)
        layer.load_state_dict(plain.state_dict())
        assert (layer(x) == expected).all()
        assert (engine.function(layer)(x) == expected).all()


@ENGINES
def test_norms_take_foreach_and_modules_may_come_twice(engine):
    p = engine.nn.Parameter([3.0, 4.0])
    p.grad = engine.tensor([3.0, 4.0])
    total = engine.nn.utils.get_total_norm([p.grad], foreach=True)
    engine.nn.utils.clip_grads_with_norm_([p], 2.5, total, foreach=False)
    assert total.item() == 5.0
    assert p.grad.tolist() == pytest.approx([1.5, 2.0])
    assert engine.nn.utils.clip_grad_norm([p], 1.0, foreach=True).item() == pytest.approx(2.5)
    layer = engine.nn.ReLU()
    both = engine.nn.Sequential(layer, layer)
    assert len(list(both.modules())) == 2
    assert len(list(both.modules(remove_duplicate=False))) == 3
