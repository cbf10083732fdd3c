"""The gain of fusion: which programs become one kernel, and what keeps nodes apart."""

from __future__ import annotations

import time

import numpy as np
import pytest

from common.core.numerics import BLOCK
from common.ops.index import gather
from common.ops.index.masks import where
from common.ops.linalg import matmul
from common.ops.loss import classes
from common.ops.math import arithmetic, cast, compare, transcendental
from common.ops.reduce import reductions, statistics
from common.ops.reduce import softmax as normalize
from common.ops.shape import view
from common.runtime.call_text import MAX_BUFFERS
from static.jit.function import function
from static.running.executable import compile_graph
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def row_a(x, w, b, g):
    t, e = transcendental.tanh(x * w + b), transcendental.exp(-x * x)
    gt = g * x * (1 - t * t)
    return t * x + e, g * t + gt * w - 2 * x * e * g, gt * x, gt


def softmax(x):
    return normalize.softmax(x, 1)


def log_softmax(x):
    return normalize.log_softmax(x, 1)


def cross_entropy(x, target):
    y = normalize.log_softmax(x, 1)
    losses = classes.nll_loss(y, target, reduction="none")
    seed = view.expand(view.reshape(arithmetic.ones_like(reductions.mean(losses)) / x.shape[0], (1,)), (x.shape[0],))
    g = gather.spread(-seed, target, extent=x.shape[1])
    return losses, g - transcendental.exp(y) * reductions.sum_(g, dim=(1,), keepdim=True)


def layer_norm(x, weight, bias, g):
    out, _, rstd = normalize.normalize_(x, dim=(1,), eps=1e-5)
    gy = g * weight
    gx = rstd * (gy - reductions.mean(gy, 1, True) - out * reductions.mean(gy * out, 1, True))
    return out * weight + bias, gx, reductions.sum(g * out, 0), reductions.sum(g, 0)


def norm_of_all(x):
    return x / (1 + reductions.sum(x * x))


@pytest.mark.parametrize("rows", [3, 40, 1030])
@pytest.mark.parametrize("columns", [1, 7, 1100])
@pytest.mark.parametrize(
    ("program", "shapes"),
    [
        (row_a, ["rc"] * 4),
        (softmax, ["rc"]),
        (log_softmax, ["rc"]),
        (layer_norm, ["rc", "c", "c", "rc"]),
        (norm_of_all, ["rc"]),
    ],
)
def test_one_kernel(program, shapes, rows, columns):
    sizes = {"r": rows, "c": columns}
    compiled = assert_compiles(program, [floats(*(sizes[k] for k in shape)) for shape in shapes])
    if columns > 1:
        count = len(program_of(compiled).groups)  # a failing comparison would print them
        assert count == 1


def test_cross_entropy_and_its_gradient_are_one_kernel():
    arrays = floats(30, 11), RNG.integers(0, 11, 30)
    assert len(program_of(assert_compiles(cross_entropy, arrays)).groups) == 1


def refusals(compiled):
    return [reason for group in program_of(compiled).groups for _, _, reason in group.why_not]


def test_a_reduction_over_other_dimensions_says_why_it_is_apart():
    compiled = assert_compiles(lambda x: (reductions.sum(transcendental.exp(x), 1), reductions.amax(x)), [floats(5, 6)])
    assert any("reduce different dimensions" in line for line in refusals(compiled))


def test_a_matrix_product_in_between_keeps_its_two_sides_apart():
    def program(x, w):
        y = transcendental.tanh(x)
        return matmul.mm(y, w) * y

    compiled = assert_compiles(program, [floats(4, 4), floats(4, 4)])
    assert len(program_of(compiled).groups) == 3
    assert any("needed in between" in line for line in refusals(compiled))


def test_equal_kernels_have_equal_source():
    def program(*arrays):
        return tuple(transcendental.tanh(x) * 2 for x in arrays)

    compiled = assert_compiles(program, [floats(3, 4), floats(5), floats(6, 2, 3)])
    steps = program_of(compiled).steps
    assert len(steps) == 3
    assert len({step.source for step in steps}) == 1


def test_strided_operands_are_read_in_place():
    def program(x):
        return x.transpose(0, 1) * 2 + 1, x[1:, ::2] * 3, reductions.sum(x, 0), reductions.amax(x.transpose(0, 1), 0)

    compiled = assert_compiles(program, [floats(6, 7)])
    assert "" not in {item.function for item in program_of(compiled).work.items}


