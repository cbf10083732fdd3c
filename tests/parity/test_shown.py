"""Facts that a trace follows without memory: views, parts, repetitions, writes, derived sizes; numpy's ints."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import TwingradError
from tests.bits import assert_all_same_bits, assert_same_bits
from tests.helpers import shown
from tests.helpers.proofs import first

NEEDS = [(False, False, False), (True, True, False), (True, False, True), (True, True, True), (False, False, True)]


@pytest.mark.parametrize("part", first(2, range(4)))
def test_random_programs_at_every_size(part):
    for seed in range(part * 10, part * 10 + 10):
        rng, program = random.Random(seed), shown.make(seed)
        needs, sizes = rng.choice(NEEDS), [rng.choice(shown.SIZES[:6]), *rng.sample(shown.SIZES, 3)]
        expected = list(shown.outcomes(dynamic, program, needs, sizes))
        for options in ({"interpret": True}, {}) if seed % 3 == 0 else ({"interpret": True},):
            found = shown.outcomes(static, program, needs, sizes, **options)
            for size, outcome, wanted in zip(sizes, found, expected, strict=True):
                shown.assert_equal(outcome, wanted, f"program {seed}, {options}, {size} of {sizes}, {needs}\n{program}")


#: Programs whose sizes are 0, 1 or 2 by derivation for some n, m.
DERIVED: dict[str, Callable[[Any, Any], Any]] = {
    "part times all": lambda tw, x: x[1:] * x,
    "part of the last times all": lambda tw, x: x * x[:, 1:],
    "both parts": lambda tw, x: x[1:] * x[:, :-1],
    "guard on a size": lambda tw, x: (x[:, 1:] * 2).sum(1) if x.shape[1] == 2 else (x[:, 1:] * 2).sum(0),
    "guard after": lambda tw, x: (lambda y: y.sum(0) if x.shape[0] == 2 else y.sum(1))(x[1:] * 2),
    "strided": lambda tw, x: x[::2] + x[:1] * x[1::2],
    "differences": lambda tw, x: (x[1:] - x[:-1]) * x,
    "flattened": lambda tw, x: x.flatten()[1:] * x.flatten(),
    "flattened part": lambda tw, x: x[1:, 1:].flatten() + x[0],
    "concatenated": lambda tw, x: tw.cat([x[1:], x[2:]]) * x[:1] - x[1:2],
    "with nothing": lambda tw, x: tw.cat([tw.zeros(0), x, x.flatten()[x.shape[0] * x.shape[1] :]]) * x[:1],
    "with what may be nothing": lambda tw, x: tw.cat([x[:, 0][: x.shape[0] // 2], x]) if x.shape[1] else x * 2,
    "padded": lambda tw, x: tw.nn.functional.pad(x, (-1, 0)) * x,
    "windows": lambda tw, x: x.unfold(0, 2, 2).sum(-1) * x,
    "pooled": lambda tw, x: (x.unfold(1, 2, 1) * x[:, None, :2]).sum(-1) + x[:, :1],
    "half": lambda tw, x: x[: x.shape[0] // 2] * x,
    "made": lambda tw, x: tw.ones(x.shape[0] - 1, 1) * x[:, : x.shape[1] - 1],
    "expanded": lambda tw, x: x[:1].expand(x.shape[0] - 1, x.shape[1]) * x,
    "product": lambda tw, x: x[1:].t() @ x[1:] + x[1:, :1].t() @ x[1:],
    "softmax of a part": lambda tw, x: x[:, 1:].softmax(1) * x,
    "mean of a part": lambda tw, x: x[1:].mean(0) - x[1:].std(0) * x[1:],
    "stacked": lambda tw, x: tw.stack([x[1:], x[:-1]]).sum(0) * x,
    "loop": lambda tw, x: tw.scan(lambda h, t: (h + t, h * t), x[0] * 0, x[1:])[1] * x,
    "written part": lambda tw, x: (lambda y: (y.__setitem__(slice(1, None), y[:1] * 2), y * y[1:])[1])(x * 1),
    "several sizes": lambda tw, x: x.reshape(-1)[x.shape[0] :] * x.reshape(-1)[:1],
}


@pytest.mark.parametrize("name", DERIVED)
def test_sizes_that_are_one_by_derivation(name):
    program = DERIVED[name]
    sizes = [(n, m) for n in range(4) for m in range(4)]
    rng = random.Random(name)
    for options, order in (({}, [(2, 2), *rng.sample(sizes, 3)]), ({"interpret": True}, rng.sample(sizes, len(sizes)))):
        f = static.function(lambda x: program(static, x), **options)
        g = dynamic.function(lambda x: program(dynamic, x))
        for size in order:
            a, b = _of_zeros(f, size), _of_zeros(g, size)
            what = f"{name} of {size} after {order[: order.index(size)]}, {options}"
            assert isinstance(a, Exception) is isinstance(b, Exception), f"{what}: {a!r} against {b!r}"
            if not isinstance(a, Exception):
                assert_all_same_bits(a, b, what)


def _of_zeros(f: Any, size: tuple[int, int]) -> Any:
    """Value and gradient for a cotangent of -0.0, which a sum over one element would turn into +0.0; or the error."""
    data = -np.abs(np.random.default_rng(3).normal(size=size)).astype(np.float32)
    x = dynamic.tensor(data, requires_grad=True)
    try:
        y = f(x)
        y.backward(dynamic.full(tuple(y.shape), -0.0))
    except TwingradError as error:
        return error
    return [y.payload, x.grad.payload]


class Index:
    """An object that Python takes for an int."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __index__(self) -> int:
        return self.n


