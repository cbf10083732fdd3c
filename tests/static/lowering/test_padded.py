"""Gradients of slices that overlap, pads, and what is rolled: read where their elements are, never made."""

from __future__ import annotations

import random

import numpy as np
import pytest

import common.ops.functional as F
import static as tw
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import first
from tests.parity.engines import Derivatives
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)
SIZES = {1: [(40,), (3,), (2,), (1000,)], 2: [(9, 40), (3, 3), (2, 5), (40, 70)], 3: [(5, 6, 20), (3, 3, 3), (2, 4, 3)]}


def floats(*shape):
    x = RNG.normal(size=shape).astype(np.float32)
    x.reshape(-1)[:: max(x.size // 3, 1)] = -0.0  # what adding zeros changes
    return x


def five_points(x):
    return x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1]


def variation(x):
    return ((x[1:] - x[:-1]) ** 2).sum() + ((x[:, 1:] - x[:, :-1]) ** 2).sum()


def heat(x):
    return tw.scan(lambda u, _: (F.pad(u[1:-1, 1:-1] + 0.1 * five_points(u), (1, 1, 1, 1)), None), x, length=3)[0]


def nested(x, i, j):
    return F.pad(F.pad(x[1:, 1:] * 3, (0, 0, i, 1 - i), value=0.5), (j, 1 - j), value=0.5 if i else -0.5)


def placed(x, value):
    down, across = x[1:] - x[:-1], (x[:, 1:] * x[:, :-1] - x[:, 1:]) * -0.5
    return F.pad(down, (0, 0, 0, 1), value=value) + F.pad(across, (1, 0), value=value) - F.pad(-x[2:], (0, 0, 1, 1))


PROGRAMS = {
    "differences": (1, lambda x: ((x[1:] - x[:-1]) ** 3).sum()),
    "second differences": (1, lambda x: F.tanh(x[2:] - 2 * x[1:-1] + x[:-2]).sum()),
    "five points": (2, lambda x: (five_points(x) ** 2).sum()),
    "variation": (2, variation),
    "diagonals": (2, lambda x: (x[1:, 1:] * x[:-1, :-1] - x[1:, :-1] * x[:-1, 1:]).sum()),
    "loop": (2, lambda x: (heat(x) ** 2).sum()),
    "of rows": (2, lambda x: (x[1:, 1:-1] * x[:-1, 2:]).sum(1).exp().sum()),
    "padded": (2, lambda x: (F.pad(x, (1, 2, 2, 1), value=0.5) * F.pad(x * x, (2, 1, 1, 2), value=-0.0)).sum()),
    "volumes": (3, lambda x: (x[1:, :-1, 1:] * x[:-1, 1:, 1:] + x[1:, 1:, :-1]).pow(2).sum()),
    "one row of each": (3, lambda x: (x[:, 0, 1:] * x[:, -1, :-1] - x[:, 0, :-1]).exp().sum()),
    "sums of windows": (2, lambda x: (x[1:, 1:-1].sum(1).exp() * x[:-1, 2:].sum(1)).sum() + x[1:, 1:].sum(0)[0] ** 2),
    "periodic": (
        2,
        lambda x: ((F.roll(x, 1, 0) + F.roll(x, -1, 0) + F.roll(x, 2, 1) - F.roll(x, -1, 1)) * x).exp().sum(),
    ),
    "turned": (1, lambda x: (F.cat([x[1:], x[:1]]) * x - F.roll(x, 5)).tanh().sum()),
    "pieces of columns": (2, lambda x: (F.cat([x[:, 1:], x[:, :1]], 1) * x.flip(0)).sum()),
    "turned volumes": (3, lambda x: (F.roll(x, (1, -1, 1), (0, 1, 2)) * x * F.roll(x, 1, 1)).sum()),
    "placed": (2, lambda x: (placed(x, 0.0) * placed(-x, -0.0) + placed(x * x, 0.5)).tanh().sum()),
    "nested": (2, lambda x: (nested(x, 0, 0) * x + nested(x, 1, 0) - nested(x.exp(), 0, 1) * nested(x, 1, 1)).sum()),
    "slices of slices": (2, lambda x: (x[1:][:, 1:] * x[:-1][:, 1:] - x[1:][:, :-1]).tanh().sum()),
    "beside each other": (1, lambda x: (x[1:] * x[:-1]).sum() + (x[: x.shape[0] // 2] ** 3).sum()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_unfused_and_interpreted_gradients_have_equal_bits_at_all_sizes(name):
    ndim, program = PROGRAMS[name]
    given = [(floats(*shape),) for shape in SIZES[ndim] if name != "one row of each" or shape[-1] > 2]
    assert_compiles(tw.value_and_grad(program), *given)


def test_the_gradient_of_a_stencil_is_one_kernel_that_fills_and_copies_nothing():
    compiled = assert_compiles(tw.grad(PROGRAMS["five points"][1]), (floats(30, 50),))
    *_, last = program_of(compiled).steps
    assert all(step.name.startswith("k_") for step in program_of(compiled).steps)
    assert sum(item.name == "unslice" for item in last.groups[0].items) == 5


def test_gradients_of_slices_beside_each_other_stay_in_parts():
    def program(x):
        a, b, c = tw.split(x, 10)
        return (a * b + c.exp()).sum()

    compiled = assert_compiles(tw.grad(program), (floats(30),))
    assert not any(access.within for step in program_of(compiled).steps for group in step.groups
                   for item in group.items for access in item.accesses)  # fmt: skip


@pytest.mark.parametrize("shape", [(30,), (5, 40), (7, 6, 20)])
def test_rolled_arrays_are_read_in_two_pieces(shape):
    """Compared with numpy: exact, since nothing is rounded."""
    x, rng = np.arange(np.prod(shape), dtype=np.float32).reshape(shape), random.Random(len(shape))
    for _ in range(6):
        by, dim = rng.randint(-50, 50), rng.randrange(len(shape))
        f = tw.function(lambda x, by=by, dim=dim: tw.roll(x, by, dim) + x)
        assert_all_same_bits([f(x)], [np.roll(x, by, dim) + x], f"{by} along {dim} of {shape}")
        assert [step.name[:2] for step in program_of(f).steps] == ["k_"]


def test_one_element_per_row_is_read_where_the_row_has_it():
    """Outside these rows it would be read before the array begins, or behind its end, though nothing needed it."""

    def windows(x, g, h):
        _, pull = tw.vjp(lambda x: (x[1:, 1:-1].sum(1), x[:-1, 2:].sum(1)), x)
        return pull((g, h))[0]

    x, g, h = floats(40, 50), floats(39), floats(39)
    expected = np.zeros_like(x)
    expected[1:, 1:-1] += g[:, None]
    expected[:-1, 2:] += h[:, None]
    f = tw.function(windows)
    assert_all_same_bits([f(x, g, h)], [expected], "numpy")
    (loop,) = (line for line in f.source.splitlines() if "for c in" in line)
    rows, columns = f.source.split(loop)
    assert rows.count(" if r0 ") == 2
    assert "] if " not in columns


@pytest.mark.parametrize("value", [0.0, -0.0, 2.0, -np.inf])
@np.errstate(invalid="ignore")
def test_functions_of_slices_are_computed_where_they_are_placed(value):
    """Infinities and signs of zeros come out as numpy has them, of one loop that reads the slices themselves."""

    def around(y, rows, columns, number=value):
        return np.pad(y, (rows, columns), constant_values=np.float32(number))

    x = floats(30, 50)
    x[3, 5:8], x[7, 7:12], x[11, ::3] = np.inf, -0.0, 0.0
    half, three = np.float32(-0.5), np.float32(3)
    programs = [
        (lambda x: F.pad(x[1:] - x[:-1], (0, 0, 0, 1), value=value) + F.pad(-x[:, 1:], (1, 0), value=value),
         around(x[1:] - x[:-1], (0, 1), (0, 0)) + around(-x[:, 1:], (0, 0), (1, 0))),
        (lambda x: F.pad(x[1:] * -0.5, (0, 0, 1, 0), value=value) - F.pad((x[:, 1:] * 3).abs(), (0, 1), value=value),
         around(x[1:] * half, (1, 0), (0, 0)) - around(np.abs(x[:, 1:] * three), (0, 0), (0, 1))),
        (lambda x: F.pad(x[1:] + x[:-1] * x[1:], (0, 0, 1, 0), value=value) * F.pad(x[1:-1], (0, 0, 1, 1)),
         around(x[1:] + x[:-1] * x[1:], (1, 0), (0, 0)) * around(x[1:-1], (1, 1), (0, 0), 0)),
    ]  # fmt: skip
    for program, expected in programs:
        f = tw.function(program)
        assert_all_same_bits([f(x)], [expected], f"{value}")
        assert_all_same_bits([tw.function(program, fuse=False)(x)], [expected], f"{value}, not fused")


def test_values_that_are_placed_twice_are_read_where_they_lie():
    def corners(x):
        return sum(F.pad(F.pad(x.exp(), (0, 0, i, 1 - i)), (j, 1 - j)) for i in (0, 1) for j in (0, 1))

    x, expected = RNG.integers(0, 2, (30, 50)).astype(np.float32), np.zeros((31, 51), np.float32)
    f = tw.function(lambda x: corners(x.log()))
    for i in (0, 1):
        for j in (0, 1):
            expected[i : 30 + i, j : 50 + j] += x
    assert_all_same_bits([f(x)], [expected], "numpy")
    *_, last = program_of(f).steps
    assert len(last.groups) == 1


def test_differences_that_are_placed_are_one_loop_with_what_they_are_added_to():
    f = tw.function(lambda x: F.pad(x[1:] - x[:-1], (0, 0, 0, 1)) + F.pad(x[:, 1:] - x[:, :-1], (0, 1)))
    f(floats(30, 50))
    (step,) = program_of(f).steps
    assert step.name.startswith("k_")
    assert len(step.groups) == 1


def windows(seed, ndim):
    """Slices of one size of an array: per dimension where they begin, of what is left of `width` places."""
    choose = random.Random(seed)
    width = [choose.randint(0, 3) for _ in range(ndim)]
    return [[choose.randint(0, w) for w in width] for _ in range(choose.randint(1, 6))], width


def cut(x, starts, width):
    return x[tuple(slice(a, n - w + a) for a, w, n in zip(starts, width, x.shape, strict=True))]


@pytest.mark.parametrize("seed", first(6, range(60)))
def test_the_gradient_of_a_sum_of_windows_counts_who_reads_an_element(seed):
    """Whole numbers are added without rounding, so the count is the exact value."""
    ndim = 1 + seed % 3
    starts, width = windows(seed, ndim)
    for shape in SIZES[ndim]:
        if any(n < w for n, w in zip(shape, width, strict=True)):
            continue
        x, expected = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        weights = RNG.integers(1, 9, [len(starts), *(n - w for n, w in zip(shape, width, strict=True))])

        def loss(x, *w):
            return sum((v * cut(x, a, width)).sum() for v, a in zip(w, starts, strict=True))

        w = [np.asarray(v, np.float32) for v in weights]
        for v, a in zip(w, starts, strict=True):
            cut(expected, a, width)[...] += v
        assert_all_same_bits([tw.function(tw.grad(loss))(x, *w)], [expected], f"{starts} of {shape}")


def program_of_windows(seed, ndim):
    """A random program that reads windows of an array, and of what it makes of them."""
    starts, width = windows(seed, ndim)

    def program(x):
        choose, total = random.Random(seed + 1000), None
        for a in starts:
            y = cut(x, a, width)
            y = choose.choice([lambda y: y, F.tanh, lambda y: y * y, lambda y: -y * 0.5])(y)
            total = y if total is None else choose.choice([F.add, F.mul, F.sub])(total, y)
        pads = [n for w in reversed(width) for n in (w // 2, w - w // 2)]
        around = F.pad(total, pads, value=choose.choice([0.0, 0.5, -0.0]))
        return around * x, total

    return program


@pytest.mark.parametrize("part", first(2, range(20)))
def test_both_engines_agree_on_random_windows(part):
    for seed in (2 * part, 2 * part + 1):
        ndim = 1 + seed % 3
        both = Derivatives(program_of_windows(seed, ndim), order=2)
        rng = np.random.default_rng(seed)
        for shape in SIZES[ndim][:2]:
            if all(n > 3 for n in shape) or ndim == 1:
                both.check([rng.normal(size=shape).astype(["f4", "f8"][seed % 2])], rng, f"{seed} at {shape}")


@pytest.mark.parametrize(
    "name", ["five points", "differences", "of rows", "padded", "periodic", "turned", "placed", "nested"]
)
def test_threads_and_the_other_compiler_give_the_same_bits(name):
    ndim, program = PROGRAMS[name]
    x = floats(*((300, 500) if ndim == 2 else (100_000,)))
    compiled = tw.function(tw.value_and_grad(program))
    expected = compiled(x)
    by_numba = tw.function(tw.value_and_grad(program), compiler="numba")
    assert_all_same_bits(by_numba(x), expected, "numba")
    tw.set_num_threads(2)
    try:
        assert_all_same_bits(compiled(x), expected, "two threads")
    finally:
        tw.set_num_threads(1)
