"""Large operands whose rows lie apart, or repeat, are read where they lie, with the bits of their copies in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic as tw
from benchmarks.bits import difference
from common.evaluate.strided_loops import reading
from tests.helpers.wrapped import wrap

rng = np.random.default_rng(31)
ROWS, COLUMNS = 60, 100
BASE = rng.normal(size=(2, 2 * ROWS, COLUMNS + 7)).astype(np.float32)
BASE.reshape(-1)[::31] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], BASE.reshape(-1)[::31].shape)
_bytes = np.zeros(ROWS * COLUMNS * 4 + 1, np.uint8)

AS_ROWS = ("f", ROWS, COLUMNS)
LAYOUTS: dict[str, tuple[np.ndarray, Any]] = {  # and how it is read, with rows and columns; None for what is copied
    "part of each row": (BASE[0, :ROWS, 3 : COLUMNS + 3], AS_ROWS),
    "each second row": (BASE[0, ::2, :COLUMNS], AS_ROWS),
    "rows backwards": (BASE[0, ROWS - 1 :: -1, :COLUMNS], AS_ROWS),
    "one row": (np.broadcast_to(BASE[0, 0, :COLUMNS], (ROWS, COLUMNS)), AS_ROWS),
    "one per row": (np.broadcast_to(BASE[0, 0, :ROWS, None], (ROWS, COLUMNS)), ("s", ROWS, COLUMNS)),
    "one per row, of two dimensions": (
        np.broadcast_to(BASE[0, :ROWS, 0, None, None].copy(), (ROWS, 5, COLUMNS // 5)),
        ("s", ROWS, COLUMNS),
    ),
    "one per row, apart": (np.broadcast_to(BASE[0, :ROWS, :1], (ROWS, COLUMNS)), ("s", ROWS, COLUMNS)),
    "one": (np.broadcast_to(BASE[0, 3, 4], (ROWS, COLUMNS)), ("s", 1, ROWS * COLUMNS)),
    "elements apart": (BASE[0, :ROWS, ::-1][:, :COLUMNS], None),
    "transposed": (np.ascontiguousarray(BASE[0, :ROWS, :COLUMNS].T).T, ("t", ROWS, COLUMNS)),
    "unaligned": (_bytes[1:].view(np.float32).reshape(ROWS, COLUMNS), None),
    "three dimensions": (BASE[:, :ROWS, :COLUMNS], AS_ROWS),
    "rows of two dimensions": (BASE[0, :, :COLUMNS].reshape(-1, COLUMNS)[:, None].repeat(1, 1)[::2], AS_ROWS),
}
PROGRAMS: dict[str, Callable[..., tw.Tensor]] = {
    "one op": lambda x, z: x * z,
    "a number": lambda x, z: x - 0.5,
    "a power": lambda x, z: x**2,
    "a comparison": lambda x, z: x < z,
    "one per column": lambda x, z: x + z[..., :1, :],
    "one per row": lambda x, z: x / z[..., :1],
    "a reduction": lambda x, z: (x * z).sum(-1),
    "glu": lambda x, z: tw.nn.functional.glu(x),
    "trapezoid": lambda x, z: tw.trapezoid(x),
    "joined": lambda x, z: tw.cat([x, x.flip(0)], -1),
    "stacked": lambda x, z: tw.stack([x, x.flip(-1)], 1),
    "rolled": lambda x, z: x.roll(3, -1),
    "repeated": lambda x, z: x.repeat_interleave(2, -1),
    "losses": lambda x, z: tw.nn.functional.huber_loss(x, z, reduction="none"),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bits(program, layout):
    array, _ = LAYOUTS[layout]
    run, copied = PROGRAMS[program], wrap(np.array(array, order="C"))
    for _ in range(14):  # from the twelfth call on by what is remembered
        got = run(wrap(array), wrap(array))
    assert got.is_contiguous()
    assert difference(got.numpy(), run(copied, copied).numpy()) is None


@pytest.mark.parametrize("program", ["one op", "glu", "trapezoid", "joined", "rolled"])
def test_gradients(program):
    def gradient(x):
        leaf = x.detach().requires_grad_()
        for _ in range(14):
            (found,) = tw.autograd.grad(PROGRAMS[program](leaf, leaf).sum(), leaf)
        return found.numpy()

    array = np.nan_to_num(LAYOUTS["part of each row"][0], posinf=1, neginf=-1)
    apart = np.empty((ROWS, COLUMNS + 5), np.float32)
    apart[:, 5:] = array
    assert difference(gradient(wrap(apart[:, 5:])), gradient(wrap(array))) is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_read_where_it_lies(layout):
    array, wanted = LAYOUTS[layout]
    found = reading((array, np.ones((), np.float32)), array.shape)
    assert found.letters[1] == "s"
    assert (None if found.copied[0] else (found.letters[0], *found.ints[:2])) == wanted


def test_few_elements_and_short_rows_are_copied():
    for array in (BASE[0, :10, :20], BASE[0, :, :5]):
        assert reading((array,), array.shape) is None


def test_a_join_of_columns_is_in_order():
    parts = [np.asfortranarray(rng.normal(size=(80, 90)).astype(np.float32)) for _ in range(2)]
    joined = tw.cat([wrap(x) for x in parts], 1)
    assert joined.is_contiguous()
    assert difference(joined.numpy(), np.hstack(parts)) is None