def test_a_thousand_nodes_are_lowered_quickly():
    def program(x, w, b):
        for _ in range(40):
            h = transcendental.tanh(matmul.linear(x, w, b)) + x * 0.5
            n = normalize.layer_norm(h, (16,), b, b)
            x = n * 2 + reductions.mean(n * n, 1, True)
            x = x + normalize.softmax(x, 1)
        return x

    oracle = function(program, interpret=True)
    oracle(floats(8, 16), floats(16, 16), floats(16))
    graph = oracle.traces[0].graph
    assert len(graph.nodes) > 900
    seconds = []
    for _ in range(3):
        start = time.process_time()
        compiled = compile_graph(graph)
        seconds.append(time.process_time() - start)
    assert len({step.source for step in compiled.lowered.steps}) < 8
    assert min(seconds) < 1  # 0.15 s; quadratic behaviour would show


def test_losses_of_one_row():
    assert_compiles(classes.cross_entropy, [floats(1, 5), np.array([3])])
    assert_compiles(classes.cross_entropy, [floats(4, 1), np.zeros(4, np.int64)])


def test_reshapes_do_not_keep_rows_apart():
    def program(x, weight, bias):
        y = matmul.linear(x, weight, bias)
        return normalize.layer_norm(transcendental.tanh(y) + x, (6,), bias, bias)

    compiled = assert_compiles(program, [floats(4, 5, 6), floats(6, 6), floats(6)])
    assert [group.native for group in program_of(compiled).groups] == [True, False]


def test_flat_operations_take_any_shape():
    def program(x):
        y = view.flatten(transcendental.tanh(x)) * 2
        return reductions.sum(view.reshape(y, (x.shape[1], x.shape[0])) + 1, 1)

    assert len(program_of(assert_compiles(program, [floats(2, 12)])).groups) == 1


def test_a_kernel_never_takes_more_buffers_than_a_call_can_pass():
    def program(x):
        totals = [reductions.sum(transcendental.exp(x * float(i)), 1, True) for i in range(40)]
        y = x
        for total in totals:
            y = y + transcendental.tanh(x / total)
        return y

    compiled = assert_compiles(program, [floats(3, 5)])
    assert max(len(step.things) for step in program_of(compiled).steps) <= MAX_BUFFERS
    assert len(program_of(compiled).groups) > 1


@pytest.mark.parametrize("rows", [BLOCK * 3 + 5, BLOCK * 18 + 1])
def test_column_sums_of_many_blocks(rows):
    compiled = assert_compiles(lambda x: reductions.sum(transcendental.tanh(x) * 1.1, 0), [floats(rows, 3)])
    assert len(program_of(compiled).groups) == 1


@pytest.mark.parametrize(("dims", "shape"), [((0,), ()), ((1,), (4, 5)), ((0, 1), (4, 5)), ((1, 2), (5,))])
def test_a_map_is_fused_into_a_reduction_over_dimensions_before_others(dims, shape):
    def program(x, m):
        centred = x - m
        return reductions.sum(centred * centred, dims), reductions.amax(centred, dims)

    compiled = assert_compiles(program, [floats(3, 70, 4, 5), floats(*shape)], [floats(2, 90, 4, 5), floats(*shape)])
    assert len(program_of(compiled).groups) == 1


KNOWN = {
    "squares": lambda x, y: x * x,
    "magnitudes": lambda x, y: arithmetic.abs(x),
    "cubes": lambda x, y: arithmetic.abs(x) * arithmetic.abs(x) * arithmetic.abs(x),
    "numbers": lambda x, y: compare.where(compare.isnan(x), 0, x),
}
UNKNOWN = {
    "a product": lambda x, y: x * y,
    "another order": lambda x, y: arithmetic.abs(x) * (arithmetic.abs(x) * arithmetic.abs(x)),
    "another number": lambda x, y: compare.where(compare.isnan(x), 1, x),
    "other elements": lambda x, y: compare.where(compare.isnan(x), 0, y),
    "the other end": lambda x, y: x[:, 1:] * x[:, :-1],
    "another dtype": lambda x, y: cast.to(x, dtype=np.dtype(np.float64), x_dtype=x.dtype) * x,
    "integers": lambda x, y: compare.gt(x, y) * 3,
}


