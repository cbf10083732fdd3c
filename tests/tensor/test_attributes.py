"""Programs may give a tensor attributes of their own, as in PyTorch."""

import copy
import pickle

import pytest

import dynamic
import static

ENGINES = pytest.mark.parametrize("tw", [dynamic, static])


@ENGINES
def test_a_tensor_keeps_attributes(tw):
    x = tw.zeros(2, 3)
    x.require_grad, x.label = False, ["positions"]
    assert (x.require_grad, x.label, x.requires_grad) == (False, ["positions"], False)
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.label == ["positions"]
    assert copy.deepcopy(x).label is not x.label
    del x.label
    assert not hasattr(x, "label")
    assert not hasattr(x * 1, "require_grad")
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'label'"):
        x.label  # noqa: B018


def test_a_traced_tensor_keeps_attributes_in_its_trace():
    def f(x):
        y = x * 2
        y.scale = 3
        return y * y.scale

    assert static.function(f)(static.ones(2)).tolist() == dynamic.function(f)(dynamic.ones(2)).tolist() == [6.0, 6.0]


@ENGINES
def test_modules_keep_attributes_of_buffers(tw):
    class Positions(tw.nn.Module):
        def __init__(self):
            super().__init__()
            encoding = tw.zeros(4, 2)
            encoding.require_grad = False  # as many programs have it
            self.register_buffer("encoding", encoding)

        def forward(self, x):
            return x + self.encoding

    assert Positions()(tw.ones(4, 2)).tolist() == [[1.0, 1.0]] * 4
    assert tw.function(Positions())(tw.ones(4, 2)).tolist() == [[1.0, 1.0]] * 4


@ENGINES
def test_other_arguments_that_pytorch_takes(tw):
    x = tw.zeros(2)
    assert x.copy_(tw.ones(2), non_blocking=True).tolist() == x.clone().copy_(tw.ones(2), True).tolist() == [1.0, 1.0]
    assert tw.nn.functional.gumbel_softmax(logits=tw.zeros(2, 3), hard=True).sum().item() == 2
    state = tw.get_rng_state()
    first = tw.rand(2).tolist()
    tw.set_rng_state(new_state=state)
    assert tw.rand(2).tolist() == first


@pytest.mark.parametrize("tw", [dynamic, static])
def test_transposes_of_matrices(tw):
    for name in ("H", "mT", "mH"):
        assert getattr(tw.ones(2, 3), name).shape == (3, 2)
        assert getattr(tw.tensor(2.0), name).item() == 2
        with pytest.raises(RuntimeError, match=r"only supported on matrices.*Got 1-D tensor"):
            getattr(tw.ones(2), name)
    assert tw.ones(2, 3, 4).mT.shape == tw.ones(2, 3, 4).mH.shape == tw.adjoint(tw.ones(2, 3, 4)).shape == (2, 4, 3)
    assert tw.tensor(2.0).adjoint().item() == 2
    with pytest.raises(RuntimeError, match=r"consider using tensor\.mH"):
        tw.ones(2, 3, 4).H  # noqa: B018
