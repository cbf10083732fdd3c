"""Functions that move elements, against numpy's of the same meaning: in both engines, at several sizes of one trace."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common.core import errors
from static.jit.function import CompiledFunction
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import each


def halves(x, axis):
    """The two parts of `chunk`: the first one is the larger."""
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


def padded(x, last, before, mode, **options):
    """numpy's pad, whose pairs come in the order of the dimensions."""
    return np.pad(x, [(0, 0), before, last], {"replicate": "edge", "circular": "wrap"}.get(mode, mode), **options)


CALLS |= {
    "roll": (lambda tw, x: tw.roll(x, 4), lambda x: np.roll(x, 4), True),
    "roll, dims": (lambda tw, x: tw.roll(x, (-2, 7), (0, -1)), lambda x: np.roll(x, (-2, 7), (0, 2)), True),
    "roll, far": (lambda tw, x: tw.roll(x, -100, 0), lambda x: np.roll(x, -100, 0), True),
    "rot90": (lambda tw, x: tw.rot90(x), np.rot90, True),
    "rot90, back": (lambda tw, x: tw.rot90(x, -1, (2, 0)), lambda x: np.rot90(x, -1, (2, 0)), True),
    "rot90, twice": (lambda tw, x: tw.rot90(x, 6, (1, 2)), lambda x: np.rot90(x, 2, (1, 2)), True),
    "rot90, not": (lambda tw, x: tw.rot90(x, 0), lambda x: x, True),
    "tile": (lambda tw, x: tw.tile(x, (2, 1, 2, 3)), lambda x: np.tile(x, (2, 1, 2, 3)), True),
    "tile, few": (lambda tw, x: tw.tile(x, dims=(3,)), lambda x: np.tile(x, 3), True),
    "tile, none": (lambda tw, x: tw.tile(x, (0, 1)), lambda x: np.tile(x, (0, 1)), True),
    "repeat_interleave": (lambda tw, x: tw.repeat_interleave(x, 3), lambda x: np.repeat(x, 3), True),
    "repeat_interleave, dim": (lambda tw, x: tw.repeat_interleave(x, 2, 1), lambda x: np.repeat(x, 2, 1), True),
    "pad": (lambda tw, x: tw.nn.functional.pad(x, (1, 2, 0, 3)), lambda x: padded(x, (1, 2), (0, 3), "constant"), True),
    "pad, value": (
        lambda tw, x: tw.nn.functional.pad(x, (2, 0), value=1),
        lambda x: padded(x, (2, 0), (0, 0), "constant", constant_values=1), True,
    ),
    "pad, negative": (
        lambda tw, x: tw.nn.functional.pad(x, (-2, 1, 0, -1)),
        lambda x: padded(x[:, :-1, 2:], (0, 1), (0, 0), "constant"), True,
    ),
    "reflect": (
        lambda tw, x: tw.nn.functional.pad(x, (4, 1, 2, 2), "reflect"),
        lambda x: padded(x, (4, 1), (2, 2), "reflect"), True,
    ),
    "reflect, cropped": (
        lambda tw, x: tw.nn.functional.pad(x, (4, -3), "reflect"),
        lambda x: padded(x, (4, 0), (0, 0), "reflect")[..., :-3], True,
    ),
    "replicate": (
        lambda tw, x: tw.nn.functional.pad(x, (9, 1, 0, 2), "replicate"),
        lambda x: padded(x, (9, 1), (0, 2), "replicate"), True,
    ),
    "circular": (
        lambda tw, x: tw.nn.functional.pad(x, (5, 1, 2, 0), "circular"),
        lambda x: padded(x, (5, 1), (2, 0), "circular"), True,
    ),
    "meshgrid": (
        lambda tw, x: tw.meshgrid(x[:, 0, 0], x[0, 0], x[0, :, 0]),
        lambda x: np.meshgrid(x[:, 0, 0], x[0, 0], x[0, :, 0], indexing="ij"), True,
    ),
    "meshgrid, xy": (
        lambda tw, x: tw.meshgrid([x[:, 0, 0], x[0, 0], x[0, :, 0]], indexing="xy"),
        lambda x: np.meshgrid(x[:, 0, 0], x[0, 0], x[0, :, 0]), True,
    ),
    "broadcast_tensors": (
        lambda tw, x: tw.broadcast_tensors(x, x[0, 0]), lambda x: np.broadcast_arrays(x, x[0, 0]), True,
    ),
    "atleast_1d": (
        lambda tw, x: tw.atleast_1d(x[0, 0, 0], x), lambda x: np.atleast_1d(x[0, 0, 0], x), True,
    ),
    "atleast_2d": (lambda tw, x: tw.atleast_2d(x[0, 0]), lambda x: np.atleast_2d(x[0, 0]), True),
    "atleast_3d": (
        lambda tw, x: tw.atleast_3d([x[0, 0, 0], x[0, 0], x[0]]),
        lambda x: np.atleast_3d(x[0, 0, 0], x[0, 0], x[0]), True,
    ),
    "hstack": (lambda tw, x: tw.hstack([x, x]), lambda x: np.hstack([x, x]), True),
    "hstack, vectors": (lambda tw, x: tw.hstack([x[0, 0], x[0, 1]]), lambda x: np.hstack([x[0, 0], x[0, 1]]), True),
    "vstack": (lambda tw, x: tw.vstack([x[0, 0], x[0]]), lambda x: np.vstack([x[0, 0], x[0]]), True),
    "dstack": (lambda tw, x: tw.dstack([x[0], x[0]]), lambda x: np.dstack([x[0], x[0]]), True),
    "column_stack": (
        lambda tw, x: tw.column_stack([x[0, :, 0], x[0]]), lambda x: np.column_stack([x[0, :, 0], x[0]]), True,
    ),
    "ravel": (lambda tw, x: tw.ravel(x), np.ravel, True),
    "unflatten": (lambda tw, x: tw.unflatten(x, -1, (5, -1)), lambda x: x[..., None], True),
    "full_like": (lambda tw, x: tw.full_like(x, 1), np.ones_like, True),
    "zeros_like": (lambda tw, x: tw.zeros_like(x, dtype="int32"), lambda x: np.zeros_like(x, "int32"), True),
    "linspace": (lambda tw, x: tw.linspace(-1, 3, 9, "float64"), lambda x: np.linspace(-1, 3, 9), True),
    "linspace of a size": (
        lambda tw, x: tw.linspace(0, x.shape[0] - 1, x.shape[0], tw.int64), lambda x: np.arange(len(x)), True,
    ),
    "logspace": (lambda tw, x: tw.logspace(-1, 2, 4, 2.0), lambda x: np.array([0.5, 1, 2, 4], "float32"), True),
    "tril_indices": (lambda tw, x: tw.tril_indices(3, 4, 1), lambda x: np.array(np.tril_indices(3, 1, 4)), True),
    "triu_indices": (lambda tw, x: tw.triu_indices(3, 4), lambda x: np.array(np.triu_indices(3, 0, 4)), True),
    "full of a size": (
        lambda tw, x: tw.full((2,), x.shape[0]), lambda x: np.full(2, len(x)), True,
    ),
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


@pytest.mark.parametrize("name", CALLS)
@each("dtype", ["float64", "int8", "bool"])
def test_against_numpy(name, dtype):
    call, expected, one_trace = CALLS[name]
    compiled = CompiledFunction(lambda x: call(static, x))
    rng = np.random.default_rng(50)
    for n in (4, 9, 6):
        x = rng.integers(0, 90, (n, 3, 5)).astype(dtype)
        wanted = [np.ascontiguousarray(y) for y in parts(expected(x))]
        for y in (call(dynamic, dynamic.tensor(x)), call(static, x), compiled(x)):
            assert [part.shape for part in parts(y)] == [part.shape for part in wanted]
            assert_all_same_bits(parts(y), wanted, name)
    # a part of one element is another signature: tensor_split of 4 makes one
    assert len(compiled.traces) == (2 if name == "tensor_split" else 1 if one_trace else 3)


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


def test_a_write_to_the_whole_reaches_its_parts():
    x = dynamic.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    whole = x * 1
    part = whole.split(2)[0]
    whole.mul_(3)
    assert part.tolist() == [3, 6]
    part.sum().backward()
    assert x.grad.tolist() == [3, 3, 0, 0]


def test_repeats_as_data():
    x = dynamic.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = dynamic.repeat_interleave(x, dynamic.tensor([2, 1]), 1, output_size=3)
    assert y.tolist() == [[1, 1, 2], [3, 3, 4]]
    y.sum().backward()
    assert x.grad.tolist() == [[2, 1], [2, 1]]
    assert static.repeat_interleave(np.array([5, 6]), np.array([0, 2])).tolist() == [6, 6]
    with pytest.raises(errors.TraceError, match="depends on the data"):
        static.function(lambda x, r: static.repeat_interleave(x, r))(np.ones(2), np.array([1, 2]))
    for repeats, kind in (([1, 2, 3], errors.ShapeError), ([1, -1], errors.ShapeError), ([0.5, 1], errors.DTypeError)):
        with pytest.raises(kind, match="repeat"):
            dynamic.repeat_interleave(x, dynamic.tensor(repeats), 0)


@pytest.mark.parametrize("value", [3, 2.5])
def test_full_of_an_argument(value):
    f = lambda tw: tw.function(lambda n: tw.full((2,), n))  # noqa: E731
    ours, theirs = f(dynamic)(value).numpy(), f(static)(value)
    assert_all_same_bits([theirs], [ours], "full")
    assert theirs.dtype == np.full(2, value, np.float32 if value == 2.5 else np.int64).dtype
    assert f(static)(value + 1).tolist() == [value + 1] * 2


def test_like_functions_have_no_gradient():
    x = dynamic.tensor([1.0], requires_grad=True)
    assert not any(f(x).requires_grad for f in (dynamic.zeros_like, dynamic.ones_like, dynamic.rand_like))


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
    "movedim twice": (lambda tw, x: tw.movedim(x, (0, 0), (0, 1)), errors.ShapeError, "repeated dim in `source`"),
    "diagonal": (lambda tw, x: tw.diagonal(x, 0, 1, -1), errors.ShapeError, "identical 1, -1"),
    "diag": (lambda tw, x: tw.diag(x[0, 0]), errors.ShapeError, "Got 0D"),
    "tril": (lambda tw, x: tw.tril(x[0]), errors.ShapeError, "at least 2 dimensions"),
    "roll": (lambda tw, x: tw.roll(x, (1, 2), 0), errors.ShapeError, "must align. shifts: 2, dims:1"),
    "rot90": (lambda tw, x: tw.rot90(x, 1, (0, 0)), errors.ShapeError, "to be different"),
    "repeat": (lambda tw, x: tw.repeat(x, 2), errors.ShapeError, "can not be smaller"),
    "repeat -1": (lambda tw, x: tw.repeat(x, 2, -1), errors.ShapeError, "negative"),
    "interleave": (lambda tw, x: tw.repeat_interleave(x, -1), errors.ShapeError, "non-negative"),
    "odd pad": (lambda tw, x: tw.nn.functional.pad(x, (1,)), errors.ShapeError, "divisible by 2"),
    "long pad": (lambda tw, x: tw.nn.functional.pad(x, (1,) * 6), errors.ShapeError, "two times the input dimension"),
    "pad away": (lambda tw, x: tw.nn.functional.pad(x, (-3, -3)), errors.ShapeError, "negative output size"),
    "reflect": (lambda tw, x: tw.nn.functional.pad(x, (4, 0), "reflect"), errors.ShapeError, "less than the corr"),
    "circular": (lambda tw, x: tw.nn.functional.pad(x, (5, 0), "circular"), errors.ShapeError, "more than once"),
    "pad mode": (lambda tw, x: tw.nn.functional.pad(x, (1, 0), "mirror"), errors.ArgumentError, "mode 'mirror'"),
    "meshgrid": (lambda tw, x: tw.meshgrid(x, x), errors.ShapeError, "0D or 1D"),
    "indexing": (lambda tw, x: tw.meshgrid(x[0], indexing="yx"), errors.ArgumentError, "'yx'"),
    "hstack": (lambda tw, x: tw.hstack([]), errors.ArgumentError, "hstack.*non-empty"),
    "unflatten": (lambda tw, x: tw.unflatten(x, 1, (3, -1)), errors.ShapeError, "multiply up to the size of dim 1"),
    "linspace": (lambda tw, x: tw.linspace(0, 1, -1), errors.ShapeError, "steps must be non-negative"),
    "randint": (lambda tw, x: tw.randint(3, 3, (2,)), errors.ArgumentError, "less than"),
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


@pytest.mark.parametrize(
    "make",
    [
        lambda tw: tw.linspace(0.3, 9.7, 23, dtype=tw.float64),
        lambda tw: tw.linspace(0.1, 0.7, 8),
        lambda tw: tw.arange(0.1, 7.0, 0.3, dtype=tw.float64),
        lambda tw: tw.arange(-3, 20, 4),
        lambda tw: tw.randint(-5, 9, (40,)),
        lambda tw: tw.full((3,), -0.0),
    ],
)
def test_numbers_of_arrays_made_at_once_are_those_of_a_trace(make):
    compiled = static.compile(lambda x: (x, make(static)))
    dynamic.manual_seed(3)
    made = make(dynamic).numpy()
    dynamic.manual_seed(3)
    traced = compiled(np.zeros(2))[1].numpy()
    assert (made.dtype, made.tobytes()) == (traced.dtype, traced.tobytes())


def test_indices_of_triangles_are_numpys():
    """Of matrices without elements too, beyond all diagonals, and of more rows than there are elements."""
    for rows, columns in product((0, 1, 2, 7, 40), (0, 1, 3, 33)):
        for offset in (-(10**25), -50, -6, -1, 0, 1, 7, 50, 10**25):
            for name in ("tril_indices", "triu_indices"):
                near = max(min(offset, 100), -100)
                expected = np.array(getattr(np, name)(rows, near, columns)).reshape(2, -1)
                for tw in (dynamic, static):
                    found = np.asarray(getattr(tw, name)(rows, columns, offset))
                    np.testing.assert_array_equal(found, expected, strict=True)
    last = np.asarray(dynamic.tril_indices(10**12, 3, -(10**12) + 2))
    np.testing.assert_array_equal(last, [[10**12 - 2, 10**12 - 1, 10**12 - 1], [0, 0, 1]])
