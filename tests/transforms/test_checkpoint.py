"""Values that a checkpoint keeps for running its function again are watched like those that an op has saved."""

import inspect

import numpy as np
import pytest

import dynamic as tw
from dynamic.utils.checkpoint import checkpoint

MODIFIED = "modified by an inplace operation"


def leaf(*values):
    return tw.tensor(list(values), requires_grad=True)


def line():
    return inspect.currentframe().f_back.f_lineno


def times(x, c):
    return x * c


def test_the_error_names_both_lines():
    x, c = leaf(1.0, 2.0), tw.ones(2)
    y, saved = checkpoint(times, x, c, use_reentrant=False), line()
    c[0], written = 5.0, line()
    with pytest.raises(RuntimeError, match=rf"CheckpointBackward at .*:{saved} was overwritten at .*:{written}"):
        y.sum().backward()


def test_a_write_beside_an_argument_is_no_error():
    x, c = leaf(1.0, 2.0), tw.ones(4)
    y = checkpoint(times, x, c[:2], use_reentrant=False)
    c[2:] = 7.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_captured_leaves_are_watched():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = checkpoint(lambda x: x * w, x, use_reentrant=False)
    with tw.no_grad():
        w.sub_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_a_checkpoint_in_a_checkpoint_is_no_write():
    x, c = leaf(1.0, 2.0), tw.ones(2)
    y = checkpoint(lambda x: checkpoint(times, x * 2, c, use_reentrant=False), x, use_reentrant=False)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_second_pass_looks_again():
    x, c = leaf(1.0, 2.0), tw.ones(2)
    y = checkpoint(times, x, c, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    c.zero_()
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


@pytest.mark.parametrize("early", [True, False], ids=["handed out before", "handed out after"])
def test_a_write_from_outside(early):
    x, c = leaf(1.0, 2.0), tw.ones(2)
    array = c.numpy() if early else None
    y = checkpoint(times, x, c, use_reentrant=False)
    array = c.numpy() if array is None else array
    array[:] = 2
    with pytest.raises(RuntimeError, match=r"overwritten from outside, through memory that numpy\(\) shares"):
        y.sum().backward()


def test_looking_from_outside_is_no_error():
    x = leaf(1.0, 2.0)
    y = checkpoint(times, x, tw.from_numpy(np.ones(2, np.float32)), use_reentrant=False)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_training_with_checkpoints_goes_on():
    w = tw.nn.Parameter(np.array([1.0, 2.0], np.float32))
    sgd = tw.optim.SGD([w], lr=0.25)
    for _ in range(2):
        sgd.zero_grad()
        checkpoint(lambda x: x * w * w, tw.ones(2, requires_grad=True), use_reentrant=False).sum().backward()
        sgd.step()
    assert w.tolist() == [0.25, 0.5]


@pytest.mark.parametrize("pack", [lambda s: s, lambda s: s.numpy()], ids=["tensor", "array"])
def test_hooks_that_pack_nothing_keep_the_value_before_its_own_write(pack):
    w, h = leaf(3.0, 4.0), tw.tensor([1.0, 2.0])
    with tw.autograd.graph.saved_tensors_hooks(pack, tw.as_tensor):
        h.mul_(w)
    h.sum().backward()
    assert w.grad.tolist() == [1.0, 2.0]
