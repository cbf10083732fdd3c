"""Random calls of every public function: both engines give the same bits, or refuse with the same class of error.

``python -m tests.helpers.fuzz --seconds 300 --seed 7`` runs longer, with other numbers; ``--only roll --from 12``
repeats calls. Each call is made of the seed, the function's name and its number, so it is the same on every machine.
It runs in the eager engine, as a function and as a method, at once on arrays in the other one, and there in a traced
function. What returned is differentiated in both engines: the sum of the squares of all results by all float operands.
A failure is

- results that differ in a bit, a dtype or a shape;
- an error in one way and a result, or an error of another class, in another way;
- an error from outside `common.core.errors`, one that says nothing, or that a kernel cannot be compiled.

A traced function may refuse with `TraceError` what depends on data, and gets contiguous arrays, of which `view` need
not refuse a shape. The process limits its own memory, and says before
each call what it is, so that a crash has a name: `tests.attacks.test_fuzz` runs it in a process of its own.
"""

from __future__ import annotations

import argparse
import inspect
import math
import resource
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dynamic
import static
from common.api import surface
from common.core.dtypes import SUPPORTED
from common.core.errors import CompileError, TraceError, TwingradError
from common.core.tree import flatten
from common.tensor.base import TensorBase
from static.jit.function import CompiledFunction
from tests.helpers import fuzz_modules
from tests.helpers.fuzz_arguments import Call, draw_call
from tests.helpers.fuzz_modules import ModuleCall, draw_module

MEMORY = 8 << 30
"""Bytes of address space: what would take more has to fail cleanly."""


#: Functions whose method takes other arguments.
OTHER_METHODS = frozenset(["getitem", "split", "polygamma", "real", "view", "where", "normal", "bernoulli", "unfold"])


class NotDifferentiable(Exception):
    """No result of a call depends on a float operand."""


class Outcome(NamedTuple):
    """The outcome of a call: results as arrays, or an error."""

    results: list[Any] | None
    error: BaseException | None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {str(self.error)[:300]}"
        return (
            f"results {[x if not isinstance(x, np.ndarray) else (x.dtype.name, x.shape) for x in self.results or []]}"
        )


def _plain(x: Any) -> Any:
    """An array, or a Python value, of what a call returns."""
    if isinstance(x, TensorBase):
        return x.detach().numpy()
    return x if isinstance(x, np.ndarray) else repr(x)


def attempt(f: Callable[[], Any]) -> Outcome:
    """Call and keep what comes of it; errors that stop the process are let through."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings(
                "ignore", r"Implicit dimension choice|.*Received a \d-D input to|Using a target size"
            )
            return Outcome([_plain(x) for x in flatten(f())[0]], None)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return Outcome(None, error)


def run(call: Call) -> dict[str, Outcome]:
    """One call in every way; random numbers begin anew for each."""

    def seeded(f: Callable[[], Any]) -> Outcome:
        dynamic.manual_seed(11)
        return attempt(f)

    ways: tuple[str, ...] = ("dynamic", "static at once", "static traced")
    if call.name == "getitem":  # of arrays, indexing is numpy's own
        ways = ("dynamic", "static traced")
    elif call.name == "from_numpy":  # a traced function has no arrays
        ways = ("dynamic", "static at once")
    arrays = [x for x in call.leaves() if type(x) is np.ndarray]
    if isinstance(call, ModuleCall):
        ways = ("dynamic", "static traced")
        built = seeded(lambda: call.build(dynamic))
        if built.error is not None:
            return dict.fromkeys(ways, built)
    elif _has_method(call):
        ways = (*ways, "dynamic method")
    run = {
        "dynamic": lambda: call.run(dynamic),
        "dynamic method": lambda: call.run_method(dynamic),
        "static at once": lambda: call.run(static),
        "static traced": lambda: CompiledFunction(lambda *xs: call.run(static, xs))(*arrays),
    }
    return {way: seeded(run[way]) for way in ways}


def _has_method(call: Call) -> bool:
    first = call.args[0] if call.args else None
    return (
        type(first) is np.ndarray and call.name not in OTHER_METHODS and first.dtype in SUPPORTED
        and hasattr(dynamic.Tensor, call.name) and hasattr(dynamic, call.name) and not _writes_over(call)
    )  # fmt: skip


def _writes_over(call: Call) -> bool:
    """Whether ``inplace`` is given, which functions take and methods do not."""
    try:
        given = inspect.signature(getattr(dynamic, call.name)).bind(*call.args, **call.kwargs)
    except TypeError:
        return False
    return "inplace" in given.arguments


def differentiate(call: Call) -> dict[str, Outcome]:
    """The gradients of a call in both engines; empty where there is nothing to differentiate."""
    arrays = [x for x in call.leaves() if type(x) is np.ndarray]
    floats = [i for i, x in enumerate(arrays) if x.dtype in (np.float32, np.float64)]

    def loss(engine: Any) -> Callable[..., Any]:
        def of(*xs: Any) -> Any:
            found = [y for y in flatten(call.run(engine, xs))[0] if getattr(y, "requires_grad", False)]
            if not found:
                raise NotDifferentiable
            return sum((y * y).sum() for y in found)

        return of

    run = {
        "gradient, dynamic": lambda: dynamic.grad(loss(dynamic), floats)(*arrays),
        "gradient, static traced": lambda: CompiledFunction(static.grad(loss(static), floats))(*arrays),
    }
    outcomes: dict[str, Outcome] = {}
    for way, f in run.items() if floats else ():
        dynamic.manual_seed(11)
        outcomes[way] = attempt(f)
        if isinstance(outcomes[way].error, NotDifferentiable):
            return {}
    return outcomes


def _same(a: Any, b: Any) -> bool:
    if type(a) is not np.ndarray or type(b) is not np.ndarray:
        return type(a) is type(b) and a == b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f":
        nan = np.isnan(a)
        if not np.array_equal(nan, np.isnan(b)):
            return False
        a, b = np.where(nan, 0, a), np.where(nan, 0, b)
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def complaint(call: Call) -> str | None:
    """The complaint about a call; None if nothing is wrong."""
    outcomes = run(call)
    wrong = disagreement(outcomes)
    if wrong or any(outcome.error is not None for outcome in outcomes.values()):
        return wrong
    return disagreement(differentiate(call))


def disagreement(outcomes: dict[str, Outcome]) -> str | None:
    """The disagreement between the outcomes of one call, of which the first one is the eager engine's."""
    told = "\n".join(f"    {way}: {outcome}" for way, outcome in outcomes.items())
    for way, outcome in outcomes.items():
        error = outcome.error
        if error is None:
            continue
        if not isinstance(error, TwingradError):
            where = _origin(error)
            return f"{way}: an error that is none of the package ({type(error).__name__} at {where})\n{told}"
        if isinstance(error, CompileError):
            return f"{way}: a kernel that its arguments break\n{told}"
        if len(str(error)) < 10:
            return f"{way}: an error that says nothing\n{told}"
    if not outcomes:
        return None
    first = next(iter(outcomes.values()))
    for way, outcome in outcomes.items():
        if way.endswith("static traced") and isinstance(outcome.error, TraceError):
            continue
        if way.endswith("static traced") and "view size is not compatible" in str(first.error):
            continue
        if (outcome.error is None) is not (first.error is None):
            return f"{way} and dynamic: one refuses\n{told}"
        if outcome.error is not None:
            if type(outcome.error) is not type(first.error):
                return f"{way} and dynamic: two classes of errors\n{told}"
            continue
        ours, theirs = first.results or [], outcome.results or []
        if len(ours) != len(theirs):
            return f"{way} and dynamic: another number of results\n{told}"
        if not all(map(_same, ours, theirs)):
            return f"{way} and dynamic: results differ\n{told}\n    {outcome.results}\n    {first.results}"
    return None


