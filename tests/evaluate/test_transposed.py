"""Loops that read transposed matrices where they lie give what numpy gives, for sizes off the tiles and all layouts."""

import itertools
import re
from functools import partial

import numpy as np
import pytest

import dynamic as tw
from common.compiler.compile import meaning
from common.compiler.llvm_engine import TIDYING
from common.compiler.translate import translate
from common.evaluate import kernels, layouts, strided_loops
from tests.bits import assert_same_bits
from tests.helpers.proofs import each, examples
from tests.helpers.wrapped import wrap

SIZES = [(64, 64), (65, 70), (1000, 37), (33, 200), (5000, 1), (1, 5000), (2, 2100)]
CALLS = {
    "left": lambda x, y: x.T * y,
    "right": lambda x, y: y - x.T,
    "both": lambda x, y: x.T * x.T,
    "a row": lambda x, y: x.T - y[:1],
    "a column": lambda x, y: x.T - y[:, :1],
    "an element": lambda x, y: x.T - y[0, 0],
    "a strided column": lambda x, y: x.T - y[:, 0].reshape(-1, 1),
    "a row that lies across": lambda x, y: x[:1].T - y,
    "a number": lambda x, y: x.T * 3,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@each("size", SIZES)
def test_transposed_operands(dtype, size, call):
    rng = np.random.default_rng(3)
    x, y = ((9 * rng.standard_normal(shape)).astype(dtype) for shape in (size[::-1], size))
    wanted = call(x, y)
    found = call(tw.tensor(x), tw.tensor(y)).numpy()
    assert found.dtype == wanted.dtype
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, wanted)


def test_three_operands_and_conversion():
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((70, 90)), rng.standard_normal((90, 70))
    a, b = tw.tensor(x), tw.tensor(y)
    np.testing.assert_array_equal(tw.where(a.T > 0, a.T, b).numpy(), np.where(x.T > 0, x.T, y))
    np.testing.assert_array_equal(a.T.to(tw.float32).numpy(), x.T.astype(np.float32))


def _some(rng, shape):
    return [n if rng.integers(2) else 1 for n in shape]


def _windows(x, n):
    return np.lib.stride_tricks.sliding_window_view(x, n, -1)


LAYOUTS = {
    "in order": lambda rng, shape: rng.standard_normal(shape),
    "another order": lambda rng, shape: _permuted(rng, shape),
    "backwards": lambda rng, shape: rng.standard_normal(shape)[tuple(slice(None, None, -1) for _ in shape)],
    "rows backwards": lambda rng, shape: rng.standard_normal(shape)[::-1],
    "parts of rows": lambda rng, shape: rng.standard_normal((*shape[:-1], shape[-1] + 5))[..., 3:-2],
    "steps": lambda rng, shape: rng.standard_normal([2 * n for n in shape])[tuple(slice(None, None, 2) for _ in shape)],
    "repeated": lambda rng, shape: rng.standard_normal(_some(rng, shape)),
    "expanded": lambda rng, shape: np.broadcast_to(rng.standard_normal(_some(rng, shape)), shape),
    "a number": lambda rng, shape: np.array(rng.choice([0.5, 2.0, 3.0])),
    "windows": lambda rng, shape: _windows(rng.standard_normal((*shape[:-2], sum(shape[-2:]) - 1)), shape[-1]),
}


def _permuted(rng, shape):
    order = rng.permutation(len(shape))
    x = rng.standard_normal([shape[d] for d in order])
    return x.transpose(np.argsort(order))


OPS = {
    "add": lambda x, y, z: x + y,
    "a power": lambda x, y, z: abs(x) ** y,
    "a choice": lambda x, y, z: tw.where(x > y, y, z),
    "a converted operand": lambda x, y, z: x * y.to(tw.int32),
    "joined": lambda x, y, z: tw.addcmul(x, y, z, value=0.5),
    "what rules make": lambda x, y, z: tw.nn.functional.gelu(x) - y,
}


