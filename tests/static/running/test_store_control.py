"""Programs with control flow and acts from the disk: the same bits, prints, errors and paths; another key where regions
differ."""

from __future__ import annotations

import marshal

import numpy as np
import pytest

import static
from common.compiler import disk_cache
from common.core.errors import CheckError, TwingradCacheWarning
from static.lowering import lowered_program
from static.running import program_store
from static.tracing import optimised
from tests.bits import assert_all_same_bits
from tests.static.stored import assert_keys_differ, called, programs

F32 = np.float32
X, Y = np.arange(1, 6, dtype=F32), np.array([0.5, -2.0, 3.0, -0.0, np.inf], F32)


def counted(x, y):
    return static.fori_loop(0, 4, lambda i, c: c * y + i, x)


def until(x, y):
    return static.while_loop(lambda c: c.sum() < 1e4, lambda c: c * c + 1, x)


def scanned(x, y):
    total, each = static.scan(lambda c, row: (c + row * y, static.tanh(c)), x * 0, static.stack([x, y, x]))
    return total, each


def branched(x, y):
    return static.cond(x.sum() > y[0], lambda a: a * 2, lambda a: a - 1, x)


def nested(x, y):
    def step(i, c):
        def inner(a):
            return static.fori_loop(0, 2, lambda j, b: b + y * j, a)

        return static.cond(c.sum() > 40, lambda a: a * 0.5, inner, c)

    return static.fori_loop(0, 3, step, x)


def loss_through(f):
    def loss(x, y):
        first = f(x, y)
        return (first[0] if isinstance(first, tuple) else first).sum()

    return static.value_and_grad(loss, (0, 1))


FUNCTIONS = {
    f.__name__ + end: made for f in (counted, until, scanned, branched, nested)
    for end, made in (("", f), ("-gradient", lambda *args, f=f: _flat(loss_through(f)(*args))))
}  # fmt: skip


def _flat(result):
    value, gradients = result
    return (value, *gradients)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_second_process_lowers_no_region(disk, monkeypatch, name):
    f = FUNCTIONS[name]
    expected = [static.function(f, interpret=True)(*args) for args in ((X, Y), (X[:3], Y[:3]))]
    found = []
    for warm in (False, True):
        if warm:
            monkeypatch.setattr(optimised, "run_passes", None)
            monkeypatch.setattr(lowered_program, "LoweredProgram", None)
        compiled = static.function(f)
        results = [compiled(X, Y), compiled(X[:3], Y[:3])]
        assert ("disk" in compiled.newest.seconds) is warm
        assert len(compiled.traces) == 1
        found.append(results)
    for results in found:
        for one, other in zip(results, expected, strict=True):
            pair = [x if isinstance(x, tuple) else (x,) for x in (one, other)]
            assert_all_same_bits(*pair, name)
    assert len(programs(disk)) == 1


def test_a_loop_that_needs_more_room_finds_it(disk):
    """Its gradient keeps what each iteration began with; there is room for 64 at first."""

    def f(x):
        return static.grad(lambda a: static.while_loop(lambda c: (c < 5).all(), lambda c: c * 1.01, a).sum())(x)

    results = [called(f, np.full(3, 0.5, F32)) for _ in range(2)]
    assert "disk" in results[1][0].newest.seconds
    assert_all_same_bits(results[0][1], results[1][1], "gradient")
    assert_all_same_bits(results[0][1], called(f, np.full(3, 0.5, F32), interpret=True)[1], "gradient")


VARIANTS = {
    "body": [lambda x, y, n=n: static.fori_loop(0, 3, lambda i, c: c * n, x) for n in (2.0, 3.0, -0.0, 0.0)],
    "iterations": [lambda x, y, n=n: static.fori_loop(0, n, lambda i, c: c * 2, x) for n in (2, 3)],
    "condition": [lambda x, y, n=n: static.while_loop(lambda c: c.sum() < n, lambda c: c + 1, x) for n in (20, 200)],
    "branches": [
        lambda x, y: static.cond(y[0] > 0, lambda a: a * 2, lambda a: -a, x),
        lambda x, y: static.cond(y[0] > 0, lambda a: -a, lambda a: a * 2, x),
    ],
    "what is read": [
        lambda x, y: static.fori_loop(0, 3, lambda i, c: c * x, y),
        lambda x, y: static.fori_loop(0, 3, lambda i, c: c * y, x),
    ],
    "order of rows": [
        lambda x, y, r=r: static.scan(lambda c, row: (c * 0.5 + row, c), x[0], x, reverse=r) for r in (False, True)
    ],
}


@pytest.mark.parametrize("what", VARIANTS)
def test_what_differs_in_a_region_has_another_key(disk, what):
    assert_keys_differ(disk, VARIANTS[what], X, Y)


def test_prints_and_assertions_come_from_the_disk_too(disk, capsys):
    def f(x):
        static.print("sum", x.sum(), sep="=", end=";")
        static.assert_(x[0] > 0, "first")
        return static.fori_loop(0, 2, lambda i, c: (static.print("in", c[0]), c * 2)[1], x)

    for _ in range(2):
        compiled, (y,) = called(f, X)
        assert y.tolist() == (X * 4).tolist()
        assert capsys.readouterr().out == "sum=tensor(15.);in tensor(1.)\nin tensor(2.)\n"
        with pytest.raises(CheckError, match=r"first\n  in .*test_store_control\.py"):
            compiled(-X)
        capsys.readouterr()
    assert "disk" in compiled.newest.seconds
    assert len(programs(disk)) == 1


def test_paths_of_python_come_from_the_disk(disk):
    def f(x):
        y = x * 2
        return y + 1 if y.sum() > 0 else y - 1

    for warm in (False, True):
        compiled = static.function(f, control_flow="guard")
        for _ in range(2):
            assert [compiled(x).tolist() for x in (X, -X)] == [(X * 2 + 1).tolist(), (-X * 2 - 1).tolist()]
        assert len(compiled.traces) == 2
        assert [("disk" in path.seconds) for path in compiled.traces] == [warm, warm]
    assert len(programs(disk)) == 2


def test_a_damaged_loop_is_made_again(disk):
    called(counted, X, Y)
    (path,) = (p for p in disk.glob("*.kernel") if disk_cache.unpack(p.stem, p.read_bytes()).symbol == "program")
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))
    with pytest.warns(TwingradCacheWarning, match="damaged"):
        compiled, results = called(counted, X, Y)
    assert "lower" in compiled.newest.seconds
    assert_all_same_bits(results, called(counted, X, Y, interpret=True)[1], "loop")


@pytest.mark.parametrize("value", [np.float32(1), np.zeros(2, np.int32)], ids=["scalar", "array"])
def test_what_marshal_would_write_without_its_dtype_is_no_part_of_a_key(value):
    assert marshal.dumps(value)
    with pytest.raises(ValueError, match="dtype"):
        program_store._plain(value, set())
