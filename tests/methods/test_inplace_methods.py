"""In-place forms: the functional result, in the tensor's memory, with its history; in both engines, traced and not."""

from typing import Any

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import DTypeError, GradientError, ShapeError
from common.methods.in_place_functions import NAMES
from tests.bits import assert_all_same_bits

#: Arguments that are not one tensor like the first, per name.
ARGUMENTS: dict[str, Any] = {
    "clamp": ((0.2, 0.7), {}), "clip": ((0.2, 0.7), {}), "clamp_max": ((0.5,), {}), "clamp_min": ((0.5,), {}),
    "cumsum": ((1,), {}), "cumprod": ((1,), {}), "logit": ((0.01,), {}), "pow": ((3.0,), {}),
    "mvlgamma": ((1,), {}), "polygamma": ((1,), {}), "renorm": ((2, 0, 0.5), {}),
    "nan_to_num": ((), {}), "round": ((), {}), "tril": ((), {}), "triu": ((), {}),
}  # fmt: skip
WHOLE = {"bitwise_not": 0, "gcd": 1, "lcm": 1}  # and how many others
BINARY = {
    "arctan2", "atan2", "copysign", "divide", "eq", "float_power", "fmod", "ge", "greater", "greater_equal", "gt",
    "heaviside", "hypot", "igamma", "igammac", "ldexp", "le", "less", "less_equal", "logical_and",
    "logical_or", "logical_xor", "lt",
    "multiply", "ne", "nextafter", "not_equal", "subtract", "true_divide", "xlogy",
}  # fmt: skip


def indexed():
    """Arguments of the functions that write at indices."""
    two = np.array([[0, 2, 2], [1, 0, 2]])
    return {
        "index_reduce": (0, np.array([0, 2, 0]), values((3, 3), 1), "prod"),
        "masked_scatter": (values() > 0.5, values((9,), 1)),
        "put": (np.array([0, 4, -1]), values((3,), 1)),
        "scatter_add": (0, two, values((2, 3), 1)),
        "scatter_reduce": (1, two, values((2, 3), 1), "amax"),
    }


def values(shape=(3, 3), seed=0):
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype(np.float32)


def operands(name, engine):
    """The tensor's contents and the other arguments of a call."""
    if name in WHOLE:
        return np.arange(6), tuple(engine.tensor(np.array([4, 3, 6, 2, 8, 5])) for _ in range(WHOLE[name])), {}
    others = {
        "addmm": [(3, 3), (3, 3)], "addr": [(3,), (3,)], "addmv": [(3, 3), (3,)], "addbmm": [(2, 3, 3)] * 2,
        "baddbmm": [(2, 3, 3), (2, 3, 3)],
        "addcmul": [(3, 3)] * 2, "addcdiv": [(3, 3)] * 2, "lerp": [(3, 3)] * 2,
    }.get(name)  # fmt: skip
    first = {"addmv": (3,), "baddbmm": (2, 3, 3)}.get(name, (3, 3))
    x = values(first) + (1 if name in ("acosh", "arccosh") else 0)
    if name in ARGUMENTS:
        return x, *ARGUMENTS[name]
    if name in indexed():
        return x, tuple(engine.tensor(a) if isinstance(a, np.ndarray) else a for a in indexed()[name]), {}
    if others is None:
        others = [first] * (name in BINARY)
    return x, tuple(engine.tensor(values(shape, k + 1)) for k, shape in enumerate(others)), {}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_contents_memory_and_history(name):
    array, args, options = operands(name, tw)
    plain = tw.tensor(array)
    expected, memory = getattr(plain, name)(*args, **options), plain.numpy()
    assert getattr(plain, f"{name}_")(*args, **options) is plain
    assert np.shares_memory(plain.numpy(), memory)
    assert_all_same_bits([memory], [expected.to(plain.dtype).numpy()], name)
    if name in WHOLE or expected.dtype.kind != "f":
        return
    slopes = []
    for in_place in (False, True):
        leaf = tw.tensor(array, requires_grad=True)
        y = leaf * 1
        y = getattr(y, f"{name}_")(*args, **options) if in_place else getattr(y, name)(*args, **options)
        if y.requires_grad:
            (y * tw.tensor(values(tuple(y.shape), 9))).sum().backward()
        slopes.append(leaf.grad)
    assert (slopes[0] is None) == (slopes[1] is None)
    if slopes[0] is not None:
        assert_all_same_bits([slopes[0].numpy()], [slopes[1].numpy()], f"{name}: gradient")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_compiled(name):
    array, args, options = operands(name, static)
    args = tuple(a.numpy() if hasattr(a, "numpy") else a for a in args)

    def program(x, *rest):
        y = x * 1
        getattr(y, f"{name}_")(*rest, **options)
        return y + 1

    eager = program(tw.tensor(array), *(tw.tensor(a) if isinstance(a, np.ndarray) else a for a in args)).numpy()
    compiled = static.function(lambda x, *arrays: program(x, *_filled(args, arrays)))
    found = compiled(array, *(a for a in args if isinstance(a, np.ndarray)))
    assert_all_same_bits([found], [eager], name)


