"""In-place forms: the functional result, in the tensor's memory, with its history; in both engines, traced and not."""

from typing import Any

import numpy as np
import pytest

import dynamic as tw
import static
from common.errors import DTypeError, GradientError, ShapeError
from common.in_place_methods import NAMES
from tests.bits import assert_all_same_bits

#: Arguments that are not one tensor like the first, per name.
ARGUMENTS: dict[str, Any] = {
    "clamp": ((0.2, 0.7), {}), "clip": ((0.2, 0.7), {}), "clamp_max": ((0.5,), {}), "clamp_min": ((0.5,), {}),
    "cumsum": ((1,), {}), "cumprod": ((1,), {}), "logit": ((0.01,), {}), "pow": ((3.0,), {}),
    "nan_to_num": ((), {}), "round": ((), {}), "tril": ((), {}), "triu": ((), {}),
}  # fmt: skip
WHOLE = {"bitwise_not"}
BINARY = {
    "arctan2", "atan2", "copysign", "divide", "eq", "float_power", "fmod", "ge", "greater", "greater_equal", "gt",
    "heaviside", "hypot", "ldexp", "le", "less", "less_equal", "logical_and", "logical_or", "logical_xor", "lt",
    "multiply", "ne", "nextafter", "not_equal", "subtract", "true_divide", "xlogy",
}  # fmt: skip


def values(shape=(3, 3), seed=0):
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype(np.float32)


def operands(name, engine):
    """The tensor's contents and the other arguments of a call."""
    if name in WHOLE:
        return np.arange(6, dtype=np.int64), (), {}
    others = {
        "addmm": [(3, 3), (3, 3)], "addr": [(3,), (3,)], "addmv": [(3, 3), (3,)], "baddbmm": [(2, 3, 3), (2, 3, 3)],
        "addcmul": [(3, 3)] * 2, "addcdiv": [(3, 3)] * 2, "lerp": [(3, 3)] * 2,
    }.get(name)  # fmt: skip
    first = {"addmv": (3,), "baddbmm": (2, 3, 3)}.get(name, (3, 3))
    x = values(first) + (1 if name in ("acosh", "arccosh") else 0)
    if name in ARGUMENTS:
        return x, *ARGUMENTS[name]
    if others is None:
        others = [first] * (name in BINARY)
    return x, tuple(engine.tensor(values(shape, k + 1)) for k, shape in enumerate(others)), {}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_contents_memory_and_history(name):
    array, args, options = operands(name, tw)
    plain = tw.tensor(array)
    expected, memory = getattr(tw, name)(plain, *args, **options), plain.numpy()
    assert getattr(plain, f"{name}_")(*args, **options) is plain
    assert np.shares_memory(plain.numpy(), memory)
    assert_all_same_bits([memory], [expected.to(plain.dtype).numpy()], name)
    if name in WHOLE or expected.dtype.kind != "f":
        return
    slopes = []
    for in_place in (False, True):
        leaf = tw.tensor(array, requires_grad=True)
        y = leaf * 1
        y = getattr(y, f"{name}_")(*args, **options) if in_place else getattr(tw, name)(y, *args, **options)
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


def test_what_does_not_fit_is_refused():
    with pytest.raises(DTypeError, match=r"exp_\(\): result type float32 can't be cast to int64"):
        tw.tensor([1, 2]).exp_()
    with pytest.raises(GradientError, match=r"a leaf Variable that requires grad .*clamp_"):
        tw.tensor([1.0], requires_grad=True).clamp_(0, 1)
    with pytest.raises(ShapeError, match=r"atan2_\(\): the result has shape \(2, 3\)"):
        tw.ones(3).atan2_(tw.ones(2, 3))


def test_writes_count_for_what_was_saved():
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y * y
    y.relu_()
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        z.sum().backward()
