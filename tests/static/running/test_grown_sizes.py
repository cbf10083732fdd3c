"""Sizes far beyond those of the traced call: kernels are shaped for them anew, from the same trace, a few times."""

from __future__ import annotations

import numpy as np
import pytest

import static
from common.core import sizes
from static.jit.function import function
from static.lowering.lowered_program import LoweredProgram
from static.running.executable import GROWTH, MANY_BYTES, MOST_GROWN
from tests.bits import assert_all_same_bits
from tests.static.compare import as_tuple

F32 = np.float32


def distances(a, b):
    """Pairs at the end of small rows: whether loops go over the pairs or the rows depends on how many there are."""
    return (a[:, None, :] ^ b[None, :, :]).abs().sum(-1)


def squared_sums(x):
    """A row's sum and the sum of its squares, as in factorisation machines."""
    s = x.sum(1)
    return (s * s - (x * x).sum(1)).sum(1)


def over_a_loop(x):
    return static.fori_loop(0, 3, lambda _, y: y[:, None, :].exp().sum(1) * y.mean(), x)


def gradient(x):
    return static.grad(lambda x: (static.logsumexp(x[:, None] - x[None], 2) ** 2).sum())(x)


def numbers(*shape):
    return np.random.default_rng(len(shape)).integers(-9, 9, shape)


def inputs(program, n):
    if program is distances:
        return numbers(n, 8), numbers(n + 1, 8)
    if program is squared_sums:
        return (numbers(n, 8, 16).astype(F32),)
    return ((numbers(n, 5) / 9).astype(F32),)


PROGRAMS = {distances: 400, squared_sums: 3000, over_a_loop: 20000, gradient: 300}


@pytest.fixture
def lowered(monkeypatch, disk):
    """The sizes that hints stand for when a program is lowered, in order; a guard that is decided then fails."""
    found, make = [], LoweredProgram.__init__

    def counted(self, graph, *rest):
        dims = [n for x in graph.inputs for n in x.shape if isinstance(n, sizes.Dim)]
        found.append([sizes.hint(n) for n in dims])
        before = [len(n.scope.guards) for n in dims]
        make(self, graph, *rest)
        assert [len(n.scope.guards) for n in dims] == before

    monkeypatch.setattr(LoweredProgram, "__init__", counted)
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_kernels_are_those_of_a_trace_with_such_sizes(program):
    large = PROGRAMS[program]
    compiled, fresh, oracle = function(program), function(program), function(program, interpret=True)
    few, many = inputs(program, 12), inputs(program, large)
    small = compiled(*few)
    source = compiled.source
    results = compiled(*many)
    assert_all_same_bits(as_tuple(results), as_tuple(oracle(*many)), "grown")
    assert_all_same_bits(as_tuple(results), as_tuple(fresh(*many)), "traced with these sizes")
    assert len(compiled.traces) == 1
    assert compiled.source == fresh.source != source
    assert [k.name for k in compiled.explain().kernels] == [k.name for k in fresh.explain().kernels]
    assert compiled.explain().arena_bytes == fresh.explain().arena_bytes
    assert_all_same_bits(as_tuple(compiled(*few)), as_tuple(small), "the first kernels again")


def test_they_are_shaped_anew_a_few_times(lowered):
    compiled = function(squared_sums)
    rows = [1, GROWTH, MANY_BYTES // 512, GROWTH * MANY_BYTES // 512, 2 * GROWTH * MANY_BYTES // 512]
    rows.append(rows[-1] * GROWTH + 1)
    expected = []
    for i, n in enumerate([2 * n for n in rows]):
        compiled(*inputs(squared_sums, n))
        if i in (0, 2, 4):
            expected.append([n, 8, 16])
        assert lowered == expected
    assert len(expected) == 1 + MOST_GROWN
    assert len(compiled.traces) == 1


def test_small_arrays_keep_their_kernels(lowered):
    compiled = function(squared_sums)
    for n in (2, MANY_BYTES // 512 - 1):
        compiled(*inputs(squared_sums, n))
    assert len(lowered) == 1


def test_the_disk_has_both(lowered):
    results = []
    for warm in (False, True):
        del lowered[:]
        compiled = function(squared_sums)
        results.append([np.asarray(compiled(*inputs(squared_sums, n))) for n in (12, 3000)])
        assert len(lowered) == (0 if warm else 2)
        text = compiled.source
        assert text == compiled.newest_plan.whole.lowered.source
        results[-1].append(text)
    assert results[0].pop() == results[1].pop()
    assert_all_same_bits(*results, "stored")


def test_threads_share_such_loops(disk):
    many, before = inputs(squared_sums, 3000), static.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 2):
            static.set_num_threads(threads)
            compiled = function(squared_sums)
            compiled(*inputs(squared_sums, 12))
            results.append(compiled(*many))
            facts = compiled.explain()
            assert facts.operations
            assert any(kernel.parts > 1 for kernel in facts.kernels) is (threads > 1)
    finally:
        static.set_num_threads(before)
    assert_all_same_bits([results[0], results[0]], results[1:], "threads")


def test_gradients_of_recorded_calls_grow_too(lowered):
    compiled = function(lambda x: squared_sums(x).sum())
    for n in (12, 3000, 12):
        x = static.tensor(inputs(squared_sums, n)[0], requires_grad=True)
        compiled(x).backward()
        y = static.tensor(x.detach(), requires_grad=True)
        squared_sums(y).sum().backward()
        assert_all_same_bits([x.grad], [y.grad], f"{n}")
    assert [found[0] for found in lowered] == [12, 12, 3000, 3000]
