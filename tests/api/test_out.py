"""`out=`: the result of a function in memory that the caller has; in both engines, traced and not."""

import inspect

import numpy as np
import pytest

import dynamic
import static
from common.api import out, surface
from common.core.errors import ArgumentError, DTypeError, GradientError, ShapeError
from common.core.op import Op
from common.ops import functional
from tests.bits import assert_all_same_bits

RNG = np.random.default_rng(11)
X, Y = (RNG.uniform(0.1, 0.9, (3, 3)).astype(np.float32) for _ in range(2))
FOUND = {name: getattr(functional, name) for name in sorted(out.NAMES)}
OPS = [name for name, op in FOUND.items() if isinstance(op, Op) and op.kind == "elementwise"]
#: Other arguments than operands of one shape.
CALLS = {
    "addmm": lambda tw, x, y, **to: tw.addmm(x, x, y, alpha=2, **to),
    "cat": lambda tw, x, y, **to: tw.cat((x, y), 1, **to),
    "clamp": lambda tw, x, y, **to: tw.clamp(x, max=0.5, **to),
    "div": lambda tw, x, y, **to: tw.div(x, y, rounding_mode="floor", **to),
    "index_select": lambda tw, x, y, **to: tw.index_select(x, 0, np.array([2, 0]), **to),
    "matmul": lambda tw, x, y, **to: tw.matmul(x, y, **to),
    "max": lambda tw, x, y, **to: tw.max(x, 1, **to),
    "mean": lambda tw, x, y, **to: tw.mean(x, axis=0, keepdims=True, **to),
    "sort": lambda tw, x, y, **to: tw.sort(x, -1, descending=True, **to),
    "stack": lambda tw, x, y, **to: tw.stack([x, y], **to),
    "sum": lambda tw, x, y, **to: tw.sum(x, 0, **to),
    "topk": lambda tw, x, y, **to: tw.topk(x, 2, **to),
}
CALLS |= {
    name: lambda tw, x, y, name=name, **to: getattr(tw, name)(*(x, y, x)[: len(FOUND[name].inputs)], **to)
    for name in OPS
    if not FOUND[name].refuses.count("f") and name != "where"
}


def arrays(results):
    return [np.asarray(y) for y in (results if isinstance(results, tuple) else (results,))]


def same_structure(results, made):
    return made if isinstance(results, tuple) else made[0]


@pytest.mark.parametrize("name", sorted(CALLS))
def test_results_are_written(name):
    x = X + 1 if name in ("acosh", "arccosh") else X
    call = CALLS[name]
    expected = call(static, x, Y)
    given = [np.full_like(y, 7) for y in arrays(expected)]
    found = call(static, x, Y, out=same_structure(expected, given))
    assert all(a is b for a, b in zip(found if isinstance(found, tuple) else (found,), given, strict=True))
    assert_all_same_bits(given, arrays(expected), name)
    tensors = [dynamic.tensor(np.full_like(y, 7)) for y in arrays(expected)]
    memory = [t.numpy() for t in tensors]
    call(dynamic, dynamic.tensor(x), dynamic.tensor(Y), out=same_structure(expected, tuple(tensors)))
    assert_all_same_bits(memory, arrays(expected), name)

    def program(tw, x, y):
        first = call(tw, x, y)
        parts = first if isinstance(first, tuple) else (first,)
        targets = tuple(tw.zeros_like(part) for part in parts)
        call(tw, x, y, out=same_structure(first, targets))
        return tuple(t + 1 if t.dtype.kind != "b" else t for t in targets)

    traced = static.function(lambda x, y: program(static, x, y))(x, Y)
    eager = program(dynamic, dynamic.tensor(x), dynamic.tensor(Y))
    assert_all_same_bits(list(traced), [t.numpy() for t in eager], name)


def test_it_is_offered_where_pytorch_documents_it():
    assert set(surface.FUNCTIONS) >= out.NAMES
    for engine in (dynamic, static):
        having = {n for n in surface.FUNCTIONS if "out" in inspect.signature(getattr(engine, n)).parameters}
        assert having == out.NAMES


def test_an_operand_may_be_written():
    x = dynamic.tensor(X)
    assert dynamic.mm(x, x, out=x) is x
    assert_all_same_bits([x.numpy()], [static.mm(X, X)], "mm")
    whole = dynamic.zeros(3, 6)
    dynamic.exp(dynamic.tensor(X), out=whole[:, 1:4])
    assert_all_same_bits([whole.numpy()[:, 1:4].copy()], [static.exp(X)], "exp")
    wide = dynamic.zeros(3, 3, dtype=dynamic.float64)
    assert dynamic.neg(dynamic.tensor(X), out=wide).tolist() == (-X).astype(np.float64).tolist()


def test_what_does_not_fit_is_refused():
    x = dynamic.tensor(X, requires_grad=True)
    with pytest.raises(ShapeError, match=r"exp\(\): out has shape \(2,\), the result \(3, 3\)"):
        dynamic.exp(X, out=dynamic.zeros(2))
    with pytest.raises(DTypeError, match="can't be cast to the desired output type int64"):
        dynamic.exp(X, out=dynamic.zeros(3, 3, dtype=dynamic.int64))
    with pytest.raises(GradientError, match=r"exp\(\): functions with out=... arguments don't support automatic"):
        dynamic.exp(x, out=dynamic.zeros(3, 3))
    with pytest.raises(ArgumentError, match="'out' must be Tensor, not list"):
        dynamic.exp(X, out=[1.0])
    with pytest.raises(ArgumentError, match="'out' must be a tuple of 2 tensors"):
        dynamic.max(X, 0, out=dynamic.zeros(3))
    with pytest.raises(ArgumentError, match="'out' must be Tensor, not ndarray"):
        static.function(lambda y: static.exp(y, out=np.zeros((3, 3), np.float32)))(X)
    with dynamic.no_grad():
        target = dynamic.zeros(3, 3)
        assert dynamic.exp(x, out=target) is target
    assert_all_same_bits([target.numpy()], [static.exp(X)], "exp")
