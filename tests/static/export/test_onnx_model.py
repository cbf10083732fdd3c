"""ONNX models come back with the same bits; where onnx and onnxruntime are installed, they run there too."""

from importlib.util import find_spec

import numpy as np
import pytest

import dynamic
import static
from benchmarks.workloads.digits import Digits
from common.core.errors import ArgumentError
from common.core.tree import flatten
from common.tools.onnx.records import Reader
from static.export import onnx_ops

F32 = np.float32
RUNS = find_spec("onnx") is not None and find_spec("onnxruntime") is not None
rng = np.random.default_rng(0)
KERNEL = np.linspace(-1, 1, 18, dtype=F32).reshape(2, 1, 3, 3)
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
            static.nn.functional.leaky_relu(x), x.erf(),  x != 0, (x > 0).any(1), x.amax(0), x.argmax(1)]  # fmt: skip
    return *many, static.special.entr(x), static.special.xlog1py(x, x.abs())


def attention(x):
    return static.nn.functional.scaled_dot_product_attention(x, x + 1, x * x, is_causal=True)


def masked(x):
    seen = static.tensor(np.tri(x.shape[1], dtype=bool))
    attend = static.nn.functional.scaled_dot_product_attention
    return attend(x, x + 1, x * x, seen) + attend(x, x, x, x[0, :, 0].unsqueeze(0))


def told(x):
    static.print(x)
    return x


def doubled(x):
    return static.while_loop(lambda c: (c[1] * c[1]).sum() < 100, lambda c: (c[0] + 1, c[1] * 1.5 + x[:1]),
                             (static.tensor(0), x))  # fmt: skip


def grown(x):
    return static.while_loop(lambda y: (y * y).sum() < 100, lambda y: y * 1.5, x)


def nested(x):
    def branch(y):
        return static.cond(y.sum() > 0, lambda z: z * 2, lambda z: z * -3 + x.shape[0], y)

    def row(carry, r):
        return static.while_loop(lambda y: (y * y).sum() < 50, branch, carry + r), carry.sum()

    return static.scan(row, x[0], x)


def chosen(x):
    return static.switch((x.sum() * 3).to(static.int64), [lambda y: y * 2, lambda y: y.exp(), lambda y: -y], x)


def backwards(x):
    return static.scan(lambda c, r: (c + r, c * r), x[0] * 0, x, reverse=True)


def places(x):
    rows = x.argsort(0)[:, 0]
    part = static.nn.functional.pad(x[1:, ::2], (1, 2)).tril() + static.eye(x.shape[0] - 1, 5)
    picked = x[rows, :2] * x.gather(1, x.argsort(1))[:, :2]
    return part.square().sum() + (picked.exp() * x[rows].sum()).sum()


def pooled(x):
    f = static.nn.functional
    return f.avg_pool2d(f.conv2d(x, KERNEL, stride=2, padding=1).tanh(), 2, 1, 1)


def viewed(x):
    y = x * 1
    y.T[1:, ::2].mul_(2)
    square = x @ x.T
    square.diagonal(-1).add_(1)
    rest = (x * 10).to(static.int64) % x.shape[1]
    return y, square, x.unfold(1, 2, 2).unfold(0, 2, 1), x.as_strided((2, 2), (4, 1), 1), rest


def number_written(x):
    total = x.sum()
    total[...] = total * total
    return total * x


def widened(x):
    return static.nn.functional.conv_transpose2d(x, KERNEL.swapaxes(0, 1), padding=1, dilation=2, output_padding=1)


KERNELS = rng.normal(size=(4, 2, 3, 3)).astype(F32)
KINDS = {"switch": {"If"}, "branch gradient": {"If"}, "while": {"Loop"}, "while gradient": {"Loop"}, "scan": {"Scan"},
         "counted": {"Loop"}, "nested": {"Scan"}, "lstm": {"Scan"}}  # fmt: skip
UNCOMPILED = {"while gradient"}
"""How often the loop runs is known only when it has: the gradient's is run uncompiled."""
CASES = {
    "switch": (chosen, X), "while": (doubled, X), "scan": (backwards, X), "nested": (nested, X),
    "branch gradient": (
        static.grad(lambda x: static.cond(x.sum() > 0, lambda y: (y * 2).exp(), lambda y: y * x, x).sum()), X,
    ),
    "while gradient": (static.grad(lambda x: grown(x).sum()), X),
    "counted": (lambda x: static.fori_loop(0, x.shape[0], lambda i, y: y * 1.5 + i, x), X),
    "lstm": (static.nn.LSTM(4, 5, batch_first=True), rng.normal(size=(2, 3, 4)).astype(F32)),
    "shapes": (shapes, X), "functions": (functions, X),
    "normalised": (
        lambda x: (static.softmax(x @ x.T, -1).sum(0), static.nn.functional.layer_norm(x, (4,)), x.var(0)), X,
    ),
    "gradient": (static.grad(lambda x: static.logsumexp(x * x.shape[0], -1).mean()), X),
    "attention": (
        lambda x: static.grad(lambda x: attention(x).square().sum())(x) + attention(x), np.stack([X, X + 1]),
    ),
    "masked attention": (
        lambda x: static.grad(lambda x: masked(x).square().sum())(x) + masked(x), np.stack([X, X + 1]),
    ),
    "places": (static.grad(places), X), "windows": (static.grad(lambda x: pooled(x).square().sum()), IMAGE),
    "gradient of groups": (
        static.grad(lambda x: static.nn.functional.conv2d(
            x.repeat(1, 4, 1, 1), KERNELS * x.mean(), stride=2, padding=1, groups=2).square().sum()), IMAGE,
    ),
    "largest": (static.grad(lambda x: (x.amax(1) * x.amin()).sum()), X),
    "views": (viewed, X), "gradient of views": (static.grad(lambda x: sum(y.square().sum() for y in viewed(x)[:3])), X),
    "bools": (lambda x: static.where(x > 0, x < 1, x < -1), X),
    "number written": (static.grad(lambda x: number_written(x).sum()), X),
    "output padding": (widened, IMAGE),
    "convolution": (
        static.nn.Sequential(static.nn.Conv2d(1, 2, 3, padding=1), static.nn.ReLU(), static.nn.MaxPool2d(2)), IMAGE,
    ),
}  # fmt: skip


