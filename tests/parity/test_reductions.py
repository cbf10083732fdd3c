"""Reductions at every size where the order of a sum changes, over every choice of dimensions, of special values."""

import numpy as np
import pytest

import common.ops.functional as F
from tests.helpers.proofs import rotated
from tests.parity.arrays import BIG, SIZES, mixed, normal, special, strided
from tests.parity.engines import Derivatives

FLOATS = ("float32", "float64")
DIMS = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]
REDUCERS = {
    "sum": F.sum, "mean": F.mean, "amax": F.amax, "amin": F.amin, "logsumexp": F.logsumexp,
}  # fmt: skip
ROWS = {
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1]),
    "variance by hand": lambda x: F.mean(F.square(x - F.mean(x, -1, True)), -1),
    "sum of a product": lambda x: F.sum(x * F.sigmoid(x), -1),
    "norm": lambda x: x / F.sqrt(F.sum(x * x, -1, True)),
}
COLUMNS = {
    "sum": lambda x: F.sum(F.tanh(x), 0),
    "mean": lambda x: F.mean(x, 0),
    "amax": lambda x: F.amax(x, 0),
    "softmax": lambda x: F.softmax(x, 0),
    "centred": lambda x: x - F.mean(x, 0, True),
}


def sizes_of(name):
    return [n for n in SIZES if n or name in ("sum", "mean")]


@pytest.mark.parametrize(("name", "dtype"), rotated(REDUCERS, FLOATS))
def test_whole_arrays(name, dtype):
    rng = np.random.default_rng(80)
    program = Derivatives(lambda x: REDUCERS[name](x, (0,)))
    for n in (*sizes_of(name), 5000):
        program.check([mixed(rng, (n,), dtype, 0.002)], rng, name)
    program.check([special(dtype)], rng, f"{name} of special values")


@pytest.mark.parametrize("name", ["sum", "amax", "logsumexp", "mean"])
def test_a_million_elements(name):
    rng = np.random.default_rng(81)
    program = Derivatives(lambda x: REDUCERS[name](x, (0,)), order=1)
    program.check([normal(rng, (BIG,), "float32")], rng, name)


@pytest.mark.parametrize(("name", "dtype"), rotated(ROWS, FLOATS))
def test_rows(name, dtype):
    rng = np.random.default_rng(82)
    program = Derivatives(ROWS[name])
    for n in SIZES[1:]:
        program.check([normal(rng, (3, n), dtype)], rng, name)
    program.check([mixed(rng, (9, 33), dtype)], rng, f"{name} with special values")
    program.check([normal(rng, (0, 5), dtype)], rng, name)


@pytest.mark.parametrize(("name", "dtype"), rotated(COLUMNS, FLOATS))
def test_columns(name, dtype):
    rng = np.random.default_rng(83)
    program = Derivatives(COLUMNS[name])
    for n in SIZES[1:]:
        program.check([normal(rng, (n, 3), dtype)], rng, name)
    program.check([mixed(rng, (33, 9), dtype)], rng, f"{name} with special values")
    program.check([normal(rng, (40, 1100), dtype)], rng, name)


def test_a_million_rows_and_columns():
    rng = np.random.default_rng(84)
    for shape in ((BIG // 16, 16), (16, BIG // 16)):
        both = Derivatives(lambda x: (F.sum(x, 0), F.sum(x, 1)), order=1)
        both.check([normal(rng, shape, "float32")], rng, "sums of rows and columns")


@pytest.mark.parametrize(("name", "keepdim"), rotated(REDUCERS, [False, True]))
@pytest.mark.parametrize("dim", DIMS)
def test_dimensions(name, keepdim, dim):
    rng = np.random.default_rng(85)
    program = Derivatives(lambda x: REDUCERS[name](x, dim, keepdim))
    for shape in ((3, 4, 5), (33, 2, 40), (2, 65, 17)):
        program.check([normal(rng, shape, "float32")], rng, f"{name} over {dim}")
    for layout in strided(normal(rng, (3, 4, 5), "float32")):
        program.check([layout], rng, f"{name} over {dim}, strided")
    program.check([normal(rng, (3, 4, 5), "float32").transpose(2, 0, 1)], rng, f"{name} over {dim}, transposed")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
def test_integers(dtype):
    rng = np.random.default_rng(86)
    program = Derivatives(lambda x: (F.sum(x, 0), F.sum(x, 1), F.amax(x, 1), F.amin(x, 0)), order=0)
    for shape in ((3, 33), (33, 3), (2, 1025)):
        program.check([mixed(rng, shape, dtype, 0.3)], rng, "reductions of integers")
