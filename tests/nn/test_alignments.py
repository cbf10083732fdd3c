"""The recursion of `ctc_loss` as one kernel: the bits of the loop over ops, and the sum over all alignments."""

import itertools

import numpy as np
import pytest

import dynamic
import static
from common.compiler.compile import LLVM, NUMBA
from common.nn import ctc_kernel
from tests.bits import assert_same_bits
from tests.helpers.wrapped import wrap


def _case(rng, dtype):
    steps, batch, classes, length = (int(rng.integers(*ends)) for ends in ((1, 12), (1, 5), (2, 6), (0, 20)))
    x = rng.normal(size=(steps, batch, classes)).astype(dtype) * rng.choice([1, 30])
    for value in (np.nan, np.inf, -np.inf):
        if rng.random() < 0.2:
            x[rng.integers(steps), rng.integers(batch)] = value
    ends = rng.integers(0, steps + 1, batch), rng.integers(0, length + 1, batch)
    return x, rng.integers(0, classes, (batch, length)), *ends


def _all(x, targets, frames, labels):
    """Losses, and gradients of first and second order, of a pass that is recorded and of one that is not."""
    x = wrap(x, requires_grad=True)
    loss = dynamic.nn.functional.ctc_loss(x, targets, frames, labels, blank=1, reduction="none")
    (plain,) = dynamic.autograd.grad(loss.sum(), [x], retain_graph=True)
    (g,) = dynamic.autograd.grad(loss.sum(), [x], create_graph=True)
    (second,) = dynamic.autograd.grad((g * g).sum(), [x], retain_graph=True)
    (again,) = dynamic.autograd.grad(loss.sum(), [x])
    with dynamic.no_grad():
        alone = dynamic.nn.functional.ctc_loss(x, targets, frames, labels, blank=1, reduction="none")
    return [loss, plain, g, second, again, alone]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_are_those_of_the_loop(dtype, monkeypatch):
    rng = np.random.default_rng(0)
    for _ in range(12):
        x, *rest = _case(rng, dtype)
        found = _all(x, *map(wrap, rest))
        with monkeypatch.context() as patch:
            patch.setattr(ctc_kernel, "is_one_kernel", lambda *_: False)
            expected = _all(x, *map(wrap, rest))
        for a, b in zip(found, expected, strict=True):
            assert_same_bits(a, b, f"of {x.shape}")
        compiled = static.function(lambda *a: static.nn.functional.ctc_loss(*a, blank=1, reduction="none"))
        assert_same_bits(found[0], compiled(x, *rest), f"compiled, of {x.shape}")


def test_losses_are_sums_over_all_alignments():
    rng = np.random.default_rng(1)
    steps, classes = 4, 3
    p = rng.random((steps, 1, classes))
    p /= p.sum(2, keepdims=True)
    for target in ([], [1], [2, 1], [1, 1], [2, 2, 2]):
        total = 0.0
        for path in itertools.product(range(classes), repeat=steps):
            merged = [c for c, before in zip(path, (None, *path)) if c != before and c]
            total += np.prod([p[t, 0, c] for t, c in enumerate(path)]) if merged == target else 0
        loss = dynamic.nn.functional.ctc_loss(
            wrap(np.log(p)), wrap(np.array([target], np.int64)), [steps], [len(target)], reduction="sum"
        )
        assert np.isclose(loss.item(), -np.log(total) if total else np.inf, rtol=1e-12)


def test_one_node_stands_for_all_frames_and_is_freed():
    x = dynamic.zeros(3, 1, 2, requires_grad=True)
    loss = dynamic.nn.functional.ctc_loss(x, wrap(np.array([[1]])), [3], [1])
    names = [node.name() for node in dynamic.autograd.graph.execution_order(loss)]
    assert names.count("ScanBackward") == 1
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_kernels_are_those_of_both_compilers():
    """A process has one compiler; the text of the kernels is translated by the other one too."""
    from common.compiler.compile import compile_kernel
    from common.kernels.arrays import alignments
    from common.runtime.builtins import make_call

    rng, (steps, batch, n) = np.random.default_rng(1), (3, 2, 5)
    x, skips, frames = rng.normal(size=(steps, batch, n)), rng.random((batch, n)) < 0.5, np.array([3, 2])
    first, g = rng.normal(size=(batch, n)), rng.normal(size=(batch, n))
    results = []
    for compiler in (LLVM, NUMBA):
        run = make_call(compile_kernel(alignments.forward_source("float64", -1e30), "alignments", compiler))
        back = make_call(compile_kernel(alignments.backward_source("float64", -1e30), "alignments_back", compiler))
        last, sums, dx, carried = np.zeros((batch, n)), np.zeros(x.shape), np.zeros(x.shape), g.copy()
        kept = np.zeros((steps + 1, batch, n + 2))
        run(x, skips, frames, first, last, kept, sums, steps, batch, n, 1)
        back(carried, skips, frames, kept, sums, dx, np.zeros(2 * (n + 2) * 8, np.uint8), steps, batch, n)
        results.append([last, kept, sums, dx, carried])
    for a, b in zip(*results, strict=True):
        assert_same_bits(a, b, "alignments")
