"""Hostile calls of the whole public surface: each works, or raises an error of the library.

``python -m tests.helpers.hostile --calls 100000 --seed 7`` runs many; ``--only Tensor.put_ --from 12`` repeats calls;
``--scripts 2000`` runs programs of several steps (`tests.helpers.hostile_scripts`). A
call is a valid one of `tests.helpers.hostile_calls` in which up to three arguments are replaced by values of
`tests.helpers.hostile_values`; now and then one is left out, or one too many. Every fourth runs in a traced function. A
failure is

- an error that is none of the library's, unless the user's own code raised it, or Python, since the arguments do not
  fit the function's parameters or the operator's types;
- an error that says nothing, or that a kernel cannot be compiled;
- a call that takes more than five seconds, or two gigabytes, or that ends the process; unless it was asked for
  something as long: see `asks_for_long`.

The process limits its memory, and writes each call down before it runs, so that a crash has a name.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynamic
import static
from common.core import mode
from common.core.errors import CheckError, CompileError, TwingradError
from common.core.int_arguments import shown
from common.tensor.base import TensorBase
from static.jit.function import CompiledFunction
from tests.helpers.hostile_calls import Make, calls
from tests.helpers.hostile_public import code_of, listed
from tests.helpers.hostile_scripts import Script
from tests.helpers.hostile_values import VALUES, Raised

SECONDS, BYTES, LIMIT = 5.0, 2 << 30, 4 << 30
_BINDING = re.compile(
    r"unexpected keyword argument|missing \d+ required|takes \d+ positional|takes from \d+ to|multiple values for|"
    r"takes no arguments|takes no keyword|positional-only|keyword-only|keywords must be strings|"
    r"unsupported operand type|not supported between|bad operand type|must be (a )?(string|mapping)"
)


class TooLong(BaseException):
    """A call did not come back in time."""


def _late(*_: Any) -> None:
    raise TooLong


class Call:
    """One call: a function and what it is given, some of it hostile."""

    def __init__(self, name: str, make: Make, number: int, seed: int) -> None:
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
        self.name, self.number = name, number
        self.function, self.args, self.kwargs = make(rng)
        self.traced = rng.random() < 0.25 and not name.startswith(("session.", "autograd.", "nn.Module", "profiler"))
        for _ in range(int(rng.integers(1, 4))):
            value = VALUES[int(rng.integers(len(VALUES)))]()
            style, places = rng.random(), [*range(len(self.args)), *self.kwargs]
            if style < 0.9 and places:
                place = places[int(rng.integers(len(places)))]
                (self.args if isinstance(place, int) else self.kwargs)[place] = value
            elif style < 0.95:
                self.args.append(value)
            elif self.args:
                del self.args[int(rng.integers(len(self.args)))]

    def __call__(self) -> Any:
        if not self.traced:
            return self.function(*self.args, **self.kwargs)
        return CompiledFunction(lambda: self.function(*self.args, **self.kwargs))()

    def __str__(self) -> str:
        given = [*map(shown, self.args), *(f"{key}={shown(value)}" for key, value in self.kwargs.items())]
        return f"{self.name}({', '.join(given)}){' in a trace' if self.traced else ''}"


def asks_for_long(call: Call) -> bool:
    """Whether a call is told to run for years, or is handed a million rows that Python is to keep one by one."""
    if call.name.endswith((".timeit", "autorange", "Timer.repeat")):
        return True
    given = [*call.args, *call.kwargs.values()]
    if call.name.endswith(("spectral_norm", "fori_loop")) and any(_number(x) >= 2**20 for x in given):  # iterations
        return True
    if call.name.endswith("while_loop") and any(x is len or x is int for x in given):  # which holds for ever
        return True
    keeps = (".extend", ".update", "List", "Dict", ".Compare", "parameters_to_vector", "default_convert")
    return call.name.endswith(keeps) and any(_rows(x) >= 2**20 for x in given)


def _number(x: Any) -> int:
    return abs(int(x)) if isinstance(x, (int, np.integer)) else 0


def _rows(x: Any) -> int:
    if isinstance(x, range):
        return len(x)
    return int((*x.shape, 0)[0]) if isinstance(x, (TensorBase, np.ndarray)) else 0


def rows(seed: int, names: list[str] | None = None) -> dict[str, Callable[[int], Call]]:
    """Per public call, the call of a number."""
    made = calls()
    return {name: lambda n, name=name: Call(name, made[name], n, seed) for name in names or made}  # type: ignore[misc]


def complaint(call: Call) -> str | None:
    """The complaint about the outcome of a call; None if nothing is wrong."""
    before, error = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, None
    signal.signal(signal.SIGPROF, _late)
    start = time.process_time()
    for watch in _watch:
        sys.setprofile(watch)
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS, 1.0)  # again: a finaliser may swallow one
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            call()
    except TooLong:
        return None if asks_for_long(call) else f"not back after {SECONDS:.0f} s"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as raised:
        error = raised
    finally:
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _tidy(call)
    if time.process_time() - start > SECONDS:
        return f"took {time.process_time() - start:.1f} s"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if grown > BYTES:
        return f"took {grown / 2**30:.1f} GiB"
    called = any(x is len for x in (*call.args, *call.kwargs.values()))
    if called and type(error) is TypeError and "no len()" in str(error):
        return None  # it is the user's function here, of which no traceback tells
    if isinstance(error, CheckError) and call.kwargs.get("msg") is not None:
        return None  # its text is the user's own
    return None if error is None else objection(error)


def objection(error: BaseException) -> str | None:
    """The objection to an error; None if there is none."""
    if isinstance(error, CompileError):
        return f"a kernel that its arguments break: {str(error)[:200]}"
    if isinstance(error, TwingradError):
        return None if len(str(error)) >= 10 else f"an error that says nothing: {type(error).__name__}"
    if isinstance(error, Raised) or (isinstance(error, TypeError) and _BINDING.search(str(error))):
        return None
    seen, place, own = "", error.__traceback__, False
    while place is not None:
        name = place.tb_frame.f_code.co_filename
        if re.search(r"/(common|dynamic|static)/", name):
            seen, own = f"{'/'.join(name.rsplit('/', 3)[-3:])}:{place.tb_lineno}", False
        own = own or "/tests/" in name
        place = place.tb_next
    if own or (error.__traceback__ is not None and not seen):
        return None  # a callback's own; or nothing of the library has run: Python, or numpy with its own operands
    return f"{type(error).__name__} at {seen}: {str(error)[:200]}"


def _tidy(call: Call) -> None:
    """Undo the switches of a call, and leave the blocks in which a script was interrupted."""
    for block in reversed(getattr(call, "open", [])):
        with contextlib.suppress(Exception):
            block.__exit__(None, None, None)
    mode.grad_mode.set(True)
    dynamic.set_printoptions(profile="default")
    dynamic.set_num_threads(1)
    dynamic.set_flush_denormal(False)
    if isinstance(session := static.get_default_session(), static.InteractiveSession):
        session.close()
    dynamic.autograd.set_detect_anomaly(False)
    dynamic.set_default_dtype(dynamic.float32)
    dynamic.set_default_device("cpu")
    static.reset_default_graph()  # refuses where a block is left open


def run(
    seed: int, numbers: Iterator[int], names: list[str] | None, seconds: float, limit: int, trace: str | None
) -> int:
    """Run calls and print what is wrong; the number of failures."""
    stop, done, failures, kinds = time.perf_counter() + seconds, 0, 0, set()
    table = rows(seed, names)
    for number in numbers:
        for name, row in table.items():
            if time.perf_counter() > stop or failures >= limit:
                print(f"{done} calls, {failures} failures")
                return failures
            if trace:
                Path(trace).write_text(f"--seed {seed} --only {name} --from {number} --count 1", encoding="utf-8")
            try:
                call = row(number)
            except TwingradError:  # the arguments that are drawn make no call
                continue
            done += 1
            wrong = complaint(call)
            kind = f"{name} {wrong}" if wrong and wrong.startswith("not back") else wrong
            if wrong and kind not in kinds:
                kinds.add(kind)
                failures += 1
                print(f"--seed {seed} --only '{name}' --from {number}\n  {call}\n  {wrong}", flush=True)
    print(f"{done} calls, {failures} failures")
    return failures


def run_scripts(seed: int, numbers: Iterable[int], seconds: float, limit: int, trace: str | None) -> int:
    """Run scripts, see `tests.helpers.hostile_scripts`, and print what is wrong; the number of failures."""
    stop, done, kinds = time.perf_counter() + seconds, 0, set[str]()
    for number in numbers:
        if time.perf_counter() > stop or len(kinds) >= limit:
            break
        if trace:
            Path(trace).write_text(f"--seed {seed} --scripts 1 --from {number}", encoding="utf-8")
        script: Any = Script(number, seed, objection)
        whole = complaint(script)
        done += 1
        for wrong in [*script.wrong, *([whole] if whole else [])]:
            kind = wrong.partition(": ")[2] or wrong
            if kind not in kinds:
                kinds.add(kind)
                print(f"--seed {seed} --scripts 1 --from {number}\n  {script}\n  {wrong}", flush=True)
    print(f"{done} scripts, {len(kinds)} failures")
    return len(kinds)


def uncalled(names: dict[str, Any], run: Callable[[], Any]) -> list[str]:
    """Functions and classes, by name, that do not run their own code while something runs."""
    seen: set[Any] = set()
    _watch[:] = [lambda frame, event, _: seen.add(frame.f_code) if event == "call" else None]
    try:
        run()
    finally:
        _watch.clear()
        sys.setprofile(None)
    return [name for name, value in names.items() if (code := code_of(value)) is not None and code not in seen]


#: What sees every call of Python, while `uncalled` runs; one that is interrupted by `TooLong` is lost, and set anew.
_watch: list[Any] = []


def main(arguments: list[str] | None = None) -> int:
    """Run as many calls as asked for; the status says whether one failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--scripts", type=int, default=0, help="run as many programs of several steps instead")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--only", default="", help="names of calls, separated by commas")
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first call of each name")
    parser.add_argument("--count", type=int, default=0, help="numbers of calls of each name")
    parser.add_argument("--limit", type=int, default=50, help="failures after which to stop")
    parser.add_argument("--trace-file", default=None, help="where the running call is written to")
    parser.add_argument("--traceback", action="store_true")
    parser.add_argument("--coverage", action="store_true", help="print which public callables no call has reached")
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    trace = options.trace_file and str(Path(options.trace_file).absolute())
    names = [name for name in options.only.split(",") if name] or None
    count = options.count or (1 if names and options.first else -(-options.calls // len(names or calls())))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if options.traceback:
            for name in names or ():
                try:
                    rows(options.seed)[name](options.first)()
                except Exception:
                    traceback.print_exc()
            return 0
        numbers = range(options.first, options.first + count)
        failures: list[int] = []

        def calls_run() -> None:
            failures.append(run(options.seed, iter(numbers), names, options.seconds, options.limit, trace))

        if options.scripts:
            numbers = range(options.first, options.first + (options.count or options.scripts))
            return int(run_scripts(options.seed, numbers, options.seconds, options.limit, trace) > 0)
        if options.coverage:
            public = listed()
            missed = uncalled(public, calls_run)
            print(f"{len(public)} public callables, {len(missed)} not called: {', '.join(missed)}")
        else:
            calls_run()
        return int(failures[0] > 0)


if __name__ == "__main__":
    sys.exit(main())
