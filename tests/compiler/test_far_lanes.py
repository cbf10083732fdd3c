"""Elements as far apart as a number says: random loops give what Python gives, and touch nothing outside."""

from __future__ import annotations

import ctypes
import mmap
import random

import numpy as np
import pytest

import dynamic  # noqa: F401  provides the functions that kernels name
from common.compiler.compile import compile_kernel
from tests.compiler.kernels import run_kernel
from tests.helpers.proofs import examples
from tests.helpers.python_kernels import python_kernel

COUNTS = (0, 1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 23, 31, 33, 41)
PLACES = ("c * n + {}", "{} + c * n", "m + c * n", "q", "q + m", "q * 2 + {}", "{} + (c + {}) * n", "c * 11 + {}",
          "m - c * k", "(m - c) * n", "s * c", "q - c * s")  # fmt: skip
CONDITIONS = ("c < m", "c >= m and c < k", "p[c] > 0")


def far_loop(seed: int) -> tuple[str, np.dtype]:
    """A loop that reads few or many far elements of one array, and may write every eleventh of another."""
    rng = random.Random(seed)
    dtype = np.dtype(rng.choice(["float32", "float64", "int64", "int32", "int8", "bool_"]))
    name = "bool_" if dtype.kind == "b" else dtype.name
    lines, perhaps = ["q = c * n"], rng.choice([0, 0, 0.05, 1])
    for i in range(rng.choice([1, 2, 9, 26])):
        one, other = (f"x[o + {rng.choice(PLACES).replace('{}', str(rng.randint(0, 3)))}]" for _ in range(2))
        either = rng.random() < perhaps
        lines.append(f"u{i} = {one} if {rng.choice(CONDITIONS)} else {other}" if either else f"u{i} = {one}")
        join = "{} | {}" if dtype.kind == "b" else "add({}, {})"
        lines.append(f"t{i} = {join.format(f't{i - 1}', f'u{i}') if i else 'u0'}")
    if rng.random() < 0.2 and dtype.kind == "f":  # what computes much goes by masked vectors
        lines.append("a = tanh(exp(sin(u0)))")
        lines.append("y[c * 11] = a")
    target = rng.choice(["c", "c * 11", "c * 9 + 3"])
    body = "".join(f"        {line}\n" for line in [*lines, f"z[{target}] = t{i}"])
    buffers = "".join(f"    {b} = buffer(bufs, {j}, {name})\n" for j, b in enumerate("xyz"))
    sizes = "".join(f"    {size} = args[{j}]\n" for j, size in enumerate("nmko", 1))
    sizes += "    p = buffer(bufs, 3, int64)\n    s = p[1]\n"
    steps = rng.choice(["args[0]", "args[0]", "2, args[0]", "m, args[0]", str(rng.randint(0, 18))])
    loop = f"    for c in range({steps}):\n{body}"
    if rng.random() < 0.5:  # inside of another loop, a short rest may begin before its first iteration
        loop = "    for r in range(2):\n" + "".join(f"    {line}\n" for line in loop.splitlines())
    return f"def far(bufs, args):\n{buffers}{sizes}{loop}    return 0\n", dtype


class Fenced:
    """Arrays that end, or begin, at a page that cannot be read."""

    def __init__(self) -> None:
        self.kept: list[mmap.mmap] = []

    def __call__(self, values: np.ndarray, ends: bool) -> np.ndarray:
        page = mmap.PAGESIZE
        size = -(-max(values.nbytes, 1) // page) * page
        memory = mmap.mmap(-1, size + page)
        self.kept.append(memory)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        protect = ctypes.CDLL(None).mprotect
        assert protect(ctypes.c_void_p(begin + size * ends), ctypes.c_size_t(page), 0) == 0
        array = np.frombuffer(memory, values.dtype, len(values), size - values.nbytes if ends else page)
        array[...] = values
        return array


class Recorded:
    """An array of any length that says which of its places are read."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype, self.places = dtype, set[int]()

    def __getitem__(self, place: int) -> np.generic:
        self.places.add(int(place))
        return self.dtype.type(1)


@pytest.mark.parametrize("seed", range(examples(60)))
def test_random_loops_over_far_elements(seed):
    source, dtype = far_loop(seed)
    address, by_python, rng = compile_kernel(source, "far"), python_kernel(source, "far"), np.random.default_rng(seed)
    fenced = Fenced()
    for count in COUNTS:
        sizes = [count, *(int(rng.integers(-40, 41)) for _ in range(3))]
        sizes[2] %= 41
        x, data = Recorded(dtype), fenced(rng.integers(-40, 41, 41), bool(seed % 2))
        out = [np.zeros(11 * 41 + 4, dtype) for _ in range(4)]
        assert by_python([x, *out[:2], data], [*sizes, 0]) == 0
        low, high = min(x.places, default=0), max(x.places, default=-1)
        x = fenced(rng.integers(-9, 10, high - low + 1).astype(dtype), bool(seed % 2))
        for run, arrays in ((by_python, out[:2]), (lambda *of: run_kernel(address, *of), out[2:])):
            assert run([x, *arrays, data], [*sizes, -low]) == 0
        for a, b in zip(out[:2], out[2:], strict=True):
            assert a.tobytes() == b.tobytes(), (sizes, source)


@pytest.mark.parametrize("condition", ["c < m", "p[c] > 0"])
def test_lanes_that_a_condition_leaves_out_are_not_read(condition):
    source = (
        "def far(bufs, args):\n    x = buffer(bufs, 0, float32)\n    z = buffer(bufs, 1, float32)\n"
        "    p = buffer(bufs, 2, int64)\n    n = args[1]\n    m = args[2]\n"
        f"    for c in range(args[0]):\n        z[c] = x[c * n] if {condition} else float32(0.5)\n    return 0\n"
    )
    address, n, m = compile_kernel(source, "far"), 200, 10
    x = Fenced()(np.arange((m - 1) * n + 1, dtype=np.float32), ends=True)
    for count in (m, 13, 16, 40):
        z, data = np.zeros(count, np.float32), (np.arange(count) < m).astype(np.int64)
        assert run_kernel(address, [x, z, data], [count, n, m]) == 0
        assert z.tolist() == [c * n if c < m else 0.5 for c in range(count)]