def session(path):
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def read(path):
    """A model's records."""
    return Reader(path.parent).file(memoryview(path.read_bytes()))


def assert_bits(found, wanted):
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, flatten(wanted)[0], strict=True):
        a, b = a.detach().numpy(), b.detach().numpy()
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()


def sizes_of(x):
    return x, np.concatenate([x, -x * F32(0.5)])


@pytest.mark.parametrize("name", CASES)
def test_an_exported_model_comes_back_with_the_same_bits(name, tmp_path):
    f, x = CASES[name]
    path = static.export_onnx(f, tmp_path / "model.onnx", x)
    file = read(path)
    assert [(given.name, len(given.shape)) for given in file.graph.inputs] == [("x0", x.ndim)]
    assert {"If", "Loop", "Scan"} & {node.kind for node in file.graph.nodes} == KINDS.get(name, set())
    model = static.import_onnx(path)
    compiled = static.function(model)
    for given in sizes_of(x):
        wanted = f(static.tensor(given))
        assert_bits(model(dynamic.tensor(given)), wanted)
        if name not in UNCOMPILED:
            assert_bits(compiled(given), wanted)


def test_the_model_of_a_training_step_comes_back_with_the_same_bits(tmp_path):
    workload = Digits()
    program, batch = workload.make(static), workload.inputs()[0]
    model = static.import_onnx(static.export_onnx(program.call, tmp_path / "step.onnx", *batch))
    results = dict(zip(model.output_names, static.function(model)(*batch), strict=True))
    assert_bits(results["result0"], program.call(*batch))
    assert set(model.state_dict()) >= {name for name, _ in program.named_parameters}
    for name, p in program.named_parameters:
        assert_bits(results[f"{name}.new"], p)
        assert_bits(results[f"{name}.grad"], p.grad)


@pytest.mark.parametrize("name", CASES)
def test_a_runtime_computes_the_values_at_new_sizes(name, tmp_path):
    if not RUNS:
        return
    import onnx

    f, x = CASES[name]
    path = static.export_onnx(f, tmp_path / "model.onnx", x)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    run = session(path)
    for given in sizes_of(x):
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
        np.testing.assert_allclose(found[f"{name}.new"], p.detach().numpy(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[f"{name}.grad"], p.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_each_returned_tensor_is_an_output(tmp_path):
    def f(x):
        y = x * 2
        return y, None, x, {"again": y}

    path = static.export_onnx(f, tmp_path / "m.onnx", X)
    assert [y.name for y in read(path).graph.outputs] == ["result0", "result1", "result2"]
    assert_bits(static.import_onnx(path)(X), (static.tensor(X * 2), static.tensor(X), static.tensor(X * 2)))


def test_a_model_says_what_its_sizes_must_fulfil(tmp_path):
    assert read(static.export_onnx(lambda x: x * 2, tmp_path / "m.onnx", X)).doc == ""
    doc = read(static.export_onnx(lambda x: x[:2], tmp_path / "m.onnx", X)).doc
    assert doc.startswith("Sizes must fulfil: ")
    assert doc.endswith("arg0.shape[0] >= 2")


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(ArgumentError, match=r"'digamma' \(.*test_onnx_model.py"):
        static.export_onnx(lambda x: x.digamma(), tmp_path / "m.onnx", X)
    with pytest.raises(ArgumentError, match=r"'print' \(.*test_onnx_model.py"):
        static.export_onnx(lambda x: static.cond(x.sum() > 0, told, lambda y: y, x), tmp_path / "m.onnx", X)
    assert list(tmp_path.iterdir()) == []
    assert onnx_ops.known("cat12") is not None
    assert onnx_ops.known("cat") is None


def small_kinds(x):
    """Kinds of elements that no operator of these names takes."""
    positive, small = x > 0, x.abs().to(static.uint8)
    return (
        positive * (x < 1),
        positive < (x < 1),
        positive.amax(0),
        (x * 9).to(static.int16).amin(1),
        small.relu(),
        -small,
    )


def test_operators_are_given_dtypes_that_they_take(tmp_path):
    path = static.export_onnx(small_kinds, tmp_path / "model.onnx", X)
    nodes = read(path).graph.nodes
    makers = {name: node.kind for node in nodes for name in node.outputs}
    assert not {"Relu", "Neg", "Max"} & {node.kind for node in nodes}
    assert {makers[node.inputs[0]] for node in nodes if node.kind in ("ReduceMax", "ReduceMin")} == {"Cast"}
    assert "And" in makers.values()
    assert_bits(static.import_onnx(path)(dynamic.tensor(X)), small_kinds(static.tensor(X)))


def test_sums_of_windows_of_negative_zeros_are_zeros(tmp_path):
    def means(x):
        pooled = static.nn.functional.avg_pool2d(x, 2, stride=1, padding=1)
        return pooled, static.grad(lambda x: (static.nn.functional.avg_pool2d(x, 1) * x[:1] * 0.0).sum())(x)

    zeros = np.full((1, 1, 3, 4), -0.0, F32)
    path = static.export_onnx(means, tmp_path / "model.onnx", zeros)
    assert_bits(static.import_onnx(path)(dynamic.tensor(zeros)), means(static.tensor(zeros)))
