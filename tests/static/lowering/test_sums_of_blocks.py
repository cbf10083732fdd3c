"""Sums of everything are begun by loops over rows."""

import numpy as np
import pytest

import static as tw
from static.lowering.fusion import sums_of_blocks
from tests.static.compare import assert_compiles, program_of


def arrays(*shapes):
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def kept(compiled):
    """Elements of the largest array that one kernel makes for another one."""
    arena = compiled.explain().arena_bytes
    return arena // 4


PROGRAMS = {
    "a row for all": lambda x, m: ((x - m) ** 2).sum(),
    "a column for all": lambda x, m: (x - x[:, :1].exp()).mean(),
    "of a part": lambda x, m: (x[1:, 1:-1] * x[:-1, 2:]).sum(),
    "two sums": lambda x, m: ((x - m).sum() * (x * m).sum(), x),
    "in another dtype": lambda x, m: ((x - m) > 0).sum(),
    "of whole numbers": lambda x, m: (x * m * 100).to(tw.int32).sum(),
    "behind sums of rows": lambda x, m: ((x / (x * x).sum(1)[:, None]) * m).sum(),
    "and what is stored": lambda x, m: (lambda d: (d.sum(), d * 2))(x - m),
    "with what is made of it": lambda x, m: (lambda d: (d * d).mean().sqrt())(x - m),
    "three dimensions": lambda x, m: (x.reshape(-1, 10, x.shape[1]) * m - x.reshape(-1, 10, x.shape[1])[:, :1]).sum(),
    "with its gradient": lambda x, m: tw.value_and_grad(lambda x: ((x - m).tanh() ** 2).mean())(x),
    "NaN and infinities": lambda x, m: (x.log() + m).sum(),
}


@pytest.mark.parametrize("shape", [(70, 40), (500, 40), (20, 1500), (3, 9000)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_stay(name, shape, monkeypatch):
    monkeypatch.setattr(sums_of_blocks, "WORTHWHILE", 0)
    rows, columns = shape
    inputs = [arrays(s, s[1:]) for s in (shape, (rows + 30 - rows % 10, columns), (10, columns + 1), (10, 5))]
    if "dimensions" in name:
        inputs = [[x[: len(x) // 10 * 10], m] for x, m in inputs if len(x) >= 10]
    assert_compiles(PROGRAMS[name], *inputs)


@pytest.mark.parametrize("name", ["a row for all", "of a part", "two sums", "behind sums of rows"])
def test_what_is_summed_is_not_stored(name):
    compiled = tw.function(lambda x, m: PROGRAMS[name](x, m))
    compiled(*arrays((9000, 120), (120,)))
    assert kept(compiled) < 20000


def test_short_rows_and_small_arrays_are_stored():
    for shape in (60000, 20), (1000, 100):
        compiled = tw.function(PROGRAMS["a row for all"])
        compiled(*arrays(shape, shape[1:]))
        assert all(item.kind != "flat" for group in program_of(compiled).groups for item in group.items)
