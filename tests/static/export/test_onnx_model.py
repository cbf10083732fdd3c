"""ONNX models are whole; where onnx and onnxruntime are installed, they are valid and give Python's values."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import static
from benchmarks.workloads.digits import Digits
from common.core.errors import ArgumentError
from common.core.tree import flatten
from static.export import onnx_ops

F32 = np.float32
RUNS = find_spec("onnx") is not None and find_spec("onnxruntime") is not None
rng = np.random.default_rng(0)
X, IMAGE = rng.normal(size=(3, 4)).astype(F32), rng.normal(size=(2, 1, 6, 6)).astype(F32)


def shapes(x):
    a, b = static.split(x, 2, 1)
    return (
        static.stack([a, b]).flip(0),
        static.cat([b, x], 1)[1:, ::2],
        x.T.reshape(-1, 2).cumsum(0),
        x.expand(2, -1, -1),
    )


def functions(x):
    positive = static.where(x > 0, x, -x + 1e-3)
    many = [positive.log(), positive.rsqrt(), x.tanh(), x.sigmoid(), x.clamp(-0.5, 0.5), x.square(), static.relu(x),
            static.nn.functional.gelu(x), x.to(static.float64) * 2, (x * 3).round(), static.nn.functional.silu(x),
            static.nn.functional.leaky_relu(x), x.erf(), x != 0, (x > 0).any(1), x.amax(0), x.argmax(1)]  # fmt: skip
    return tuple(many)


def attention(x):
    return static.nn.functional.scaled_dot_product_attention(x, x + 1, x * x, is_causal=True)


CASES = {
    "shapes": (shapes, X), "functions": (functions, X),
    "normalised": (
        lambda x: (static.softmax(x @ x.T, -1).sum(0), static.nn.functional.layer_norm(x, (4,)), x.var(0)), X,
    ),
    "gradient": (static.grad(lambda x: static.logsumexp(x * x.shape[0], -1).mean()), X),
    "attention": (
        lambda x: static.grad(lambda x: attention(x).square().sum())(x) + attention(x), X[None],
    ),
    "convolution": (
        static.nn.Sequential(static.nn.Conv2d(1, 2, 3, padding=1), static.nn.ReLU(), static.nn.MaxPool2d(2)), IMAGE,
    ),
}  # fmt: skip


def session(path):
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


class Written(NamedTuple):
    """What onnx would have been asked to put into a model."""

    nodes: list[Any]
    inputs: list[Any]
    outputs: list[Any]
    constants: list[Any]

    def SerializeToString(self):
        return repr(self).encode()


@pytest.fixture
def stand_in(monkeypatch):
    """Models that `export_onnx` writes, with a package onnx that only keeps what it is given."""
    models = []
    helper = SimpleNamespace(
        make_node=lambda kind, operands, names, **attrs: (kind, operands, names),
        make_tensor_value_info=lambda name, kind, shape: (name, len(shape)),
        np_dtype_to_tensor_dtype=lambda dtype: 1,
        make_graph=lambda nodes, name, inputs, outputs, constants: Written(nodes, inputs, outputs, constants),
        make_opsetid=lambda domain, version: version,
        make_model=lambda graph, **options: graph,
    )
    package = SimpleNamespace(
        helper=helper,
        numpy_helper=SimpleNamespace(from_array=lambda array, name: name),
        checker=SimpleNamespace(check_model=models.append),
    )
    monkeypatch.setitem(sys.modules, "onnx", package)
    return models


def assert_whole(model):
    """Each name is made once, before it is used, and the results are made."""
    made = [name for name, _ in model.inputs] + model.constants
    for _, operands, names in model.nodes:
        assert [x for x in operands if x and x not in made] == []
        made += names
    assert len(made) == len(set(made))
    assert [name for name, _ in model.outputs if name not in made] == []


@pytest.mark.parametrize("name", CASES)
def test_a_model_is_whole(name, tmp_path, stand_in):
    f, x = CASES[name]
    path = static.export_onnx(f, tmp_path / "model.onnx", x)
    (model,) = stand_in
    assert path.read_bytes() == model.SerializeToString()
    assert_whole(model)
    assert model.inputs == [("x0", x.ndim)]
    results = flatten(f(static.tensor(x)))[0]
    assert model.outputs == [(f"result{i}", y.ndim) for i, y in enumerate(results)]


def test_the_model_of_a_training_step_is_whole(tmp_path, stand_in):
    workload = Digits()
    program, batch = workload.make(static), workload.inputs()[0]
    static.export_onnx(program.call, tmp_path / "step.onnx", *batch)
    (model,) = stand_in
    assert_whole(model)
    results = [name for name, _ in model.outputs]
    assert results[0] == "result0"
    for name, _ in program.named_parameters:
        assert f"{name}.grad" in results
        assert [r for r in results if r.startswith(name) and r.endswith(".new") and "buffer" not in r] != []


@pytest.mark.parametrize("name", CASES)
def test_a_runtime_computes_the_values_at_new_sizes(name, tmp_path):
    if not RUNS:
        return
    f, x = CASES[name]
    run = session(static.export_onnx(f, tmp_path / "model.onnx", x))
    for given in (x, np.concatenate([x, x * F32(0.5)])):
        wanted = [np.asarray(y.detach()) for y in flatten(f(static.tensor(given)))[0]]
        found = run.run(None, {"x0": given})
        assert [y.dtype for y in found] == [y.dtype for y in wanted]
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_training_step_is_a_model_whose_results_are_the_new_state(tmp_path):
    if not RUNS:
        return
    workload = Digits()
    program, batch = workload.make(static), workload.inputs()[0]
    run = session(static.export_onnx(program.call, tmp_path / "step.onnx", *batch))
    found = dict(zip((y.name for y in run.get_outputs()), run.run(None, {"x0": batch[0], "x1": batch[1]}), strict=True))
    np.testing.assert_allclose(found["result0"], program.call(*batch).detach().numpy(), rtol=1e-5)
    for name, p in program.named_parameters:
        (new,) = (
            y for key, y in found.items() if key.startswith(name) and key.endswith(".new") and "buffer" not in key
        )
        np.testing.assert_allclose(new, p.detach().numpy(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[f"{name}.grad"], p.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_what_is_missing_is_named(tmp_path, monkeypatch, stand_in):
    with pytest.raises(ArgumentError, match=r"'digamma' \(.*test_onnx_model.py"):
        static.export_onnx(lambda x: x.digamma(), tmp_path / "m.onnx", X)
    assert stand_in == []
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ArgumentError, match="pip install onnx"):
        static.export_onnx(lambda x: x, tmp_path / "m.onnx", X)
    assert onnx_ops.known("cat12") is not None
    assert onnx_ops.known("cat") is None
