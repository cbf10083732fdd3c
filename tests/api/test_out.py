"""`out=`: the result of a function in memory that the caller has; in both engines, traced and not."""

import inspect

import numpy as np
import pytest

import dynamic
import static
from common.api import out, surface
from common.core.errors import ArgumentError, DTypeError, GradientError, ShapeError
from common.core.op import Op
from tests.bits import assert_all_same_bits

RNG = np.random.default_rng(11)
X, Y = (RNG.uniform(0.1, 0.9, (3, 3)).astype(np.float32) for _ in range(2))
FOUND = {name: surface.FUNCTIONS[name] for name in sorted(out.NAMES)}
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
    "split_copy": lambda tw, x, y, **to: tw.split_copy(x, 2, **to),
    "stack": lambda tw, x, y, **to: tw.stack([x, y], **to),
    "sum": lambda tw, x, y, **to: tw.sum(x, 0, **to),
    "native_batch_norm": lambda tw, x, y, **to: tw.native_batch_norm(x, None, None, None, None, True, 0.1, 0.1, **to),
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


def takes_out(module, names):
    return {n for n in names if "out" in inspect.signature(getattr(module, n)).parameters}


def test_it_is_offered_where_pytorch_has_it():
    assert set(surface.FUNCTIONS) >= out.NAMES
    assert set(dynamic.linalg.__all__) >= out.LINALG
    assert set(dynamic.special.__all__) >= out.SPECIAL
    for engine in (dynamic, static):
        assert takes_out(engine, surface.FUNCTIONS) == out.TAKEN & set(surface.FUNCTIONS)
        assert takes_out(engine, surface.CREATION) == out.CREATION
        assert takes_out(engine.linalg, engine.linalg.__all__) >= out.LINALG
        assert takes_out(engine.special, engine.special.__all__) >= out.SPECIAL


@pytest.mark.parametrize("tw", [dynamic, static])
def test_a_tensor_takes_the_shape_of_the_result(tw):
    empty = tw.zeros(0)
    assert tw.exp(tw.tensor(X), out=empty) is empty
    assert_all_same_bits([empty.numpy()], [static.exp(X)], "exp")
    maxima = tw.max(tw.tensor(X), 0, out=(tw.zeros(0), tw.zeros(0, dtype=tw.int64)))
    assert_all_same_bits([maxima.values.numpy()], [X.max(0)], "max")
    for size in (1, 2, X.size + 3):
        with pytest.warns(UserWarning, match="output with one or more elements was resized since it had shape"):
            other = tw.exp(tw.tensor(X), out=tw.zeros(size))
        assert_all_same_bits([other.numpy()], [static.exp(X)], "exp")
    with pytest.raises(ShapeError, match="only a tensor takes another shape, outside a trace"):
        static.function(lambda x: static.exp(x, out=static.zeros(0)))(X)
    with pytest.raises(ShapeError, match="only a tensor takes another shape"):
        tw.exp(tw.tensor(X), out=np.zeros(0, np.float32))


@pytest.mark.parametrize("tw", [dynamic, static])
def test_what_makes_tensors_takes_the_dtype_of_what_it_writes(tw):
    for call, expected in [
        (lambda o: tw.arange(0, 6, 2, out=o), [0, 2, 4]),
        (lambda o: tw.linspace(1, 2, 3, out=o), [1, 1.5, 2]),
        (lambda o: tw.full((3,), 7, out=o), [7, 7, 7]),
        (lambda o: tw.ones(3, out=o), [1, 1, 1]),
    ]:
        target = tw.zeros(3, dtype=tw.float64)
        assert call(target) is target
        assert target.tolist() == expected
    assert tw.arange(0, 3, out=tw.zeros(3, dtype=tw.int32)).dtype == tw.int32
    assert tw.eye(2, out=tw.zeros(2, 2)).tolist() == [[1, 0], [0, 1]]
    tw.manual_seed(3)
    drawn = tw.randn(4, out=tw.zeros(4))
    tw.manual_seed(3)
    assert_all_same_bits([drawn.numpy()], [tw.randn(4).numpy()], "randn")


@pytest.mark.parametrize("tw", [dynamic, static])
def test_linear_algebra_and_special_functions_write_theirs(tw):
    a = tw.tensor(X @ X.T + 3 * np.eye(3, dtype=np.float32))
    inverse = tw.zeros(3, 3)
    assert tw.linalg.inv(a, out=inverse) is inverse
    assert_all_same_bits([inverse.numpy()], [tw.linalg.inv(a).numpy()], "inv")
    found = tw.linalg.eigh(a, out=(tw.zeros(3), tw.zeros(3, 3)))
    assert np.allclose((found.eigenvectors * found.eigenvalues @ found.eigenvectors.T).numpy(), a.numpy(), atol=1e-5)
    assert tw.special.entr(tw.ones(2), out=tw.ones(2)).tolist() == [0, 0]


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
        dynamic.exp(X, out=np.zeros(2, np.float32))
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
