"""Small systems that are solved without Python: numpy's bits, and Python for what is singular, large or empty."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import LinAlgError
from common.kernels.linalg import small_systems
from tests.bits import assert_all_same_bits


@pytest.fixture
def calls(monkeypatch):
    """The shapes of matrices that Python has solved."""
    seen, solve = [], np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: (seen.append(a.shape), solve(a, b))[1])
    return seen


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [(), (5,), (2, 3), (0,)])
def test_solutions_have_numpys_bits(dtype, batch, calls):
    f, rng = static.function(lambda a, b: static.linalg.solve_ex(a, b)), np.random.default_rng(0)
    for n, k in ((1, 1), (2, 3), (3, 1), (7, 4), (16, 16), (31, 32), (33, 2), (4, 40), (0, 2), (3, 0)):
        a, b = (rng.standard_normal((*batch, n, m)).astype(dtype) for m in (n, k))
        expected = np.linalg.solve(a, b)
        calls.clear()
        x, info = f(a, b)
        by_python = max(n, k) > small_systems.MOST or not small_systems.routine()
        assert bool(calls) == (by_python and x.numel() > 0)
        assert_all_same_bits([x], [expected], f"{n} unknowns, {k} right sides")
        assert not np.asarray(info).any()


def test_what_is_singular_is_left_to_python(calls):
    a = np.stack([np.eye(3), np.zeros((3, 3)), 2 * np.eye(3)]).astype(np.float32)
    b = np.ones((3, 3, 1), np.float32)
    found = static.function(lambda a, b: static.linalg.solve_ex(a, b))(a, b)
    assert calls[0] == (3, 3, 3)
    assert_all_same_bits(found, dynamic.linalg.solve_ex(dynamic.tensor(a), dynamic.tensor(b)), "dynamic's")
    assert np.asarray(found[1]).tolist() == [0, 1, 0]
    f = static.function(lambda a, b: static.linalg.solve(a, b))
    with pytest.raises(LinAlgError, match=r"\(Batch element 1\): The solver failed"):
        f(a, b)
    np.testing.assert_array_equal(f(a[::2], b[::2]), [[[1], [1], [1]], [[0.5], [0.5], [0.5]]])
