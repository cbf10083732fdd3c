"""Bad input: a clear error of the right kind in both engines, and nothing is lost."""

import os
import subprocess
import sys

import numpy as np
import pytest

import dynamic
import static
from common.core import errors
from tests.bits import assert_same_bits
from tests.conftest import ROOT

f4 = np.float32
X, Y = np.ones((3, 4), f4), np.ones((3, 5), f4)
IDS = np.array([0, 1, 2])


def in_eager(f, *arrays):
    return f(dynamic, *map(dynamic.as_tensor, arrays))


def in_trace(f, *arrays):
    return static.function(lambda *xs: f(static, *xs))(*arrays)


def at_once(f, *arrays):
    return f(static, *arrays)


MISTAKES = {
    "shapes that do not broadcast": (
        lambda tw, x, y: tw.add(x, y),
        (X, Y),
        errors.ShapeError,
        "do not broadcast: The size of tensor a",
    ),
    "inner sizes": (lambda tw, x, y: tw.mm(x, y), (X, Y), errors.ShapeError, "cannot be multiplied"),
    "rank of mm": (lambda tw, x: tw.mm(x, tw.sum(x, 0)), (X,), errors.ShapeError, "2-D"),
    "reshape": (lambda tw, x: tw.reshape(x, 5, 2), (X,), errors.ShapeError, "invalid for input of size"),
    "two sizes of -1": (lambda tw, x: tw.reshape(x, -1, -1), (X,), errors.ShapeError, "only one dim"),
    "a dimension": (lambda tw, x: tw.sum(x, 2), (X,), IndexError, "Dimension out of range"),
    "a dimension twice": (lambda tw, x: tw.sum(x, (0, -2)), (X,), errors.ShapeError, "dim 0 appears multiple times"),
    "expand": (lambda tw, x: tw.expand(x, 6, 4), (X,), errors.ShapeError, "only sizes of 1"),
    "cat": (lambda tw, x, y: tw.cat([x, y]), (X, Y), errors.ShapeError, "must match except in dimension 0"),
    "cat of nothing": (lambda tw, x: tw.cat([]), (X,), errors.ArgumentError, "non-empty"),
    "narrow": (lambda tw, x: tw.narrow(x, 1, 3, 2), (X,), errors.ShapeError, "exceeds"),
    "select": (lambda tw, x: tw.select(x, 1, 4), (X,), IndexError, "out of range"),
    "dtypes of mm": (lambda tw, x: tw.mm(x, tw.transpose(x, 0, 1) > 0), (X,), errors.DTypeError, "same dtype"),
    "dtype of indices": (lambda tw, x: tw.gather(x, 1, x), (X,), errors.DTypeError, "int32/int64"),
    "mean of ints": (lambda tw, i: tw.mean(i), (IDS,), errors.DTypeError, "floating point"),
    "labels of floats": (
        lambda tw, x: tw.cross_entropy(x, tw.sum(x, 1)),
        (X,),
        errors.DTypeError,
        "int64, int32 or uint8",
    ),
    "too few labels": (lambda tw, x, i: tw.cross_entropy(x, i[:2]), (X, IDS), errors.ShapeError, "batch"),
    "reduction": (lambda tw, x, i: tw.cross_entropy(x, i, reduction="avg"), (X, IDS), errors.ArgumentError, "avg"),
    "layer_norm": (lambda tw, x: tw.layer_norm(x, 5), (X,), errors.ShapeError, "normalized_shape"),
    "clamp": (lambda tw, x: tw.clamp(x), (X,), errors.ArgumentError, "at least one"),
    "gelu": (lambda tw, x: tw.gelu(x, "fast"), (X,), errors.ArgumentError, "approximate"),
    "amax of nothing": (lambda tw, x: tw.amax(x[:0]), (X,), errors.ShapeError, "non-zero size"),
}


@pytest.mark.parametrize("run", [in_eager, in_trace, at_once])
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_one_error_in_both_engines(name, run):
    f, arrays, kind, words = MISTAKES[name]
    if run is at_once and name in ("dtypes of mm", "too few labels", "amax of nothing"):
        arrays = [np.asarray(a) for a in arrays]
    with pytest.raises(kind) as caught:
        run(f, *arrays)
    assert words in str(caught.value)
    assert isinstance(caught.value, errors.TwingradError)


@pytest.mark.parametrize("run", [in_eager, in_trace, at_once])
@pytest.mark.parametrize("bad", [5, -1, 2**40])
def test_indices_out_of_range(run, bad):
    ids = np.array([0, bad, 1])
    for f in (
        lambda tw, x, i: tw.index_select(x, 0, i),
        lambda tw, x, i: tw.embedding(i, x),
        lambda tw, x, i: tw.gather(x, 0, tw.unsqueeze(i, 1)),
        lambda tw, x, i: tw.cross_entropy(x, i),
    ):
        with pytest.raises(IndexError, match="out of range"):
            run(f, X, ids)


