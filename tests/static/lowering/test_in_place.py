"""Writes into state and into arrays that nothing needs afterwards touch what is written, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import IndexRangeError
from tests.bits import assert_all_same_bits
from tests.static.compare import assert_compiles

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


class Both:
    """A function of tensors and state, in both engines."""

    def __init__(self, step, *states):
        self.results = []
        for tw in (dynamic, static):
            cells = [tw.nn.Parameter(tw.tensor(x.copy()), requires_grad=False) for x in states]
            self.results.append((tw, cells, self._compiled(tw, step, cells)))

    @staticmethod
    def _compiled(tw, step, cells):
        def run(*arrays):
            with tw.no_grad():
                return step(tw, *cells, *arrays)

        return tw.function(run)

    def check(self, *arrays):
        """Run both, compare results and state; return what the compiled one tells about itself."""
        found = []
        for tw, cells, run in self.results:
            results = run(*map(tw.tensor, arrays) if tw is dynamic else arrays)
            results = results if isinstance(results, tuple) else (results,)
            found.append([np.asarray(x.detach() if tw is dynamic else x) for x in (*results, *cells)])
        assert_all_same_bits(found[1], found[0], "results and state")
        return self.results[1][2].explain()


def moved(told):
    """Bytes that kernels read and write."""
    return sum(kernel.reads + kernel.writes for kernel in told.kernels)


def test_a_row_of_a_cache_is_written_in_place_and_read_by_products():
    def step(tw, keys, values, q, k, v):
        keys[:, 5], values[:, 5] = k, v
        scores = tw.softmax(tw.matmul(tw.unsqueeze(q, 1), tw.transpose(keys, 1, 2)), -1)
        return tw.matmul(scores, values)

    both = Both(step, floats(3, 50, 8), floats(3, 50, 8))
    told = both.check(floats(3, 8), floats(3, 8), floats(3, 8))
    copies = [kernel for kernel in told.kernels if kernel.name == "copy"]
    assert [kernel.writes for kernel in copies] == [3 * 8 * 4] * 2
    both.check(floats(3, 8), floats(3, 8), floats(3, 8))


def test_what_is_computed_is_written_to_its_place_in_state():
    def step(tw, cell, x):
        cell[10:13] *= x
        cell[2] = tw.exp(x[0])
        return x.sum()

    told = Both(step, floats(1000, 4)).check(floats(3, 4))
    assert told.arena_bytes == 0
    assert moved(told) < 1000


def one_write(tw, cell, x, i):
    cell.index_copy_(0, i, x)
    return cell[3:6] * 2


def some_writes(tw, cell, x, i):
    cell.index_copy_(0, i, x)
    cell.index_add_(0, i + 0, x)
    cell[i - 1, 1] = 0.5
    return x.sum()


@pytest.mark.parametrize("step", [one_write, some_writes])
def test_places_that_are_data(step):
    """Of several, each can fail after another one has written: only one alone is written to state at once."""
    both = Both(step, floats(1000, 4))
    told = both.check(floats(3, 4), np.array([5, 5, 999]))
    assert (told.arena_bytes == 0) is (step is one_write)
    before = np.array(both.results[1][1][0])
    for wrong in ([5, 1000, 0], [5, -2000, 0], [5, -1, 0]):
        with pytest.raises(IndexRangeError):
            both.results[1][2](floats(3, 4), np.array(wrong))
    assert_all_same_bits([np.array(both.results[1][1][0])], [before], "state")


def test_state_stays_if_something_fails_after_the_write():
    def step(tw, cell, x, i):
        cell[1] = tw.exp(x[0])
        return tw.embedding(i, cell * 2).sum(), tw.cross_entropy(cell[:3], i)

    both = Both(step, floats(20, 4))
    both.check(floats(3, 4), np.array([0, 3, 2]))
    cell, run = both.results[1][1:]
    before = np.array(cell[0])
    with pytest.raises(IndexRangeError):
        run(floats(3, 4), np.array([0, 19, 2]))
    assert_all_same_bits([np.array(cell[0])], [before], "state")


def test_old_contents_that_are_needed_later_are_kept():
    def step(tw, a, b, x):
        old = a * 2
        a[1:] = a[:-1] * x
        b[0] = tw.tanh(old.sum(0)) + a[2]
        a[:2], b[:2] = tw.clone(b[:2]), tw.clone(a[:2])
        b[3:5] = b[2:4]
        return old, a.sum(), a[1] + b[1]

    both = Both(step, floats(6, 4), floats(6, 4))
    for _ in range(3):
        both.check(floats(4))


def test_a_write_of_what_lies_beside_it():
    def step(tw, cell, x):
        cell[1:] = cell[:-1] * x
        return x.sum()

    both = Both(step, floats(6, 40))
    for _ in range(2):
        both.check(floats(40))


def test_writes_to_one_place_happen_in_their_order():
    def step(tw, a, b):
        square = tw.mm(a, tw.transpose(a, 0, 1))
        a[:, 2] = square[:, 1] * 2
        a[:3] = tw.tanh(b)
        return square

    both = Both(step, floats(7, 5), floats(3, 5))
    for _ in range(2):
        both.check()


def test_a_chain_of_writes_to_places_copies_once():
    def program(x, v, i, j):
        y = static.index_add(x * 2, 0, i, v)
        return static.index_copy(static.index_add(y, 0, j, v), 0, i, v)

    arrays = floats(500, 4), floats(3, 4), np.array([1, 1, 499]), np.array([0, 1, 2])
    compiled = assert_compiles(program, arrays)
    assert compiled.explain().arena_bytes == 0
    assert not any(kernel.name == "copy" for kernel in compiled.explain().kernels)


def test_values_before_a_write_that_are_needed_again():
    def program(x, v, i):
        y = static.tanh(x)
        z = static.index_add(y, 0, i, v)
        u = static.slice_scatter(y, v, 0, 0, 3)
        return z * y, u

    assert_compiles(program, (floats(6, 4), floats(3, 4), np.array([1, 1, 5])))


def row(tw, i):
    return tw.reshape(i, 1)


def one_after_the_other(tw, i, s):
    h, y = s
    h = tw.tanh(h * 0.5 + tw.index_select(y, 0, row(tw, i) - 1))
    return h, tw.index_copy(y, 0, row(tw, i), h)


def changing_places(tw, i, s):
    h, y = s
    return tw.index_add(y[:1] * 0.5, 0, row(tw, i) * 0, h), tw.index_copy(y, 0, row(tw, i), h)


def needed_again(tw, i, s):
    h, y = s
    z = tw.index_add(y, 0, row(tw, i), h)
    return h + y.sum(0) + y[:1], z


def beside_it(tw, i, s):
    h, y = s
    return h * 0.9, tw.slice_scatter(y, y[:-1] * 0.5, 0, 1)


@pytest.mark.parametrize("body", [one_after_the_other, changing_places, needed_again, beside_it])
@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_a_loop_writes_to_what_it_carries(body, n):
    def step(tw, h, y):
        return tw.fori_loop(1, n + 1, lambda i, s: body(tw, i, s), (h, y))

    told = Both(step).check(floats(1, 5), floats(8, 5))
    assert (any(kernel.name == "copy" for kernel in told.kernels)) is (body in (needed_again, beside_it))


def test_gradients_and_stacks_of_a_loop_that_writes_to_what_it_carries():
    def gradients(h, y):
        def loss(h, y):
            h, y = static.fori_loop(1, 6, lambda i, s: one_after_the_other(static, i, s), (h, y))
            return (y * y).sum() + h.sum()

        return static.grad(loss, argnums=(0, 1))(h, y)

    def stacks(tw, h, y):
        def body(s, i):
            s = one_after_the_other(tw, i, s)
            return s, s[1].sum(1)

        s, ys = tw.scan(body, (h, y), tw.arange(1, 6))
        return *s, ys

    assert_compiles(gradients, (floats(1, 5), floats(8, 5)))
    Both(stacks).check(floats(1, 5), floats(8, 5))
