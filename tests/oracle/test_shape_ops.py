"""Functions that move elements, against numpy's of the same meaning: in both engines, at several sizes of one trace."""

from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common import errors
from static.jit import Function
from tests.bits import assert_all_same_bits


def halves(x, axis):
    """What `chunk` gives for two parts: the first one is the larger."""
    return np.split(x, [-(-x.shape[axis] // 2)], axis)


#: name -> (call, numpy's, whether one trace serves all sizes)
CALLS: dict[str, Any] = {
    "split": (lambda tw, x: tw.split(x, 2, 2), lambda x: np.split(x, [2, 4], 2), True),
    "split, sizes": (lambda tw, x: tw.split(x, [1, 0, 4], -1), lambda x: np.split(x, [1, 1], 2), True),
    "split, one": (lambda tw, x: tw.split(x, 99, 1), lambda x: [x], True),
    "chunk": (lambda tw, x: tw.chunk(x, 2, 0), lambda x: halves(x, 0), True),
    "chunk, few": (lambda tw, x: tw.chunk(x, 4, 2), lambda x: np.split(x, [2, 4], 2), True),
    "tensor_split": (lambda tw, x: tw.tensor_split(x, 3, 0), lambda x: np.array_split(x, 3, 0), True),
    "tensor_split, indices": (
        lambda tw, x: tw.tensor_split(x, (1, -2, 1, 9), 2), lambda x: np.array_split(x, [1, -2, 1, 9], 2), True,
    ),
    "unbind": (lambda tw, x: tw.unbind(x, -1), lambda x: list(np.moveaxis(x, -1, 0)), True),
    "unbind, symbolic": (lambda tw, x: tw.unbind(x), list, False),
    "flip": (lambda tw, x: tw.flip(x, dims=(0, -1)), lambda x: np.flip(x, (0, 2)), True),
    "flip, none": (lambda tw, x: tw.flip(x, ()), lambda x: x, True),
    "fliplr": (lambda tw, x: tw.fliplr(x), np.fliplr, True),
    "flipud": (lambda tw, x: tw.flipud(x), np.flipud, True),
    "movedim": (lambda tw, x: tw.movedim(x, (0, 2), (-1, 0)), lambda x: np.moveaxis(x, (0, 2), (-1, 0)), True),
    "moveaxis": (lambda tw, x: tw.moveaxis(x, 1, 0), lambda x: np.moveaxis(x, 1, 0), True),
    "swapaxes": (lambda tw, x: tw.swapaxes(x, 0, 2), lambda x: np.swapaxes(x, 0, 2), True),
    "diagonal": (lambda tw, x: tw.diagonal(x), lambda x: np.diagonal(x), True),
    "diagonal, below": (lambda tw, x: tw.diagonal(x, -1, 2, 1), lambda x: np.diagonal(x, -1, 2, 1), True),
    "diagonal, outside": (lambda tw, x: tw.diagonal(x, 9, 1, 2), lambda x: np.diagonal(x, 9, 1, 2), True),
    "diag of a vector": (lambda tw, x: tw.diag(x[0, 0], -2), lambda x: np.diag(x[0, 0], -2), True),
    "diag of a matrix": (lambda tw, x: tw.diag(x[0], 1), lambda x: np.diag(x[0], 1), True),
    "diag_embed": (lambda tw, x: tw.diag_embed(x, 1), lambda x: embedded(x), True),
    "tril": (lambda tw, x: tw.tril(x), np.tril, True),
    "tril, above": (lambda tw, x: tw.tril(x, 2), lambda x: np.tril(x, 2), True),
    "triu": (lambda tw, x: tw.triu(x, -1), lambda x: np.triu(x, -1), True),
    "triu, outside": (lambda tw, x: tw.triu(x, 7), lambda x: np.triu(x, 7), True),
}  # fmt: skip


def embedded(x):
    """The last dimension one place above the main diagonal."""
    n = x.shape[-1]
    out = np.zeros((*x.shape[:-1], n + 1, n + 1), x.dtype)
    for i in range(n):
        out[..., i, i + 1] = x[..., i]
    return out


def parts(y):
    return [np.asarray(part) for part in (y if isinstance(y, (tuple, list)) else [y])]


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool"])
@pytest.mark.parametrize("name", CALLS)
def test_against_numpy(name, dtype):
    call, expected, one_trace = CALLS[name]
    compiled = Function(lambda x: call(static, x))
    rng = np.random.default_rng(50)
    for n in (4, 9, 6):
        x = rng.integers(0, 90, (n, 3, 5)).astype(dtype)
        wanted = [np.ascontiguousarray(y) for y in parts(expected(x))]
        for y in (call(dynamic, dynamic.tensor(x)), call(static, x), compiled(x)):
            assert [part.shape for part in parts(y)] == [part.shape for part in wanted]
            assert_all_same_bits(parts(y), wanted, name)
    assert len(compiled.traces) == (1 if one_trace else 3)


VIEWS = {
    "split": lambda x: x.split(2, 1)[1],
    "chunk": lambda x: x.chunk(2)[0],
    "unbind": lambda x: x.unbind(1)[2],
    "movedim": lambda x: x.movedim(0, 1),
    "diagonal": lambda x: x.diagonal(1),
}
COPIES = {"flip": lambda x: x.flip(0), "diag": lambda x: x.diag(), "tril": lambda x: x.tril()}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(name):
    x = dynamic.zeros(3, 4)
    part = VIEWS[name](x)
    assert np.shares_memory(part.numpy(), x.numpy())
    part.fill_(1)
    assert x.numpy().sum() == part.numel()


@pytest.mark.parametrize("name", COPIES)
def test_copies_do_not(name):
    x = dynamic.zeros(3, 4)
    y = COPIES[name](x).numpy()
    assert not np.shares_memory(y, x.numpy())
    assert y.flags.c_contiguous


def test_writes_with_gradient_to_a_part_are_refused():
    x = dynamic.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    whole = x * 1
    part = whole.split(2)[0]
    with pytest.raises(errors.GradientError, match="view"):
        whole.mul_(2)
    del part
    whole.mul_(2)


MISTAKES = {
    "split of a scalar": (lambda tw, x: tw.split(x[0, 0], 1), errors.ShapeError, "at least a 1-dimensional"),
    "split by 0": (lambda tw, x: tw.split(x, 0), errors.ShapeError, "can only be 0"),
    "split by -1": (lambda tw, x: tw.split(x, -1), errors.ShapeError, "non-negative, but got split_size=-1"),
    "split sizes": (lambda tw, x: tw.split(x, [1, 1]), errors.ShapeError, r"exactly to .*3 .*split_sizes=\[1, 1"),
    "split by a float": (lambda tw, x: tw.split(x, 1.5), errors.ArgumentError, "must be int, not float .1.5"),
    "chunk": (lambda tw, x: tw.chunk(x, 0), errors.ShapeError, "greater than 0, got: 0"),
    "tensor_split": (lambda tw, x: tw.tensor_split(x, 0), errors.ShapeError, "larger than 0, got 0"),
    "unbind": (lambda tw, x: tw.unbind(x, 2), errors.IndexRangeError, "unbind.*got 2"),
    "flip": (lambda tw, x: tw.flip(x, (0, -2)), errors.ShapeError, "dim 0 appears multiple times"),
    "fliplr": (lambda tw, x: tw.fliplr(x[0]), errors.ShapeError, "must be >= 2-d"),
    "movedim": (lambda tw, x: tw.movedim(x, (0, 1), 0), errors.ShapeError, "same number of dims"),
    "movedim twice": (lambda tw, x: tw.movedim(x, (0, 0), (0, 1)), errors.ShapeError, "multiple times"),
    "diagonal": (lambda tw, x: tw.diagonal(x, 0, 1, -1), errors.ShapeError, "identical 1, -1"),
    "diag": (lambda tw, x: tw.diag(x[0, 0]), errors.ShapeError, "Got 0D"),
    "tril": (lambda tw, x: tw.tril(x[0]), errors.ShapeError, "at least 2 dimensions"),
    "triu by a string": (lambda tw, x: tw.triu(x, "1"), errors.ArgumentError, "'diagonal' must be int, not str"),
    "a bool as a dimension": (lambda tw, x: tw.sum(x, True), errors.ArgumentError, "must be int, not bool"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_one_error_in_both_engines(name):
    call, kind, words = MISTAKES[name]
    x = np.ones((3, 4), np.float32)
    runs = (
        lambda: call(dynamic, dynamic.tensor(x)),
        lambda: static.function(lambda x: call(static, x))(x),
        lambda: call(static, np.asarray(x)),
    )
    for run in runs:
        with pytest.raises(kind, match=words):
            run()
