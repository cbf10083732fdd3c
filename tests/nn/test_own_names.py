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
