"""Sums over rows and what is made of them: the kernel that reads each row once has the bits of the ops one by one."""

from types import SimpleNamespace

import numpy as np
import pytest

import dynamic
from common.core.op import REGISTRY
from common.core.unbroadcast import fit
from common.evaluate import rules, straight_line
from common.evaluate import specialise as eager
from common.ops.math.transcendental import exp, tanh
from common.ops.reduce.reductions import sum_
from tests.bits import assert_same_bits

SHAPES = [(3, 5), (4, 1), (1, 1), (2, 3, 40), (5, 1024), (3, 1500), (2, 2500)]


def case(name, shape, dtype):
    """Recipe, saved values and cotangent of an op along the last dimension."""
    rng = np.random.default_rng(len(shape) + shape[-1])
    x, g = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    op, last = REGISTRY[name], len(shape) - 1
    attrs = {"dim": (last,), "eps": 1e-5} if name == "normalize" else {"dim": last}
    y = eager.run(op, (x,), attrs)
    found = eager.recipe(op, ((x.shape, x.dtype),), attrs)
    return found, op.save((x,), y), (g, None, None) if op.nout == 3 else g


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "normalize"])
def test_bits_are_those_of_the_ops(name, shape, dtype):
    found, saved, g = case(name, shape, dtype)
    (expected,) = rules.run_rules(found.op, saved, found.attrs, g, (0,))
    lines = straight_line.straight_backward(found, None)
    (got,) = lines(saved, found.attrs, g, (0,))
    assert got.dtype == expected.dtype
    assert np.asarray(got).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "normalize"])
def test_it_is_one_kernel(name, monkeypatch):
    (found, saved, g), kernels = case(name, (6, 37), "float32"), []
    for maker in ("fused_rows", "fused", "fused_sum"):
        made = getattr(straight_line, maker)
        monkeypatch.setattr(straight_line, maker, lambda *args, made=made: kernels.append(made(*args)) or kernels[-1])
    straight_line.straight_backward(found, None)(saved, found.attrs, g, (0,))
    assert len(kernels) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["normalize", "affine_normalize"])
def test_several_results_are_those_of_the_ops(name, shape, dtype, monkeypatch):
    rng, op, kernels = np.random.default_rng(shape[-1]), REGISTRY[name], []
    operands = [rng.standard_normal(s).astype(dtype) for s in (shape, shape[-1:], shape[-1:])][: len(op.inputs)]
    attrs = {"dim": (len(shape) - 1,), "eps": 1e-5}
    expected = op.forward(*operands, **attrs)
    made = straight_line.fused_rows
    monkeypatch.setattr(straight_line, "fused_rows", lambda *args: kernels.append(made(*args)) or kernels[-1])
    lines = straight_line.straight_forward(eager.recipe(op, tuple((x.shape, x.dtype) for x in operands), attrs))
    turned = [np.ascontiguousarray(x.T).T for x in operands]
    for given in (operands, turned):
        for got, wanted in zip(lines(*given), expected, strict=True):
            assert got.dtype == wanted.dtype
            assert np.asarray(got).tobytes() == np.ascontiguousarray(wanted).tobytes()
    assert (len(kernels) == 1 and kernels[0]) or shape[-1] == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(300, 700), (70, 2500), (2, 90, 1024), (4000, 33), (1, 200000)], ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_maxima_and_costly_functions(name, shape, dtype, monkeypatch):
    """Beyond the cache: the exponentials of a row wait in the result's row."""
    rng, op, kernels = np.random.default_rng(shape[-1]), REGISTRY[name], []
    x = (rng.standard_normal(shape) * 5).astype(dtype)
    x[..., :2, :] = -0.0
    x[..., 0, 3], x[..., -1, 1] = np.nan, np.inf
    with np.errstate(all="ignore"):
        expected = op.forward(x, dim=len(shape) - 1)
    made = straight_line.fused_rows
    monkeypatch.setattr(straight_line, "fused_rows", lambda *args: kernels.append(made(*args)) or kernels[-1])
    lines = straight_line.straight_forward(eager.recipe(op, ((x.shape, x.dtype),), {"dim": len(shape) - 1}))
    for given in (x, np.asfortranarray(x)):
        assert_same_bits(lines(given), expected, name)
    assert len(kernels) == 1
    assert kernels[0]


