"""A trace's memory of an op's operands, and of sizes, is equal to working them out each time."""

from __future__ import annotations

import numpy as np
import pytest

import static
from common.core.polynomials import multiply
from common.core.sizes import Dim, DimScope, _terms
from static.tracing.spec_cache import Derived

F32 = np.float32


def mixed(x, n):
    """Casts, broadcasts and comparisons of sizes, each several times."""
    total = x * n + n * x + (n * 2 + n * 0.5 + n * 3)
    for _ in range(3):
        total = total + n / 2 + x * n.to("float32")
        total = static.where(total > n, total - 1, total * 2)
    return total, (total @ x.T + x.sum(1) + x[:, :1]).sum(0) * x.shape[0]


def decided(x, n):
    """A number whose spec a decision replaces."""
    k = x.sum().item()
    return [x * k + (x.sum() + i).item() * 2 for i in range(3)] if k > 0 else x


def gradient(x, n):
    return static.grad(lambda a: (static.tanh(a * n) * a + (a * a).sum(0)).sum())(x)


def looped(x, n):
    return static.fori_loop(0, 3, lambda i, c: c * n + i + x.sum(0), x)


@pytest.mark.parametrize("f", [mixed, decided, gradient, looped])
def test_remembering_changes_no_node_and_no_guard(monkeypatch, f):
    args = np.arange(6, dtype=F32).reshape(2, 3), np.array([[1], [2]])
    traces, made = [], Derived.__init__
    for remembers in (True, False):
        monkeypatch.setattr(Derived, "__init__", lambda self, trace, r=remembers: made(self, trace, r))
        compiled = static.function(f, interpret=True, control_flow="guard")
        compiled(*args)
        newest = compiled.newest
        traces.append((str(newest.raw), [str(g) for g in newest.trace.guards], newest.trace.dims.renamed))
    assert traces[0] == traces[1]


def test_specs_that_are_equal_are_one_object():
    specs = []

    def f(x):
        for value in (x, x * 2, static.tanh(x) + x.sum(1, keepdim=True), (x @ x.T) @ x, x.T.reshape(2, 3) - 1):
            specs.append(value.payload.spec)
        return x

    static.function(f)(np.ones((2, 3), F32))
    assert specs[0] is specs[1] is specs[2] is specs[3]
    assert specs[4] is not specs[0]
    assert specs[4].shape == (2, 3)


def test_numbers_of_another_type_are_other_operands():
    found = []

    def f(n):
        found.extend(str((n.payload * k).dtype) for k in (2, 0.5, 3, 0.25, True))
        return n

    static.function(f)(np.array([1, 2]))
    assert found == ["int64", "float32", "int64", "float32", "int64"]


def scope():
    return DimScope(None, None)


@pytest.mark.parametrize("number", [-3, -1, 0, 1, 2, 7])
def test_products_with_numbers_are_those_of_polynomials(number):
    s = scope()
    a, b = s.input(0, 0, 5), s.input(1, 1, 7)
    for size in (a, a * b, a + b * 2 - 1, a // 2):
        for made in (size * number, number * size):
            assert _terms(made) == multiply(size.terms, _terms(number))
            assert (made.hint if isinstance(made, Dim) else made) == size.hint * number


def test_what_is_one_size_by_now_is_known_of_older_ones():
    s = scope()
    a, b, c = (s.input(i, 0, 4) for i in range(3))
    assert s.canonical((b + c).terms) == (b + c).terms
    assert a == b
    assert s.canonical(b.terms) == a.terms
    assert b == c
    assert s.canonical((b + c).terms) == (a * 2).terms
    assert a == 4
    assert s.canonical((b + c).terms) == _terms(8)
    assert [str(g) for g in s.guards.values()].count("arg0.shape[0] == 4") == 1


def test_what_is_equal_is_one_guard_whichever_way_it_is_asked():
    s = scope()
    a, b = (s.input(i, 0, 4) for i in range(2))
    assert b == a
    assert a == b
    assert a * 1 == 4
    assert [str(g) for g in s.guards.values()] == ["arg0.shape[0] == arg1.shape[0]", "arg0.shape[0] == 4"]


def sizes_of(graph):
    """The traced sizes among the attributes of all nodes, regions included."""
    found, left = [], [x for node in graph.nodes for x in node.attrs.values()]
    while left:
        x = left.pop()
        if isinstance(x, Dim):
            found.append(x)
        elif isinstance(x, (tuple, list)):
            left += x
        elif hasattr(x, "nodes"):
            left += [y for node in x.nodes for y in node.attrs.values()]
    return found


def test_attributes_of_a_trace_hold_sizes_of_that_trace():
    """The same size of the same input of another trace is equal, and is another size."""

    def f(x):
        centred = (x - x.sum(0).expand(x.shape)).reshape(-1, x.shape[0])
        return static.scan(lambda c, v: (c + v.expand(x.shape).sum(0), c), x[0], x)[1].sum() + centred.abs().sum()

    scopes = []
    for _ in range(2):
        compiled = static.function(static.grad(f))
        compiled(np.ones((2, 3), F32))
        (scope,) = {id(x.scope): x.scope for x in sizes_of(compiled.newest.raw)}.values()
        scopes.append(scope)
    assert scopes[0] is not scopes[1]
