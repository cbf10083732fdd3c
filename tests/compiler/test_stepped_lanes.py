"""Elements a few steps apart: random loops give what Python gives, and nothing beyond the last element is touched."""

from __future__ import annotations

import random

import numpy as np
import pytest

import dynamic  # noqa: F401  provides the functions that kernels name
from common.compiler.compile import _translated, compile_kernel
from tests.compiler.kernels import run_kernel
from tests.helpers.proofs import examples
from tests.helpers.python_kernels import python_kernel

COUNTS = (0, 1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32, 33, 40, 64, 77)


def random_loop(seed: int) -> tuple[str, list[np.ndarray], int]:
    """A loop over rows of two arrays, of which the second is written; the arrays for 77 rows; their step."""
    rng = random.Random(seed)
    step, dtype = rng.randint(2, 8), np.dtype(rng.choice(["float32", "float64", "int64", "int32", "bool_"]))
    reads = rng.sample(range(2 * step), rng.randint(1, min(2 * step, 6)))
    first = rng.choice([0, rng.randint(0, step)])
    columns = range(first, first + step)
    writes = rng.sample(columns, rng.choice([step, step, rng.randint(1, step)]))
    lines = [f"u{i} = x[{place(i, step, rng)}]" for i in reads]
    own = rng.sample(columns, rng.randint(0, 2))
    names = [f"u{i}" for i in reads] + [f"v{i}" for i in own]
    lines += [f"v{i} = y[{place(i, step, rng)}]" for i in own]
    rng.shuffle(lines)
    kept = [f"t{i} = {combined(rng.sample(names, min(len(names), 2)), dtype)}" for i in range(2)]
    stores = [f"y[{place(i, step, rng)}] = {rng.choice(['t0', 't1', *names])}" for i in writes]
    if rng.random() < 0.3:  # read once more, what was written or what was not
        i = rng.choice(list(columns))
        stores.insert(rng.randint(0, len(stores)), f"t0 = y[{place(i, step, rng)}]")
    if rng.random() < 0.2 and dtype.kind == "f":  # what computes much goes by masked vectors
        kept.append("t1 = tanh(exp(sin(t1)))")
    body = "".join(f"        {line}\n" for line in [*lines, *kept, *stores])
    name = "bool_" if dtype.kind == "b" else dtype.name
    source = (
        f"def stepped(bufs, args):\n    x = buffer(bufs, 0, {name})\n    y = buffer(bufs, 1, {name})\n"
        f"    for c in range(args[0]):\n{body}    return 0\n"
    )
    lengths = [76 * step + max(used) + 1 for used in (reads, columns)]
    draw = np.random.default_rng(seed)
    return source, [draw.integers(-9, 10, length).astype(dtype) for length in lengths], step


def place(beside: int, step: int, rng: random.Random) -> str:
    """A place of a row as kernels write it."""
    return f"c * {step}" + f" + {beside}" * bool(beside) if rng.random() < 0.5 else f"{beside} + c * {step}"


def combined(names: list[str], dtype: np.dtype) -> str:
    """An expression of names."""
    if len(names) == 1:
        return names[0]
    return f"{names[0]} | {names[1]}" if dtype.kind == "b" else f"add({names[0]}, {names[1]})"


@pytest.mark.parametrize("seed", range(examples(60)))
def test_random_loops_over_rows(seed):
    source, arrays, step = random_loop(seed)
    address, by_python = compile_kernel(source, "stepped"), python_kernel(source, "stepped")
    for n in COUNTS:
        left_out = (77 - n) * step  # the arrays end with the last element that is used
        expected, found = ([array[: max(len(array) - left_out, 0)].copy() for array in arrays] for _ in range(2))
        assert by_python(expected, [n]) == 0
        assert run_kernel(address, found, [n]) == 0
        for a, b in zip(expected, found, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), (n, source)


ROWS = """def rows(bufs, args):
    x = buffer(bufs, 0, float32)
    y = buffer(bufs, 1, float32)
    for c in range(args[0]):
{}    return 0
"""


def test_a_window_is_loaded_and_stored_once():
    def vectors(body):
        module, _ = _translated(ROWS.format("".join(f"        {line}\n" for line in body)), "rows", "rows")
        whole = str(module).partition("masked")[0]
        return whole.count("load <16 x float>"), whole.count("store <16 x float>")

    turned = [f"u{i} = x[c * 4 + {i}]" for i in range(4)], [f"y[c * 4 + {i}] = u{3 - i}" for i in range(4)]
    assert vectors([*turned[0], *turned[1]]) == (4, 4)
    assert vectors([line for pair in zip(turned[0][::-1], turned[1], strict=True) for line in pair]) == (4, 4)
