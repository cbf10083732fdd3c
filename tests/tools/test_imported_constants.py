"""Constants of an imported model that Python reads: scales, sizes as floats, numbers that decide, as numpy's."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ShapeError
from common.tools.onnx import encode
from common.tools.onnx.records import Declared, OnnxFile, OnnxGraph, OnnxNode

F32, I64 = np.float32, np.int64
X = np.arange(6, dtype=F32).reshape(2, 3) - 2
ONE, TWO = np.array([1.0], F32), np.array([2.0], F32)
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def nodes(*made):
    return [OnnxNode("", kind, "", list(x), list(y), dict(attrs)) for kind, x, y, attrs in made]


def model(tmp_path, made, arrays, more=()):
    inputs = [Declared("x", 1, [None, None]), *more]
    graph = OnnxGraph("g", nodes(*made), inputs, [Declared("y", None, None)], dict(arrays))
    path = tmp_path / "model.onnx"
    path.write_bytes(encode.file(OnnxFile(graph, 8, "", {"": 18})))
    return static.import_onnx(path)


MODELS = {
    "scales": (
        [("Resize", ["x", "", "s"], ["y"], NEAREST)], {"s": np.array([2, 1], F32)}, lambda x: np.repeat(x, 2, 0),
    ),
    "scales of batches": (
        [("Reshape", ["x", "whole"], ["z"], {}), ("Resize", ["z", "", "s"], ["y"], NEAREST)],
        {"s": np.array([2, 1, 1], F32), "whole": np.array([0, 1, -1])}, lambda x: np.repeat(x, 2, 0)[:, None],
    ),
    "scales that are joined": (
        [("Mul", ["a", "b"], ["c"], {}), ("Concat", ["c", "a"], ["s"], {"axis": 0}),
         ("Resize", ["x", "", "s"], ["y"], NEAREST)],
        {"a": ONE, "b": TWO}, lambda x: np.repeat(x, 2, 0),
    ),
    "an array that is a weight": ([("Mul", ["x", "w"], ["y"], {})], {"w": TWO}, lambda x: x * 2),
    "a range up to a size": (
        [("Shape", ["x"], ["n"], {"start": 1}), ("Squeeze", ["n"], ["m"], {}), ("Cast", ["m"], ["f"], {"to": 1}),
         ("Range", ["first", "f", "one"], ["r"], {}), ("Add", ["x", "r"], ["y"], {})],
        {"first": np.array(0, F32), "one": np.array(1, F32)}, lambda x: x + np.arange(x.shape[1], dtype=F32),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_constants_that_python_reads_are_no_parameters(name, tmp_path):
    made, arrays, wanted = MODELS[name]
    f = model(tmp_path, made, arrays)
    assert [n for n, _ in f.named_parameters()] == (["w"] if "w" in arrays else [])
    compiled = static.function(f)
    for x in (X, np.tile(X, (2, 2))):
        for run in (f, compiled):
            assert np.asarray(run(x).detach()).tobytes() == wanted(x).tobytes()


def test_a_number_decides_which_branch_a_compiled_model_has(tmp_path):
    branches = {
        "then_branch": OnnxGraph("a", nodes(("Relu", ["x"], ["p"], {})), [], [Declared("p")]),
        "else_branch": OnnxGraph("b", nodes(("MatMul", ["x", "x"], ["q"], {})), [], [Declared("q")]),
    }
    asked = [("Equal", ["rate", "wanted"], ["c"], {}), ("If", ["c"], ["y"], branches)]
    f = model(tmp_path, asked, {"wanted": np.array(16000, I64)}, [Declared("rate", 7, [])])
    for run in (f, static.function(lambda x: f(x, 16000))):
        given = (X, 16000) if run is f else (X,)
        assert run(*given).numpy().tobytes() == np.maximum(X, 0).tobytes()
    assert dynamic.function(f)(X, np.array(16000, I64)).numpy().tobytes() == np.maximum(X, 0).tobytes()
    with pytest.raises(ShapeError) as raised:
        static.function(f)(X, np.array(16000, I64))
    assert any("with a number in its place" in note for note in raised.value.__notes__)