def test_two_costly_functions_are_stored():
    """The result's row has place for one: sums of costly functions that do not fit are computed before."""
    x = np.random.default_rng(0).standard_normal((300, 700)).astype("f")

    def forward(x, dim):
        a, b = exp(x), tanh(x)
        return a / sum_(a, dim=(1,), keepdim=True) + b / sum_(b, dim=(1,), keepdim=True)

    lines = straight_line.straight_forward(
        SimpleNamespace(op=SimpleNamespace(forward=forward), forms=((x.shape, x.dtype),), attrs={"dim": 1})
    )
    assert_same_bits(lines(x), forward(x, 1), "two sums")


@pytest.mark.parametrize("rows", [1, 3, 15, 16, 17, 64, 100, 1024, 1025, 2500])
@pytest.mark.parametrize("columns", [1, 5, 40, 1030])
def test_sums_of_columns_with_values_of_rows(rows, columns):
    """The gradient of the weight: the elements of a row share its mean and its scale."""
    rng, op = np.random.default_rng(rows), REGISTRY["affine_normalize"]
    x, weight, g = (rng.standard_normal(s).astype("f") for s in ((rows, columns), columns, (rows, columns)))
    attrs = {"dim": (1,), "eps": 1e-5}
    found = eager.recipe(op, tuple((a.shape, a.dtype) for a in (x, weight, weight)), attrs)
    saved, cotangents, needs = (
        op.save((x, weight, weight), eager.run(op, (x, weight, weight), attrs)),
        (g, None, None),
        (0,) * 3,
    )
    lines = straight_line.straight_backward(found, None)
    wanted = rules.run_rules(op, saved, attrs, cotangents, needs)
    for got, expected, like in zip(lines(saved, attrs, cotangents, needs), wanted, (x, weight, weight), strict=True):
        assert np.asarray(got).tobytes() == np.ascontiguousarray(fit(expected, like.shape, like.dtype)).tobytes()


@pytest.mark.parametrize("shape", [(70, 5), (2, 600, 1024), (1100, 33)], ids=str)
def test_gradients_of_rows_and_sums_of_columns_are_one_kernel(shape, monkeypatch):
    """Blocks of rows, which do not fill the last one, and the sums of more rows than a sum has in one block."""
    rng, op, kernels = np.random.default_rng(shape[-1]), REGISTRY["affine_normalize"], []
    x, weight, g = (rng.standard_normal(s).astype("f") for s in (shape, shape[-1:], shape))
    attrs, operands = {"dim": (len(shape) - 1,), "eps": 1e-5}, (x, weight, weight)
    found = eager.recipe(op, tuple((a.shape, a.dtype) for a in operands), attrs)
    y = eager.run(op, operands, attrs)
    needs, results = (0, 0, 0), [(g, None, None), (np.asfortranarray(g), None, None)]
    wanted = rules.run_rules(op, op.save(operands, y), attrs, results[0], needs)
    for maker in ("fused_rows", "fused", "fused_sum"):
        made = getattr(straight_line, maker)
        monkeypatch.setattr(straight_line, maker, lambda *args, made=made: kernels.append(made(*args)) or kernels[-1])
    lines = straight_line.straight_backward(found, None)
    for saved in (op.save(operands, y), op.save((np.asfortranarray(x), weight, weight), y)):
        for given in results:
            for got, expected, like in zip(lines(saved, attrs, given, needs), wanted, operands, strict=True):
                assert_same_bits(got, fit(expected, like.shape, like.dtype), "gradient")
    assert len(kernels) == 1
    (only,) = lines(op.save(operands, y), attrs, results[0], (None, 0, None))[1:2]
    assert_same_bits(only, fit(wanted[1], weight.shape, weight.dtype), "the weight's alone")


def test_the_result_of_layer_norm_may_be_overwritten():
    x, w, b = (dynamic.tensor(np.arange(n, dtype="f") / n + 1, requires_grad=True) for n in (12, 4, 4))
    expected = dynamic.autograd.grad(dynamic.relu(dynamic.layer_norm(x.reshape(3, 4), 4, w, b)).sum(), [x, w, b])
    y = dynamic.layer_norm(x.reshape(3, 4), 4, w, b)
    y.relu_()
    for got, wanted in zip(dynamic.autograd.grad(y.sum(), [x, w, b]), expected, strict=True):
        assert got.numpy().tobytes() == wanted.numpy().tobytes()


def test_other_layouts():
    found, saved, g = case("softmax", (6, 8), "float32")
    lines = straight_line.straight_backward(found, None)
    (expected,) = lines(saved, found.attrs, g, (0,))
    (got,) = lines(saved, found.attrs, np.asfortranarray(g), (0,))
    assert np.asarray(got).tobytes() == np.asarray(expected).tobytes()
