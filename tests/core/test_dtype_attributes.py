"""PyTorch's attributes of dtypes: floating point, complex, signed, bytes; those figures are of PyTorch 2.13."""

import pickle

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import DTypeError

#: Name -> is_floating_point, is_complex, is_signed, itemsize.
EXPECTED = {
    "float32": (True, False, True, 4), "float64": (True, False, True, 8), "float16": (True, False, True, 2),
    "bfloat16": (True, False, True, 2), "complex64": (False, True, True, 8), "complex128": (False, True, True, 16),
    "int8": (False, False, True, 1), "int64": (False, False, True, 8), "uint8": (False, False, False, 1),
    "uint16": (False, False, False, 2), "bool": (False, False, False, 1),
}  # fmt: skip
ENGINES = pytest.mark.parametrize("engine", [dynamic, static], ids=lambda e: e.__name__)


@ENGINES
@pytest.mark.parametrize("name", EXPECTED)
def test_attributes_are_those_of_pytorch(engine, name):
    dtype = getattr(engine, name)
    assert (dtype.is_floating_point, dtype.is_complex, dtype.is_signed, dtype.itemsize) == EXPECTED[name]


@ENGINES
def test_tensors_show_them_also_while_they_are_traced(engine):
    halve = engine.function(lambda x: x / 2 if x.dtype.is_floating_point else x // 2)
    assert halve(engine.tensor([3.0])).tolist() == [1.5]
    assert halve(engine.tensor([3])).tolist() == [1]


def test_complex_dtypes_and_their_parts():
    assert (dynamic.float32.to_complex(), dynamic.float64.to_complex()) == (np.complex64, np.complex128)
    assert (dynamic.complex64.to_real(), dynamic.complex128.to_real()) == (np.float32, np.float64)
    assert dynamic.int64.to_real() is dynamic.int64
    with pytest.raises(DTypeError, match="no complex numbers with parts of int64"):
        dynamic.int64.to_complex()


def test_numpys_dtypes_are_otherwise_what_they_were():
    record = np.dtype([("x", np.float32), ("y", np.int64)])
    assert not record.is_floating_point
    assert record["x"].is_floating_point
    assert pickle.loads(pickle.dumps(record)) == record
    with pytest.raises(AttributeError):
        _ = record.is_quantized