def _filled(args, arrays):
    given = iter(arrays)
    return [next(given) if isinstance(a, np.ndarray) else a for a in args]


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (9, 3), (8, 3), (9, 1), (3, 3, 3), (0, 2)], ids=str)
def test_fill_diagonal(shape, wrap):
    array = values(shape)
    expected, x = array.copy(), tw.tensor(array)
    if array.size:
        np.fill_diagonal(expected, 7, wrap=wrap)
    assert x.fill_diagonal_(7, wrap) is x
    assert_all_same_bits([x.numpy()], [expected], "fill_diagonal_")

    def program(x, g):
        y = x * 1
        return (y.fill_diagonal_(7.0, wrap=wrap) * g).sum()

    g = values(shape, 1)
    assert_all_same_bits([np.asarray(static.grad(program)(array, g))], [np.where(expected == 7, 0, g)], "gradient")
    assert_all_same_bits([tw.grad(program)(array, g).numpy()], [np.where(expected == 7, 0, g)], "gradient")


def test_put_and_index_reduce_by_loops():
    x, s = values((3, 4)).astype(np.float64), values((4, 4), 1).astype(np.float64)
    for accumulate in (False, True):
        flat = x.copy().reshape(-1)
        for i, v in zip((0, -1, 5, 0), s[0], strict=True):
            flat[i] = flat[i] + v if accumulate else v
        found = tw.tensor(x).put_(tw.tensor([[0, -1], [5, 0]]), tw.tensor(s[0].reshape(2, 2)), accumulate)
        assert_all_same_bits([found.numpy()], [flat.reshape(3, 4)], "put_")
    meet = {"prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}
    for reduce, combine in meet.items():
        for include_self in (False, True):
            expected = x.copy()
            for row, sources in ((0, [0, 2]), (2, [1, 3])):
                parts = [x[row]] * include_self + [s[k] for k in sources]
                for k, part in enumerate(parts):
                    expected[row] = combine(expected[row], part) if k else part
                expected[row] /= len(parts) if reduce == "mean" else 1
            index = tw.tensor([0, 2, 0, 2])
            y = tw.tensor(x).index_reduce_(0, index, tw.tensor(s), reduce, include_self=include_self)
            assert_all_same_bits([y.numpy()], [expected], reduce)


REFUSED = {
    "elements": lambda x: x.put_([0, 1], x),
    "index": lambda x: x.put([9], [1.0]),
    "sum": lambda x: x.index_reduce_(0, [0], x[:1], "sum"),
    "dimensions": lambda x: x[0].fill_diagonal_(1),
    "equal length": lambda x: tw.zeros(2, 3, 2).fill_diagonal_(1),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what):
    with pytest.raises((ValueError, IndexError), match=what):
        REFUSED[what](tw.ones(3, 3))


def test_what_does_not_fit_is_refused():
    with pytest.raises(DTypeError, match=r"exp_\(\): result type float32 can't be cast to int64"):
        tw.tensor([1, 2]).exp_()
    with pytest.raises(GradientError, match=r"a leaf Variable that requires grad .*clamp_"):
        tw.tensor([1.0], requires_grad=True).clamp_(0, 1)
    with pytest.raises(ShapeError, match=r"atan2_\(\): the result has shape \(2, 3\)"):
        tw.ones(3).atan2_(tw.ones(2, 3))


@pytest.mark.parametrize("engine", [tw, static])
@pytest.mark.parametrize("name", ["pow", "atan2", "xlogy", "fmod", "ldexp", "clamp", "mul", "hypot", "remainder"])
def test_rules_of_operands_find_what_was_written_over(name, engine):
    y = engine.tensor([0.4, 0.7, 0.2], requires_grad=True)
    gradients = []
    for form in (name, f"{name}_"):
        x = engine.tensor([0.5, 0.6, 0.9])  # needs no gradient itself
        z = getattr(x, form)(y)
        own = y * 1
        own = getattr(own, form)(own)  # an operand itself
        gradients.append(engine.autograd.grad(z.sum() + own.sum(), y)[0])
    assert_all_same_bits(gradients[1:], gradients[:1], name)


def test_writes_count_for_what_was_saved():
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y * y
    y.relu_()
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        z.sum().backward()
