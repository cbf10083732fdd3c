"""Differences between the engines, shown by running the same lines in both: nothing is told from memory."""

from __future__ import annotations

import contextlib
import io
import linecache
from types import ModuleType
from typing import Any

CASES = {
    "A side effect of Python's": """
@tw.function
def f(x):
    print("hello")
    return x * 2
f(tw.ones(2)); f(tw.ones(2))
""",
    "A branch on an element": """
@tw.function
def f(x):
    return x * 2 if x.sum() > 0 else x
print(f(tw.ones(2)))
""",
    "Another shape": """
@tw.function
def f(x):
    print("Python runs")
    return x.sum()
print(f(tw.ones(3)), f(tw.ones(5)))
""",
    "What is traced again, and why": """
@tw.function
def f(x, double):
    return x * 2 if double else x
f(tw.ones(2), True); f(tw.ones(3), True)
f(tw.ones(3), False); f(tw.ones(2, 2), True)
print(*getattr(f, "retraces", ["nothing: every call runs Python"]), sep=chr(10))
""",
    "A nan": """
@tw.function
def f(x):
    return tw.log(x).sum()
print(f(tw.tensor([1.0, -1.0])))
""",
    "A list that grows": """
seen = []
@tw.function
def f(x):
    seen.append(1)
    return x + 1
f(tw.ones(2)); f(tw.ones(2)); print(len(seen))
""",
}


def compared(engines: dict[str, ModuleType]) -> list[dict[str, Any]]:
    """Return per case its lines, and what each engine prints or refuses, verbatim."""
    return [
        {"title": title, "code": code.strip(), **{name: run(code, engine) for name, engine in engines.items()}}
        for title, code in CASES.items()
    ]


def run(code: str, engine: ModuleType) -> str:
    """Return what lines print with an engine; an error's first line ends it."""
    said, name = io.StringIO(), f"<case {hash(code):x}>"
    linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name  # errors show the line
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(code, name, "exec"), {"tw": engine})
        except Exception as error:
            print(f"{type(error).__name__}: {str(error).splitlines()[0].replace(name, 'case.py')}")
    return said.getvalue().strip() or "(nothing printed)"
