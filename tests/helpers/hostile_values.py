"""Values that no function expects, made anew for each call; see `tests.helpers.hostile`."""

from __future__ import annotations

import collections
import datetime
import fractions
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import dynamic


class Raised(Exception):
    """An exception of a hostile object's methods: it has to reach the caller as it is."""


class Raising:
    """An object of which one method raises, and the others answer."""

    def __init__(self, method: str) -> None:
        self.method = method

    def _answer(self, method: str, value: Any) -> Any:
        if method == self.method:
            raise Raised(method)
        return value

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._answer("array", np.ones(2, np.float32))

    def __index__(self) -> int:
        return self._answer("index", 1)

    def __float__(self) -> float:
        return self._answer("float", 1.0)

    def __bool__(self) -> bool:
        return self._answer("bool", True)

    def __eq__(self, other: object) -> bool:
        return self._answer("eq", self is other)

    def __hash__(self) -> int:
        return self._answer("hash", 1)

    def __len__(self) -> int:
        return self._answer("len", 2)

    def __iter__(self) -> Any:
        return self._answer("iter", iter([1, 2]))

    def __repr__(self) -> str:
        return self._answer("repr", f"Raising({self.method!r})")

    def __call__(self, *args: Any) -> Any:
        return self._answer("call", args[0] if args else None)


def _endless() -> Any:
    own: list[Any] = [1]
    own.append(own)
    return own


def _endless_dict() -> Any:
    own: dict[str, Any] = {}
    own["a"] = own
    return own


def _deep() -> Any:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    return deep


def _frozen() -> np.ndarray:
    x = np.ones((2, 3), np.float32)
    x.flags.writeable = False
    return x


def _wide(n: int) -> Any:
    return dynamic.ones(1).expand(n)


def _generator() -> Any:
    yield from (1, 2)


def _user(*args: Any) -> Any:
    raise Raised("function")


