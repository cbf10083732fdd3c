"""Control flow: the same bits in both engines, fused, unfused and interpreted, to the third derivative."""

import sys

import numpy as np
import pytest

import dynamic
import static
from common.core.tree import flatten
from common.tensor.leaf import Buffer
from static import passes
from tests.bits import assert_all_same_bits
from tests.helpers.control import CASES, recurrence
from tests.helpers.proofs import chosen, first, rotated, share
from tests.parity.engines import Derivatives, payload

FLOATS = (np.float32, np.float64)
CORE = ("scan", "while_loop", "cond, second", "nested")


@pytest.mark.parametrize(("name", "dtype"), rotated(CASES, FLOATS, core=lambda name: name in CORE))
def test_both_engines_agree(name, dtype):
    rng = np.random.default_rng(60)
    both = Derivatives(CASES[name].run, 2 if dtype != chosen(name, FLOATS) or share(name, 2) else 1)
    for seed, most in enumerate((5000, 40)):
        arrays = CASES[name].arrays(np.random.default_rng(seed), dtype, most)
        both.check(arrays, rng, name, interpreter=True)


@pytest.mark.parametrize("name", first(2, ["scan", "nested", "while_loop", "cond, first"]))
def test_third_derivatives(name):
    case = CASES[name]
    arrays = case.arrays(np.random.default_rng(2), np.float32)

    def build(tw):
        def total(*operands):
            return sum(((y * y).sum() for y in flatten(case.run(*operands))[0]), start=0.0)

        first = tw.grad(total, 1)
        second = tw.grad(lambda *operands: first(*operands).sin().sum(), 1)
        return tw.function(tw.grad(lambda *operands: second(*operands).sin().sum(), (0, 1)))

    expected = [payload(x) for x in build(dynamic)(*arrays)]
    assert_all_same_bits(build(static)(*arrays), expected, name)
    assert any(x.any() for x in expected)


def test_what_is_saved_and_what_is_computed_again_is_the_same(monkeypatch):
    arrays = CASES["scan"].arrays(np.random.default_rng(3), np.float32)

    def run():
        f = static.function(static.grad(lambda x, w: recurrence(x, w)[1].sum(), (0, 1)))
        return f(*arrays), f

    chosen, f = run()
    assert any(node.attrs["of"] for node in f.newest.graph.nodes if "of" in node.attrs)
    for stored in (0.0, 1e9):
        monkeypatch.setattr(sys.modules["static.passes.save_residuals"], "STORED", stored)
        assert_all_same_bits(run()[0], chosen, f"{stored} ns per byte")
    monkeypatch.setattr(passes, "PIPELINE", ())
    monkeypatch.setattr(passes, "REGIONS", ())
    assert_all_same_bits(run()[0], chosen, "no passes")


def test_random_numbers_in_a_loop_and_in_its_gradient():
    x = np.random.default_rng(4).normal(size=(6, 8)).astype(np.float32)

    def build(tw):
        def loss(x, w):
            def step(h, v):
                h = tw.cond(v.sum() > 0, lambda h: tw.dropout(h, 0.5), lambda h: h * tw.rand_like(h), h * w + v)
                return h, h

            h, ys = tw.scan(step, x[0], x)
            return (h * h).sum() + ys.sum()

        return tw.function(tw.value_and_grad(loss, (0, 1)))

    results, states = [], []
    for tw in (dynamic, static):
        tw.manual_seed(7)
        step = build(tw)
        results.append([[payload(y) for y in flatten(step(x, x[0]))[0]] for _ in range(3)])
        states.append(tw.get_rng_state())
    for one, other in zip(*results, strict=True):
        assert_all_same_bits(other, one, "draws")
    assert np.array_equal(*states)
    assert not np.array_equal(results[0][0][0], results[0][1][0])


def test_state_that_a_loop_writes():
    x = np.arange(6, dtype=np.float32)

    def build(tw):
        seen = Buffer(np.zeros((), np.float32))

        def f(x):
            def step(h, v):
                tw.cond(v > 2, lambda: seen.add_(v) * 0, lambda: v * 0)
                return h * v + seen, seen * 1

            return tw.scan(step, x[0], x)

        return tw.function(f), seen

    results = []
    for tw in (dynamic, static):
        f, seen = build(tw)
        with tw.no_grad():
            results.append([payload(y) for _ in range(2) for y in f(x)] + [seen.payload])
    assert_all_same_bits(results[1], results[0], "state")
    assert results[0][-1] == 24


def test_backward_into_parameters_through_a_scan():
    x = np.random.default_rng(5).normal(size=(7, 3, 4)).astype(np.float32)

    def build(tw):
        tw.manual_seed(0)
        cell, head = tw.nn.Linear(8, 4), tw.nn.Linear(4, 2)
        optimizer = tw.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.05)

        @tw.function
        def step(x):
            optimizer.zero_grad()
            h, _ = tw.scan(lambda h, v: (cell(tw.cat([h, v], 1)).tanh(), None), tw.zeros(3, 4), x)
            loss = (head(h) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        losses = [payload(step(x[: 7 - i])) for i in range(3)]
        return losses + [p.payload for p in (*cell.parameters(), *head.parameters())]

    assert_all_same_bits(build(static), build(dynamic), "training")


def test_a_checkpoint_draws_the_same_numbers_again():
    x = np.random.default_rng(6).normal(size=(6, 8)).astype(np.float32)

    def build(tw):
        def cell(h, x):
            h, _ = tw.scan(lambda h, v: (tw.dropout(h * v + v, 0.5), None), h, x)
            return tw.cond(h.sum() > 0, lambda: h * tw.rand_like(h), lambda: tw.dropout(h * 2, 0.5) * tw.rand_like(h))

        def loss(x):
            h = tw.utils.checkpoint.checkpoint(cell, x[0], x, use_reentrant=False)
            return (tw.utils.checkpoint.checkpoint(cell, h * 2, x[1:], use_reentrant=False) * h).sum()

        tw.manual_seed(1)
        step = tw.function(tw.value_and_grad(loss))
        return [payload(y) for _ in range(3) for y in step(x)] + [tw.get_rng_state()]

    assert_all_same_bits(build(static), build(dynamic), "draws")
