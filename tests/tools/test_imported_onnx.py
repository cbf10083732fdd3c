"""Hostile ONNX files end with an error, and run nothing."""

import random
from contextlib import suppress

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, DTypeError, StateError, TwingradError
from common.tools.onnx import encode
from common.tools.onnx.records import Declared, OnnxFile, OnnxGraph, OnnxNode

F32 = np.float32
X = np.array([[1.0, -2.0, 3.0]], F32)


def model(tmp_path, *nodes, arrays=None, given=("x",), opset=18):
    """The path of a model of nodes (operator, inputs, outputs, attributes), whose last result is its output."""
    made = [OnnxNode("", kind, "", list(x), list(y), dict(attrs)) for kind, x, y, attrs in nodes]
    inputs = [Declared(name, 1, ["n", 3]) for name in given]
    graph = OnnxGraph("g", made, inputs, [Declared(made[-1].outputs[0], None, None)], arrays or {})
    path = tmp_path / "model.onnx"
    path.write_bytes(encode.file(OnnxFile(graph, 8, "", {"": opset})))
    return path


def test_damaged_files_are_refused(tmp_path):
    path = static.export_onnx(static.nn.Linear(3, 2), tmp_path / "whole.onnx", X)
    data, other = path.read_bytes(), tmp_path / "other.onnx"
    for n in range(0, len(data), 7):
        other.write_bytes(data[:n])
        with pytest.raises(TwingradError):
            static.import_onnx(other)(X)
    draw = random.Random(0)
    for _ in range(300):  # whatever it is now: it runs, or a TwingradError says why not
        changed = bytearray(data)
        for _ in range(3):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        other.write_bytes(bytes(changed))
        with suppress(TwingradError):
            dynamic.import_onnx(other)(X)


def nested(depth):
    graph = OnnxGraph("g", [], [], [])
    for _ in range(depth):
        graph = OnnxGraph("g", [OnnxNode("", "If", "", ["c"], ["y"], {"then_branch": graph})], [], [])
    return graph


REFUSED = {
    "an unknown name": ([("Relu", ["z"], ["y"], {})], {}, StateError, "reads 'z', which nothing before it makes"),
    "a later name": (
        [("Relu", ["z"], ["y"], {}), ("Relu", ["x"], ["z"], {})], {}, StateError, "nothing before it makes",
    ),
    "a name made twice": ([("Relu", ["x"], ["x"], {})], {}, StateError, "there already"),
    "an unknown operator": ([("QLinearConv", ["x"], ["y"], {})], {}, ArgumentError, "QLinearConv has no counterpart"),
    "an old version": ([("Relu", ["x"], ["y"], {})], {"opset": 3}, ArgumentError, "versions 6 to"),
    "no attribute": ([("Concat", ["x"], ["y"], {})], {}, ArgumentError, "'axis' is None"),
    "an attribute of another kind": ([("Softmax", ["x"], ["y"], {"axis": "1"})], {}, ArgumentError, "'axis' is '1'"),
    "too many operands": ([("Relu", ["x"] * 3, ["y"], {})], {}, ArgumentError, "Relu that makes 'y' cannot be applied"),
    "too few operands": ([("Add", ["x"], ["y"], {})], {}, TwingradError, "Add|add"),
    "an axis too far": ([("Softmax", ["x"], ["y"], {"axis": 9})], {}, ArgumentError, "axis 9 of 2 dimensions"),
    "no memory": (
        [("ConstantOfShape", ["n"], ["y"], {})], {"arrays": {"n": np.full(4, 2**40)}}, TwingradError, "no memory",
    ),
    "a negative size": (
        [("ConstantOfShape", ["n"], ["y"], {})], {"arrays": {"n": np.array([-3])}}, ArgumentError, "sizes",
    ),
    "deep graphs": ([("If", ["x"], ["y"], {"then_branch": nested(60)})], {}, StateError, "nested more than"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_model_cannot_say_is_refused(name, tmp_path):
    nodes, options, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        dynamic.import_onnx(model(tmp_path, *nodes, **options))(X)


def test_arguments_are_held_against_the_inputs(tmp_path):
    f = dynamic.import_onnx(model(tmp_path, ("Relu", ["x"], ["y"], {})))
    assert f(x=X).numpy().tolist() == [[1.0, 0.0, 3.0]]
    for args, kwargs, text in (
        ((), {}, "'x' is missing"), ((X, X), {}, "inputs are x"), ((X,), {"x": X}, "inputs are x"),
        ((X[0],), {}, "sizes"), ((X[:, :2],), {}, "sizes"), ((X.astype(np.float64),), {}, "float32, not float64"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            f(*args, **kwargs)


def test_only_files_beside_the_model_are_read(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret").write_bytes(X.tobytes())
    beside = tmp_path / "inside"
    (beside / "weights").write_bytes(X.tobytes())
    (beside / "link").symlink_to(tmp_path / "secret")
    path = model(beside, ("Add", ["x", "w"], ["y"], {}), arrays={"w": X})
    raw = encode.array(X, "w")
    tail = raw[: -len(X.tobytes()) - 2]

    def entry(key, value):
        text = b"\x0a" + bytes([len(key)]) + key + b"\x12" + bytes([len(value)]) + value
        return b"\x6a" + bytes([len(text)]) + text

    data = path.read_bytes()
    for place, kind in ((b"weights", None), (b"../secret", StateError), (b"link", StateError), (b"/etc/hostname",
                        StateError), (b"missing", StateError)):  # fmt: skip
        outside = tail + entry(b"location", place) + b"\x70\x01"
        graph_at = data.index(raw) - 2
        body = data[:graph_at] + b"\x2a" + bytes([len(outside)]) + outside + data[graph_at + 2 + len(raw) :]
        grown = len(outside) - len(raw)
        at = body.index(b"\x3a") + 1  # the graph's length
        assert body[at] + grown < 128
        other = beside / "outside.onnx"
        other.write_bytes(body[:at] + bytes([body[at] + grown]) + body[at + 1 :])
        if kind is None:
            assert dynamic.import_onnx(other)(X).detach().numpy().tolist() == (X + X).tolist()
        else:
            with pytest.raises(kind, match="array 'w'"):
                dynamic.import_onnx(other)


def test_dtypes_without_ops_are_named(tmp_path):
    path = model(tmp_path, ("Cast", ["x"], ["y"], {"to": 10}))
    with pytest.raises(DTypeError, match="float16"):
        static.import_onnx(path)(X)
    with pytest.raises(TwingradError):
        static.import_onnx(tmp_path / "missing.onnx")
    with pytest.raises(ArgumentError, match="a path is expected"):
        static.import_onnx(3)
