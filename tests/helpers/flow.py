"""Random Python functions whose `if`, `while` and `for` depend on tensors, as source text.

Every name has a value before anything decides, loops end, values stay bounded, so that any path of any program runs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

VALUES = (
    "(a * 0.7 - b * s).tanh()", "(b + a.sin() * 0.5)", "(a * b).cos()", "a * (s * 0.5) + b * 0.3",
    "b.tanh() - a * 0.25", "helper(a) + b * 0.5", "(b if {test} else a * 0.9)",
)  # fmt: skip
SCALARS = ("(a * b).sum().tanh()", "s * 0.5 + a.mean()", "(s - b.sum()).sin()", "a[k % 3] * 0.8")
TESTS = (
    "a.sum() > 0.2", "s.item() < 0.4", "-0.5 < s < 0.6", "not (b.max() > 0.5)", "a[0] > b[1] and s > 0",
    "s < 0.1 or k == 1", "k < 2", "float(k) > 0.5",
)  # fmt: skip
HELPER = "def helper(x):\n    if x.sum() > 0.1:\n        return x.sin()\n    y = x * 0.5\n    return y.cos()\n\n\n"


class _Writer:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.lines, self.loops = rng, list[str](), 0

    def pick(self, texts: tuple[str, ...]) -> str:
        return str(texts[self.rng.integers(len(texts))]).replace("{test}", "s > 0.3")

    def block(self, depth: int, indent: str, loop: bool) -> None:
        for _ in range(self.rng.integers(1, 4)):
            kind = self.rng.integers(10)
            if depth and kind < 3:
                self.branch(depth - 1, indent, loop)
            elif depth and kind < 5:
                self.loop(depth - 1, indent, ("while", "range", "data", "rows")[self.rng.integers(4)])
            elif kind == 5:
                self.lines.append(f"{indent}s = {self.pick(SCALARS)}")
            elif kind == 6:
                self.lines.append(f"{indent}k = (k + 1) % 3")
            elif kind == 7:
                self.lines += [f"{indent}b = b * 1", f"{indent}b += a * 0.125"]
            else:
                self.lines.append(f"{indent}{'ab'[self.rng.integers(2)]} = {self.pick(VALUES)}")

    def branch(self, depth: int, indent: str, loop: bool) -> None:
        self.lines.append(f"{indent}if {self.pick(TESTS)}:")
        self.block(depth, indent + "    ", loop)
        leave = self.rng.integers(6)
        if leave == 0:
            self.lines.append(f"{indent}    return a * 0.5 + s")
        elif leave < 3 and loop:
            self.lines.append(f"{indent}    {('break', 'continue')[self.rng.integers(2)]}")
        if self.rng.integers(2):
            self.lines.append(f"{indent}else:")
            self.block(depth, indent + "    ", loop)

    def loop(self, depth: int, indent: str, kind: str) -> None:
        self.loops += 1
        n = f"n{self.loops}"
        if kind == "while":
            self.lines.append(f"{indent}{n} = 0")
            self.lines.append(f"{indent}while {n} < 3 and {self.pick(TESTS)}:")
            self.lines.append(f"{indent}    {n} += 1")
        elif kind == "range":
            self.lines.append(f"{indent}for {n} in range(2):")
        elif kind == "data":
            self.lines.append(f"{indent}for {n} in range((a.sum() * 2).abs().clamp(0, 3).long()):")
        else:
            self.lines.append(f"{indent}for {n} in a * 1:")
            self.lines.append(f"{indent}    s = (s + {n}).tanh()")
        self.block(depth, indent + "    ", True)


def source(seed: int) -> str:
    """A module with a function ``program(a, b, s)`` of two tensors (3,) and one ()."""
    writer = _Writer(np.random.default_rng(seed))
    while writer.loops == 0 or len(writer.lines) < 8:
        writer.branch(2, "    ", False)
        writer.block(2, "    ", False)
    body = "\n".join(writer.lines)
    return f"{HELPER}def program(a, b, s):\n    a, b, s, k = a * 1, b * 1, s * 1, 0\n{body}\n    return a * s + b\n"


def program(seed: int, folder: Path) -> Callable[..., Any]:
    """The function, imported from a file, because its source is needed."""
    path = folder / f"flow_{seed}.py"
    path.write_text(source(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Callable[..., Any] = module.program
    return made


def inputs(seed: int, dtype: Any) -> list[np.ndarray]:
    """Operands of a program."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=shape) * 0.8, dtype) for shape in ((3,), (3,), ())]
