"""A loop over numbers, or a few of them, is one kernel, forward and backward; a loop over more is not."""

import numpy as np
import pytest

import static
from tests.helpers.control import CASES

F64 = np.float64


def regions(name):
    arrays = CASES[name].arrays(np.random.default_rng(0), F64)
    f = static.function(CASES[name].run)
    f(*arrays)
    return [name for step in f.newest.program.steps for name in step.regions]


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("numbers") or name == "scan"])
def test_a_loop_over_numbers_is_one_kernel(name):
    assert regions(name) == ["iterations"]


@pytest.mark.parametrize("name", ["while_loop", "fori_loop, bounds are data", "nested"])
def test_other_loops_are_programs(name):
    assert "iterations" not in regions(name)


def test_what_can_fail_names_its_line():
    f = static.function(lambda n, rows: static.scan(lambda c, row: (c // row + 10, c), n, rows))
    assert f(5, np.array([1, 2, 3]))[0] == 15
    with pytest.raises(ZeroDivisionError, match=r"by zero\n  in .*test_scalar_loops.py:\d+"):
        f(5, np.array([1, 2, 0, 3]))
    assert "iterations:" not in f.source


def test_the_gradient_is_one_kernel_too():
    def total(x, y):
        return static.scan(lambda c, _: ((c[0] + c[0] * c[1] * 0.5, c[1] - c[1] * c[0] * 0.25), c[0]), (x, y),
                           length=20)[1].sum()  # fmt: skip

    f = static.function(static.grad(total, (0, 1)))
    x, y = 0.75, -0.5
    found = f(F64(x), F64(y))
    regions = [name for step in f.newest.program.steps for name in step.regions]
    assert regions == ["iterations", "iterations"]

    def plain(x, y):
        first = []
        for _ in range(20):
            first.append(x)
            x, y = x + x * y * 0.5, y - y * x * 0.25
        return sum(first)

    for k, step in enumerate([(1e-6, 0), (0, 1e-6)]):
        ahead, behind = plain(x + step[0], y + step[1]), plain(x - step[0], y - step[1])
        assert float(found[k]) == pytest.approx((ahead - behind) / 2e-6, rel=1e-6)


def test_sizes_of_stacks_compile_nothing():
    f = static.function(lambda x, rows: static.scan(lambda c, row: (c * 0.5 + row, c), x, rows)[1])
    for n in (7, 3, 5000):
        rows, expected, c = np.arange(n, dtype=F64), [], 0.25
        for row in rows.tolist():
            expected.append(c)
            c = c * 0.5 + row
        assert np.asarray(f(F64(0.25), rows)).tolist() == expected
    assert len(f.traces) == 1


@pytest.mark.parametrize("transform", ["value", "linearize", "jvp", "jacrev"])
def test_a_loop_of_which_only_the_number_of_iterations_is_wanted(transform):
    def total(x, y):  # of the tangents alone the loop decides how often they change places
        first, second = static.while_loop(lambda c: x > 100, lambda c: (c[1], c[0]), (x, y))
        return first * 3 + second

    x, y = F64(1.25), F64(2.5)
    run = {
        "value": lambda: static.function(total)(x, y),
        "linearize": lambda: static.func.linearize(total, x, y)[1](x, y),
        "jvp": lambda: static.func.jvp(total, (x, y), (x, y))[1],
        "jacrev": lambda: static.func.jacrev(lambda y: static.func.jacfwd(total)(x, y))(y) + 6.25,
    }
    assert run[transform]() == 6.25
