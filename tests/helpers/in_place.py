"""Random programs with in-place writes and views, the same for every engine with PyTorch's methods.

A program is a list of steps on a pool of tensors: arithmetic, views of views, writes through any of them, and reads in
between, so that gradients pass through what was overwritten. Reads are linear: what they save is not overwritten.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Step = tuple[Any, ...]

VIEWS: list[tuple[str, Callable[[Any], Any]]] = [
    ("first row", lambda x: x[0]),
    ("last rows", lambda x: x[1:]),
    ("every other column", lambda x: x[..., ::2]),
    ("turned", lambda x: x.t() if len(x.shape) == 2 else x),
    ("flat", lambda x: x.reshape(-1)),
    ("one more dimension", lambda x: x.unsqueeze(0)),
    ("narrowed", lambda x: x.narrow(0, 0, 2) if len(x.shape) and x.shape[0] > 2 else x[:1]),
]
WRITES: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("add", lambda x, w: x.add_(w)),
    ("scale", lambda x, w: x.mul_(w)),
    ("scale by a number", lambda x, w: x.mul_(0.5)),
    ("subtract", lambda x, w: x.sub_(w * 2)),
    ("zero", lambda x, w: x.zero_()),
    ("fill", lambda x, w: x.fill_(0.25)),
    ("copy", lambda x, w: x.copy_(w.expand(x.shape))),
    ("set", lambda x, w: x.__setitem__(Ellipsis, w)),
]


def make(seed: int, steps: int = 8) -> list[Step]:
    """A program: ("op", i), ("view", i, which), ("write", i, which, j), ("read", i)."""
    rng = random.Random(seed)
    program: list[Step] = [("op", 0)]
    count = 2
    for _ in range(steps):
        kind = rng.choice(("view", "view", "write", "write", "write", "op", "read"))
        i = rng.randrange(1, count)
        if kind == "view":
            program.append(("view", i, rng.randrange(len(VIEWS))))
            count += 1
        elif kind == "write":
            program.append(("write", i, rng.randrange(len(WRITES)), rng.randrange(2)))
        elif kind == "op":
            program.append(("op", i))
            count += 1
        else:
            program.append(("read", i))
    return program


def run(program: list[Step], x: Any, w: Any) -> Any:
    """The sum of what was read and of all tensors at the end; `w` is 0-d."""
    pool = [x]
    total = (x * 0.1).sum()
    for step in program:
        if step[0] == "op":
            pool.append(pool[step[1]] * 1.5 + w)
        elif step[0] == "view":
            source = pool[step[1]]
            pool.append(VIEWS[step[2]][1](source) if len(source.shape) else source)
        elif step[0] == "write":
            WRITES[step[2]][1](pool[step[1]], w if step[3] else w * w)
        else:
            total = total + (pool[step[1]] * 0.7).sum()
    for position, y in enumerate(pool[1:]):
        total = total + (y * (0.5 + position)).sum()
    return total


def describe(program: list[Step]) -> str:
    """A program in words."""
    words: dict[str, list[Any]] = {"view": list(VIEWS), "write": list(WRITES)}
    return "; ".join(f"{s[0]} {s[1]} {words[s[0]][s[2]][0]}" if s[0] in words else f"{s[0]} {s[1]}" for s in program)
