"""Indexing by data: the meaning of keys, against numpy where it agrees and against stated results where not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import (
    ArgumentError,
    DTypeError,
    GradientError,
    IndexKindError,
    IndexRangeError,
    ShapeError,
    TraceError,
)
from tests.helpers.proofs import core, no, share

ROOT = np.arange(120.0, dtype=np.float32).reshape(2, 3, 4, 5)
I, J, M = np.array([1, 0, -1]), np.array([[0], [-2]]), np.array([True, False, True])
M2 = np.random.default_rng(0).random((3, 4)) < 0.5
ENTRIES = [slice(None), slice(1, None), None, I % 2, J, Ellipsis, [0, -1], True]


def as_tensors(key):
    return tuple(tw.tensor(k) if isinstance(k, np.ndarray) else k for k in key)


KEYS = [
    *(key for key in itertools.product(ENTRIES, repeat=3) if sum(k is Ellipsis for k in key) < 2),
    (M2[:2],), (slice(None), M2), (slice(None), M, I[:2]), (slice(None), M), (slice(None), slice(None), M2[0]),
    (0, M2), (M2[:2, :3], slice(None)), ([],), ([[0, 1], [1, 0]],), (range(2),), (np.int64(1), I),
    (slice(None), slice(None), slice(None), np.array([False] * 5)), (I % 2, I, I, I), (1, 2, 3, -1),
]  # fmt: skip


def selects_alike(key):
    """Where an int stands beside indices, numpy counts it among them and PyTorch selects first."""
    return not any(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in key)


@pytest.mark.parametrize(
    "key", core(filter(selects_alike, KEYS), no, lambda key: len(key) == 3 and share(str(key), 3) > 0)
)
def test_reading_and_writing_agree_with_numpy(key):
    try:
        expected = ROOT[key]
    except IndexError:
        with pytest.raises((IndexError, ShapeError)):
            tw.tensor(ROOT)[as_tensors(key)]
        return
    y = tw.tensor(ROOT)[as_tensors(key)]
    assert (y.shape, y.tolist()) == (expected.shape, expected.tolist())
    value = -np.arange(float(expected.size), dtype=np.float32).reshape(expected.shape)
    for v in (value, value.reshape(-1)[:1].reshape(()) if value.size else np.float32(3)):
        for requires_grad in (False, True):
            x, copy = tw.tensor(ROOT, requires_grad=requires_grad) * 1, ROOT.copy()
            x[as_tensors(key)] = tw.tensor(v)
            copy[key] = v
            assert x.tolist() == copy.tolist()


def test_ints_select_before_indices_are_placed():
    """As in PyTorch: x[0, :, i] is x[0][:, i]; numpy puts the index in front."""
    x = tw.tensor(ROOT)
    assert x[0, :, [1, 2]].shape == (3, 2, 5)
    assert x[0, :, [1, 2]].tolist() == ROOT[0][:, [1, 2]].tolist()
    assert x[[0, 1], 1, [0, 1]].tolist() == ROOT[:, 1][[0, 1], [0, 1]].tolist()
    assert x[:, tw.tensor(1), :, [0, 1]].tolist() == ROOT[:, 1][:, :, [0, 1]].tolist()


def test_zero_dimensional_indices():
    x = tw.tensor(ROOT)
    assert x[tw.tensor(-1)].tolist() == ROOT[-1].tolist()
    x[tw.tensor(0)].fill_(7)  # an int: a view
    assert (x[0].numpy() == 7).all()
    assert x[tw.tensor(True)].shape == (1, 2, 3, 4, 5)
    assert x[tw.tensor(False)].shape == (0, 2, 3, 4, 5)

    @static.function
    def f(x, i):
        y = x * 1
        y[i, 0] = 5
        return x[i], x[:, i, 0], y

    for i in (np.array(1), 0, -1):
        first, second, third = f(ROOT, i)
        expected = ROOT.copy()
        expected[int(i), 0] = 5
        assert first.tolist() == ROOT[int(i)].tolist()
        assert second.tolist() == ROOT[:, int(i), 0].tolist()
        assert third.tolist() == expected.tolist()
    assert len(f.traces) == 2  # of an array and of a number: not one per index


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"])
def test_all_dtypes_are_read_and_written(dtype):
    x = (ROOT[0, 0] % 2).astype(dtype)
    t = tw.tensor(x)
    assert t[[1, 0]].numpy().tobytes() == x[[1, 0]].tobytes()
    t[[0, 3], 1:3] = True
    t[t.numpy()[:, 0] == 0, 4] = 1
    x[[0, 3], 1:3] = True
    x[x[:, 0] == 0, 4] = 1
    assert t.dtype == x.dtype
    assert t.tolist() == x.tolist()


def test_values_are_converted_and_leading_ones_dropped():
    x = tw.zeros(2, 3)
    x[0] = tw.tensor([[[1, 2, 3]]])
    x[1, [0, 2]] = np.float64([4, 5])
    x[1, 1] = True
    assert x.tolist() == [[1, 2, 3], [4, 1, 5]]
    y = tw.tensor([1, 2])
    y[0] = 2.9
    assert y.tolist() == [2, 2]


def test_overlapping_reads_and_writes():
    x = tw.arange(6)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x[[0, 1]] = x[4:]
    z = tw.tensor([2, 0, 1, 2])
    z[z] = z + 10  # the index is what is written; of two values for z[2] the last stays
    assert z.tolist() == [10, 11, 12, 2]
    y = tw.tensor(ROOT[0, 0].copy())
    y.T[[0, 1]] = y.T[[1, 0]]  # memory that is not contiguous
    assert y[:, 0].tolist() == ROOT[0, 0, :, 1].tolist()


def test_gradients_reach_values_and_the_rest():
    x, v = tw.tensor([1.0, 2.0, 3.0], requires_grad=True), tw.tensor([10.0, 20.0, 30.0], requires_grad=True)
    w = tw.tensor([1.0, 2.0, 4.0])
    y = x * 1
    y[[0, 2, 0]] = v
    (y * w).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]
    assert v.grad.tolist() == [0.0, 4.0, 1.0]  # the first value was replaced by the third
    buffer = tw.zeros(3)
    buffer[1:] = v[1:]
    assert buffer.requires_grad
    (buffer * w).sum().backward()
    assert v.grad.tolist() == [0.0, 6.0, 5.0]


@pytest.mark.parametrize("engine", [tw, static], ids=["dynamic", "static"])
@pytest.mark.parametrize("factors", [[1.5, 2.0], [0.0, 2.0], [0.0, 0.0], [0.0, -0.0, 3.0], [0.0, 0.0, 0.0, 2.0]])
def test_products_at_an_index_have_second_derivatives_beside_any_number_of_zeros(engine, factors):
    values = engine.tensor([1.5, -2.0], dtype=engine.float64), engine.tensor(factors, dtype=engine.float64)
    x, v = (t.requires_grad_() for t in values)
    at = engine.tensor([0] * len(factors))
    for reduce in (engine.scatter_reduce, engine.index_reduce):
        (g,) = engine.autograd.grad(reduce(x, 0, at, v, "prod").sum(), v, create_graph=True)
        others = [np.prod([1.5, *factors[:i], *factors[i + 1 :]]) for i in range(len(factors))]
        assert g.tolist() == pytest.approx(others)
        for i in range(len(factors)):
            (h,) = engine.autograd.grad(g[i], v, retain_graph=True)
            rest = [
                np.prod([1.5, *(f for k, f in enumerate(factors) if k not in (i, j))]) if i != j else 0.0
                for j in range(len(factors))
            ]
            assert h.tolist() == pytest.approx(rest)


def test_leaves_are_protected_and_views_follow():
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match="a leaf Variable that requires grad"):
        x[0] = 1
    with tw.no_grad():
        x[0] = 5
        x[[1]] = 6
    assert (x.tolist(), x.requires_grad, x.is_leaf) == ([5.0, 6.0], True, True)
    y = x * 1
    view = y[1:]
    y[0] = 3  # memory that the view does not show
    (view.sum() + y.sum()).backward(retain_graph=True)
    assert x.grad.tolist() == [0.0, 2.0]
    y[1] = 3
    (view.sum() + y.sum()).backward()
    assert x.grad.tolist() == [0.0, 2.0]


def test_writes_into_saved_values_are_noticed_and_others_allowed():
    w = tw.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for key in ([0], tw.tensor([True, False, False]), 0, slice(0, 1)):
        x = tw.ones(3)
        y = w * x
        x[key] = 4
        with pytest.raises(GradientError, match="modified by an inplace operation"):
            y.sum().backward()
    memory = tw.ones(6)
    y = w * memory[:3]
    memory[3:] = 2
    memory[4:][[0]] = 2
    y.sum().backward()
    index = tw.tensor([0, 1])
    y = w[index]
    index[0] = 1
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        y.sum().backward()


def test_in_place_forms():
    def fresh():
        return tw.zeros(3, 2)

    rows, two = tw.tensor([0, 2]), tw.ones(2, 2)
    assert fresh().index_add_(0, rows, two, alpha=3).tolist() == [[3, 3], [0, 0], [3, 3]]
    assert fresh().index_copy_(0, rows, two).tolist() == [[1, 1], [0, 0], [1, 1]]
    assert fresh().index_fill_(0, rows, 4).tolist() == [[4, 4], [0, 0], [4, 4]]
    assert fresh().index_put_((rows,), tw.ones(2), accumulate=True).tolist() == [[1, 1], [0, 0], [1, 1]]
    assert fresh().scatter_(0, tw.tensor([[0, 2]]), 7.0).tolist() == [[7, 0], [0, 0], [0, 7]]
    assert fresh().scatter_add_(0, tw.tensor([[0, 2]]), tw.ones(1, 2)).tolist() == [[1, 0], [0, 0], [0, 1]]
    index = tw.tensor([[0, 2], [0, 2]])
    assert fresh().scatter_reduce_(0, index, two, "sum").tolist() == [[2, 0], [0, 0], [0, 2]]
    assert fresh().scatter_reduce_(0, index, 3 * two, "prod", include_self=False).tolist() == [[9, 0], [0, 0], [0, 9]]
    mask = tw.tensor([[True], [False], [True]])
    assert fresh().masked_fill_(mask, 2).tolist() == [[2, 2], [0, 0], [2, 2]]
    assert fresh().masked_scatter_(mask, tw.arange(6).to(tw.float32)).tolist() == [[0, 1], [0, 0], [2, 3]]
    x = tw.ones(3, 2, dtype=tw.float32).requires_grad_()
    y = (x * 1).index_fill_(0, rows, 4).masked_fill_(mask, 2).index_add_(0, rows, two)
    y.sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 1], [0, 0]]


WRONG = {
    "an index": (lambda x: x[[0, 5]], IndexRangeError, r"index 5 is out of bounds for dimension 0 with size 2"),
    "a negative index": (lambda x: x[:, [-4]], IndexRangeError, r"index -4 is out of bounds for dimension 1"),
    "too many": (lambda x: x[0, 0, 0, 0, [0]], IndexRangeError, "too many indices for tensor of dimension 4"),
    "two ellipses": (lambda x: x[..., [0], ...], IndexRangeError, "single ellipsis"),
    "a mask": (lambda x: x[tw.tensor([True, False, True])], IndexRangeError, r"shape of the mask \[3\] at index 0"),
    "shapes": (lambda x: x[[0, 1], [0, 1, 2]], IndexKindError, "could not be broadcast together"),
    "a float": (lambda x: x[0.5], ArgumentError, "not float"),
    "floats": (lambda x: x[tw.tensor([0.5])], IndexKindError, "int64, int32 or bool"),
    "bytes": (lambda x: x[tw.tensor([1], dtype=tw.int8)], IndexKindError, "int64, int32 or bool"),
    "a step": (lambda x: x[[0], ::-1], ArgumentError, "step must be greater than zero"),
    "a step in writing": (lambda x: x.__setitem__(slice(None, None, -1), 0), ArgumentError, "greater than zero"),
    "an int in writing": (lambda x: x.__setitem__((0, 3), 0), IndexRangeError, "index 3 is out of bounds"),
    "an int beside": (lambda x: x.__setitem__(([0], 3), 0), IndexRangeError, "index 3 is out of bounds"),
    "an index in writing": (lambda x: x.__setitem__(([0, 1], [0, 3]), 0), IndexRangeError, "index 3 is out of bounds"),
    "a value": (lambda x: x.__setitem__([0, 1], tw.zeros(7)), ShapeError, "cannot be broadcast to indexing result"),
    "a string": (lambda x: x.__setitem__(0, "a"), ArgumentError, "can't assign a str"),
    "dtypes": (lambda x: x.index_put_((tw.tensor([0]),), tw.tensor(1)), DTypeError, "dtypes match"),
    "negative rows": (lambda x: x.index_add(0, tw.tensor([-1]), x[:1]), IndexRangeError, "index -1 is out"),
    "source": (lambda x: x.index_copy(0, tw.tensor([0]), x), ShapeError, "source tensor shape must match"),
    "few": (lambda x: x.masked_scatter(x > 0, tw.zeros(3)), ShapeError, "at least 119 elements"),
    "classes": (lambda x: tw.one_hot(tw.tensor([3]), 3), IndexRangeError, "index 3 is out"),
    "mask of ints": (lambda x: x.masked_fill(tw.tensor([1]), 0), DTypeError, "only supports boolean masks"),
    "one operand": (lambda x: tw.where(x > 0, x), ArgumentError, "a condition alone"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    call, kind, words = WRONG[name]
    x = tw.tensor(ROOT)
    with pytest.raises(kind, match=words):
        call(x)
    assert x.tolist() == ROOT.tolist()


def test_a_wrong_index_in_a_compiled_program_names_the_line_and_leaves_state():
    state = static.nn.Parameter(np.zeros((4, 2), np.float32))

    @static.function
    def f(index, rows):
        with static.no_grad():
            state.add_(1)
            state[index] = rows  # the line that the error names
        return state.sum()

    f(np.array([0, -1]), np.ones((2, 2), np.float32))
    before = state.numpy().tolist()
    with pytest.raises(IndexRangeError, match=r"index 4 is out of bounds for dimension 0 with size 4") as caught:
        f(np.array([0, 4]), np.ones((2, 2), np.float32))
    assert f"test_indexing.py:{f.__wrapped__.__code__.co_firstlineno + 4}" in str(caught.value)
    assert state.numpy().tolist() == before == [[1, 1], [1, 1], [1, 1], [1, 1]]
    f(np.array([1, 1]), np.array([[5, 5], [6, 6]], np.float32))
    assert state.numpy().tolist() == [[2, 2], [6, 6], [2, 2], [2, 2]]


def test_what_a_trace_refuses():
    mask = ROOT > 5

    def written(x, m, v):
        y = x * 1
        y[m] = v
        return y

    for f, arrays in [(lambda x, m: x[m], (ROOT, mask)), (written, (ROOT, mask, np.ones(3, np.float32)))]:
        with pytest.raises(TraceError, match=r"test_indexing.py:\d+ .*depends on the data.*where\(mask"):
            static.function(f)(*arrays)

    def through_an_alias(x, i):
        y = x * 1
        part = y[i]
        y[0] = 1
        return y + part

    with pytest.raises(TraceError, match="shares memory with another"):
        static.function(through_an_alias)(ROOT[0, 0, :4, :4], np.array(1))


def test_new_sizes_do_not_retrace():
    @static.function
    def f(x, i, v):
        y = x * 1
        y[i, :, i] = v
        y[:, 0] = 2
        return x[i], y, y[:, i]

    for n, k in ((4, 3), (7, 5), (9, 2)):
        x, i = np.random.default_rng(n).normal(size=(n, n, n)).astype(np.float32), np.arange(k) - 1
        v = np.ones((k, n), np.float32)
        y = x.copy()
        y[i, :, i] = v
        y[:, 0] = 2
        for ours, expected in zip(f(x, i, v), (x[i], y, y[:, i]), strict=True):
            assert np.asarray(ours).tobytes() == np.ascontiguousarray(expected).tobytes()
    assert len(f.traces) == 1


@pytest.mark.parametrize("engine", [tw, static])
def test_bytes_are_masks_as_in_older_programs(engine):
    x = engine.arange(6.0).reshape(2, 3)
    mask = engine.tensor([[1, 0, 2], [0, 0, 1]], dtype=engine.uint8)
    for key in (mask, mask.numpy()):
        with pytest.warns(UserWarning, match="indexing with dtype uint8 is deprecated"):
            assert x[key].tolist() == [0.0, 2.0, 5.0]
    with pytest.warns(UserWarning, match="uint8"):
        x[mask] = -1.0
    assert x.tolist() == [[-1.0, 1.0, -1.0], [3.0, 4.0, -1.0]]


@pytest.mark.parametrize("engine", [tw, static])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_floats_are_written_over_ints_without_their_fraction(engine, dtype):
    x, at = engine.zeros(2, 2, dtype=getattr(engine, dtype)), engine.tensor([[0], [1]])
    assert x.scatter(1, at, 1.0).tolist() == [[1, 0], [0, 1]]
    assert x.index_fill(1, at[1], 2.0).tolist() == [[0, 2], [0, 2]]
    assert x.masked_fill(x == 0, 3.0).tolist() == [[3, 3], [3, 3]]
    assert x.masked_fill(x == 0, 2.9).tolist() == [[2, 2], [2, 2]]
    assert x.masked_fill(x == 0, engine.tensor(2.9)).tolist() == [[2, 2], [2, 2]]
    assert (x == 0).masked_fill(x == 0, 0.0).tolist() == [[False, False], [False, False]]
    assert (x != 0).index_fill(1, at[1], 0.5).tolist() == [[False, True], [False, True]]
    for value in (2.0**64, 2.0**63 if dtype == "int64" else -1.0, float("inf"), float("nan")):
        with pytest.raises(ArgumentError, match="without overflow"):
            x.masked_fill(x == 0, value)


@pytest.mark.parametrize("engine", [tw, static])
def test_one_number_is_an_index_or_a_source_of_a_vector(engine):
    x, i, s = engine.tensor([1.0]), engine.tensor(0), engine.tensor(2.0)
    for index in (i, i.reshape(1)):
        for source in (s, s.reshape(1)):
            assert x.index_copy(0, index, source).tolist() == [2.0]
            assert x.scatter(0, index, source).tolist() == [2.0]
            assert x.scatter_reduce(0, index, source, "sum").tolist() == [3.0]
            assert x.clone().index_copy_(0, index, source).tolist() == [2.0]
    with pytest.raises(ShapeError):
        engine.zeros(2, 2).scatter(0, i, s)
