"""ONNX models are valid, and another runtime computes Python's values with them, where these packages are installed."""

import sys
from importlib.util import find_spec

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


CASES = {
    "shapes": (shapes, X), "functions": (functions, X),
    "normalised": (
        lambda x: (static.softmax(x @ x.T, -1).sum(0), static.nn.functional.layer_norm(x, (4,)), x.var(0)), X,
    ),
    "gradient": (static.grad(lambda x: static.logsumexp(x * x.shape[0], -1).mean()), X),
    "convolution": (
        static.nn.Sequential(static.nn.Conv2d(1, 2, 3, padding=1), static.nn.ReLU(), static.nn.MaxPool2d(2)), IMAGE,
    ),
}  # fmt: skip


def session(path):
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", CASES if RUNS else [])
def test_a_runtime_computes_the_values_at_new_sizes(name, tmp_path):
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


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    if RUNS:
        with pytest.raises(ArgumentError, match=r"'digamma' \(.*test_onnx_model.py"):
            static.export_onnx(lambda x: x.digamma(), tmp_path / "m.onnx", X)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ArgumentError, match="pip install onnx"):
        static.export_onnx(lambda x: x, tmp_path / "m.onnx", X)
    assert onnx_ops.known("cat12") is not None
    assert onnx_ops.known("cat") is None