INTS = [np.int64, np.int32, np.uint8, np.int8, Index, np.array, lambda n: np.array(n, np.int32)]


def _set(key: Callable[[Any], Any]) -> Callable[..., Any]:
    def program(tw: Any, x: Any, i: Any) -> Any:
        y = x * 1
        y[key(i)] = 2.0
        y[key(i)] += y[key(i)] * x[0, 0]
        return y

    return program


#: Of an engine, a tensor (4, 3) and what makes an int of an int.
USES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "x[i]": lambda tw, x, i: x[i(1)] + x[i(1), i(0)] + x[..., i(2)][0],
    "x[i:j:k]": lambda tw, x, i: x[: i(2)][i(0) : i(2) : i(2), i(1) :],
    "x[-i:]": lambda tw, x, i: x[i(3) :, None, : i(1)],
    "x[i] =": _set(lambda i: i(1)),
    "x[:i] =": _set(lambda i: slice(None, i(1))),
    "x[i, j:] =": _set(lambda i: (i(1), slice(i(0), i(2)))),
    "select": lambda tw, x, i: x.select(i(0), i(1)) + tw.select(x, i(0), i(2)),
    "narrow": lambda tw, x, i: x.narrow(i(0), i(1), i(2)),
    "split": lambda tw, x, i: x.split(i(2), i(0))[0] * x.split([i(2), i(2)])[1],
    "chunk": lambda tw, x, i: x.chunk(i(2), i(0))[0] + x.tensor_split(i(2), i(0))[1],
    "tensor_split": lambda tw, x, i: x.tensor_split([i(1), i(2)], i(1))[1],
    "unbind": lambda tw, x, i: x.unbind(i(0))[0],
    "reshape": lambda tw, x, i: x.reshape(i(3), i(4)) + x.view((i(3), -1)),
    "expand": lambda tw, x, i: x.expand(i(2), i(4), i(3)),
    "repeat": lambda tw, x, i: x.repeat(i(2), i(1)) + tw.tile(x, (i(2), i(1))) + x.repeat_interleave(i(2), i(0)),
    "permute": lambda tw, x, i: x.permute(i(1), i(0)) + x.transpose(i(0), i(1)) + x.movedim(i(0), i(1)),
    "flatten": lambda tw, x, i: x.flatten(i(0), i(1)) + x.unflatten(i(0), (i(2), i(2))).reshape(-1),
    "unsqueeze": lambda tw, x, i: x.unsqueeze(i(1)).squeeze(i(1)),
    "unfold": lambda tw, x, i: x.unfold(i(0), i(2), i(1)),
    "reductions": lambda tw, x, i: x.sum(i(1)) + x.mean((i(1),)) + x.amax(i(1)) + x.softmax(i(1))[:, 0],
    "sort": lambda tw, x, i: x.sort(i(1))[0] + x.cumsum(i(1)) + x.topk(i(3), i(1))[0],
    "flip": lambda tw, x, i: x.flip(i(0)) + x.roll(i(1), i(0)) + x.tril(i(1)),
    "cat": lambda tw, x, i: tw.cat([x, x], i(1)) * tw.stack([x, x], i(1)).reshape(4, 6),
    "made": lambda tw, x, i: x + tw.zeros(i(4), i(3)) + tw.ones((i(4), i(3))) + tw.full((i(4), i(3)), 1.5),
    "pad": lambda tw, x, i: tw.nn.functional.pad(x, (i(1), i(2))) * tw.eye(i(4), i(6)),
    "one_hot": lambda tw, x, i: tw.nn.functional.one_hot(tw.tensor([0, 1]), i(3)) * x[:2],
    "sizes": lambda tw, x, i: x[:2] * x.size(i(0)) + tw.zeros(min(x.shape[0], 2), x.shape[i(1)]),
}
#: Python's own arithmetic with sizes, for which an int must be one of numpy's.
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "n + i": lambda n, i: n + i(1),
    "i + n": lambda n, i: i(1) + n,
    "n - i": lambda n, i: n - i(1),
    "i - n": lambda n, i: i(9) - n,
    "n * i": lambda n, i: n * i(2),
    "i * n": lambda n, i: i(2) * n,
    "n // i": lambda n, i: n // i(2),
    "i // n": lambda n, i: i(9) // n,
    "n % i": lambda n, i: n % i(3),
    "n ** i": lambda n, i: n ** i(2),
    "compared": lambda n, i: 2 if n == i(4) and n < i(5) and i(3) < n and i(4) == n else 3,
    "min": lambda n, i: min(n, i(2)) + max(n, i(2)),
}


@pytest.mark.parametrize("name", [*USES, *ARITHMETIC])
def test_ints_of_any_kind(name):
    if name in USES:
        uses, kinds = (
            USES[name],
            INTS[:5] if name.endswith("=") else INTS,
        )  # an array is data, of which a part is written
    else:
        uses, kinds = lambda tw, x, i: tw.zeros(ARITHMETIC[name](x.shape[0], i)) + x[0, 0], INTS[:4]
    data = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = dynamic.function(lambda x: uses(dynamic, x, int))(data)
    for kind in kinds:
        for tw in (dynamic, static):
            found = tw.function(lambda x, tw=tw, kind=kind: uses(tw, x, kind), interpret=True)(data)
            assert_same_bits(np.asarray(found), np.asarray(expected), f"{name} with {kind}, {tw.__name__}")