#: Functions that make a value each.
VALUES: list[Callable[[], Any]] = [
    lambda: None, lambda: True, lambda: False, lambda: 0, lambda: -1, lambda: 1, lambda: 2, lambda: 5, lambda: -100,
    lambda: 2**31, lambda: 2**40, lambda: 2**62, lambda: 2**63 - 1, lambda: 2**63, lambda: -(2**63), lambda: 2**64,
    lambda: -(2**70), lambda: 10**5000, lambda: math.nan, lambda: math.inf, lambda: -math.inf, lambda: -0.0,
    lambda: 0.5, lambda: 1e300, lambda: 1e-320, lambda: 1 + 2j, lambda: fractions.Fraction(1, 3),
    lambda: datetime.timedelta(1), lambda: "", lambda: "x", lambda: "mean", lambda: "a" * 10000, lambda: "\0",
    lambda: "\ud800", lambda: "float32", lambda: b"", lambda: b"ab", lambda: bytearray(b"ab"),
    lambda: memoryview(b"ab"),
    list, lambda: (), dict, lambda: set(), lambda: {1, 2}, lambda: frozenset(), lambda: [[]], lambda: [None],
    lambda: [1, [2]], lambda: [1, 2], lambda: (2, 3), lambda: (-1, -1), lambda: (0,), lambda: [0.5], lambda: ["a"],
    lambda: {"a": 1}, lambda: {1: 2}, lambda: range(2), lambda: range(2**40), lambda: slice(None), lambda: Ellipsis,
    lambda: NotImplemented, lambda: (2**31, 2**31), lambda: (2**62, 4), lambda: (1,) * 100, lambda: [2**63],
    lambda: (True, False), lambda: object(), lambda: object, lambda: int, lambda: type, lambda: np, lambda: len,
    lambda: (lambda: 0), lambda: (lambda *a: None), lambda: (lambda x: x), lambda: _user, _generator, lambda: iter([1]),
    lambda: iter([]), lambda: map(str, [1]), lambda: collections.OrderedDict(a=1), lambda: collections.deque([1]),
    _endless, _endless_dict, _deep,
    *[lambda method=method: Raising(method)
      for method in ("array", "index", "float", "bool", "eq", "hash", "len", "iter", "repr", "call", "none")],
    # numpy's
    lambda: np.float32(0.5), lambda: np.float64(math.nan), lambda: np.float16(1), lambda: np.int64(-1),
    lambda: np.int8(1), lambda: np.uint64(2**63), lambda: np.bool_(True), lambda: np.str_("a"), lambda: np.bytes_(b"a"),
    lambda: np.complex64(1j), lambda: np.datetime64("2020-01-01"), lambda: np.timedelta64(1, "s"),
    lambda: np.dtype("float32"), lambda: np.dtype("float16"), lambda: np.dtype([("a", "f4")]), lambda: np.float32,
    lambda: np.array(None), lambda: np.array([None, 1]), lambda: np.array("a"), lambda: np.array(b""),
    lambda: np.array(["a", "b"]), lambda: np.zeros(2, [("a", "f4"), ("b", "i4")]), lambda: np.zeros(2, "V3"),
    lambda: np.zeros(2, "datetime64[s]"), lambda: np.zeros((2, 3), np.complex64), lambda: np.zeros((2, 3), np.float16),
    lambda: np.zeros((2, 3), np.uint32), lambda: np.zeros((2, 3), np.uint64), lambda: np.zeros((2, 3), ">f4"),
    lambda: np.ones(2, ">i8"), lambda: np.zeros((2, 3), np.longdouble), _frozen, lambda: np.zeros(0, np.float32),
    lambda: np.zeros((0, 3), np.float32), lambda: np.zeros((3, 0, 2)), lambda: np.array(2.0), lambda: np.array(3),
    lambda: np.array(True), lambda: np.ones((1,) * 32, np.float32), lambda: np.ones((1,) * 64, np.float32),
    lambda: np.ones((2, 3, 4, 5, 2), np.float32), lambda: np.asfortranarray(np.ones((2, 3), np.float32)),
    lambda: np.ones((4, 6), np.float32)[::2, ::-2], lambda: np.full((2, 3), np.nan), lambda: np.array([0, 5, -7]),
    lambda: np.array([2**62, -(2**63)]), lambda: np.array([[True, False, True]] * 2), lambda: np.matrix([[1.0, 2.0]]),
    lambda: np.ma.masked_array([1.0, 2.0], [True, False]), lambda: np.broadcast_to(np.float32(1), (2**20, 2**20)),
    lambda: np.arange(6).reshape(2, 3).astype(np.uint8), lambda: np.random.default_rng(0),
    # tensors
    lambda: dynamic.tensor(1.5), lambda: dynamic.tensor(2), lambda: dynamic.tensor(True), lambda: dynamic.tensor([]),
    lambda: dynamic.ones(2, 3), lambda: dynamic.ones(3, 2, dtype="float64"), lambda: dynamic.ones(7),
    lambda: dynamic.ones(2, 3, dtype="int64"), lambda: dynamic.ones(2, 3, dtype="uint8"),
    lambda: dynamic.ones(2, 3, dtype="bool"), lambda: dynamic.tensor([0, 1]), lambda: dynamic.tensor([-3, 2**40]),
    lambda: dynamic.ones(2, 3, requires_grad=True), lambda: dynamic.ones(2, 3, requires_grad=True) * 2,
    lambda: dynamic.ones(2, 3).t(), lambda: dynamic.ones(1, 3).expand(2, 3), lambda: dynamic.zeros(0, 3),
    lambda: _wide(2**40), lambda: dynamic.ones(1, 1).expand(2**20, 2**20),
    lambda: dynamic.ones(1, dtype="int64").expand(2**40), lambda: dynamic.full((2, 3), math.nan),
    lambda: dynamic.nn.Parameter(np.ones((2, 3), np.float32)), lambda: dynamic.nn.Linear(3, 2),
    lambda: dynamic.Generator(), lambda: dynamic, lambda: dynamic.Tensor, lambda: dynamic.nn.Linear,
    lambda: [dynamic.ones(2, 3), dynamic.ones(2, 3)], lambda: (dynamic.ones(2), None),
    lambda: [dynamic.ones(2, 3), "a"],
    lambda: {"a": dynamic.ones(2)}, lambda: [_wide(2**40)],
]  # fmt: skip