def _origin(error: BaseException) -> str:
    """The innermost line of the package in an error's traceback."""
    place, found = error.__traceback__, "?"
    while place is not None:
        name = place.tb_frame.f_code.co_filename
        if "/tests/" not in name:
            found = f"{'/'.join(name.rsplit('/', 3)[-3:])}:{place.tb_lineno}"
        place = place.tb_next
    return found


def names() -> list[str]:
    """Every public function that a call can be made for, `getitem` included."""
    return [*sorted({**surface.FUNCTIONS, **surface.CREATION}), "getitem", *fuzz_modules.names()]


def calls(seed: int, name: str) -> Iterator[Call]:
    """The endless row of calls of one function."""
    function = getattr(dynamic, name, None) or getattr(dynamic.nn.functional, name, None)
    signature = inspect.signature(function) if function is not None else None
    number = 0
    while True:
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
        yield draw_module(rng, name) if name.startswith("nn.") else draw_call(rng, name, signature)
        number += 1


def main(arguments: list[str] | None = None) -> int:
    """Run calls and print what is wrong; the status is the number of failures, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=None, help="per function; default without --seconds: 20")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--only", default="", help="names of functions, separated by commas")
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first call")
    parser.add_argument("--limit", type=int, default=50, help="failures after which to stop")
    parser.add_argument("--trace-file", default=None, help="where the running call is written to")
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    count = options.calls or (20 if options.seconds == math.inf else sys.maxsize)
    rows = {name: calls(options.seed, name) for name in options.only.split(",") if name} or {
        name: calls(options.seed, name) for name in names()
    }
    failures: list[str] = []
    stop, done = time.perf_counter() + options.seconds, 0
    for number in range(count):
        for name, row in rows.items():
            call = next(row)
            if number < options.first:
                continue
            if time.perf_counter() > stop or len(failures) >= options.limit:
                break
            if options.trace_file:
                running = f"--seed {options.seed} --only {name} --from {number} --calls {number + 1}: {call}"
                Path(options.trace_file).write_text(running, encoding="utf-8")
            done += 1
            wrong = complaint(call)
            if wrong:
                failures.append(wrong)
                print(f"--seed {options.seed} --only {name} --from {number} --calls {number + 1}\n  {call}\n  {wrong}",
                      flush=True)  # fmt: skip
        else:
            continue
        break
    print(f"{done} calls, {len(failures)} failures")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
