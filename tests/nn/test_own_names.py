"""Attributes and methods that a program gives to its modules: none takes the place of what a module keeps itself."""

import pytest

import dynamic
import static


@pytest.mark.parametrize("engine", [dynamic, static])
def test_names_that_programs_give_to_attributes_and_methods_are_theirs(engine):
    class Watched(engine.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = engine.nn.Linear(2, 2)
            self._hooks, self._state_hooks, self._non_persistent = [], "x", None
            self._hooks.append(self.layer.register_forward_hook(lambda module, args, output: output * 2))
            self.register_buffer("kept", engine.ones(1))
            self.register_buffer("made", engine.ones(1), persistent=False)

        def forward(self, x):
            return self.layer(x)

        def _wrong(self, *args):
            raise AssertionError("a program's own method")

        _hook = _load = _leaf = _leaves = _named = _rename = _below = _refuse = _own_state = _apply = _wrong

    model = Watched()
    model.register_forward_hook(lambda module, args, output: output + 1)
    state = {name: value * 0 for name, value in model.state_dict().items()}
    assert sorted(state) == ["kept", "layer.bias", "layer.weight"]
    model.load_state_dict(state)
    assert engine.function(model)(engine.ones(1, 2)).tolist() == [[1.0, 1.0]]
    assert len(list(model.parameters())) == len(model._hooks) + 1 == 2
    assert engine.nn.functional.relu(model.double().get_parameter("layer.bias")).dtype == engine.float64


@pytest.mark.parametrize("engine", [dynamic, static])
def test_names_of_a_programs_own_families_and_optimizers_are_theirs(engine):
    class Shifted(engine.distributions.Distribution):
        arg_constraints = {}

        def __init__(self, mean):
            self._mean, self._draw, self._values, self._mode, self._missing = mean, 3, [1], None, 4
            super().__init__(batch_shape=mean.shape, validate_args=False)

        @property
        def mean(self):
            return self._mean

        def rsample(self, sample_shape=()):
            return self._mean + engine.zeros(self._extended_shape(sample_shape))

    family = Shifted(engine.tensor([1.0, 2.0], requires_grad=True))
    assert family.sample((2,)).tolist() == [[1.0, 2.0], [1.0, 2.0]]  # of rsample, as in PyTorch
    assert not family.sample().requires_grad
    assert family.mean.tolist() == [1.0, 2.0]
    with pytest.raises(NotImplementedError, match="Shifted has no mode"):
        family.mode  # noqa: B018

    class Plain(engine.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.5})
            self._groups, self._checked, self._fused, self._has_state, self._load_state = 3, None, True, None, None

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.add_(p.grad, alpha=-group["lr"])

    weight = engine.nn.Parameter(engine.ones(2))
    optimizer = Plain([weight])
    (weight * weight).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.add_param_group({"params": [engine.nn.Parameter(engine.ones(1))]})
    assert (weight.tolist(), len(optimizer.param_groups)) == ([0.0, 0.0], 2)
