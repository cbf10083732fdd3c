"""The order of computing: a program keeps no more than it needs between its products."""

import numpy as np

import static
from static.lowering.fusion.merge_policy import ENDS_NOW, NEEDED_LATER


def explained(function, *operands):
    compiled = static.function(function)
    compiled(*operands)
    return compiled.explain()


def test_a_derivative_of_what_is_kept_anyway_is_not_kept_as_well():
    def f(x, w, v):
        return static.vjp(lambda w, v: static.tanh(x @ w) @ v, w, v)[1](x)

    x, w, v = (np.ones((128, 128), np.float32) for _ in range(3))
    explained_f = explained(f, x, w, v)
    forward = next(kernel for kernel in explained_f.kernels if "tanh" in kernel.ops)
    assert forward.ops == ("tanh",)
    assert forward.writes == x.nbytes
    assert any(NEEDED_LATER in reason for kernel in explained_f.kernels for reason in kernel.refused)


def test_gradients_that_come_one_by_one_are_added_as_they_come():
    def products(x, w):
        acc = x @ w
        for k in range(2, 12):
            acc = acc + (x * k) @ w
        return acc

    x, w = (np.ones((128, 128), np.float32) for _ in range(2))
    explained_f = explained(products, x, w)
    assert explained_f.arena_bytes <= 4 * x.nbytes + 1024
    assert any(ENDS_NOW in reason for kernel in explained_f.kernels for reason in kernel.refused)
    small = np.ones((8, 8), np.float32)
    assert explained(products, small, small).kernels[-1].ops.count("add") == 10
