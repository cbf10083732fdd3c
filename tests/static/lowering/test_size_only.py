"""Values that depend on sizes only are made by the first call of a plan and kept."""

from __future__ import annotations

import random

import numpy as np
import pytest

import static as tw
from common.core.errors import IndexRangeError
from static.lowering.fusion import size_only
from static.running import result_memory
from tests.bits import assert_all_same_bits, assert_same_bits
from tests.helpers.proofs import first
from tests.static.compare import assert_compiles

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def kept(compiled):
    """The ops of the kernels that the newest plan does not run again."""
    return [op for kernel in compiled.explain().kernels if kernel.kept for op in kernel.ops]


def rotary(x):
    angle = tw.arange(x.shape[0]).float()[:, None] / 10.0 ** tw.arange(x.shape[1] // 2)
    a, b = x[:, ::2], x[:, 1::2]
    return tw.stack((a * tw.cos(angle) - b * tw.sin(angle), a * tw.sin(angle) + b * tw.cos(angle)), -1)


def test_tables_of_angles_are_made_once_per_plan():
    compiled = assert_compiles(rotary, *((floats(n, 32),) for n in (6, 6, 9, 6)))
    assert {"cos", "sin"} <= set(kept(compiled))
    kernels = compiled.explain().kernels
    assert not any({"cos", "sin"} & set(kernel.ops) for kernel in kernels if not kernel.kept)
    assert all(kernel.times == 0 and "(once, and kept)" in str(kernel) for kernel in kernels if kernel.kept)


def test_they_are_not_made_again(monkeypatch):
    """The memory of a plan is the evidence: what is written there stays, and is read."""
    made = []
    keep = result_memory.ResultMemory.keep
    monkeypatch.setattr(
        result_memory.ResultMemory, "keep", lambda self, nbytes: made.append(keep(self, nbytes)) or made[-1]
    )
    compiled, x = tw.function(lambda x: x * tw.exp(tw.arange(x.shape[0]).float() / 7)), floats(40)
    first = np.asarray(compiled(x)).copy()
    (table,) = (m.view(np.float32) for m in made)
    table *= 2
    assert_same_bits(np.asarray(compiled(x)), first * 2, "again")


def test_gradients_masks_and_windows():
    def attention(q, k, slopes):
        i = tw.arange(q.shape[0])
        scores = q @ k.mT + slopes * (i[None] - i[:, None]).float()
        weights = tw.softmax(tw.where(i[None] > i[:, None], -1e9, scores), -1)
        return (weights * tw.hann_window(q.shape[0])).sum()

    gradient = tw.grad(attention, argnums=(0, 1, 2))
    compiled = assert_compiles(gradient, (floats(40, 5), floats(40, 5), floats(1)))
    assert {"arange", "cos"} <= set(kept(compiled))


def test_results_are_new_in_each_call():
    compiled = tw.function(lambda x: (tw.arange(x.shape[0]).float().exp(), x))
    one, two = (np.asarray(compiled(np.zeros(20, np.float32))[0]) for _ in range(2))
    assert not np.shares_memory(one, two)


def test_a_table_is_copied_before_it_is_written_to():
    def program(x, i):
        table = tw.exp(tw.arange(40).float() / 40)
        table[3:5] = x[:2]
        other = tw.zeros(x.shape[0], 20)
        other[i] = x[:, None] * tw.sqrt(tw.arange(20).float())
        return table * x, other, tw.exp(tw.arange(40).float() / 40) + x

    arrays = [(floats(40), RNG.permutation(40)) for _ in range(3)]
    assert_compiles(program, *arrays)


def test_state_that_begins_as_a_table():
    state = tw.zeros(30)

    def step(x):
        state.copy_(tw.sin(tw.arange(30).float()))
        state[:4] += x
        return state * 2

    compiled, x = tw.function(step), floats(4)
    expected = np.asarray(step(tw.tensor(x)))
    for _ in range(3):
        assert_same_bits(np.asarray(compiled(x)), expected, "again")


def test_an_index_of_sizes_is_refused_by_every_call():
    compiled = tw.function(lambda x: x[tw.arange(x.shape[0]) * 2])
    for _ in range(2):
        with pytest.raises(IndexRangeError, match="index 20 is out of bounds"):
            compiled(floats(20))


@pytest.mark.parametrize("budget", ["plan", "program"])
def test_more_than_the_budget_is_made_in_every_call(monkeypatch, budget):
    """Of a plan, and of all plans of a program: those that come later."""
    if budget == "plan":
        monkeypatch.setattr(result_memory, "KEPT_PER_PLAN", 4 * 100)
    else:
        monkeypatch.setattr(result_memory, "KEPT_BYTES", 4 * 250)
    compiled, found = tw.function(lambda x: x * tw.cumsum(tw.ones_like(x), 0)), []
    for n in (90, 95, 101):
        x = floats(n)
        expected = x * np.arange(1, n + 1, dtype=np.float32)
        assert_all_same_bits([np.asarray(compiled(x)) for _ in range(3)], [expected] * 3, "again")
        found.append(bool(kept(compiled)))
    assert found == [True, True, False]


def test_memory_of_plans_that_are_gone_counts_no_more():
    memory = result_memory.ResultMemory()
    before = memory.may_keep
    one = memory.keep(size_only.KEPT_BYTES)
    two = [memory.keep(size_only.KEPT_BYTES) for _ in range(3)]
    assert (before, memory.may_keep) == (size_only.KEPT_BYTES, 0)
    del one
    assert memory.may_keep == size_only.KEPT_BYTES
    del two


def test_cheap_values_are_part_of_the_loop_that_uses_them():
    compiled = assert_compiles(lambda x: x * tw.ones(x.shape) * 2 + tw.exp(x), (floats(30),))
    assert len(compiled.explain().kernels) == 1


def test_threads_keep_tables_of_their_own_layout():
    def program(x):
        return x * tw.exp(tw.arange(x.shape[0]).float() / x.shape[0]) @ x

    compiled, x = tw.function(program), floats(400, 400)
    expected = [np.asarray(compiled(x)) for _ in range(2)]
    tw.set_num_threads(2)
    try:
        found = [np.asarray(compiled(x)) for _ in range(3)]
    finally:
        tw.set_num_threads(1)
    assert_all_same_bits(found, [expected[0]] * 3, "again")
    assert_same_bits(np.asarray(compiled(x)), expected[0], "again")


def test_what_a_loop_over_arguments_makes_on_the_way_is_made_in_every_call():
    """The positions become floats in the loop of the first result, which does not run before the second one's table."""

    def program(x):
        position = tw.arange(1, x.shape[0] + 1).to(x.dtype)
        return x / position, tw.cumsum(0.6 / position, 0) * x

    assert_compiles(program, *((floats(n),) for n in (40, 40, 50, 40)))


def with_part(x, y):
    x = x.clone()
    x[:3] = y[-3:] * 2
    return x


STEPS = [
    with_part,
    lambda x, y: tw.cumsum(x, 0).slice_scatter(y[:5], 0, 2, 7),
    lambda x, y: tw.grad(lambda z: (with_part(z, z) * y).sum())(x),
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x / (y.abs() + 1),
    lambda x, y: tw.sin(x) - y,
    lambda x, y: tw.cumsum(x, 0) * y,
    lambda x, y: tw.where(x > y, x, 1.0),
    lambda x, y: x.flip(0),
    lambda x, y: x.roll(1) + x.mean(),
    lambda x, y: tw.sort(x * 7 % 5)[0],
    lambda x, y: x[tw.arange(x.shape[0] - 1, -1, -1)],
    lambda x, y: tw.cat((x[1:], y[:1])),
    lambda x, y: x.index_add(0, tw.arange(x.shape[0]) // 2, y),
    lambda x, y: x.clone().add_(y),
]


@pytest.mark.parametrize("part", first(1, range(6)))
def test_random_programs_of_positions_and_arguments(part):
    for seed in range(part * 8, part * 8 + 8):

        def program(x, seed=seed):
            choose = random.Random(seed)
            made = [x, tw.arange(1, x.shape[0] + 1).to(x.dtype), tw.linspace(0.0, 1.0, x.shape[0])]
            for _ in range(choose.randint(4, 10)):
                made.append(choose.choice(STEPS)(choose.choice(made), choose.choice(made)))
            return [made[-1], *(y * x for y in made[-4:-1])]

        assert_compiles(program, *((floats(n),) for n in (40, 40, 50, 40)))


def test_what_a_kept_kernel_needs_is_kept_too():
    """The positions are read by a loop over the argument as well, which is no reason to make the table again."""

    def program(x):
        places = tw.arange(1, x.shape[0] + 1).to(x.dtype)
        return x / places, (0.5 / places).cumsum(0) * x

    compiled = assert_compiles(program, (floats(5000),), (floats(5000),))
    assert {"to", "div", "cumsum"} <= set(kept(compiled))


def test_what_is_kept_is_overwritten_by_nothing_that_comes_before_a_reader():
    def program(x):
        table = tw.cumsum(tw.full((x.shape[0],), 0.5), 0)
        before = table[:3] * x[:3]
        after = table.slice_scatter(tw.zeros(3), 0, 0, 3)
        return before, tw.cumsum(after, 0) * x

    assert_compiles(program, *((floats(n),) for n in (40, 40, 50)))