@each("seed", range(examples(60)))
def test_operands_of_any_layout(seed):
    """What is read where it lies gives the bits of copies in order."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.permutation([*rng.integers(1, 40, rng.integers(1, 4)), 80]).tolist())
    kind = rng.choice(["float32", "float64", "int64", "int8"])
    names = rng.choice(list(LAYOUTS), 3)
    given = [LAYOUTS[name](rng, shape) for name in names if len(shape) > 1 or name != "windows"]
    arrays = [_as_it_lies(9 * x, x, kind) for x in (*given, *given)[:3]]
    for name, op in OPS.items():
        if kind[0] == "i" and name in ("joined", "what rules make", "a power"):
            continue
        for _ in range(3):
            found = op(*map(wrap, arrays)).numpy()
        assert found.flags.c_contiguous
        wanted = op(*[wrap(np.array(x, order="C")) for x in arrays]).numpy()
        assert_same_bits(found, wanted, f"{name} of {', '.join(names)}")


def _as_it_lies(values, x, dtype):
    """Values in a dtype, with the steps between elements that x has."""
    if not x.size or not x.ndim:
        return values.astype(dtype)
    size = np.dtype(dtype).itemsize
    steps = [s // x.itemsize * size for s in x.strides]
    low = sum(min(0, s * (n - 1)) for s, n in zip(steps, x.shape, strict=True))
    room = np.zeros(sum(abs(s) * (n - 1) for s, n in zip(steps, x.shape, strict=True)) + size, np.uint8)
    lying = np.ndarray(x.shape, dtype, room, -low, steps)
    lying[...] = values
    return lying


@pytest.mark.parametrize("order", [(1, 0), (2, 1, 0), (0, 2, 1)])
def test_it_is_not_copied(monkeypatch, order):
    """The operand that lies by columns reaches the loop as it is."""
    monkeypatch.setattr(layouts, "dense", None)
    shape = (83, 71, 23)[: len(order)]
    x = tw.tensor(np.ones(shape)).permute(order)
    assert strided_loops.reading([x.numpy(), np.ones(x.shape)], tuple(x.shape)).letters == "tf"
    (x + tw.ones(x.shape, dtype=tw.float64)).numpy()


@each("letters", ["f", "t", "ft", "sf", "g", "gf"])
@each("outer", range(4))
def test_loops_are_written_with_vectors(letters, outer):
    """The translator writes the loop over columns with vectors and leaves nothing to LLVM's pipeline."""
    dtypes = [np.dtype(np.float32)] * len(letters)
    name = "exp" if len(letters) == 1 else "add"
    source = strided_loops.source("k", kernels.body_of(name, dtypes), dtypes, dtypes[0], letters, outer)
    text, left = translate(source, "k", partial(meaning, kernel="k"))
    assert left == TIDYING
    assert re.search(r"store <\d+ x float>", text)


@each("size", [(10, 40, 17), (70, 46, 46), (2, 5, 700, 30), (9, 200, 127), (9, 30, 130), (9, 30, 64)])
def test_rows_of_costly_functions(size):
    """Short rows that lie apart, or repeat, are gathered in tiles; they have the bits of copies in order."""
    rng = np.random.default_rng(9)
    x = rng.standard_normal(size).astype(np.float32).swapaxes(-2, -3)
    y = rng.standard_normal(x.shape).astype(np.float32)
    row, column, part = y[..., :1, :], y[..., :1], rng.standard_normal((*x.shape[:-1], size[-1] + 3))[..., 1:-2]
    short = size[-1] < 128 and size[-1] != 64
    assert strided_loops.reading([x], x.shape, costly=True).letters == ("g" if short else "f")
    assert strided_loops.reading([x, y, row], x.shape, costly=True).letters == ("gfg" if short else "fff")
    assert strided_loops.reading([x, column], x.shape, costly=True).letters == "fs"
    assert strided_loops.reading([x, y], x.shape).letters == "ff"
    ops = [lambda x, *_: x.exp(), lambda x, y, *_: x.atan2(y), lambda x, y, row, *_: x.tanh() * y - row,
           lambda x, y, row, column, part: (x * row).exp() + column, lambda *given: (given[-1] * 2).sin() + given[0],
           lambda x, *_: abs(x) ** 2.5]  # fmt: skip
    for op in ops:
        for _ in range(3):
            found = op(*map(tw.from_numpy, (x, y, row, column, part))).numpy()
        wanted = op(*[tw.tensor(np.ascontiguousarray(z)) for z in (x, y, row, column, part)]).numpy()
        assert_same_bits(found, wanted, str(size))


