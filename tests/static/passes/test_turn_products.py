"""Products read transposed matrices as they lie: no copy of one, and the bits of the product of the copy."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits
from tests.parity.engines import Derivatives
from tests.static.compare import program_of

PRODUCTS = {
    "left": (lambda x, y: x.T @ y, (40, 30), (40, 20)),
    "right": (lambda x, y: x @ y.T, (30, 40), (20, 40)),
    "both": (lambda x, y: x.T @ y.T, (40, 30), (20, 40)),
    "twice": (lambda x, y: x.T.T @ y.mT, (30, 40), (20, 40)),
    "of a result": (lambda x, y: (x.tanh() * 2).T @ y, (40, 30), (40, 20)),
    "a vector": (lambda x, y: x.T @ y, (70, 30), (70,)),
    "a row": (lambda x, y: y @ x.T, (70, 30), (30,)),
    "batches": (lambda x, y: x.transpose(1, 2) @ y, (3, 40, 30), (3, 40, 20)),
    "heads": (lambda x, y: x @ y.transpose(-2, -1), (2, 3, 30, 8), (2, 3, 20, 8)),
}
OTHERS = {
    "another order": (lambda x, y: x.permute(2, 0, 1) @ y, (40, 30, 3), (3, 30, 20)),
    "a part": (lambda x, y: x.T[:, 1:] @ y, (40, 30), (39, 20)),
    "reshaped": (lambda x, y: x.T.reshape(20, 60) @ y, (40, 30), (60, 20)),
}


def arrays(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("name", [*PRODUCTS, *OTHERS])
def test_values_and_gradients_have_the_bits_of_the_other_engine(name):
    program, *shapes = {**PRODUCTS, **OTHERS}[name]
    Derivatives(program, order=1).check(arrays(*shapes), np.random.default_rng(1), name)
    x, y = arrays(*shapes)
    exact = program(dynamic.tensor(x.astype(np.float64)), dynamic.tensor(y.astype(np.float64)))
    np.testing.assert_allclose(static.function(program)(x, y), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PRODUCTS)
def test_nothing_is_copied(name):
    program, *shapes = PRODUCTS[name]
    f = static.function(program)
    found = f(*arrays(*shapes))
    assert len(program_of(f).steps) == 1 + (name == "of a result")
    assert "permute" not in str(f.newest.graph)
    plain = static.function(program, passes=[])
    assert_all_same_bits([found], [plain(*arrays(*shapes))], "the copy")


def test_other_orders_stay():
    for program, *shapes in OTHERS.values():
        f = static.function(program)
        f(*arrays(*shapes))
        assert "permute" in str(f.newest.graph)
