"""Values in parts: what cat, stack, slices' gradients and writes to slices make is not put together needlessly."""

from __future__ import annotations

import numpy as np
import pytest

import static as tw
from common.core.sizes import DimScope
from static.lowering.memory.pieces import cuts
from tests.bits import assert_all_same_bits
from tests.static.compare import as_tuple, assert_compiles, program_of

RNG = np.random.default_rng(0)


def floats(*shape):
    x = RNG.normal(size=shape).astype(np.float32)
    x.reshape(-1)[:: max(x.size // 3, 1)] = -0.0  # what adding zeros changes
    return x


def names(compiled):
    """The kernels of a function, by name; generated ones are "k"."""
    return ["k" if step.name.startswith("k_") else step.name for step in program_of(compiled).steps]


def nbytes(compiled):
    """Bytes that the kernels of a function read and write."""
    return sum(kernel.reads + kernel.writes for kernel in compiled.explain().kernels)


def rotated(x, cos, sin):
    a, b = tw.chunk(x, 2, 1)
    return x * cos + tw.cat([-b, a], 1) * sin


def test_branches_are_written_to_their_places():
    def program(x, y):
        return tw.cat([tw.tanh(x), tw.exp(y)], 1)

    arrays = floats(5, 16), floats(5, 32)
    compiled = assert_compiles(program, (floats(7, 3), floats(7, 4)), arrays)
    assert names(compiled) == ["k", "k"]
    assert nbytes(compiled) == 2 * sum(x.nbytes for x in arrays)


def test_an_operation_on_a_cat_runs_over_its_parts():
    def program(x, y):
        return tw.relu(tw.cat([tw.tanh(x), tw.exp(y)], 1) * 2) - 0.5

    assert names(assert_compiles(program, (floats(5, 16), floats(5, 32)))) == ["k", "k"]


def test_a_rotary_embedding_and_its_gradient_never_make_the_rotated_array():
    def program(x, cos, sin):
        return tw.value_and_grad(lambda x: (rotated(x, cos, sin) ** 2).sum())(x)

    compiled = assert_compiles(program, (floats(6, 32), floats(6, 32), floats(6, 32)))
    assert len(names(compiled)) <= 5
    assert not {"fill", "copy"} & set(names(compiled))


def test_gradients_of_slices_are_one_array_written_once():
    def program(x, w):
        def loss(x):
            i, f, g, o = tw.chunk(x, 4, 1)
            return tw.mm(tw.sigmoid(o) * tw.tanh(tw.sigmoid(i) * g + f), w).sum()

        return tw.grad(loss)(x)

    compiled = assert_compiles(program, (floats(6, 64), floats(16, 3)))
    assert not {"fill", "copy"} & set(names(compiled))


def test_zeros_around_a_gradient_change_the_sign_of_zeros():
    def program(x, g):
        return tw.vjp(lambda x: (x[:2], x[2:]), x)[1]((g[:2] * 0.5, g[2:]))

    compiled = assert_compiles(program, (floats(5, 3), np.full((5, 3), -0.0, np.float32)))
    (grad,) = as_tuple(compiled(floats(5, 3), np.full((5, 3), -0.0, np.float32)))
    assert not np.signbit(np.asarray(grad)).any()


def test_one_gradient_of_a_slice_keeps_the_sign_of_zeros():
    assert_compiles(lambda x, g: tw.vjp(lambda x: x[1:3], x)[1](g[1:3]), (floats(5, 3), -floats(5, 3) * 0))


def test_writes_to_one_row_after_the_other_copy_nothing():
    def program(x):
        out = tw.zeros(10, 8)
        for t in range(10):
            out[t] = tw.tanh(x[t])
        return out

    compiled = assert_compiles(program, (floats(10, 8),))
    assert set(names(compiled)) == {"k"}
    assert nbytes(compiled) == 2 * 10 * 8 * 4


def test_what_was_written_is_read_where_it_was_made():
    def program(x, y):
        z = tw.zeros(6, 4)
        z[1:3] = tw.exp(x)
        z[4] = tw.sin(y)
        return z[1:3] * 2, z[4] + 1, z[:, 1:].sum()

    assert_compiles(program, (floats(2, 4), floats(4)))


def test_a_chain_of_shifted_gradients():
    def program(x):
        return tw.value_and_grad(lambda x: ((x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]) ** 2).mean())(x)

    assert_compiles(program, (floats(4, 30),), (floats(3, 9),))


@pytest.mark.parametrize("n", [1, 2, 90])
def test_many_parts(n):
    def program(x):
        rows = [tw.tanh(x[i]) for i in range(n)]
        return tw.stack(rows) * 2, tw.cat(rows), tw.stack(rows, 1)

    assert_compiles(program, (floats(n, 5),))


def test_both_uses_of_a_value_in_parts():
    """A product needs the whole, an elementwise operation does not."""

    def program(x, y, w):
        z = tw.cat([tw.exp(x), y], 1)
        return tw.mm(z, w), tw.relu(z), z[:, :3], tw.cat([z, z], 1)

    compiled = assert_compiles(program, (floats(4, 3), floats(4, 5), floats(8, 2)))
    assert any("put together" in reason for kernel in compiled.explain().kernels for reason in kernel.refused)


def test_parts_in_state():
    cell = tw.nn.Parameter(tw.tensor(floats(6, 4)))

    @tw.function
    def step(x):
        with tw.no_grad():
            cell[1:3] = tw.exp(x)
            cell.mul_(2)
        return cell[0] + 1

    before, x = np.array(cell), floats(2, 4)
    step(x)
    before[1:3] = tw.function(tw.exp)(x)
    assert_all_same_bits([np.array(cell)], [before * 2], "state")


def test_divisions_meet_where_sizes_are_known_to():
    scope = DimScope(None, None)
    n = scope.input(0, 0, 10)
    assert [size for size, _ in cuts([3, 4], [5, 2])] == [3, 2, 2]
    assert [places for _, places in cuts([3, 4], [5, 2])] == [[(0, 0), (0, 0)], [(1, 0), (0, 3)], [(1, 2), (1, 0)]]
    assert len(cuts([2, 3, n - 5], [5, n - 5])) == 3
    assert cuts([n, 4], [4, n]) is None
    assert not scope.guards


def test_gradients_of_columns_that_are_read_twice():
    """Parts at the same places are added to each other, those of other columns are not in their way."""

    def program(q, v):
        def cross(a, b):
            x, y, z = (a[:, i] * b[:, j] - a[:, j] * b[:, i] for i, j in ((1, 2), (2, 0), (0, 1)))
            return tw.stack((x, y, z), 1)

        turned = v + q[:, :1] * cross(q[:, 1:], v) + cross(q[:, 1:], cross(q[:, 1:], v))
        return (turned[:, 0] * turned[:, 1]).sum() + (turned[:, 2] ** 2).sum()

    arrays = [(floats(n, 4), floats(n, 3)) for n in (50, 3)]
    compiled = assert_compiles(tw.grad(program, argnums=(0, 1)), *arrays)
    assert " if c >= " not in compiled.source


def test_wide_parts_at_the_same_place():
    compiled = assert_compiles(
        tw.grad(lambda x: (x[1:].exp() * x[1:].tanh() + x[1:]).sum()), (floats(40),), (floats(2),)
    )
    assert " if c >= " not in compiled.source
