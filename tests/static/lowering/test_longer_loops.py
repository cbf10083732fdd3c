"""Kernels that were made for few elements, called with many: loops over these have the code that pays there."""

from __future__ import annotations

import re

import numpy as np
import pytest

import static
from static.jit.function import function
from static.lowering.codegen.loop_nest import LONG, MANY
from static.running import executable
from tests.bits import assert_all_same_bits
from tests.static.compare import as_tuple

F32 = np.float32


def flat(x):
    return static.tanh(x) * static.exp(-x * x)


def rows_of_three(x):
    return static.exp(x[:, :3]).sum(1)


def softmax(x):
    return static.softmax(x, 1)


def in_a_loop(x):
    return static.fori_loop(0, 3, lambda _, y: static.sin(y) * y.mean(), x)


def plain(x):
    return x * x - x


def drawn(rows, columns):
    return np.random.default_rng(rows).standard_normal((rows, columns)).astype(F32)


@pytest.fixture
def numbers(monkeypatch):
    """What `wide` is given in kernels that plans ask for, in order."""
    found = []
    compile_kernel = executable.compile_kernel

    def asked(source, *rest):
        found.extend(re.findall(r"wide\((\d*)\)", source))
        return compile_kernel(source, *rest)

    monkeypatch.setattr(executable, "compile_kernel", asked)
    return found


@pytest.mark.parametrize(
    ("program", "small", "large", "number"),
    [
        (flat, (3, 4), (MANY // 4, 4), "1"),
        (softmax, (3, 40), (40, LONG), "1"),
        (rows_of_three, (20, 4), (MANY, 4), "16"),
        (in_a_loop, (9, 4), (MANY // 4, 4), "1"),
    ],
)
def test_more_elements_than_in_the_traced_call(program, small, large, number, numbers):
    compiled, oracle = function(program), function(program, interpret=True)
    for shape in (small, large, small, large):
        x = drawn(*shape)
        assert_all_same_bits(as_tuple(compiled(x)), as_tuple(oracle(x)), f"{shape}")
    assert len(compiled.traces) == 1
    assert set(numbers) == {"", number}
    assert numbers.index("") < numbers.index(number)
    made = len(numbers)
    compiled(drawn(large[0] + 1, large[1]))
    assert len(numbers) == made  # plans of both kinds share their kernels
    assert compiled.explain().kernels[-1].origin is not None


def test_sizes_between_few_and_many(numbers):
    compiled = function(flat)
    for n in (1, LONG, MANY - 1):
        compiled(drawn(n, 1)[:, 0])
    assert set(numbers) == {""}
    compiled(drawn(MANY, 1)[:, 0])
    assert set(numbers) == {"", "1"}


def test_loops_that_compute_little_have_one_kernel(numbers):
    compiled = function(plain)
    for shape in ((3, 4), (MANY, 4)):
        compiled(drawn(*shape))
    assert set(numbers) == {""}


def test_a_stored_program_knows_it_too(numbers, disk):
    x = drawn(MANY, 1)[:, 0]
    results = []
    for _ in range(2):
        compiled = function(flat)
        compiled(x[:5])
        del numbers[:]
        results.append(compiled(x))
        assert numbers == ["1"]
    assert "disk" in compiled.newest.seconds
    assert_all_same_bits(*map(as_tuple, results), "stored")
