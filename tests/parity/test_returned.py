"""Results of a function: which of them are one tensor, what history they have, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import TwingradError
from common.core.tree import flatten
from tests.bits import assert_all_same_bits


def _twice(y: Any) -> Any:
    return y, y


def _dictionary(y: Any) -> Any:
    return {"a": [y, y * 3], "b": (y,), "c": 3}


def _doubled(x: Any) -> Any:
    return x.data.mul_(2) if x.requires_grad else x.mul_(2)


def _gradients(tw: Any, x: Any, c: Any) -> Any:
    p, q = tw.tensor([1.0, 2.0, 3.0], requires_grad=True), c.detach().requires_grad_()
    p.grad, q.grad = x.detach(), c.detach()
    (p * p + q).sum().backward()
    return p.grad, q.grad, x.detach()


#: Of an engine, an argument of 3 elements and a captured tensor of as many.
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "one": lambda tw, x, c: x * 2,
    "twice": lambda tw, x, c: _twice(x * 2),
    "the same dtype": lambda tw, x, c: (lambda y: (y, y.to(y.dtype), y.float()))(x * c),
    "nested": lambda tw, x, c: _dictionary(x * 2),
    "not next to each other": lambda tw, x, c: (lambda y, z: [y, z, y, z, y])(x * 2, c * x),
    "an argument": lambda tw, x, c: x,
    "an argument twice": lambda tw, x, c: _twice(x),
    "an argument among others": lambda tw, x, c: (x * c, x, x),
    "a capture": lambda tw, x, c: (c, x * c, c),
    "views": lambda tw, x, c: (lambda y: (y, y.view(-1), y[1:], y))(x * c),
    "views of what is given": lambda tw, x, c: (x.view(-1), c[1:], x[0]),
    "views of views": lambda tw, x, c: (x[1:][0], x.view(1, -1).T, c[: x.shape[0] - 1][None], c.detach()[1:]),
    "parts of what is given": lambda tw, x, c: (*x.split(2), c.unbind()[1], x.view(1, 3).diagonal(), c.expand(2, 3)),
    "views of what is written": lambda tw, x, c: (_doubled(x)[1:], _doubled(c)[::2], x[0], c[:2]),
    "a view of examples": lambda tw, x, c: (tw.vmap(lambda v: v[None])(x), tw.vmap(lambda v: v.view(1), 0, 1)(c)),
    "what is given, detached": lambda tw, x, c: (x.detach(), x.data, c.detach().detach(), x * c),
    "what is given, written": lambda tw, x, c: (_doubled(x), _doubled(c), x, c * 1),
    "gradients": lambda tw, x, c: _gradients(tw, x, c),
    "detached": lambda tw, x, c: (lambda y: (y, y.detach(), y))(x * c),
    "a constant": lambda tw, x, c: (*_twice(tw.ones(3)), x * 2),
    "written": lambda tw, x, c: (lambda y: (y, y.mul_(2), y))(x * 2),
    "a part written": lambda tw, x, c: (lambda y: (y, y[0].mul_(2), y))(x * 2),
    "carried": lambda tw, x, c: tw.scan(lambda h, t: (h * t, h), x.sum(), x),
    "carried twice": lambda tw, x, c: tw.scan(lambda h, t: (_twice(h[0] * t), h), _twice(x.sum()), x),
    "carried and exchanged": lambda tw, x, c: tw.scan(lambda h, t: ((h[1], h[0] * t), h[0]), (x.sum(), c.sum()), x),
    "carried as it is": lambda tw, x, c: tw.scan(lambda h, t: (h, _twice(t)), c, x),
    "of a loop": lambda tw, x, c: tw.fori_loop(0, 3, lambda i, s: _twice(s[0] * c), _twice(x)),
    "of a branch": lambda tw, x, c: tw.cond(x.sum() > 0, _twice, lambda x: (x, x * 2), x),
    "the same of branches": lambda tw, x, c: tw.cond(x.sum() > 0, lambda x: (c, c, x), lambda x: (x, x, c), x),
    "of a function in it": lambda tw, x, c: _twice(tw.function(_twice)(x * c)[1]),
    "of a gradient": lambda tw, x, c: _twice(tw.grad(lambda x: (x * x * c).sum())(x)),
    "of a checkpoint": lambda tw, x, c: tw.utils.checkpoint.checkpoint(lambda x: _twice(x * c), x, use_reentrant=False),
}


def _called(tw: Any, run: Callable[..., Any], needs: tuple[bool, bool], name: str) -> Any:
    """The facts of two calls on which the engines agree: structure and history as text, and arrays."""
    said: list[Any] = []
    arrays: list[Any] = []
    c = dynamic.tensor([2.0, 3.0, 4.0], requires_grad=needs[1])
    f = run(tw, c)
    for start in (1.0, 2.0):
        x = dynamic.tensor([start, 2.0, 3.0], requires_grad=needs[0])
        c.grad = None
        leaves, structure = flatten(f(x))
        tensors = [t for t in leaves if isinstance(t, dynamic.Tensor)]
        first: dict[int, int] = {}
        said.append((structure, [first.setdefault(id(t), i) for i, t in enumerate(leaves)]))
        said.append([(t.requires_grad, t.is_leaf, t.output_nr) for t in tensors])
        said.append([(t is x, t is c) for t in tensors])
        plain = [t for t in tensors if not t.requires_grad]  # results with history have memory of their own
        said.append([[np.shares_memory(t.payload, g.payload) for g in (x, c)] for t in plain])
        said.append([[t._base is g for g in (x, c)] for t in plain])
        arrays += [t.payload.copy() for t in tensors]  # the next call may write to what they show
        roots = [t for t in tensors if t.requires_grad]
        if roots:
            first_order = dynamic.autograd.grad(
                sum(((t * t).sum() * 10**i for i, t in enumerate(roots))),
                [t for t, need in ((x, needs[0]), (c, needs[1])) if need],
                create_graph=True,
                allow_unused=True,
            )
            arrays += [g if g is None else g.payload for g in first_order]
            found = [g for g in first_order if g is not None and g.requires_grad]
            if found:
                sum(g.sum() for g in found).backward()
            arrays += [g if g is None else g.payload for g in (x.grad, c.grad)]
    return said, arrays


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_one_tensor_where_they_are_in_the_eager_engine(name):
    def made(**options):
        return lambda tw, c: tw.function(lambda x: PROGRAMS[name](tw, x, c), **options)

    for needs in product((False, True), repeat=2):
        expected, arrays = _called(dynamic, made(), needs, name)
        for options in ({}, {"interpret": True}):
            found = _called(static, made(**options), needs, name)
            what = f"{name}, {needs}, {options}"
            assert found[0] == expected, what
            assert_all_same_bits(found[1], arrays, what)


@pytest.mark.parametrize("tw", [dynamic, static])
def test_what_is_given_is_returned_itself(tw):
    x, array, held = dynamic.ones(3), np.ones(3, np.float32), dynamic.ones(3)
    p, q = (dynamic.nn.Parameter(dynamic.ones(3)) for _ in range(2))
    f = tw.function(lambda x, d: (x, {"a": [x, d["b"], held]}, x * 2))
    for _ in range(3):
        y, parts, _ = f(x, {"b": held})
        assert y is x
        assert parts["a"][0] is x
        assert parts["a"][1] is parts["a"][2] is held
        assert np.shares_memory(f(array, {"b": held})[0].numpy(), array)

    def step(x):
        p.grad, q.grad = x, held
        (p * 2).sum().backward()
        return q.grad, p.grad

    f = tw.function(step)
    for n in (1, 2, 3):
        assert all(a is b for a, b in zip(f(x), (held, x), strict=True))
        assert p.grad is x
        assert q.grad is held
        assert x.tolist() == [1 + 2 * n] * 3
    same = tw.function(lambda x: x)
    with dynamic.no_grad():
        assert same(p) is p
    assert same(x) is same(x=x) is x
    assert same(array.astype(">f4")).tolist() == array.tolist()


def test_a_compiled_module_returns_its_state_and_part_of_it():
    def parts(tw):
        class Cell(tw.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = tw.nn.Linear(2, 2)
                with tw.no_grad():
                    self.linear.weight.copy_(dynamic.tensor([[0.5, -1.0], [2.0, 0.25]]))
                    self.linear.bias.zero_()

            def forward(self, x, state):
                h, c = state
                c = c * h.sigmoid()
                h = self.linear(x).tanh() * c
                return h, (h, c)

        cell = tw.compile(Cell()) if tw is static else tw.function(Cell())
        x = dynamic.tensor([[1.0, 2.0]], requires_grad=True)
        y, (h, c) = cell(x, (dynamic.ones(1, 2), dynamic.full((1, 2), 0.5)))
        assert y is h
        (y.sum() + 10 * h.sum() + 100 * c.sum()).backward()
        return [y.payload, c.payload, x.grad.payload]

    assert_all_same_bits(parts(static), parts(dynamic), "Cell")


def test_given_arrays_and_numba_take_what_is_returned_twice():
    f = static.function(lambda x: (lambda y: (y, (x + 1, y)))(x * 2))
    x, outs = np.arange(3.0), [np.empty(3) for _ in range(3)]
    into = f.into((outs[0], (outs[1], outs[2])))
    for _ in range(3):
        x += 1
        into(x)
        assert_all_same_bits(outs, [x * 2, x + 1, x * 2], "into")
    a, (b, c) = static.njit(f.target, x)(x)
    assert_all_same_bits([a, b, c], [x * 2, x + 1, x * 2], "njit")
    with pytest.raises(TwingradError, match="has shape"):
        f.into((outs[0], (outs[1], np.empty(4))))(x)


def test_a_short_call_returns_one_object():
    f = static.function(lambda x: (lambda y: [y, {"y": y}])(x * 2))
    for _ in range(3):
        a, b = f(np.ones(3))
        assert a is b["y"]
