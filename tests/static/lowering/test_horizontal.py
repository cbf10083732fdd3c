"""Equal kernels as one pass: which become one, that bits stay, and that nothing runs that depends on its neighbour."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import static
from common.ops.math import arithmetic, transcendental
from common.ops.reduce import reductions
from static.jit.function import function
from static.lowering.fusion.horizontal import WIDTH
from static.running import executable
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import examples
from tests.helpers.python_kernels import run_unjitted
from tests.static.compare import as_tuple, assert_compiles, program_of
from tests.static.lowering.test_state import plan_of
from tests.static.programs import Draw

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def number(value):
    return np.array(value, np.float32)


def decay(x, t):
    """A loop with something costly before it."""
    return x * transcendental.exp(-t) + x


def calls(compiled):
    return [len(step.groups) for step in program_of(compiled).steps]


@pytest.mark.parametrize("count", [2, 3, WIDTH - 1, WIDTH, WIDTH + 1, 40])
def test_equal_kernels_over_different_sizes_are_one_pass(count):
    shapes = [(5, 3), (), (0,), (1,), (70,), (2, 1, 3), (4, 2)]
    arrays = [floats(*shapes[i % len(shapes)]) if i != 1 else floats(9) for i in range(count)]
    numbers = [number(0.1 * i) for i in range(count)]

    def program(*given):
        return tuple(map(decay, given[:count], given[count:]))

    compiled = assert_compiles(program, [*arrays, *numbers])
    assert sum(calls(compiled)) == len(program_of(compiled).groups)
    if count > len(shapes):
        assert max(calls(compiled)) > 1
    assert len({step.source for step in program_of(compiled).steps}) <= 4


def test_all_of_one_rank_are_one_call_and_explain_says_so():
    def program(*given):
        return tuple(map(decay, given[:9], given[9:]))

    compiled = assert_compiles(program, [*(floats(i) for i in range(2, 11)), *map(number, range(9))])
    assert calls(compiled) == [9]
    assert "1 for 36 operations, 1 distinct" in str(compiled.explain())
    assert "(one pass over 9 equal groups)" in str(compiled.explain())
    single = function(program, fuse=False)
    single(*(floats(i) for i in range(2, 11)), *map(number, range(9)))
    assert set(calls(single)) == {1}


def test_the_text_does_not_depend_on_how_many_there_are():
    def sources(count):
        compiled = function(lambda *given: tuple(map(decay, given[:count], given[count:])))
        compiled(*(floats(3) for _ in range(count)), *map(number, range(count)))
        return {step.source for step in program_of(compiled).steps}

    assert len(sources(2) | sources(5) | sources(20)) == 1


def test_new_sizes_compile_nothing(monkeypatch):
    compiled = function(lambda *given: tuple(map(decay, given[:3], given[3:])))
    numbers = list(map(number, range(3)))
    compiled(floats(4), floats(5), floats(6), *numbers)
    monkeypatch.setattr(executable, "compile_kernel", None)
    arrays = [floats(9), floats(0), floats(1000), *numbers]
    expected = function(lambda *given: tuple(map(decay, given[:3], given[3:])), interpret=True)(*arrays)
    assert_all_same_bits(compiled(*arrays), expected, "new sizes")
    assert calls(compiled) == [3]


def test_a_kernel_that_needs_its_neighbours_result_stays_apart():
    def program(x, s, t, u):
        a = decay(x, s)  # the transposed reads keep the three from being one loop; the last two are equal
        b = decay(a.transpose(0, 1), t)
        return a, b, decay(b.transpose(0, 1), u)

    compiled = assert_compiles(program, [floats(6, 6), number(0.5), number(0.25), number(2)])
    assert set(calls(compiled)) == {1}


def test_a_state_that_one_reads_and_the_next_writes_keeps_them_apart():
    q, s, t, p = floats(7), number(0.5), number(3), floats(7)
    expected = function(lambda q, s, t, p: (decay(p, s), decay(q, t)), interpret=True)(q, s, t, p)
    plan = plan_of(lambda q, s, t, p: ([decay(p, s)], [decay(q, t)]), [q, s, t, p], 1)
    assert_all_same_bits([*plan(q, s, t, p), p], expected, "output and state")
    assert [len(step.groups) for step in plan.program.lowered.steps] == [1, 1]
    assert len({step.source for step in plan.program.lowered.steps}) == 1


def test_states_are_written_in_one_pass():
    count = 11
    arrays = [floats(i) for i in range(count)]
    steps = [number(i) for i in range(count)]
    oracle = function(lambda *v: tuple(map(decayed, v[:count], v[count:])), interpret=True)
    expected = oracle(*arrays, *steps)

    def program(*given):
        xs, ts = given[:count], given[count:]
        return [], [*map(decayed, xs, ts), *(t + 1 for t in ts)]

    plan = plan_of(program, [*arrays, *steps], 2 * count)
    assert max(len(step.groups) for step in plan.program.lowered.steps) >= count - 2  # (0,) and (1,) are of other ranks
    plan(*arrays, *steps)
    assert_all_same_bits(arrays, expected, "arrays")
    assert [float(t) for t in steps] == [i + 1.0 for i in range(count)]


def decayed(x, t):
    return x * (1 - arithmetic.pow(0.5, t + 1))


def test_what_begins_with_nothing_costly_stays_apart():
    arrays = [floats(3), floats(4), number(2), number(3)]
    assert calls(assert_compiles(lambda x, y, s, t: (x * (s + 1), y * (t + 1)), arrays)) == [1, 1]


def test_rows_with_sums_stay_apart():
    def program(x, y, s, t):
        return reductions.sum(decay(x, s), 1), reductions.sum(decay(y, t), 1)

    compiled = assert_compiles(program, [floats(3, 4), floats(5, 6), number(2), number(3)])
    assert calls(compiled) == [1, 1]
    assert len({step.source for step in program_of(compiled).steps}) == 1


@settings(max_examples=examples(25))
@given(st.randoms(use_true_random=False), st.integers(2, 2 * WIDTH + 1), st.integers(2, 9))
def test_random_equal_kernels(random, count, length):
    seeds = [random.randrange(1 << 16) for _ in range(200)]
    arrays = [a for i in range(count) for a in (floats(i + 2, 3), number(0.1 * i), np.array(i % 3 + 0.5))]

    def one(x, t, u):
        tape = iter(seeds)
        d = Draw(lambda n: next(tape) % n, [x, t, u, transcendental.exp(t) * u])
        for _ in range(length):
            d.pick([_unary, _binary])(d)
        return d.values[-1]

    def program(*given):
        return tuple(one(*given[i : i + 3]) for i in range(0, len(given), 3))

    compiled = assert_compiles(program, arrays)
    traced = compiled.traces[0]
    actual = run_unjitted(traced.program, traced.env(arrays), arrays)
    assert_all_same_bits(actual, as_tuple(compiled(*arrays)), "un-jitted")


def _unary(d):
    x = d.operand()
    d.add(d.pick([transcendental.tanh, transcendental.exp, arithmetic.sqrt, arithmetic.neg])(x), "unary")


def _binary(d):
    x, y = d.operand(), d.operand()
    d.add(d.pick([arithmetic.add, arithmetic.mul, arithmetic.div, arithmetic.pow])(x, y), "binary")


def test_a_deep_net_has_as_many_different_kernels_as_a_shallow_one():
    def distinct(layers):
        net = static.nn.Sequential(*(static.nn.Linear(4, 4) for _ in range(layers)))
        optimizer = static.optim.Adam(net.parameters())

        @static.function
        def step(x):
            optimizer.zero_grad()
            loss = reductions.sum(transcendental.tanh(net(x)))
            loss.backward()
            optimizer.step()
            return loss

        step(floats(3, 4))
        return [step_.source for step_ in program_of(step).steps]

    deep, shallow = distinct(20), distinct(6)
    assert len(set(deep)) == len(set(shallow))
    passes = [source for source in deep if "skip(bufs" in source]
    assert len(passes) == 1  # 40 parameters
    assert set(passes) <= set(shallow)
