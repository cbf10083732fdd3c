"""Dtypes and shapes of results, against PyTorch's documented rules, written down independently."""

import itertools

import numpy as np
import pytest

import dynamic as tw
from common.core.errors import DTypeError, ShapeError

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
NUMBERS = {"a bool": True, "an int": 2, "a float": 2.5}
CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2}


def joined(a, b):
    """Two dtypes of one category, or of one tier."""
    if CATEGORY[a.kind] != CATEGORY[b.kind]:
        return max(a, b, key=lambda d: CATEGORY[d.kind])
    if {a.kind, b.kind} == {"i", "u"}:  # uint8 fits into every signed dtype but int8
        signed = a if a.kind == "i" else b
        return np.dtype(np.int16) if signed.itemsize == 1 else signed
    return max(a, b, key=lambda d: d.itemsize)


def expected(*operands):
    """PyTorch, "Tensor attributes": the highest category decides; within it tensors with dimensions go first."""
    tiers = [[], [], []]
    for kind, shape in operands:
        if kind in NUMBERS:
            default = {"a bool": np.bool_, "an int": np.int64, "a float": np.float32}[kind]
            tiers[2].append(np.dtype(default))
        else:
            tiers[0 if shape else 1].append(np.dtype(kind))
    result = None
    for tier in tiers:
        for dtype in tier[1:]:
            tier[0] = joined(tier[0], dtype)
        if tier and (result is None or CATEGORY[tier[0].kind] > CATEGORY[result.kind]):
            result = tier[0]
    return result


def operand(kind, shape):
    return NUMBERS[kind] if kind in NUMBERS else tw.tensor(np.ones(shape, kind))


OPERANDS = [(d, s) for d in DTYPES for s in ((3,), ())] + [(n, ()) for n in NUMBERS]
PAIRS = [(a, b) for a, b in itertools.product(OPERANDS, OPERANDS) if not {a[0], b[0]} <= set(NUMBERS)]


def differences(op, rule):
    found = []
    for a, b in PAIRS:
        have, want = op(operand(*a), operand(*b)).dtype, rule(expected(a, b))
        if have != want:
            found.append(f"{a} with {b}: {have}, expected {want}")
    return found


def test_add_mul_and_where_promote():
    assert differences(lambda a, b: a + b, lambda d: d) == []
    assert differences(lambda a, b: a * b, lambda d: d) == []
    condition = tw.tensor([True, False, True])
    assert differences(lambda a, b: tw.where(condition, a, b), lambda d: d) == []


def test_division_is_true_division():
    assert differences(lambda a, b: a / b, lambda d: d if d.kind == "f" else np.dtype(np.float32)) == []


def test_comparisons_give_bools():
    assert differences(lambda a, b: a < b, lambda d: np.dtype(bool)) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_unary_functions(dtype):
    x = tw.tensor(np.ones(2, dtype))
    floating = dtype if dtype.startswith("float") else "float32"
    assert (tw.exp(x).dtype, tw.sqrt(x).dtype) == (np.dtype(floating),) * 2
    assert x.sum().dtype == (np.dtype(dtype) if dtype.startswith("float") else np.dtype(np.int64))
    assert x.amax().dtype == np.dtype(dtype)


def test_numbers_are_rounded_once_to_the_computing_dtype():
    x = tw.tensor([1.0])
    assert (x * 0.1).numpy() == np.float32(1) * np.float32(0.1)
    assert (x.double() * 0.1).numpy() == 0.1
    third = tw.tensor(1 / 3, dtype=tw.float64)
    assert (x * third).numpy() == np.float32(1 / 3)


@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((4, 1, 3), (2, 1)), ((0, 3), (1, 3)), ((1,), (0,)), ((), ())],
)
def test_broadcasting(a, b):
    x, y = np.full(a, 2, np.float32), np.full(b, 3, np.float32)
    p, q = tw.tensor(x, requires_grad=True), tw.tensor(y, requires_grad=True)
    z = p * q
    assert z.detach().numpy().tolist() == (x * y).tolist()
    z.sum().backward()
    assert (p.grad.shape, q.grad.shape) == (a, b)


def test_shapes_that_do_not_broadcast():
    with pytest.raises(
        ShapeError, match=r"\(2, 3\) and \(2, 4\) do not broadcast: The size of tensor a \(3\) must match"
    ):
        tw.ones(2, 3) + tw.ones(2, 4)


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2", ">i4", ">i8"])
@pytest.mark.parametrize("way", ["operator", "reflected", "method", "where", "in place", "comparison"])
def test_arrays_in_another_byte_order_are_operands(dtype, way):
    run = {
        "operator": lambda x, b: x * b,
        "reflected": lambda x, b: b**x,
        "method": lambda x, b: x.add(b),
        "where": lambda x, b: x.where(x > 2, b),
        "in place": lambda x, b: x.clone().sub_(b),
        "comparison": lambda x, b: x == b,
    }[way]
    x, b = tw.tensor([1.0, 2.0, 3.0]), np.array([1, 2, 5], dtype)
    expected = run(x, b.astype(b.dtype.newbyteorder("=")))
    found = run(x, b)
    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.parametrize("dtype", ["float16", "uint16", "uint32", "uint64"])
def test_arrays_of_other_dtypes_are_refused(dtype):
    x = tw.ones(2)
    for run in (lambda b: x * b, lambda b: x.where(x > 0, b), lambda b: x.clone().add_(b)):
        with pytest.raises(DTypeError, match=f"dtype {dtype} is not supported"):
            run(np.ones(2, dtype))
