"""Reductions of rows that lie at a distance from each other: read where they lie, with the bits of a copy in order."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as tw
from common.evaluate import reduction_kernels
from tests.bits import assert_all_same_bits

RNG = np.random.default_rng(1)
WIDE = RNG.standard_normal((6, 20, 2100)).astype(np.float32)
WIDE[0, 0, 5], WIDE[1, 1, 7], WIDE[2, 2, 3:9] = np.nan, -np.inf, -0.0
ROWS = {
    "columns": lambda x: x[:, :, 1:-1],
    "a few columns": lambda x: x[:, :, 3:19],
    "more than a block": lambda x: x[0, :, 5:2090],
    "every other row": lambda x: x[0, ::2],
    "one row repeated": lambda x: x[0, :1].expand(7, -1),
    "rows of a part": lambda x: x[:, 4],
}
FUNCTIONS = {
    "sum": lambda x: x.sum(-1), "prod": lambda x: x.prod(-1), "mean": lambda x: x.mean(-1, keepdim=True),
    "amax": lambda x: x.amax(-1), "amin": lambda x: x.amin(-1), "any": lambda x: (x > 0).any(-1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("name", ROWS)
def test_bits_are_those_of_a_copy(name, dtype):
    values = WIDE if dtype[0] == "f" else np.clip(np.nan_to_num(WIDE * 20), 0, 90)
    x = ROWS[name](tw.tensor(values.astype(dtype)))
    for function, f in FUNCTIONS.items():
        if function != "mean" or dtype[0] == "f":
            assert_all_same_bits([f(x).numpy()], [f(x.clone().contiguous()).numpy()], function)


def test_nothing_is_copied(monkeypatch):
    x = tw.tensor(WIDE)
    monkeypatch.setattr(reduction_kernels, "dense", None)
    for view in ROWS.values():
        view(x).sum(-1)
        view(x).amax(-1)


def test_sums_are_numpys():
    x = RNG.integers(-50, 50, (40, 64)).astype(np.float64)
    assert np.array_equal(tw.tensor(x)[:, 7:50].sum(1).numpy(), x[:, 7:50].sum(1))
    assert np.array_equal(tw.tensor(x)[::3].amax(1).numpy(), x[::3].max(1))