def test_failed_step_leaves_parameters_unchanged():
    model = static.nn.Embedding(5, 3)
    optimizer = static.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @static.function
    def step(ids):
        optimizer.zero_grad()
        loss = (model(ids) * model(ids)).sum()
        loss.backward()
        optimizer.step()
        return loss

    step(np.array([0, 1, 4]))
    before = [p.payload.copy() for p in model.parameters()] + [p.grad.payload.copy() for p in model.parameters()]
    with pytest.raises(IndexError, match=r"out of range(.|\n)*test_errors.py:\d+"):
        step(np.array([0, 5, 4]))
    after = [p.payload for p in model.parameters()] + [p.grad.payload for p in model.parameters()]
    for a, b in zip(after, before, strict=True):
        assert_same_bits(a, b, "state after a failed step")
    step(np.array([2, 2, 2]))  # and it still works


def test_python_if_on_a_traced_value_names_line_and_fix():
    @static.function
    def f(x):
        y = x * 2
        if y.sum() > 0:  # the line that the error names
            return y
        return -y

    with pytest.raises(errors.TraceError) as caught:
        f(X)
    message = str(caught.value)
    line = f.__wrapped__.__code__.co_firstlineno + 3
    assert f"test_errors.py:{line}" in message
    assert "if y.sum() > 0:" in message
    assert "where(" in message


@pytest.mark.parametrize("ask", [float, int, bool, lambda x: x.item(), lambda x: x.numpy(), lambda x: x.tolist(),
                                 np.asarray, lambda x: [1, 2][x]])  # fmt: skip
def test_elements_of_a_traced_value(ask):
    with pytest.raises((errors.TraceError, errors.ArgumentError)):
        static.function(lambda x: ask(x.sum()))(X)


def test_escaped_tracer():
    kept = []
    static.function(lambda x: (kept.append(x * 2), x)[1])(X)
    (tracer,) = kept
    for use in (lambda: tracer + 1, lambda: dynamic.as_tensor(X) + tracer, lambda: tracer.numpy()):
        with pytest.raises(errors.EscapedTracerError, match="after its trace"):
            use()
    with pytest.raises(errors.EscapedTracerError):
        static.function(lambda x: x + tracer)(X)
    with pytest.raises(errors.EscapedTracerError):
        static.function(lambda x: x + 1)(tracer)


@pytest.mark.parametrize("bad", ["text", object(), {1, 2}])
def test_things_that_are_no_arrays(bad):
    with pytest.raises(TypeError):
        dynamic.as_tensor(X) + bad
    with pytest.raises(TypeError):
        static.function(lambda x: x + bad)(X)


@pytest.mark.parametrize("dtype", [np.complex64, np.float16, object, "U3", "M8[s]"])
def test_dtypes_without_ops(dtype):
    x = np.zeros(3).astype(dtype)
    with pytest.raises(errors.TwingradError, match=r"dtype|numbers"):
        dynamic.tensor(x)
    with pytest.raises(errors.TwingradError, match=r"dtype|numbers"):
        static.function(lambda x: x)(x)


def test_gradients_of_integers():
    for make in (lambda: dynamic.tensor([1, 2], requires_grad=True), lambda: dynamic.tensor([1]).requires_grad_()):
        with pytest.raises(errors.DTypeError, match="only Tensors of floating point dtype can require gradients"):
            make()
    with pytest.raises(errors.DTypeError):
        static.function(lambda i: i.detach().requires_grad_())(IDS)
    with pytest.raises(errors.DTypeError):
        static.nn.Parameter(IDS)


def test_backward_twice():
    def twice(tw, x):
        x = x.detach().requires_grad_()
        y = (x * x).sum()
        y.backward()
        y.backward()

    for run in (in_eager, in_trace):
        with pytest.raises(errors.GraphFreedError, match="a second time") as caught:
            run(twice, X)
        assert "test_errors.py" in str(caught.value)


def test_backward_of_what_has_no_gradient():
    for run in (in_eager, in_trace):
        with pytest.raises(errors.GradientError, match="does not require grad"):
            run(lambda tw, x: x.sum().backward(), X)
        with pytest.raises(errors.GradientError, match="only for scalar outputs"):
            run(lambda tw, x: (x.detach().requires_grad_() * 2).backward(), X)


def test_failed_trace_leaves_parameters_and_later_calls_alone():
    p = static.nn.Parameter(X)
    before = p.payload.copy()

    def f(x, good):
        with static.no_grad():
            p.add_(x)
        return (x * p).sum() if good else static.mm(x, x)

    compiled = static.function(f)
    with pytest.raises(errors.ShapeError):
        compiled(X, False)
    assert_same_bits(p.payload, before, "the parameter after a failed trace")
    assert p.grad is None
    compiled(X, True)
    assert_same_bits(p.payload, before + X, "the parameter after a call")


CACHE_SCRIPT = """
import sys, warnings
import numpy as np, static
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    y = static.function(lambda x: static.tanh(x) * 2)(np.ones(3, np.float32))
assert y.shape == (3,) and abs(float(y[0]) - 1.5231884) < 1e-6
print([w.category.__name__ for w in caught])
"""


