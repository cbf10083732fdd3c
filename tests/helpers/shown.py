"""Random programs of what a trace must follow without memory: views, parts, repetitions, writes, sizes, results.

A program is a list of steps on a pool of tensors: two arguments, a captured tensor, and what is made of them. It names
no size, so it runs at all of them, those that are 0 or 1 by derivation included; where one engine refuses, both do. It
may write to anything, also to arguments and captured tensors, and returns anything, several times.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

import dynamic
from common.core.errors import GradientError, TwingradError
from common.core.tree import flatten
from tests.bits import assert_same_bits


def _cut(x: Any, dim: int, start: Any, stop: Any, step: Any = None) -> Any:
    return x[(*[slice(None)] * (dim % x.ndim), slice(start, stop, step))]


#: Of what has at least one dimension, of which -1 and 0 are the last and the first.
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "[1:]": lambda tw, x: x[1:],
    "[:-1]": lambda tw, x: _cut(x, -1, None, -1),
    "[1:] last": lambda tw, x: _cut(x, -1, 1, None),
    "[-2:]": lambda tw, x: _cut(x, -1, -2, None),
    "[:2]": lambda tw, x: x[:2],
    "[::2]": lambda tw, x: _cut(x, -1, None, None, 2),
    "[1::2]": lambda tw, x: x[1::2],
    "[0]": lambda tw, x: x[0],
    "[..., -1]": lambda tw, x: x[..., -1],
    "[np.int64(1)]": lambda tw, x: x[np.int64(1)],
    "[:np.int32(2)]": lambda tw, x: x[: np.int32(2)],
    "[None]": lambda tw, x: x[None],
    "[:]": lambda tw, x: x[:],
    "[...]": lambda tw, x: x[...],
    "transpose": lambda tw, x: x.transpose(0, -1),
    "permute": lambda tw, x: x.permute(*reversed(range(x.ndim))),
    "flatten": lambda tw, x: x.flatten(),
    "reshape": lambda tw, x: x.reshape(-1, 1),
    "reshape to one more": lambda tw, x: x.reshape(1, *x.shape),
    "view": lambda tw, x: x.view(-1),
    "as it is": lambda tw, x: x.reshape(x.shape),
    "unsqueeze": lambda tw, x: x.unsqueeze(-1),
    "squeeze": lambda tw, x: x.squeeze(0),
    "narrow": lambda tw, x: x.narrow(0, 0, x.shape[0] // 2),
    "narrow by numpy": lambda tw, x: x.narrow(np.int64(0), np.int64(0), np.int8(1)),
    "select": lambda tw, x: x.select(np.int32(-1), np.uint8(0)),
    "expand": lambda tw, x: x.unsqueeze(0).expand(2, *x.shape),
    "expand by size": lambda tw, x: x[:1].expand(x.shape),
    "diagonal": lambda tw, x: (x if x.ndim > 1 else x[None]).diagonal(),
    "unfold": lambda tw, x: x.unfold(0, 1, 1),
    "windows": lambda tw, x: x.unfold(-1, 2, 1),
    "movedim": lambda tw, x: x.movedim(0, -1),
    "unflatten": lambda tw, x: x.unflatten(0, (x.shape[0], 1)),
    "the same": lambda tw, x: x.to(x.dtype),
    "expand_as": lambda tw, x: x.expand_as(x),
    "real sizes": lambda tw, x: x.view(*x.shape),
}
#: Each gives several results.
PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "split 1": lambda tw, x: x.split(1),
    "split 2": lambda tw, x: x.split(2, -1),
    "split in two": lambda tw, x: x.split([1, x.shape[-1] - 1], -1),
    "chunk": lambda tw, x: x.chunk(2),
    "chunk last": lambda tw, x: x.chunk(3, -1),
    "unbind": lambda tw, x: x.unbind(),
    "unbind last": lambda tw, x: x.unbind(-1),
    "tensor_split": lambda tw, x: x.tensor_split(2),
    "tensor_split at": lambda tw, x: x.tensor_split((1,), -1),
    "tensor_split by numpy": lambda tw, x: x.tensor_split(np.int64(3), -1),
    "split by numpy": lambda tw, x: x.split(np.int64(2)),
    "iterated": lambda tw, x: list(x),
}
#: New tensors; those of the second line have sizes of their own.
MADE: dict[str, Callable[[Any, Any], Any]] = {
    "times": lambda tw, x: x * 1.5,
    "plus": lambda tw, x: 0.25 + x,
    "minus": lambda tw, x: -x,
    "tanh": lambda tw, x: x.tanh(),
    "square": lambda tw, x: x * x,
    "relu": lambda tw, x: x.relu(),
    "clone": lambda tw, x: x.clone(),
    "contiguous": lambda tw, x: x.contiguous(),
    "float32": lambda tw, x: x.to(np.float32),
    "sum": lambda tw, x: x.sum(),
    "sum 0": lambda tw, x: x.sum(0),
    "sum keepdim": lambda tw, x: x.sum(-1, keepdim=True),
    "mean": lambda tw, x: x.mean(-1),
    "softmax": lambda tw, x: x.softmax(-1),
    "cumsum": lambda tw, x: x.cumsum(0),
    "prod": lambda tw, x: x.prod(-1),
    "amax": lambda tw, x: x.amax(-1),
    "repeat": lambda tw, x: x.repeat(2, *[1] * (x.ndim - 1)),
    "repeat more": lambda tw, x: x.repeat(1, *[2] * x.ndim),
    "repeat once": lambda tw, x: x.repeat([1] * x.ndim),
    "repeat never": lambda tw, x: x.repeat(*[np.int64(1)] * (x.ndim - 1), 0),
    "tile": lambda tw, x: tw.tile(x, (2,)),
    "interleave": lambda tw, x: x.repeat_interleave(2, 0),
    "interleave all": lambda tw, x: x.repeat_interleave(np.int64(3)),
    "difference": lambda tw, x: x[1:] - x[:-1],
    "differences": lambda tw, x: _cut(x, -1, 1, None) * _cut(x, -1, None, -1),
    "by derivation": lambda tw, x: x[1:] * x,
    "by derivation last": lambda tw, x: x + _cut(x, -1, 1, None),
    "every other": lambda tw, x: x[::2] - x[:1],
    "cat": lambda tw, x: tw.cat([x, x[1:]]),
    "cat last": lambda tw, x: tw.cat([_cut(x, -1, None, 1), x, x], -1),
    "cat with nothing": lambda tw, x: tw.cat([tw.zeros(0), x, tw.zeros(np.int64(0))]),
    "stack": lambda tw, x: tw.stack([x, x * 2]),
    "pad": lambda tw, x: tw.nn.functional.pad(x, (1, 0)),
    "pad less": lambda tw, x: tw.nn.functional.pad(x, (-1, 0)),
    "flip": lambda tw, x: x.flip(0),
    "roll": lambda tw, x: x.roll(1, 0),
    "products": lambda tw, x: (x if x.ndim == 2 else x.reshape(-1, 1)).t() @ (x if x.ndim == 2 else x.reshape(-1, 1)),
    "outer": lambda tw, x: x.reshape(-1, 1) * x.reshape(1, -1)[:, 1:],
    "triangle": lambda tw, x: (x if x.ndim == 2 else x.reshape(1, -1)).tril(),
    "pool": lambda tw, x: x.unfold(-1, 2, 2).sum(-1),
    "diff": lambda tw, x: tw.diff(x, dim=-1),
    "take": lambda tw, x: x.flatten()[1:].sum(),
    "filled": lambda tw, x: x + tw.full(x.shape, np.float32(2.0)),
    "ones of a size": lambda tw, x: x * tw.ones(x.shape[0] - 1, 1) if x.ndim == 1 else x * tw.ones(x.shape[-1]),
    "arange": lambda tw, x: x + tw.arange(x.shape[-1]),
    "where": lambda tw, x: tw.where(x > 0, x, x[:1]),
    "masked": lambda tw, x: x.masked_fill(x > 0, 0.5),
    "index_select": lambda tw, x: x.index_select(0, tw.arange(x.shape[0])[:1].expand(x.shape[0])),
    "branch": lambda tw, x: tw.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, x),
    "scan": lambda tw, x: tw.scan(lambda h, t: (h * 0.5 + t, h), x.sum(0) * 0, x)[1],
    "in a function": lambda tw, x: tw.function(lambda y: (y * 2, y[1:]))(x)[0],
    "a branch on sizes": lambda tw, x: x * 2 if x.shape[0] > 1 else x - 1,
    "loop over a size": lambda tw, x: sum((x.sum() * i for i in range(x.shape[0])), start=x.sum()),
}
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda tw, x: x.add_(0.5),
    "mul_": lambda tw, x: x.mul_(-1.5),
    "zero_": lambda tw, x: x.zero_(),
    "fill_": lambda tw, x: x.fill_(0.75),
    "copy_": lambda tw, x: x.copy_(x.detach().clone() * 2 if x.ndim == 0 else x[:1] * 2),
    "neg_": lambda tw, x: x.neg_(),
    "clamp_": lambda tw, x: x.clamp_(-0.5, 0.5),
    "[...] =": lambda tw, x: x.__setitem__(..., 0.125),
    "[0] =": lambda tw, x: x.__setitem__(0, 3.0),
    "[1:] =": lambda tw, x: x.__setitem__(slice(1, None), x[:-1] * 2),
    "[np.int64(0)] +=": lambda tw, x: x.__setitem__(np.int64(0), x[np.int64(0)] + 1),
    "[:np.int64(1)] =": lambda tw, x: x.__setitem__(slice(None, np.int64(1)), np.float32(2.0)),
    "parts swapped": lambda tw, x: x[:1].copy_(x[-1:] * 2),
    "masked_fill_": lambda tw, x: x.masked_fill_(x.detach() > 0, 0.25),
    "+= column": lambda tw, x: x.__setitem__((..., slice(0, 1)), x[..., -1:] + 1),
}
_KINDS = {"view": VIEWS, "part": PARTS, "made": MADE, "write": WRITES}


class Program(NamedTuple):
    """Steps (kind, name, operand, ...); positions of results; whether writes are made under `no_grad`."""

    steps: tuple[tuple[Any, ...], ...]
    results: tuple[int, ...]
    quiet: bool
    nested: bool

    def run(self, tw: Any, *given: Any) -> Any:
        """Run the program on the tensors that it is given."""
        pool = list(given)
        for kind, name, i, j in self.steps:
            x = pool[i]
            if kind == "both":
                pool.append(x + pool[j] * 2)
            elif kind == "into":
                if self.quiet:
                    with tw.no_grad():
                        x.mul_(pool[j])
                else:
                    x.mul_(pool[j])
            elif kind == "write":
                if self.quiet:
                    with tw.no_grad():
                        WRITES[name](tw, x)
                else:
                    WRITES[name](tw, x)
            else:
                y = _KINDS[kind][name](tw, x)
                if kind == "part":
                    pool += [y[j % len(y)], y[-1]]
                else:
                    pool.append(y)
        found = [pool[i] for i in self.results]
        return {"a": found[0], "b": (found[1:], 3)} if self.nested else tuple(found)

    def __str__(self) -> str:
        """The program as text."""
        names, lines = count(3), []
        for kind, name, i, j in self.steps:
            if kind in ("both", "into"):
                text = f"v{i} + v{j} * 2" if kind == "both" else f"v{i}.mul_(v{j})"
            else:
                text = f"v{i}: {name}" + (f", part {j}" if kind == "part" else "")
            new = [f"v{next(names)}" for _ in range({"write": 0, "into": 0, "part": 2}.get(kind, 1))]
            lines.append(f"{', '.join(new)} = {text}" if new else text)
        how = ("writes under no_grad, " if self.quiet else "") + f"returns {self.results}"
        return "\n".join([*lines, how])


def make(seed: int, most: int = 8) -> Program:
    """A program that runs with (4, 3); v0, v1 are arguments, (n, m) and (n), v2 is captured, (3, 2)."""
    rng = random.Random(seed)
    quiet = rng.random() < 0.2
    steps: list[tuple[Any, ...]] = []
    size, fresh = 3, [0, 1, 2]
    if rng.random() < 0.6:  # what is made here may be written with history
        steps.append(("made", "times", rng.choice((0, 0, 0, 1, 2)), 0))
        fresh.append(size)
        size += 1
    for _ in range(2 * most):
        if len(steps) > most:
            break
        kind = rng.choice(("view", "view", "view", "part", "made", "made", "made", "write", "write", "into", "both"))
        i = rng.choice(fresh[-4:]) if rng.random() < 0.7 else rng.randrange(size)
        j = rng.randrange(size) if kind in ("both", "into") else rng.randrange(4)
        name = rng.choice(list(_KINDS[kind])) if kind in _KINDS else kind
        if not _runs(Program((*steps, (kind, name, i, j)), (0,), quiet, False)):
            continue
        steps.append((kind, name, i, j))
        for _ in range({"write": 0, "into": 0, "part": 2}.get(kind, 1)):
            fresh.append(size)
            size += 1
    results = rng.choices(range(size), k=rng.randint(1, 2)) + rng.choices(fresh[-4:], k=rng.randint(1, 2))
    return Program(tuple(steps), tuple(results), quiet, rng.random() < 0.3)


def _runs(program: Program) -> bool:
    """Whether a program runs."""
    given = [dynamic.ones(*shape) for shape in ((4, 3), (4,), (3, 2))]
    try:
        program.run(dynamic, *given)
    except (TwingradError, ZeroDivisionError, IndexError, TypeError, ValueError):
        return False
    return True


SIZES = [(4, 3), (2, 2), (3, 2), (2, 3), (3, 1), (1, 3), (0, 2), (2, 0), (1, 1), (5, 4), (2, 4), (3, 3)]


class Outcome(NamedTuple):
    """The facts of a call on which engines agree: plain ones, and arrays by name; or the error."""

    facts: Any
    arrays: dict[str, Any]


def outcomes(tw: Any, program: Program, needs: tuple[bool, ...], sizes: Any, **how: Any) -> Iterator[Outcome]:
    """Call one function at one size after the other.

    Parameters
    ----------
    needs : which of the two arguments and the captured tensor require grad.
    """
    c = dynamic.tensor(np.linspace(-1, 2, 6, dtype=np.float32).reshape(3, 2), requires_grad=needs[2])
    f = tw.function(lambda x, y: program.run(tw, x, y, c), **how)
    for n, m in sizes:
        rng = np.random.default_rng(n * 10 + m)
        x = dynamic.tensor(rng.normal(size=(n, m)).astype(np.float32), requires_grad=needs[0])
        y = dynamic.tensor(rng.normal(size=n).astype(np.float32), requires_grad=needs[1])
        with dynamic.no_grad():
            c.copy_(dynamic.tensor(np.linspace(-1, 2, 6, dtype=np.float32).reshape(3, 2)))
        c.grad = None
        yield _outcome(f, x, y, c)


def _outcome(f: Any, x: Any, y: Any, c: Any) -> Outcome:
    try:
        leaves, structure = flatten(f(x, y))
    except (TwingradError, ZeroDivisionError, IndexError) as error:
        return Outcome(error, {})
    made = [t for t in leaves if isinstance(t, dynamic.Tensor)]
    first: dict[int, int] = {}
    facts = [structure, [first.setdefault(id(t), i) for i, t in enumerate(made)], [t.requires_grad for t in made]]
    arrays: dict[str, Any] = {f"result {i}": np.array(t.payload) for i, t in enumerate(made)}
    arrays |= {"x": np.array(x.payload), "y": np.array(y.payload), "c": np.array(c.payload)}
    roots = [t for t in made if t.requires_grad]
    if roots:
        total = sum((t * (i + 1.5) * t).sum() for i, t in enumerate(roots))
        try:
            total.backward()
        except GradientError:  # what the eager engine has saved was overwritten; a compiled program has no memory
            return Outcome(facts, arrays)
        arrays |= {f"gradient of {name}": None if t.grad is None else t.grad.payload
                   for name, t in (("x", x), ("y", y), ("c", c))}  # fmt: skip
    return Outcome(facts, arrays)


def assert_equal(found: Outcome, expected: Outcome, what: str) -> None:
    """Fail where two engines differ."""
    if isinstance(expected.facts, Exception) or isinstance(found.facts, Exception):
        assert isinstance(expected.facts, Exception) is isinstance(found.facts, Exception), (
            f"{what}: {found.facts!r} against {expected.facts!r}"
        )
        return
    assert found.facts == expected.facts, f"{what}: {found.facts} against {expected.facts}"
    for name, array in expected.arrays.items():
        assert name in found.arrays, f"{what}: there is no {name}"
        other = found.arrays[name]
        assert (array is None) is (other is None), f"{what}: {name} is {other} against {array}"
        if array is not None:
            assert_same_bits(other, array, f"{what}: {name}")
