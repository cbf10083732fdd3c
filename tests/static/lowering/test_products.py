"""Sums of arrays and matrix products, in threads and at sizes of one: the bits do not depend on the kernels."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from tests.static.compare import assert_compiles


def operands(*shapes, dtype="float32"):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


SUMS = {
    "array first": lambda x, a, b: x + a @ b,
    "product first": lambda x, a, b: a @ b + x,
    "transposed": lambda x, a, b: x + static.nn.functional.linear(a, b.T.contiguous()),
    "of a batch": lambda x, a, b: x.unsqueeze(0) + static.bmm(a.unsqueeze(0), b.unsqueeze(0)),
    "the product is a result": lambda x, a, b: (x + (p := a @ b), p),
    "the product is used twice": lambda x, a, b: (x + (p := a @ b), p.sum()),
    "twice the product": lambda x, a, b: (p := a @ b) + p,
    "a row is broadcast": lambda x, a, b: x[0] + a @ b,
    "the array is transposed": lambda x, a, b: x.T + (b.T @ a.T).contiguous(),
    "the sum is transposed": lambda x, a, b: x.T + (a @ b).T,
    "a part of the product": lambda x, a, b: x[1:] + (a @ b)[1:],
    "more than a sum": lambda x, a, b: static.tanh(x + a @ b),
    "integers": lambda x, a, b: x.to(static.int64) + a.to(static.int64) @ b.to(static.int64),
    "another dtype": lambda x, a, b: x.to(static.float64) + a @ b,
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 9, 4), (9, 1, 40), (4, 6, 0)])
def test_a_sum_with_a_product_keeps_its_bits(name, shape):
    m, n, k = shape
    assert_compiles(SUMS[name], operands((m, n), (m, k), (k, n)))


def test_gradients_of_iterations_are_added_in_their_order():
    def loss(tw, w, xs):
        return tw.scan(lambda h, x: (tw.tanh((h + x) @ w), h), xs[0] * 0, xs)[1].sum()

    w, xs = operands((6, 6), (5, 4, 6))
    engines = dynamic, static
    functions = [tw.function(tw.grad(lambda w, xs, tw=tw: loss(tw, w, xs), argnums=0)) for tw in engines]
    ours, theirs = (np.asarray(f(w, xs)) for f in functions)
    assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit(threads):
    arrays = operands((1100, 1030), (1100, 1024), (1024, 1030))
    f = static.function(lambda x, a, b: x + a @ b)
    expected = np.asarray(f(*arrays)).tobytes()
    static.set_num_threads(threads)
    try:
        assert np.asarray(f(*arrays)).tobytes() == expected
    finally:
        static.set_num_threads(1)


def test_products_of_vectors_have_a_kernel_of_their_own_at_each_size(monkeypatch):
    """One program meets one row, many, and one again; the same of columns, in an iteration and behind an addition."""
    from static.running import executable

    def program(tw, x, w, y):
        h = tw.scan(lambda h, _: (tw.tanh(h @ w), h), x, None, length=2)[0]
        return h @ y, x + h @ w

    compiled = list[str]()
    compile_kernel = executable.compile_kernel
    monkeypatch.setattr(
        executable, "compile_kernel", lambda source, *how: compiled.append(source) or compile_kernel(source, *how)
    )
    f = static.function(lambda *operands: program(static, *operands))
    for m, n in ((5, 3), (1, 3), (5, 1), (4, 2), (1, 1), (300, 2)):
        x, w, y = operands((m, 40), (40, 40), (40, n))
        compiled.clear()
        ours = f(x, w, y)
        for a, b in zip(ours, program(dynamic, *map(dynamic.tensor, (x, w, y))), strict=True):
            assert np.asarray(a).tobytes() == b.numpy().tobytes()
        vectors = [source for source in compiled if "multiply_vector" in source]
        assert bool(vectors) == (1 in (m, n)) or not compiled