def test_an_operand_that_comes_twice_is_copied_once(monkeypatch):
    copies = []
    monkeypatch.setattr(layouts, "copied", lambda x, *form: copies.append(x) or np.ascontiguousarray(x))
    x = np.arange(300.0 * 100).reshape(300, 100)[:, ::2]
    np.testing.assert_array_equal((tw.from_numpy(x) * tw.from_numpy(x[:])).numpy(), x * x)
    assert len(copies) == 2
    copies.clear()
    y = tw.from_numpy(x)
    np.testing.assert_array_equal((y * y).numpy(), x * x)
    assert len(copies) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "int16", "uint8"])
@pytest.mark.parametrize(
    "shape", [(70, 290), (17, 33, 19), (3, 5, 40, 21), (8192, 1), (1, 5000), (3, 60, 70), (2, 1100, 4)]
)
def test_copies_of_turned_and_reversed_arrays(shape, dtype):
    """In registers, square by square, in steps that a kernel has or has not."""
    x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    for order in itertools.permutations(range(len(shape))):
        for ways in itertools.product((1, -1), repeat=len(shape)):
            y = x.transpose(order)[tuple(slice(None, None, way) for way in ways)]
            for z in (y, y[..., ::2], y[..., 1::3], y[..., ::7]):
                copy = layouts.copied(z, z.shape, z.dtype)
                assert copy.flags.c_contiguous
                assert np.array_equal(copy, z)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@each("name", ["sum", "prod", "amax", "amin", "mean", "var"])
@each("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (2, 0, 1)])
def test_reductions_of_what_lies_in_another_order(name, order, dtype):
    """They have the bits of the same numbers in order, over one dimension and over several, in order or not."""
    if dtype == "int32" and name in ("mean", "var"):
        return
    x = (9 * np.random.default_rng(5).standard_normal((18, 21, 23))).astype(dtype)
    y = tw.tensor(x).permute(order)
    in_order = tw.tensor(np.ascontiguousarray(x.transpose(order)))
    dims = [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)] if name != "prod" else [0, 1, 2]
    for dim, keepdim in itertools.product(dims, (False, True)):
        found, wanted = (getattr(tw, name)(z, dim, keepdim=keepdim).numpy() for z in (y, in_order))
        assert found.flags.c_contiguous
        assert_same_bits(found, wanted, name)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@each("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (2, 0, 1)])
def test_reductions_of_parts_that_lie_in_another_order(order, dtype):
    """Rows with gaps between them are moved as rows, and not turned."""
    x = (9 * np.random.default_rng(5).standard_normal((20, 23, 26))).astype(dtype)[1:-1, 2:, 3:-2]
    y = tw.from_numpy(x).permute(order)
    assert layouts.memory_order(y.numpy()) == tuple(np.argsort(order).tolist())
    in_order = tw.tensor(np.ascontiguousarray(x.transpose(order)))
    for name, dim in itertools.product(["sum", "amax"], [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)]):
        assert_same_bits(getattr(tw, name)(y, dim).numpy(), getattr(tw, name)(in_order, dim).numpy(), name)


def test_what_has_no_order_of_its_own():
    """Elements in order, repeated ones, windows and steps backwards."""
    x = np.zeros((100, 80))
    for y in (x, x[:, 5:], x[::2], np.broadcast_to(x[:, :1], x.shape).T, _windows(x[0], 20).T, x.T[::-1]):
        assert layouts.memory_order(y) is None


