"""Mistakes get the exceptions that users of PyTorch and Python expect, with recognisable words."""

import numpy as np
import pytest

import dynamic as tw
from common.core.errors import TwingradError

pytestmark = pytest.mark.quick

F = tw.nn.functional


def leaf(*values):
    return tw.tensor(list(values), requires_grad=True)


CASES = [
    (lambda: leaf(1.0, 2.0).mul(2).backward(), RuntimeError, "grad can be implicitly created only for scalar outputs"),
    (lambda: tw.tensor(1.0).backward(), RuntimeError, "element 0 of tensors does not require grad"),
    (lambda: tw.tensor([1], requires_grad=True), RuntimeError, "only Tensors of floating point dtype"),
    (lambda: tw.tensor([1]).requires_grad_(), TypeError, "only Tensors of floating point dtype can require grad"),
    (lambda: tw.nn.Parameter(np.array([1])), RuntimeError, "only Tensors of floating point dtype can require grad"),
    (lambda: leaf(1.0).numpy(), RuntimeError, "Can't call numpy() on Tensor that requires grad"),
    (lambda: tw.ones(2).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
    (lambda: bool(tw.ones(2)), RuntimeError, "Boolean value of Tensor with 2 values is ambiguous"),
    (lambda: tw.ones(2, 3) @ tw.ones(2, 3), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    (lambda: tw.ones(2, 2) @ tw.ones(2, 2, dtype=tw.float64), RuntimeError, "to have the same dtype"),
    (lambda: tw.ones(2, 3).sum(5), IndexError, "Dimension out of range (expected to be in range of [-2, 1]"),
    (lambda: tw.ones(2).mean(dim=(0, 0)), ValueError, "dim 0 appears multiple times in the list of dims"),
    (lambda: tw.tensor([1]).mean(), TypeError, "Input dtype must be a floating point one"),
    (lambda: tw.zeros(0).amax(), RuntimeError, "Expected reduction dim 0 to have non-zero size"),
    (lambda: tw.ones(2, 3)[5], IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    (lambda: tw.ones(2)[0, 0], IndexError, "too many indices"),
    (lambda: tw.ones(2)[::-1], ValueError, "step must be greater than zero"),
    (lambda: tw.ones(2, 3).view(7), RuntimeError, "shape '[7]' is invalid for input of size 6"),
    (lambda: tw.ones(2, 3).T.view(6), RuntimeError, "view size is not compatible"),
    (lambda: tw.ones(2, 3).expand(2, 4), RuntimeError, "only sizes of 1 expand"),
    (lambda: tw.cat([tw.ones(2, 3), tw.ones(2, 4)]), RuntimeError, "Sizes of tensors must match except in dimension 0"),
    (lambda: tw.cat([]), ValueError, "non-empty list"),
    (lambda: tw.cat(tw.ones(2)), TypeError, "expected a tuple or list of tensors"),
    (lambda: leaf(1.0, 2.0).mul(2).backward(tw.ones(3)), RuntimeError, "Mismatch in shape: grad_output[0]"),
    (lambda: setattr(leaf(1.0), "grad", tw.ones(3)), RuntimeError, "attempting to assign a gradient of size"),
    (lambda: tw.tensor([1.5, 2]) & tw.tensor([1, 1]), TypeError, "bitwise_and(): not implemented for float32"),
    (lambda: tw.tensor(["a"]), TypeError, "not supported"),
    (lambda: tw.tensor([1j]), TypeError, "not supported"),
    (lambda: tw.tensor([[1.0], [1.0, 2.0]]), ValueError, "equally long"),
    (lambda: tw.ones(2).to("float16"), TypeError, "float16 is not supported"),
    (lambda: tw.zeros(-1), RuntimeError, "negative dimension"),
    (lambda: tw.zeros(1.5), TypeError, "argument 'size' must be int"),
    (lambda: tw.arange(3, 0), ValueError, "step"),
    (lambda: tw.nn.functional.gelu(tw.ones(2), "x"), ValueError, "approximate argument must be"),
    (lambda: F.cross_entropy(tw.ones(2, 3), tw.ones(2)), TypeError, "expected target dtype to be Long or Byte"),
    (lambda: F.cross_entropy(tw.ones(2, 3), tw.tensor([0, 3])), IndexError, "index out of range"),
    (lambda: F.cross_entropy(tw.ones(2, 3), tw.tensor([0, 1, 2])), ValueError, "to match target batch_size (3)"),
    (lambda: F.mse_loss(tw.ones(2), tw.ones(2), reduction="x"), ValueError, "not a valid value for reduction"),
    (lambda: F.embedding(tw.tensor([4]), tw.ones(4, 2)), IndexError, "indices must lie in [0, 4)"),
    (lambda: F.embedding(tw.tensor([-1]), tw.ones(4, 2)), IndexError, "indices must lie in [0, 4)"),
    (lambda: F.embedding(tw.tensor([1.0]), tw.ones(4, 2)), TypeError, "Expected dtype int32/int64 for index"),
    (lambda: F.layer_norm(tw.ones(2, 3), (2,)), RuntimeError, "Given normalized_shape=[2], expected input with shape"),
    (lambda: tw.clamp(tw.ones(2)), ValueError, "at least one of 'min' or 'max'"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "kind", "text"), CASES, ids=[text[:40] for _, _, text in CASES])
def test_mistakes(mistake, kind, text):
    with pytest.raises(kind) as caught:
        mistake()
    assert isinstance(caught.value, TwingradError)
    assert text in str(caught.value)


@pytest.mark.parametrize("f", [lambda x: x + "a", lambda x: x < None, lambda x: x @ [1], lambda x: x // "2"])
def test_operators_on_foreign_things_are_type_errors(f):
    with pytest.raises(TypeError):
        f(tw.ones(2))


def test_nothing_is_lost_by_a_mistake():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    with pytest.raises(TwingradError):
        y.backward(tw.ones(3))
    with pytest.raises(TwingradError):
        x * tw.ones(3)
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_no_warnings_and_no_changed_error_state():
    before = np.geterr()
    x = tw.tensor([0.0, -1.0, np.inf, np.nan], requires_grad=True)
    y = (x / 0 + x.log() + x.sqrt() + x * 1e38 * 1e38).sum()
    y.backward()
    assert np.geterr() == before
