"""Packed sequences: what each sequence gives alone, back and forth, and the other engine's bits."""

import pickle
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, ShapeError, TraceError
from tests.bits import assert_all_same_bits

LENGTHS, IN, OUT = [3, 5, 1, 5], 3, 4
X = np.random.default_rng(6).normal(size=(4, 5, IN))
ANY: Any = X
FIRST = np.random.default_rng(7).normal(size=(2, 4, 4, OUT))
rnn = dynamic.nn.utils.rnn


def flat(hx):
    return hx if isinstance(hx, tuple) else (hx,)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_every_sequence_is_as_it_is_alone(kind):
    module = getattr(dynamic.nn, kind)(IN, OUT, num_layers=2, bidirectional=True, dtype=np.float64)
    first = tuple(dynamic.tensor(h) for h in FIRST) if kind == "LSTM" else dynamic.tensor(FIRST[0])
    x = dynamic.tensor(X)
    y, hx = module(rnn.pack_padded_sequence(x, LENGTHS, True, enforce_sorted=False), first)
    y, lengths = rnn.pad_packed_sequence(y, True, padding_value=9.0, total_length=6)
    assert (lengths.tolist(), y.shape) == (LENGTHS, (4, 6, 2 * OUT))
    for i, n in enumerate(LENGTHS):
        own = tuple(h[:, i] for h in flat(first))
        alone, ends = module(x[i, :n], own if kind == "LSTM" else own[0])
        np.testing.assert_allclose(y[i, :n].detach().numpy(), alone.detach().numpy(), rtol=1e-12, atol=1e-13)
        assert (y[i, n:].detach().numpy() == 9).all()
        for a, b in zip(flat(hx), flat(ends), strict=True):
            np.testing.assert_allclose(a[:, i].detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_bits_of_both_engines(kind):
    made = []
    for engine in (dynamic, static):
        engine.manual_seed(3)
        module, utils = getattr(engine.nn, kind)(IN, OUT, num_layers=2, dropout=0.2), engine.nn.utils.rnn

        def loss(x, module=module, utils=utils):
            packed = utils.pack_padded_sequence(x.transpose(0, 1), LENGTHS, enforce_sorted=False)
            y, hx = module(packed)
            return utils.pad_packed_sequence(y)[0].square().sum() + flat(hx)[-1].sum()

        run = engine.function(engine.value_and_grad(loss))
        made.append([np.asarray(a.detach()) for _ in range(2) for a in run(X.astype(np.float32))])
    assert_all_same_bits(*made[::-1], kind)
    assert not made[0][1][2, 1:].any()  # behind its end a sequence has no gradient


def test_there_and_back():
    given = [dynamic.tensor(X[0, :n]).requires_grad_() for n in LENGTHS]
    packed = rnn.pack_sequence(given, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [4, 3, 3, 2, 2]
    for a, b in zip(rnn.unpack_sequence(packed), given, strict=True):
        assert a.tolist() == b.tolist()
    packed.data.sum().backward()
    assert all((x.grad.numpy() == 1).all() for x in given)
    left = rnn.pad_sequence(given, padding_value=7.0, padding_side="left")
    assert left.shape == (5, 4, IN)
    assert (left[:4, 2].detach().numpy() == 7).all()
    again = pickle.loads(pickle.dumps(rnn.pack_sequence([dynamic.tensor([1, 2]), dynamic.tensor([3])])))
    assert again.float().data.tolist() == [1, 3, 2]
    assert rnn.invert_permutation(dynamic.tensor([2, 0, 1])).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: rnn.pack_padded_sequence(X, LENGTHS, True), ArgumentError, "sorted in decreasing order"),
        (lambda: rnn.pack_padded_sequence(X, [2, 2], True), ArgumentError, "equal to batch_size, but got 2"),
        (lambda: rnn.pack_padded_sequence(X, [5, 2, 1, 0], True), ArgumentError, "greater than 0"),
        (lambda: rnn.pack_padded_sequence(X, [6, 2, 1, 1], True), ShapeError, "beyond input of 5 steps"),
        (lambda: rnn.pad_packed_sequence(rnn.pack_sequence([X[0]]), total_length=2), ArgumentError, "total_length=2"),
        (lambda: rnn.pad_packed_sequence(ANY), ArgumentError, "expected a PackedSequence"),
        (lambda: rnn.pad_sequence([]), ArgumentError, "empty list"),
        (lambda: rnn.pad_sequence([X[0]], padding_side="top"), ArgumentError, "padding_side"),
        (lambda: dynamic.nn.GRU(2, 2)(rnn.pack_sequence([X[0]])), ShapeError, "Expected packed data of 2 dimensions"),
        (
            lambda: static.function(lambda x, n: rnn.pack_padded_sequence(x, n, True).data)(X, np.array([5, 4, 3, 2])),
            TraceError,
            "lengths decide on shapes",
        ),
    ],
)
def test_what_does_not_fit_is_named(call, error, said):
    with pytest.raises(error, match=said):
        call()