@pytest.mark.parametrize("state", ["missing", "a file", "damaged"])
def test_cache_that_cannot_be_used(tmp_path, state):
    """A fresh process with the cache in this state computes all the same, and says so once."""
    place = tmp_path / "cache"
    environment = {**os.environ, "TWINGRAD_CACHE": str(place), "PYTHONPATH": str(ROOT)}

    def run():
        done = subprocess.run([sys.executable, "-c", CACHE_SCRIPT], env=environment, capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    if state == "a file":
        place.write_text("not a directory")
    if state == "damaged":
        assert run() == "[]"
        for entry in place.iterdir():
            entry.write_bytes(entry.read_bytes()[:-7] + b"garbage")
    assert run() == ("[]" if state == "missing" else "['TwingradCacheWarning']")
    if state == "damaged":
        assert run() == "[]"  # repaired


def test_numbers_without_ops_are_refused_where_they_would_be_written():
    mask = np.array([True, False, True])
    for write in (dynamic.Tensor.masked_fill, dynamic.Tensor.masked_fill_):
        with pytest.raises(errors.DTypeError, match="float16 is not supported"):
            write(dynamic.ones(3), mask, np.float16(2))


def test_methods_take_lists_among_indices_as_functions_do():
    x, v = dynamic.zeros(3), dynamic.ones(2)
    assert x.index_put([[0, 2]], v).tolist() == dynamic.index_put(x, [[0, 2]], v).tolist() == [1, 0, 1]
    for call in (dynamic.index_put, dynamic.Tensor.index_put):
        with pytest.raises(errors.IndexKindError, match="indices must be int64, int32 or bool"):
            call(x, [[1.0]], v)


INDEXED = {
    "x[5]": (lambda tw, x, i: x[5], 5, 0),
    "x[:, 7]": (lambda tw, x, i: x[:, 7], 7, 1),
    "x[i]": (lambda tw, x, i: x[i], 5, 0),
    "x[:, i]": (lambda tw, x, i: x[:, i], 5, 1),
    "x[0, i]": (lambda tw, x, i: x[0, i], 5, 0),
    "index_select": (lambda tw, x, i: tw.index_select(x, 1, i), 5, 1),
    "gather": (lambda tw, x, i: tw.gather(x, 1, i.reshape(1, 2)), 5, 1),
    "take_along_dim": (lambda tw, x, i: tw.take_along_dim(x, i.reshape(1, 2), 1), 5, 1),
    "embedding": (lambda tw, x, i: tw.embedding(i, x), 5, 0),
    "one_hot": (lambda tw, x, i: tw.one_hot(i, 3), 5, 1),
    "cross_entropy": (lambda tw, x, i: tw.cross_entropy(x[:2] * 2, i), 5, 1),
    "nll_loss": (lambda tw, x, i: tw.nll_loss(tw.log_softmax(x[:2], 1), i), 5, 1),
    "scatter": (lambda tw, x, i: tw.scatter(x, 1, i.reshape(1, 2), 0.0), 5, 1),
    "scatter_add": (lambda tw, x, i: tw.scatter_add(x, 1, i.reshape(1, 2), x), 5, 1),
    "index_add": (lambda tw, x, i: tw.index_add(x, 0, i, x[:2]), 5, 0),
    "index_copy": (lambda tw, x, i: tw.index_copy(x, 0, i, x[:2]), 5, 0),
    "index_put": (lambda tw, x, i: tw.index_put(x, (i,), x[:2]), 5, 0),
}


@pytest.mark.parametrize("case", INDEXED.values(), ids=INDEXED)
@pytest.mark.parametrize("engine", [dynamic, static], ids=lambda e: e.__name__)
def test_an_index_out_of_range_is_named_with_its_place(engine, case):
    call, wrong, dim = case
    x = np.ones((3, 4), np.float32)
    for fuse in (True, False) if engine is static else (None,):
        f = engine.function(lambda x, i: call(engine, x, i), **({} if fuse is None else {"fuse": fuse}))
        with pytest.raises(IndexError, match=rf"index {wrong} is out of bounds for dimension {dim} with size [34]\b"):
            f(x, np.array([1, 5]))


@pytest.mark.parametrize("engine", [dynamic, static], ids=lambda e: e.__name__)
def test_sizes_are_plain_numbers_in_messages(engine):
    a, b = np.ones((2, 3), np.float32), np.ones((4, 5), np.float32)
    for f, told in (
        (lambda x, y: x @ y, r"\(2x3 and 4x5\)"),
        (
            lambda x, y: x + y,
            r"shapes \(2, 3\) and \(4, 5\) do not broadcast: The size of tensor a \(2\)",
        ),
        (lambda x, y: engine.einsum("ij,jk->ik", x, y), "has size 4 .* previously seen size 3"),
        (lambda x, y: x.reshape(7), "invalid for input of size 6"),
        (lambda x, y: engine.cat([x, y]), "3"),
    ):
        with pytest.raises(ValueError, match=told) as caught:
            engine.function(f)(a, b)
        assert "arg0" not in str(caught.value)