@pytest.mark.parametrize("name", [*KNOWN, *UNKNOWN])
@pytest.mark.parametrize("over", [1, None])
def test_sums_of_known_functions_store_nothing(name, over):
    x, y = floats(5, 300), floats(5, 300)
    x[2, 7] = y[3, 3] = np.nan
    compiled = assert_compiles(lambda x, y: reductions.sum((KNOWN | UNKNOWN)[name](x, y), over), [x, y])
    assert ("block_sum" not in program_of(compiled).source) == (name in KNOWN)
    assert (f"block_{name}(" in program_of(compiled).source) == (name in KNOWN)


def test_known_functions_of_what_the_kernel_makes_or_keeps():
    def program(x):
        y, square = x * 0.5, x * x
        return reductions.sum(y * y, 1), square, reductions.sum(square, 1), x / (1 + reductions.sum(square, 1, True))

    assert_compiles(program, [floats(4, 50)], [floats(3, BLOCK + 9)])


def test_row_results_and_sums_over_the_middle_share_a_kernel():
    def program(x, g):
        return normalize.softmax(x * 2, 2) * g, reductions.sum(x * g, 1), reductions.amin(g, 1)

    compiled = assert_compiles(program, [floats(3, 70, 5), floats(3, 70, 5)], [floats(2, 9, 4), floats(2, 9, 4)])
    assert len(program_of(compiled).groups) == 1


def test_a_value_read_in_another_order_is_finished_first():
    def program(x):
        y = transcendental.tanh(x)
        return y + view.transpose(y, 0, 1)

    compiled = assert_compiles(program, [floats(40, 40)])
    assert any("in another order" in line for line in refusals(compiled))


def test_a_sum_of_columns_is_finished_before_it_is_used():
    compiled = assert_compiles(lambda x: x - reductions.sum(x, 0), [floats(40, 7)])
    assert any("complete only at the end" in line for line in refusals(compiled))


def steps_of(compiled):
    return [step.name for step in program_of(compiled).steps]


def test_sums_of_columns_of_known_functions_are_the_eager_engines_kernels():
    inputs = [(floats(3, n, 30),) for n in (5, 100, 1030)]
    assert "exponentials_cols" in steps_of(assert_compiles(lambda x: normalize.logsumexp(x, 1), *inputs))
    assert "deviations_cols" in steps_of(assert_compiles(lambda x: statistics.var(x, 1), *inputs))
    assert "squares_cols" in steps_of(assert_compiles(lambda x: reductions.sum(x * x, 1), *inputs))


def test_sums_of_columns_of_what_only_looks_known_are_made():
    x, m = floats(3, 40, 30), floats(40, 1)
    assert "exponentials_cols" not in steps_of(assert_compiles(exponentials_and_their_sum, [x]))
    compiled = assert_compiles(lambda x, m: reductions.sum(transcendental.exp(x - m), 1), [x, m])  # one m per row
    assert "exponentials_cols" not in steps_of(compiled)
    assert "squares_cols" not in steps_of(assert_compiles(lambda x: reductions.sum(x * (x + 0), 1), [x]))


def exponentials_and_their_sum(x):
    e = transcendental.exp(x - reductions.amax(x, 1, True))
    return e, reductions.sum(e, 1)


def test_a_long_chain_is_one_kernel():
    """Ninety operations on one array: no result between them is stored."""

    def chain(x):
        for i in range(30):
            x = transcendental.tanh(x * (1 + i) + x)
        return x

    assert len(program_of(assert_compiles(chain, [floats(40)])).groups) == 1


@pytest.mark.parametrize("columns", [20, 1500])
def test_what_a_maximum_needs_in_memory_is_not_computed_again(columns):
    """A softmax of scores with a mask and a bias: the scores of a row are stored for the maximum, and loaded then."""

    def program(x, bias, mask):
        scores = where(mask, -1e9, x / 3 + bias[:, None] * x)
        return normalize.softmax(scores, 1)

    arrays = floats(30, columns), floats(30), floats(30, columns) > 0.5
    compiled = assert_compiles(program, arrays)
    assert compiled.source.count("where(") == 1
    assert compiled.source.count("row_max(") == 1


def test_fields_of_a_staggered_grid_are_one_kernel():
    """One that has an element less than the other, as in a simulation of waves, is computed where it is needed."""

    def step(e, h):
        h = h + (e[1:] - e[:-1]) * 0.5
        return h, h * h - e[1:]

    compiled = assert_compiles(step, *[(floats(n), floats(n - 1)) for n in (40, 7, 300)])
    assert len(program_of(compiled).groups) == 1
    fitting = function(step)
    fitting(floats(9), floats(8))
    assert fitting(floats(9), floats(1))[0].shape == (8,)  # another trace: it is repeated
    assert len(fitting.traces) == 2
