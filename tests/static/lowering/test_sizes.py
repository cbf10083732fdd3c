"""One native form for all sizes: plans of many sizes, in any order, have the bits of programs made for one size."""

from __future__ import annotations

import random

import numpy as np
import pytest

import static
from static.jit.function import function
from static.lowering.memory import arena
from static.lowering.threads import sharing, work
from static.running import emit
from tests.bits import assert_all_same_bits
from tests.static.compare import as_tuple

F32 = np.float32


def drawn(rows, columns=6):
    return np.random.default_rng(rows).standard_normal((rows, columns)).astype(F32)


def training(x):
    """Losses and gradients of a network with a scan over the rows and a mean over them."""
    w = static.tensor(np.linspace(-1, 1, 36, dtype=F32).reshape(6, 6))

    def loss(x, w):
        last, each = static.scan(lambda h, row: (static.tanh(row @ w + h), h.sum()), w[0], x)
        y = static.nn.functional.layer_norm(static.relu(x @ w), (6,))
        return y.mean() + static.log_softmax(each * last.mean(), 0).var()

    value, gradients = static.value_and_grad(loss, (0, 1))(x, w)
    return value, *gradients


def until(x):
    """A loop whose number of iterations depends on data, with its gradient."""
    return static.grad(lambda x: static.while_loop(lambda c: c.sum() < 900, lambda c: c * c + 1, x).sum())(abs(x))


def branches(x):
    y = static.cond(x.sum() > 0, lambda a: a.cumsum(0) / a.shape[0], lambda a: a - a.mean(0), x)
    return y, y.amax(0), static.cat([x, y]).sort(0)[0]


PROGRAMS = {f.__name__: f for f in (training, until, branches)}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 3])
def test_sizes_in_any_order(name, threads, monkeypatch):
    monkeypatch.setattr(work, "SMALL_ELEMENTS", 0)
    monkeypatch.setattr(sharing, "PART_NS", 20)
    sizes = [2, 3, 5, 8, 16, 17, 31, 64, 100, 257] * 2
    random.Random(0).shuffle(sizes)
    static.set_num_threads(threads)
    try:
        compiled = function(PROGRAMS[name])
        for rows in sizes:
            x = drawn(rows)
            expected = as_tuple(function(PROGRAMS[name], interpret=True)(x))
            for _ in range(3):
                assert_all_same_bits(as_tuple(compiled(x)), expected, f"{rows} rows")
    finally:
        static.set_num_threads(1)
    assert len(compiled.traces) == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_instructions_are_written_down_once(name, monkeypatch):
    compiled = function(PROGRAMS[name])
    compiled(drawn(500))  # with all room that loops need
    monkeypatch.setattr(emit, "Emitter", None)
    monkeypatch.setattr("static.running.native_form.Emitter", None)
    made = compiled.plans_made
    for rows in range(2, 40):
        compiled(drawn(rows))
    assert compiled.plans_made == made + 38


def test_sizes_that_are_constants_belong_to_their_plan():
    compiled = function(lambda x: x.mean(0) * x.shape[0] + x.shape[0])
    results = {rows: compiled(drawn(rows)) for rows in range(2, 12)}
    for rows, expected in results.items():
        assert_all_same_bits([compiled(drawn(rows))], [expected], f"{rows} rows")
        assert_all_same_bits([function(compiled.target)(drawn(rows))], [expected], f"{rows} rows")


def test_prints_show_the_sizes_of_the_call(capsys):
    compiled = function(lambda x: (static.print(x[:, 0]), x * 2)[1])
    for rows in (3, 2, 3):
        compiled(np.arange(rows, dtype=F32).reshape(rows, 1) + 10)
        assert capsys.readouterr().out.count(".") == rows


def test_memory_is_laid_out_for_each_size():
    """Temporaries of few rows lie closer together: the place of one follows from the sizes of all others."""
    compiled = function(training)
    sizes = {}
    for rows in (4, 400, 40):
        compiled(drawn(rows))
        layout = compiled.newest_plan.layout
        sizes[rows] = layout.total
        assert all(offset % arena.ALIGNMENT == 0 for offset in layout.offsets)
    assert sizes[4] < sizes[40] < sizes[400]
