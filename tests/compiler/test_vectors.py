"""Loops that may be vectors and loops that must not be: both give what Python gives, and touch nothing else."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import dynamic  # noqa: F401  provides the functions that kernels name
from common.compiler import llvm_engine
from common.compiler.compile import _translated, compile_kernel, externals, meaning
from common.compiler.llvm_engine import NOTHING, PIPELINE, TIDYING
from common.compiler.translate import translate
from tests.compiler.kernels import run_kernel
from tests.helpers.python_kernels import python_kernel

BUFFERS = """def loop(bufs, args):
    x = buffer(bufs, 0, float32)
    y = buffer(bufs, 1, float32)
    k = buffer(bufs, 2, int64)
    z = buffer(bufs, 3, bool_)
    d = buffer(bufs, 4, float64)
    again = buffer(bufs, 0, float32)
    n = args[0]
"""

INDEPENDENT = {
    "one place": "for i in range(n):\n    y[i] = add(x[i], y[i])",
    "places ahead": "for i in range(n):\n    y[i + 3] = x[2 + i]",
    "places behind": "for i in range(3, n):\n    y[i - 3] = x[i - 1]",
    "a number from memory": "for i in range(n):\n    y[i] = add(y[i], x[0])",
    "the index as a number": "for i in range(n):\n    k[i] = i * 3 - n",
    "the index compared": "for i in range(n):\n    y[i] = where(eq(i, k[0]), x[i], float32(0.5))",
    "truth values": "for i in range(n):\n    z[i] = z[i] | (x[i] < y[i])",
    "no branch for what has been read": "for i in range(n):\n    z[i] = k[i] < 0 or not k[i] < 3",
    "a choice": "for i in range(n):\n    k[i] = k[i] if k[i] < 2 else n",
    "several dtypes": "for i in range(n):\n    t = to_float64(x[i])\n    d[i] = add(d[i], t)\n    k[i] = to_int64(t)",
    "a division": "for i in range(n):\n    k[i] = (k[i] - 3) // 2 + k[i] % 3",
    "written twice": "for i in range(n):\n    y[i] = x[i]\n    y[i] += y[i]",
    "much": "for i in range(n):\n    y[i] = tanh(exp(sin(x[i])))",
    "one function at many places": (
        "for i in range(n):\n    y[i] = add(exp(add(exp(y[i]), exp(x[i]))), tanh(add(exp(exp(x[i])), tanh(y[i]))))"
    ),
    "a place with a name": "for i in range(n):\n    c = 3 + i\n    d[c] = add(d[c], d[c])\n    k[c] = c",
    "a name of a name": "for i in range(n):\n    b = i + 7\n    c = b - 4\n    y[c] = x[b]",
    "a place from memory": "for i in range(n):\n    y[i] = x[k[i] & 7]",
    "places that are computed from memory": (
        "for i in range(n):\n    a = k[i] - 3\n    b = a + 5 if a < 0 else a\n    d[i] = to_float64(x[b * 3 + i])"
    ),
    "a read that must not happen": "for i in range(n):\n    y[i] = x[i] if z[0] else x[i + 100000000]",
    "a read within bounds": "for i in range(n):\n    y[i] = x[i - 3] if i >= 3 and i < n - 2 else float32(-0.0)",
    "a read in two pieces": "for i in range(n):\n    y[i] = x[i + 5] if i < n - 5 else x[i + 5 - n]",
    "bounds far away": "for i in range(n):\n    d[i] = d[i] if i > 0 - 5000000000 and i < 5000000000 else float64(1)",
    "tiles": (
        "for m in range(0, n, 16):\n    e = min(m + 16, n)\n    for i in range(m, e):\n"
        "        y[32 - m + i] = add(x[i], y[48 - m + i])\n        y[16 - m + i] = x[i]"
    ),
    "one after the other": "for i in range(n):\n    y[i] = x[i]\nfor i in range(n):\n    x[i] = add(y[i], y[i])",
}
IN_STEPS = {
    "every other place": "for i in range(n // 2):\n    y[i] = x[i * 2]",
    "rows of three that compute much": (
        "for i in range(n // 3):\n    t = tanh(exp(sin(x[i * 3 + 2])))\n    x[i * 3] = add(t, x[i * 3 + 1])\n"
        "    x[i * 3 + 2] = x[i * 3]"
    ),
    "rows of three": (
        "for i in range(n // 3):\n    t = x[i * 3 + 2]\n    x[i * 3] = add(t, x[i * 3 + 1])\n"
        "    x[i * 3 + 2] = x[i * 3]"
    ),
    "rows of three that it reads again": (
        "for i in range(n // 3):\n    t = x[i * 3]\n    x[i * 3] = add(t, t)\n    x[i * 3 + 2] = x[i * 3]"
    ),
    "a column": "w = n // 9\nfor i in range(w):\n    y[i] = add(x[3 + i * w], x[w * i])",
    "lanes of a column": "w = n // 9\nfor i in range(w):\n    c = 1 + i\n    y[i & 15] = add(y[i & 15], x[c * w])",
    "pairs that compute much": (
        "for i in range(n // 2):\n    t = tanh(exp(sin(x[i * 2 + 1])))\n    y[i * 2] = add(t, x[i * 2])\n"
        "    y[1 + i * 2] = t"
    ),
    "rows of eight, numbers first": (
        "for i in range(n // 8):\n    d[3 + i * 8] = d[i * 8 + 7]\n    d[7 + i * 8] = to_float64(x[i * 8])"
    ),
    "a row of wide elements": "for i in range(n // 2):\n    c = i + 3\n    d[1 + c * 2] = d[1 + c * 2 + 1]",
}
IN_LANES = {
    "lanes of a sum": "for i in range(n):\n    y[i & 15] = add(y[i & 15], x[i])",
    "lanes of several sums": (
        "for i in range(n):\n    t = exp(x[i])\n    y[i & 15] = y[i & 15] + t\n"
        "    y[48 + (i & 15)] = y[48 + (i & 15)] + x[i + 3]\n    d[16 + (i & 15)] += to_float64(t)"
    ),
    "lanes from a name on": (
        "own = n % 4\nfor i in range(n):\n    y[own + (i & 15)] = y[own + (i & 15)] + x[i]\n"
        "    y[own + 32 + (i & 15)] += x[i + 3]"
    ),
    "lanes of whole numbers": "for i in range(n):\n    k[i & 15] += i",
    "lanes of extremes": "for i in range(n):\n    y[i & 15] = maximum(y[i & 15], x[i])",
}
IN_ORDER = {
    "reads what it has written": "for i in range(n):\n    x[i + 1] = add(x[i], y[i])",
    "writes what it will read": "for i in range(n):\n    x[i] = x[i + 1]",
    "two names of one slot": "for i in range(n):\n    again[i + 1] = x[i]",
    "a number that it writes": "for i in range(n):\n    x[i] = add(x[i], x[3])",
    "a total": "t = float32(0)\nfor i in range(n):\n    t = add(t, x[i])\ny[0] = t",
    "a name that changes": "for i in range(n):\n    c = i\n    c += 1\n    x[c] = y[i]",
    "lanes that it reads elsewhere": "for i in range(n):\n    x[i & 15] = add(x[i & 15], x[i])",
    "lanes of another width": "for i in range(n):\n    y[i & 7] = add(y[i & 7], x[i])",
    "lanes from somewhere on": "for i in range(3, n):\n    y[i & 15] = add(y[i & 15], x[i])",
    "lanes that overlap": "for i in range(n):\n    y[8 + (i & 15)] = y[i & 15] + x[i]\n    y[i & 15] = x[i]",
    "lanes of two names": "a = 0\nb = 8\nfor i in range(n):\n    y[a + (i & 15)] += x[i]\n    y[b + (i & 15)] += x[i]",
    "lanes from a name that changes": "a = 0\nfor i in range(n):\n    y[a + (i & 15)] += x[i]\n    a = 16 - a",
    "places in steps that meet, numbers first": "for i in range(n // 2):\n    x[2 + i * 2] = x[i * 2]",
    "places in steps that meet": "for i in range(n // 2):\n    x[i * 2 + 2] = x[i * 2]",
    "steps of two lengths": "for i in range(n // 3):\n    x[i * 3 + 1] = x[i * 2]",
    "a place from memory, of what it writes": "for i in range(n):\n    x[i] = x[k[i] & 7]",
    "a column of what it writes": "w = n // 20\nfor i in range(n // 4):\n    x[i] = x[i * w]",
    "a column that it writes": "w = n // 20 + 1\nfor i in range(n // 4):\n    x[i * w] = y[i]",
    "tiles that meet": (
        "for m in range(0, n, 16):\n    e = min(m + 16, n)\n    for i in range(m, e):\n"
        "        y[16 - m + i] = add(x[i], y[24 - m + i])\n        y[32 - m + i] = x[i]"
    ),
    "tiles without an end": (
        "for m in range(0, n, 16):\n    for i in range(m, min(n, m + 16)):\n"
        "        y[16 - m + i] = add(x[i], y[0 - m + i])"
    ),
    "a branch": "for i in range(n):\n    if x[i] < y[i]:\n        y[i] = x[i]",
    "one place that must not be read": "for i in range(n):\n    y[i] = x[i] if i >= 0 else x[900000000]",
    "a name of two places": "for i in range(n):\n    c = i\n    y[c] = x[c]\n    c = n - i\n    k[c] = c",
    "a name of a place from memory": "for i in range(n):\n    c = k[i] & 7\n    y[c] = add(x[i], y[i])",
    "names of two places": "for i in range(n):\n    b = i + 1\n    c = i\n    x[b] = x[c]",
    "the last value": "t = 0\nfor i in range(n):\n    t = k[i]\nk[0] = t",
}

_C = "for i in range(n):\n    c = (k[i] & 7) * 3\n    "
AT_PLACES = {
    "one joined": "for i in range(n):\n    c = k[i] & 7\n    y[c] = add(y[c], x[i])",
    "one put": "for i in range(n):\n    c = k[i] & 7\n    y[c] = x[i]",
    "rows joined": f"{_C}y[c] = add(y[c], x[i])\n    y[c + 1] = add(y[c + 1], y[c + 1])".replace("y[c + 1])", "x[i])"),
    "rows put": f"{_C}y[c + 1] = x[i + 2]\n    y[c] = x[i]\n    y[c + 2] = neg(x[i])",
    "rows read": f"{_C}y[i] = add(x[c], x[c + 2])\n    d[i] = to_float64(x[c + 1])",
    "rows read and joined": f"{_C}t = add(x[c], x[c + 1])\n    y[c] = add(y[c], t)\n    y[c + 1] = add(y[c + 1], x[c])",
    "five joined": _C + "\n    ".join(f"d[c + {j}] = maximum(d[c + {j}], to_float64(x[c + {j}]))" for j in range(5)),
}
"""Rows at places that are data: joined one after the other."""


def arrays():
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=80).astype(np.float32) for _ in range(2))
    z = rng.integers(0, 2, 80).astype(np.bool_)
    z[0] = True
    return [x, y, rng.integers(0, 5, 80), z, rng.normal(size=80)]


def source_of(body):
    return BUFFERS + "".join(f"    {line}\n" for line in body.splitlines()) + "    return 0\n"


@pytest.mark.parametrize("name", [*INDEPENDENT, *IN_STEPS, *IN_LANES, *IN_ORDER, *AT_PLACES])
def test_loop(name):
    source = source_of({**INDEPENDENT, **IN_STEPS, **IN_LANES, **IN_ORDER, **AT_PLACES}[name])
    address, by_python = compile_kernel(source, "loop"), python_kernel(source, "loop")
    for n in (*range(20), 31, 32, 33, 48, 64, 70):
        expected, found = arrays(), arrays()
        assert by_python(expected, [n]) == 0
        assert run_kernel(address, found, [n]) == 0
        for a, b in zip(expected, found, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), n


@pytest.mark.parametrize("name", AT_PLACES)
def test_rows_at_places_are_whole_vectors(name):
    text = str(_translated(source_of(AT_PLACES[name]), "loop", "loop")[0])
    assert re.search(r"load <[2-5] x |store <[2-5] x |extractelement", text)
    assert "gather" not in text


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_loops_are_vectors(name):
    module, complete = _translated(source_of(INDEPENDENT[name]), "loop", "loop")
    assert complete
    assert "llvm.masked.store" in str(module)


def test_a_piece_of_which_no_lane_is_read_has_an_address_inside_of_the_array():
    module, _ = _translated(source_of(INDEPENDENT["a read in two pieces"]), "loop", "loop")
    addresses = [line for line in str(module).splitlines() if "select i1" in line and ", ptr %" in line]
    assert len(addresses) == 4  # of both pieces, in whole vectors and in halves
    module, _ = _translated(source_of(INDEPENDENT["a read within bounds"]), "loop", "loop")
    assert not any("select i1" in line and ", ptr %" in line for line in str(module).splitlines())


@pytest.mark.parametrize("name", IN_STEPS)
def test_steps_of_a_known_length_are_read_lane_by_lane(name):
    module, complete = _translated(source_of(IN_STEPS[name]), "loop", "loop")
    assert complete
    assert re.search(r"insertelement .*, i64 [1-9]|llvm.masked.gather", str(module))


@pytest.mark.parametrize("name", [*INDEPENDENT, *IN_STEPS, *IN_LANES, *AT_PLACES])
def test_iterations_that_the_text_counts_are_written_without_a_loop(name):
    body = {**INDEPENDENT, **IN_STEPS, **IN_LANES, **AT_PLACES}[name]
    for count in (1, 3, 4, 7, 8, 13, 16, 17, 27, 32):
        source = source_of(body.replace("range(n)", f"range({count})").replace(", n)", f", {count})"))
        address, by_python = compile_kernel(source, "loop"), python_kernel(source, "loop")
        expected, found = arrays(), arrays()
        assert by_python(expected, [count]) == run_kernel(address, found, [count]) == 0
        for a, b in zip(expected, found, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), count


def test_a_vector_of_the_rest_has_a_mask_where_it_must():
    def text(count):
        return str(_translated(source_of(f"for i in range({count}):\n    y[i] = add(x[i], y[i])"), "loop", "loop")[0])

    assert "phi" not in text(8)
    assert "masked" not in text(8)
    assert "<8 x float>" in text(8)
    assert "masked" not in text(5)
    assert "<5 x float>" in text(5)
    assert "phi" not in text(21)
    assert "phi" in text(40)


def test_llvm_simplifies_only_where_there_is_something_to_simplify():
    def left(body):
        lines = [line for line in source_of(body).splitlines() if "int64" not in line and "bool_" not in line]
        return _translated("\n".join(lines), "loop", "loop", True)[1]

    assert left("for i in range(n):\n    y[i] = add(x[i], x[2 + i * 3])") == NOTHING
    for body in (
        "for i in range(n):\n    y[i] = exp(x[i])",
        "for i in range(n):\n    y[i] = add(x[i], y[i % 5])",
        "for i in range(n):\n    y[i] = x[i] if i < 3 else y[i]",
    ):
        assert left(body) in (TIDYING, PIPELINE), body
    assert _translated(source_of("for i in range(n):\n    k[i] = k[i] + 1"), "loop", "loop", True)[1] == TIDYING


@pytest.mark.parametrize("name", IN_LANES)
def test_lanes_are_a_register_through_the_loop(name):
    module, complete = _translated(source_of(IN_LANES[name]), "loop", "loop")
    assert complete
    assert "phi <16 x " in str(module)


@pytest.mark.parametrize("name", IN_ORDER)
def test_other_loops_are_left_to_llvm(name):
    module, complete = _translated(source_of(IN_ORDER[name]), "loop", "loop")
    assert not complete
    assert "llvm.masked" not in str(module)


def test_wide_elements_take_shorter_vectors():
    lines = "for i in range(n):\n    d[i] = add(d[i], d[i])"
    assert "fadd <8 x double>" in str(_translated(source_of(lines), "loop", "loop")[0])


def test_short_integers_among_long_ones_fill_registers():
    given = "h = buffer(bufs, 0, int32)\nk = buffer(bufs, 1, int64)\nn = args[0]\n"
    source = source_of(f"{given}for i in range(n):\n    t = mul(h[i], h[i])\n    k[i] = to_int64(t)")
    text = str(_translated(source.replace(BUFFERS, "def loop(bufs, args):\n"), "loop", "loop")[0])
    assert "mul <16 x i32>" in text


@pytest.mark.parametrize(("to", "of", "vectors"), [("y", "x", ["<16 x float>"]), ("e", "d", ["<8 x double>"] * 2)])
def test_iterations_that_the_text_counts_need_no_loop(to, of, vectors):
    inside = ["c = k + i", f"{to}[i] = add({to}[i], {of}[c])"]
    loops = ["e = buffer(bufs, 5, float64)", "for k in range(0, n, 16):", "    for i in range(16):"]
    source = source_of("\n".join([*loops, *(f"        {line}" for line in inside)]))
    module, complete = _translated(source, "loop", "loop")
    assert complete
    assert str(module).count(f"fadd {vectors[0]} ") == len(vectors)
    assert "llvm.masked" not in str(module)


def test_what_is_known_before_a_loop_is_spread_before_it():
    lines = "t = x[0]\nfor k in range(n):\n    for i in range(n):\n        y[i] = mul(add(y[i], t), t)"
    blocks = str(_translated(source_of(lines), "loop", "loop")[0]).split("\n\n")
    (inside,) = [block for block in blocks if "= load <16 x float>" in block]
    before = blocks[blocks.index(inside) - 3]
    spread = "insertelement <16 x float>"
    assert spread not in inside
    assert before.count(spread) == 1


LONG = {
    "four vectors": ("for i in range(n):\n    y[i] = exp(x[i])", "<64 x float>"),
    "two, of much": ("for i in range(n):\n    y[i + 3] = log1p(exp(sigmoid(x[i])))", "<32 x float>"),
    "of wide elements": ("for i in range(3, n):\n    d[i] = log(d[i])", "<32 x double>"),
    "under a condition": (
        "for i in range(n):\n    t = x[i - 3] if i >= 3 and i < n - 2 else float32(1.0)\n    y[i] = exp(t)",
        "<64 x float>",
    ),
    "cheap": ("for i in range(n):\n    y[i] = add(x[i], y[i])", "<16 x float>"),
    "of two dtypes": ("for i in range(n):\n    d[i] = exp(to_float64(x[i]))", "<8 x double>"),
    "sums": ("for i in range(n):\n    t = exp(x[i])\n    y[i & 15] = add(y[i & 15], t)", "<64 x float>"),
    "several sums, and elements": (
        "for i in range(n):\n    t = exp(x[i])\n    y[i & 15] = add(y[i & 15], t)\n"
        "    u = mul(t, x[i])\n    y[48 + (i & 15)] = add(y[48 + (i & 15)], u)\n    x[i] = t",
        "<64 x float>",
    ),
    "sums of elements": ("for i in range(n):\n    y[i & 15] = add(y[i & 15], exp(x[i]))", "<16 x float>"),
    "one element apart": (
        "for i in range(n):\n    c = i\n    t = exp(x[c])\n    u = where(eq(c, n - 9), t, float32(0.5))\n"
        "    y[i & 15] = add(y[i & 15], u)",
        "<64 x float>",
    ),
    "sums with numbers of lanes": (
        "for i in range(n):\n    t = exp(x[i])\n    u = add(t, to_float32(i))\n    y[i & 15] = add(y[i & 15], u)",
        "<16 x float>",
    ),
    "one function after the other": ("for i in range(n):\n    t = exp(x[i])\n    y[i] = sigmoid(t)", "<128 x float>"),
    "one with many registers": ("for i in range(n):\n    t = sin(x[i])\n    y[i] = exp(t)", "<64 x float>"),
    "many values kept": (
        "for i in range(n):\n"
        + "".join(f"    t{j} = add(x[i], float32({j}.0))\n" for j in range(5))
        + "    t = exp(x[i])\n    y[i] = add(add(add(add(add(t0, t1), t2), t3), t4), sigmoid(t))",
        "<64 x float>",
    ),
    "arithmetic alone": (
        "for i in range(n):\n    t = x[i]\n    y[i] = " + "add(mul(t, t), " * 30 + "t" + ")" * 30,
        "<64 x float>",
    ),
    "one long function": ("for i in range(n):\n    t = pow(x[i], float32(2.2))\n    y[i] = t", "<64 x float>"),
}


def test_functions_decide_by_how_many_vectors_a_loop_of_short_rows_goes():
    arithmetic = "\n".join(f"    t{i + 1} = add(mul(t{i}, t{i}), float32(0.5))" for i in range(12))
    for first, widest in (("add(x[i], x[i])", 16), ("exp(x[i])", 128)):
        source = source_of(f"for i in range(n):\n    t0 = {first}\n{arithmetic}\n    y[i] = t12")
        source = source.replace("    n = args[0]\n", "    wide(16)\n    n = args[0]\n")
        text = str(_translated(source, "loop", "loop", True)[0])
        assert max(map(int, re.findall(r"store <(\d+) x float>", text))) == widest, first


@pytest.mark.parametrize("name", LONG)
def test_long_loops_go_by_several_vectors(name):
    lines, widest = LONG[name]
    short = source_of(lines)
    source = short.replace("    n = args[0]\n", "    wide(1)\n    n = args[0]\n")
    text = str(_translated(source, "loop", "loop", True)[0])
    widths = {int(width) for width in re.findall(r"(?:store|= load) <(\d+) x (?:float|double)>", text)}
    assert max(widths) == int(widest[1:].split()[0]), widths
    one, many = compile_kernel(short, "loop"), compile_kernel(source, "loop")
    for n in (0, 1, 5, 15, 16, 17, 31, 63, 64, 65):
        expected, found = arrays(), arrays()
        assert run_kernel(one, expected, [n]) == run_kernel(many, found, [n]) == 0
        for a, b in zip(expected, found, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), n


@pytest.mark.parametrize(
    ("call", "widest", "in_order"), [("exp", 32, False), ("erfc", 16, True), ("sin", 16, True), ("lgamma", 16, True)]
)
def test_sixteen_registers_hold_four_at_once(monkeypatch, call, widest, in_order):
    monkeypatch.setattr("common.compiler.translate.cpu", lambda: ("", "+avx2"))
    short = source_of(f"for i in range(n):\n    y[i] = {call}(x[i])")
    source = short.replace("    n = args[0]\n", "    wide(1)\n    n = args[0]\n")
    text = translate(source, "loop", partial(meaning, kernel="loop"), True, True)[0]
    assert max(map(int, re.findall(r"(?:= load <|masked\.load\.v)(\d+)(?: x float|f32)", text))) == widest
    module = llvm_engine.parse(text)
    assert module.in_order == in_order
    llvm_engine.tidy(module)
    address = llvm_engine.load(llvm_engine.emit(module, "loop"), "loop", externals(module))
    for n in (0, 1, 15, 16, 17, 31, 32, 33, 65):
        expected, found = arrays(), arrays()
        assert run_kernel(compile_kernel(short, "loop"), expected, [n]) == run_kernel(address, found, [n]) == 0
        for a, b in zip(expected, found, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), n


@pytest.mark.parametrize(
    ("term", "places", "kept"), [("exp(x[i + {0}])", 3, 0), ("exp(x[i + {0}])", 4, 1), ("abs(x[i + {0}])", 9, 0)]
)
def test_long_functions_of_many_places_are_not_inlined(term, places, kept):
    reads = "".join(f"    t = maximum(t, {term.format(64 * k)})\n" for k in range(places))
    text, _ = translate(
        source_of(f"for i in range(n):\n    t = y[i]\n{reads}    y[i] = t\n"), "k", partial(meaning, kernel="k")
    )
    assert text.count("noinline") == kept
