"""Batches of small matrices: the bits of the definition, and of each product alone."""

from itertools import product

import numpy as np
import pytest

import dynamic as tw
import static
from common.kernels.arrays import batched_products, gemm
from tests.bits import assert_same_bits
from tests.helpers.proofs import each

SIZES = [(1, 1, 3), (1, 2, 4), (2, 1, 2), (3, 1, 4), (2, 2, 2), (3, 3, 3), (4, 1, 4), (2, 4, 3), (4, 3, 2)]


def drawn(shape, dtype, seed):
    """Numbers of all sizes, zeros of both signs, products that underflow, and some that are not finite; or ints."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind != "f":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype)
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-22, 19, shape)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30])
    x = np.where(rng.random(shape) < 0.2, special[rng.integers(0, 7, shape)], x)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@each("sizes", SIZES)
def test_bits_are_those_of_the_definition(sizes, dtype):
    m, n, k = sizes
    transposed = [*product((False, True), repeat=2)]
    for batch, (trans_a, trans_b) in zip((64, 71), transposed[m % 2 :: 2], strict=True):
        x = drawn((batch, k, m) if trans_a else (batch, m, k), dtype, m)
        y = drawn((batch, n, k) if trans_b else (batch, k, n), dtype, n + 5)
        a, b = tw.tensor(x), tw.tensor(y)
        got = tw.matmul(a.mT.contiguous() if trans_a else a, b.mT.contiguous() if trans_b else b)
        read_as_they_lie = tw.matmul(a.mT if trans_a else a, b.mT if trans_b else b)
        expected = gemm.oracle(x, y, trans_a, trans_b)
        assert_same_bits(got.numpy(), expected, f"{sizes}")
        assert_same_bits(read_as_they_lie.numpy(), expected, f"{sizes}, {trans_a}, {trans_b}")
        alone = tw.matmul(a[:1].mT if trans_a else a[:1], b[:1].mT if trans_b else b[:1])
        assert_same_bits(alone.numpy(), expected[:1], "one product")


def test_which_products_are_written_out():
    pays = batched_products.pays
    assert pays("float32", 64, 4, 1, 2)
    for batch, m, n, k in (
        (63, 2, 2, 2),
        (64, 4, 2, 4),
        (64, 5, 2, 2),
        (64, 2, 5, 2),
        (64, 2, 2, 5),
        (64, 2, 2, 1),
        (64, 0, 2, 2),
    ):
        assert not pays("float32", batch, m, n, k)
    assert pays("int32", 64, 3, 3, 3)
    assert not pays("uint8", 64, 2, 2, 2)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8"])
def test_products_of_integers_are_numpys_in_both_engines(dtype):
    """Of matrices, vectors and batches, stored by rows, by columns or in steps; sizes are known or not."""
    compiled = static.function(lambda a, b: a @ b)
    for m, n, k in ((5, 40, 6), (1, 9, 70), (9, 1, 33), (3, 3, 2)):
        for lead in ((), (2,), (70,)):
            x, y = drawn((*lead, m, k), dtype, m), drawn((*lead, k, n), dtype, n)
            a, b = tw.tensor(x), tw.tensor(y)
            for left in (a, a.mT.contiguous().mT, tw.stack([a, a], -1)[..., 0]):
                for right in (b, b.mT.contiguous().mT, b[..., :1].expand(b.shape)):
                    expected = left.numpy() @ right.numpy()
                    assert_same_bits((left @ right).numpy(), expected, f"{lead}, {m}, {n}, {k}")
            assert_same_bits(np.asarray(compiled(x, y)), x @ y, "compiled")
        assert_same_bits((a[0] @ b[0, :, 0]).numpy(), x[0] @ y[0, :, 0], "a vector")
        assert_same_bits((a[0, 0] @ b[0, :, 0]).numpy(), x[0, 0] @ y[0, :, 0], "two vectors")
