"""Results in the memory of operands: where that is done, where it would be wrong, and that bits stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import static
from common.ops.index import gather
from common.ops.index.getitem import getitem
from common.ops.linalg import matmul
from common.ops.math import cast, compare, transcendental
from common.ops.reduce import reductions, softmax
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import examples, rotated
from tests.helpers.python_kernels import run_unjitted
from tests.static import programs
from tests.static.compare import as_tuple, assert_compiles, program_of
from tests.static.lowering.test_state import plan_of

RNG = np.random.default_rng(0)
mm, relu, tanh = matmul.mm, compare.relu, transcendental.tanh


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def reused(compiled):
    return [(here.node.name, there.node.name) for p in program_of(compiled).reused.values() for there, here in p]


def arena(compiled, *arrays):
    traced = compiled.traces[0]
    return traced.plan(traced.env(arrays)).arena_bytes


def test_bias_and_activation_run_over_the_product_in_the_memory_of_the_result():
    arrays = floats(40, 30), floats(20, 30), floats(20)
    compiled = assert_compiles(
        lambda x, w, b: relu(matmul.linear(x, w, b)), arrays, [floats(7, 5), floats(3, 5), floats(3)]
    )
    assert [group.native for group in program_of(compiled).groups] == [True, False]
    assert reused(compiled) == [("relu", "mm")]
    assert arena(compiled, *arrays) == 0
    assert "relu in the memory of mm" in str(compiled.explain())


def test_a_chain_ends_in_the_memory_of_its_last_result():
    def program(x, w):
        a = relu(mm(x, w))
        return tanh(a.transpose(0, 1) * 1), getitem(mm(a, w), slice(1, None))

    arrays = floats(6, 6), floats(6, 6)
    compiled = assert_compiles(program, arrays)
    assert ("relu", "mm") in reused(compiled)
    compiled = assert_compiles(lambda x, w: relu(mm(relu(mm(x, w)), w)) + 1, arrays)
    assert reused(compiled) == [("add", "mm"), ("relu", "mm")]
    assert arena(compiled, *arrays) == 192  # one of the two products: the other lies in the output


def test_a_store_comes_after_the_read_of_what_it_replaces():
    def program(x, w):
        h = mm(x, w)
        y = x * 2  # does not need h, is computed before h is read, and takes its place
        return y, y - h

    compiled = assert_compiles(program, [floats(9, 9), floats(9, 9)])
    assert reused(compiled) == [("mul", "mm")]


def test_gradients_with_sums_of_columns():
    def program(g, w, y):
        h = mm(g, w)
        passed = h * (1 - y * y)
        return passed, reductions.sum(passed, 0), mm(passed, w)

    compiled = assert_compiles(program, [floats(1100, 8), floats(8, 8), floats(1100, 8)])
    assert reused(compiled) == [("mul", "mm")]
    assert len(program_of(compiled).groups) == 3


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w: (relu(h := mm(x, w)), mm(h, w)),  # needed later
        lambda x, w: (h := mm(x, w), relu(h)),  # an output
        lambda x, w: relu(x),  # an argument
        lambda x, w: relu(h := mm(x, w)) - h.transpose(0, 1),  # other elements are read
        lambda x, w: relu(getitem(mm(x, w), slice(2, None))),  # larger than the result
        lambda x, w: mm(x, w) > 0,  # another dtype
        lambda x, w: cast.to(mm(x, w), dtype=np.dtype(np.float64), x_dtype=np.dtype(np.float32)),
        lambda x, w: ((h := mm(x, w)) * -3, reductions.amax(h, (1,), False)),  # a function reads the row after the loop
        lambda x, w: ((h := mm(x, w)) * -3, reductions.sum(h * h, (1,), False)),  # the same
        lambda x, w: ((h := mm(x, w)) * -3, reductions.amax(h), x * 2),  # the same, of the whole array
        lambda x, w: (relu(h := mm(x, w)), compare.gt(h, reductions.sum(tanh(h), (1,), True))),  # read by a later loop
        lambda x, w: (
            relu(h := mm(x, w)),
            reductions.sum(tanh(h), (1,), True) + h[:, 1:2],
        ),  # others of its row are read
        lambda x, w: reductions.sum(mm(x, w), 0),
        lambda x, w: getitem(mm(x, w), 0) * 2,
    ],
)
def test_where_it_would_be_wrong(program):
    assert not reused(assert_compiles(program, [floats(6, 6), floats(6, 6)]))


def _zeros(x):
    """An index per row."""
    return cast.to(reductions.sum(x, (1,), False) * 0, dtype=np.dtype(np.int64), x_dtype=x.dtype)


OVERWRITTEN = {
    "softmax": (lambda x, w: softmax.softmax(mm(x, w), 1), [("div", "mm")]),
    "quotient": (lambda x, w: (h := mm(x, w)) / reductions.amax(h), [("div", "mm")]),
    "log_softmax": (lambda x, w: softmax.log_softmax(mm(x, w), 1) * 2, [("mul", "mm")]),
    # the loop that stores reads the old elements for a sum, which comes first
    "sum of rows": (lambda x, w: (x * 2, reductions.sum(tanh(mm(x, w)) * x, (1,), False)), [("mul", "mm")]),
    "sum of all": (lambda x, w: (x * 2, reductions.sum(tanh(mm(x, w)) * x)), [("mul", "mm")]),
    # what is stored early takes an operand that is read early, and leaves the other one
    "two products": (
        lambda x, w: (relu(h := mm(x, w)), (g := mm(relu(x), w)) * reductions.sum(tanh(g) * h, (1,), True)),
        [("relu", "mm"), ("mul", "mm")],
    ),
    # one element of a row is read before its loops
    "one of a row": (lambda x, w: (relu(h := mm(x, w)), gather.pick(h, _zeros(x))), [("relu", "mm")]),
}
SHAPES = [(6, 6), (1100, 6), (3, 1100), (40, 2100)]


@pytest.mark.parametrize(("name", "shape"), rotated(OVERWRITTEN, SHAPES))
def test_rows_are_overwritten_behind_their_last_read(name, shape):
    (program, pairs), (rows, columns) = OVERWRITTEN[name], shape
    arrays = floats(rows, columns), floats(columns, columns)
    compiled = assert_compiles(program, arrays, [floats(rows + 3, columns), arrays[1]])
    assert reused(compiled) == pairs
    traced = compiled.traces[0]
    actual = run_unjitted(traced.program, traced.env(arrays), arrays)
    assert_all_same_bits(actual, as_tuple(compiled(*arrays)), "un-jitted")


def test_state_is_never_written_early():
    x, w, p = floats(6, 6), floats(6, 6), floats(6, 6)
    before = p.copy()
    plan = plan_of(lambda x, w, p: ([mm(p, w)], [relu(mm(x, w))]), [x, w, p], 1)
    (product,) = plan(x, w, p)
    assert not plan.program.lowered.reused
    assert_all_same_bits([product], [plan_of(lambda p, w: ([mm(p, w)], []), [before, w], 0)(before, w)[0]], "old state")


@settings(max_examples=examples(40))
@given(st.randoms(use_true_random=False), st.integers(3, 15), st.integers(1, 3))
def test_random_programs_of_products(random, length, returned):
    seeds = [random.randrange(1 << 16) for _ in range(400)]

    def program(x, w, b, t):
        tape = iter(seeds)
        d = programs.Draw(lambda n: next(tape) % n, [x, w, b, t])
        for _ in range(length):
            d.pick([_product, _product, programs.unary, programs.binary, programs.number, programs.permute,
                    programs.reduction, programs.part, programs.rows, programs.indexed])(d)  # fmt: skip
        return tuple(d.values[-returned:])

    arrays = [floats(6, 6), floats(6, 6), floats(6), np.array(0.5, np.float32)]
    compiled = assert_compiles(program, arrays)
    traced = compiled.traces[0]
    actual = run_unjitted(traced.program, traced.env(arrays), arrays)
    assert_all_same_bits(actual, as_tuple(compiled(*arrays)), "un-jitted")


def _product(d):
    square = [v for v in d.values if v.shape == (6, 6) and v.dtype == np.float32]
    d.add(mm(d.pick(square), d.pick(square)), "mm")


def test_without_sharing_every_temporary_has_memory_of_its_own():
    x = np.ones((64, 64), np.float32)

    def program(x):
        for _ in range(4):
            x = (x @ x).tanh()
        return x.sum()

    shared, apart = (static.function(program, share_memory=share) for share in (True, False))
    assert np.asarray(shared(x)).tobytes() == np.asarray(apart(x)).tobytes()
    assert apart.explain().arena_bytes >= sum(piece.nbytes for piece in apart.explain().arena)
    assert shared.explain().arena_bytes < apart.explain().arena_bytes
