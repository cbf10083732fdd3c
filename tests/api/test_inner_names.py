"""Names of PyTorch's inner modules that public repositories import do what they do there."""

import importlib
import sys

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError

ENGINES = pytest.mark.parametrize("tw", [dynamic, static])


def place(tw, path):
    return importlib.import_module(f"{tw.__name__}.{path}")


@ENGINES
def test_weight_norm_by_its_class(tw):
    layer, other = tw.nn.Linear(3, 2), tw.nn.Linear(3, 2)
    other.load_state_dict(layer.state_dict())
    made = place(tw, "nn.utils.weight_norm").WeightNorm.apply(layer, "weight", 0)
    tw.nn.utils.weight_norm(other, "weight", 0)
    assert sorted(layer.state_dict()) == sorted(other.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert tw.equal(made.compute_weight(layer), layer.weight)
    assert tw.equal(layer.weight, other.weight)


@ENGINES
def test_errors_of_threads_are_raised_again(tw):
    try:
        raise ValueError("there")
    except ValueError:
        kept = place(tw, "_utils").ExceptionWrapper(sys.exc_info(), "in thread 3")
    with pytest.raises(ValueError, match="there") as raised:
        kept.reraise()
    assert raised.value.__notes__ == ["Caught ValueError in thread 3."]
    with pytest.raises(ArgumentError, match="no error"):
        place(tw, "_utils").ExceptionWrapper().reraise()


@ENGINES
def test_small_functions(tw):
    x = tw.arange(6).reshape(2, 3)
    turned = place(tw, "nn.modules.rnn").apply_permutation(x, tw.tensor([2, 0, 1]))
    assert turned.tolist() == [[2, 0, 1], [5, 3, 4]]
    assert place(tw, "nn.parallel.parallel_apply").get_a_var([1, {"a": (x,)}]) is x
    assert place(tw, "nn.parallel.parallel_apply").get_a_var([1, {}]) is None
    assert place(tw, "cuda._utils")._get_device_index("cpu") == -1
    assert place(tw, "serialization").default_restore_location(x, "cuda:0") is x
    assert [*place(tw, "hub").tqdm(range(3), desc="rows")] == [0, 1, 2]
    with place(tw, "utils.model_zoo").tqdm(total=3) as bar:
        bar.update(2)


@ENGINES
def test_a_cell_of_the_users_own(tw):
    class Gated(tw.nn.RNNCellBase):
        def __init__(self, n, m):
            super().__init__(n, m, bias=True, num_chunks=2)

        def forward(self, x, h):
            a, b = (tw.nn.functional.linear(x, self.weight_ih, self.bias_ih)).chunk(2, -1)
            return a.sigmoid() * h + b

    cell = Gated(3, 4)
    assert [tuple(p.shape) for p in cell.parameters()] == [(8, 3), (8, 4), (8,), (8,)]
    assert cell(tw.ones(2, 3), tw.zeros(2, 4)).shape == (2, 4)
    assert isinstance(tw.nn.LSTMCell(2, 3), tw.nn.RNNCellBase)


@ENGINES
def test_a_transform_with_parameters(tw):
    class Shift(tw.distributions.Transform, tw.nn.Module):
        bijective = True
        __hash__ = tw.nn.Module.__hash__

        def __init__(self):
            super().__init__()
            self.by = tw.nn.Parameter(tw.ones(3))

        def _call(self, x):
            return x + self.by

        def _inverse(self, y):
            return y - self.by

    shift = Shift()
    assert shift.inv(shift(tw.zeros(3))).tolist() == [0, 0, 0]
    assert [name for name, _ in shift.named_parameters()] == ["by"]


@ENGINES
def test_lengths_that_are_whole_floats(tw):
    x = tw.arange(6.0).reshape(2, 3, 1)
    pack = tw.nn.utils.rnn.pack_padded_sequence
    found, wanted = (pack(x, tw.tensor([3, 2], dtype=d), batch_first=True) for d in (tw.float32, tw.int64))
    assert np.array_equal(found.batch_sizes, wanted.batch_sizes)
    assert tw.equal(found.data, wanted.data)
