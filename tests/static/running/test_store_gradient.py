"""Calls with gradients to the outside from the disk: both halves, what is kept, further derivatives, errors."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import IndexRangeError
from static.jit import joint_graph
from static.lowering import lowered_program
from static.tracing import optimised
from tests.bits import assert_all_same_bits
from tests.static.stored import programs

F32 = np.float32
RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((4, 3)).astype(F32), RNG.standard_normal((3, 3)).astype(F32)


def straight(x, w):
    return static.tanh(x @ w).exp().sum(1), x * 2


def looped(x, w):
    return static.fori_loop(0, 3, lambda i, c: static.tanh(c @ w) + c, x)


def until(x, w):
    return static.while_loop(lambda c: (c * c).sum() < 1e3, lambda c: c * 1.5 + (c @ w).tanh(), x)


def branched(x, w):
    return static.cond(w.sum() > 0, lambda a: (a @ w).exp(), lambda a: a * a, x)


FUNCTIONS = {f.__name__: f for f in (straight, looped, until, branched)}


def gradients(f, x=X, w=W, order=1):
    """Results, gradients, and those of these, up to an order."""
    a, b = dynamic.tensor(x, requires_grad=True), dynamic.tensor(w, requires_grad=True)
    y = f(a, b)
    results = list(y) if isinstance(y, tuple) else [y]
    out, seeds = [*results], [r.detach() * 0.5 + 1 for r in results]
    for n in range(1, order + 1):
        results = dynamic.autograd.grad(results, [a, b], seeds, create_graph=n < order)
        out += results
        results, seeds = [(g * g).sum() for g in results], None
    return [t.detach().numpy().copy() for t in out]


def forbid(monkeypatch):
    """From here on nothing is optimised, cut or lowered."""
    for module, name in ((optimised, "run_passes"), (joint_graph, "split"), (lowered_program, "LoweredProgram")):
        monkeypatch.setattr(module, name, None)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_second_process_cuts_and_lowers_nothing(disk, monkeypatch, name):
    f = FUNCTIONS[name]
    eager = gradients(dynamic.function(f)), gradients(dynamic.function(f), X[:2])
    for warm in (False, True):
        if warm:
            forbid(monkeypatch)
        compiled = static.function(f)
        assert_all_same_bits(gradients(compiled), eager[0], name)
        assert_all_same_bits(gradients(compiled, X[:2]), eager[1], name)
        assert ("disk" in compiled.newest.seconds) is warm
        assert len(compiled.traces) == 1
    assert len(programs(disk)) == 2  # the halves


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_further_derivatives_from_the_disk(disk, monkeypatch, name, order):
    f = FUNCTIONS[name]
    eager = gradients(dynamic.function(f), order=order), gradients(dynamic.function(f), X[:2], order=order)
    for warm in (False, True):
        if warm:
            forbid(monkeypatch)
        compiled = static.function(f)
        assert_all_same_bits(gradients(compiled, order=order), eager[0], name)
        assert_all_same_bits(gradients(compiled, X[:2], order=order), eager[1], name)
        assert len(compiled.traces) == 1


def test_state_that_a_program_writes_is_saved_as_it_was(disk):
    def run():
        count = dynamic.tensor(np.ones(3, F32))

        @static.function
        def f(x, w):
            y = static.tanh(x * count).sum() * (w * w).sum()
            with static.no_grad():
                count.add_(1)
            return y

        found = [array for _ in range(2) for array in gradients(f)]
        return f, [*found, count.numpy().copy()]

    cold, warm = run(), run()
    assert "disk" in warm[0].newest.seconds
    assert_all_same_bits(cold[1], warm[1], "gradients and state")


def test_what_is_differentiated_and_kept_is_part_of_the_key(disk):
    def deep(x, w):
        for _ in range(4):
            x = static.tanh(x @ w) * x
        return x

    calls = [
        (deep, {}, (True, True)),
        (deep, {}, (True, False)),
        (deep, {}, (False, True)),
        (deep, {"memory_budget": 150}, (True, True)),
        (deep, {"memory_budget": 10**9}, (True, True)),
        (deep, {"fuse": False}, (True, True)),
    ]
    kept = []
    for count, (f, options, wanted) in enumerate(calls, 1):
        for warm in (False, True):
            compiled = static.function(f, **options)
            tensors = [dynamic.tensor(x, requires_grad=want) for x, want in zip((X, W), wanted)]
            compiled(*tensors).sum().backward()
            again = [dynamic.tensor(x, requires_grad=want) for x, want in zip((X, W), wanted)]
            dynamic.function(f)(*again).sum().backward()
            pairs = [(t.grad.numpy(), e.grad.numpy()) for t, e in zip(tensors, again) if t.requires_grad]
            assert_all_same_bits(*zip(*pairs, strict=True), "gradients")
            assert ("disk" in compiled.newest.seconds) is warm
            kept.append(sum(nbytes for _, nbytes in compiled.explain().kept))
        assert len(programs(disk)) == 2 * count
    assert kept[::2] == kept[1::2]  # warm as cold
    assert kept[6] < kept[0] == kept[8]


def test_errors_of_both_halves_name_the_line_of_this_process(disk):
    def first(x, i):
        return x.index_select(0, i) * 2

    def second(x, i):
        # the same program, some lines further on
        return x.index_select(0, i) * 2

    i = np.array([7])
    for f in (first, second):
        line = f.__code__.co_firstlineno + (1 if f is first else 2)
        with pytest.raises(IndexRangeError, match=rf"\n  in .*test_store_gradient.py:{line}$"):
            static.function(f)(dynamic.tensor(X, requires_grad=True), i)
    assert len(programs(disk)) == 1


def test_numbers_of_gradient_rules_are_pythons_own():
    """A graph that holds others could not be stored, and every process would lower it again."""
    call = static.function(static.grad(lambda x: ((x * 0.5 + 2) ** 3 / 4).sum()))
    call(np.ones(3, np.float32))
    numbers = [x for node in call.newest.raw.nodes for x in node.operands if isinstance(x, (int, float))]
    assert {type(x) for x in numbers} <= {int, float}
    assert call.newest._key is not None