IN_PLACE_ORDER = {
    "exp": lambda z: z.exp(),
    "neg": lambda z: -z,
    "add": lambda z: z + z,
    "a number behind": lambda z: z + 2,
    "a power": lambda z: z**2.5,
    "a number before": lambda z: 2 - z,
    "a 0-d tensor before": lambda z: tw.tensor(3.0) / z,
    "a 0-d condition": lambda z: tw.where(tw.tensor(True), z, 0.5),
    "another dtype": lambda z: z * tw.tensor(3),
    "a 0-d tensor of another dtype before": lambda z: tw.tensor(3.0, dtype=tw.float64) * (z > 1),
}


@each("name", IN_PLACE_ORDER)
def test_results_of_what_lies_in_another_order(name):
    """They are computed where the operands lie, and are in order."""
    x = np.random.default_rng(6).uniform(0.1, 3, (18, 21, 23)).astype(np.float32)
    for order in itertools.permutations(range(3)):
        for _ in range(3):
            found = IN_PLACE_ORDER[name](tw.tensor(x).permute(order)).numpy()
            assert found.flags.c_contiguous
            wanted = IN_PLACE_ORDER[name](tw.tensor(np.ascontiguousarray(x.transpose(order)))).numpy()
            assert_same_bits(found, wanted, name)


PRODUCTS = {
    "left": lambda a, b: a.mT @ b,
    "right": lambda a, b: a @ b.mT,
    "both": lambda a, b: a.mT @ b.mT,
    "by itself": lambda a, b: a.mT @ a + (b @ b.mT).sum(),
    "a vector": lambda a, b: a.mT @ b.reshape(-1)[: a.shape[-2]],
    "a vector before": lambda a, b: b.reshape(-1)[: a.shape[-1]] @ a.mT,
    "every second row": lambda a, b: a[..., ::2, :].mT @ b[..., ::2, :],
    "turned twice": lambda a, b: tw.einsum("...ki,...kj->...ji", a, b),
}


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@each("name", PRODUCTS)
def test_products_of_turned_matrices(name, kind):
    """They are read as they lie, and have the bits of copies in order; so have gradients."""
    rng = np.random.default_rng(8)
    for lead, m in itertools.product([(), (3,), (2, 2)], (1, 2, 17, 40)):
        a, b = (tw.tensor((9 * rng.standard_normal((*lead, m, m))).astype(kind)) for _ in range(2))
        with_copies = [x.mT.contiguous().mT.detach() for x in (a, b)]
        found, wanted = [], []
        for operands, results in (((a, b), found), (with_copies, wanted)):
            for _ in range(3):
                leaves = [x.clone().requires_grad_(kind[0] == "f") for x in operands]
                y = PRODUCTS[name](*leaves)
                results[:] = [y.detach()]
            if kind[0] == "f":
                results += [g for g in tw.autograd.grad(y.sum(), leaves, allow_unused=True) if g is not None]
        for x, z in zip(found, wanted, strict=True):
            assert_same_bits(x.numpy(), z.numpy(), name)
        transposed = a.mT.contiguous()
        for _ in range(3):
            assert_same_bits((a.mT @ b).numpy(), (transposed @ b).numpy(), name)


def test_a_turned_matrix_of_a_product_is_not_copied(monkeypatch):
    monkeypatch.setattr(layouts, "copied", None)
    a, b = tw.ones(40, 30), tw.ones(40, 20)
    assert (a.T @ b).sum() == 40 * 600
    assert (a.T @ b[:, 0].clone()).sum() == 40 * 30


def test_loops_that_write_over_an_operand_write_no_element_twice():
    dtypes = [np.dtype(np.float32)] * 2
    first = [strided_loops.source("k", kernels.body_of("add", dtypes), dtypes, dtypes[0], "ff", 0, apart=apart)
             .split("\n")[1].strip() for apart in (True, False)]  # fmt: skip
    assert first == ["wide(1, True)", "wide(1)"]
