"""``twingrad passport``: one hash per program of a fixed set and one in all, compared with the expected ones."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from benchmarks.passport.programs import PassportProgram
    from benchmarks.passport.ways import Way

EXPECTED = Path(__file__).with_name("expected.json")
TARGETS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
DIGITS = 16


def parser() -> argparse.ArgumentParser:
    """Return the command line's definition."""
    p = argparse.ArgumentParser(
        prog="twingrad passport",
        description="Run a fixed set of programs and print a hash of the bits of each, and one in all. Equal hashes "
        "mean equal bits. Without options every program runs in both engines.",
        epilog="Programs that call LAPACK or SciPy, or read Python's own texts, are marked with ~: their bits depend "
        "on the machine, so they count neither for the hash in all nor for --check. Exit code 1 if engines differ or a "
        "hash is not as expected.",
    )
    p.add_argument("-k", metavar="NAME", action="append", default=[], dest="select", help="names with NAME in them")
    p.add_argument("--check", action="store_true", help="compare with the hashes that the project expects")
    p.add_argument("--engine", choices=("dynamic", "static", "both"), default="both", help="which engine runs them")
    p.add_argument("--compiler", choices=("llvm", "numba"), help="which compiler makes the kernels")
    p.add_argument("--no-fuse", action="store_true", help="compile each op by itself")
    p.add_argument("--interpret", action="store_true", help="run graphs node by node")
    p.add_argument("--threads", metavar="N", type=int, default=1, help="threads of large programs")
    p.add_argument("--target", choices=TARGETS, help="make code for such processors only")
    p.add_argument("--through", choices=("saved", "library", "arm64", "module"), default="", help="ops only: through "
                   "a file of a saved program, or as a C library, or as one for arm64 that qemu-user runs, or as a "
                   "numba module")  # fmt: skip
    p.add_argument("--write", action="store_true", help="expect the hashes of this run; with -k, of these programs")
    return p


def digest(arrays: Iterable[Any]) -> str:
    """Return a hash of dtypes, shapes and bits; every NaN is one value, the two zeros are two.

    Examples
    --------
    >>> import numpy as np
    >>> digest([np.float32([0.0])]) == digest([np.float32([-0.0])])
    False
    >>> digest([np.float32([np.nan])]) == digest([-np.float32([np.nan])])
    True
    """
    import numpy as np

    total = hashlib.sha256()
    for array in arrays:
        if array is None:
            total.update(b"None;")
            continue
        x = np.ascontiguousarray(array)
        if x.dtype.kind == "f":
            x = np.where(np.isnan(x), x.dtype.type(np.nan), x)
        little = x.astype(x.dtype.newbyteorder("<"), copy=False)
        total.update(f"{x.dtype.name}{np.shape(array)};".encode() + little.tobytes())
    return total.hexdigest()[:DIGITS]


def in_all(results: Mapping[str, str]) -> str:
    """Return the hash of all results, in the order of their names."""
    text = "".join(f"{name} {results[name]}\n" for name in sorted(results))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


class Hashes(NamedTuple):
    """The hashes of a program run in one way.

    Attributes
    ----------
    inputs, results : hexadecimal digits; None if the program cannot run in this way.
    """

    inputs: str | None
    results: str | None

    @classmethod
    def of(cls, program: PassportProgram, way: Way) -> Hashes:
        """Run a program."""
        from benchmarks.passport.ways import NotPossible

        try:
            record = program.run(way)
        except NotPossible:
            return cls(None, None)
        return cls(digest(record.inputs), digest(record.results))


class Expected(NamedTuple):
    """The hashes that the project expects.

    Attributes
    ----------
    numerics : the `NUMERICS_VERSION` that they are of.
    total : the hash in all.
    of_the_machine : names of the programs whose bits depend on libraries of the machine, or on Python's texts.
    programs : inputs and results by name.
    """

    numerics: int
    total: str
    of_the_machine: frozenset[str]
    programs: dict[str, Hashes]

    @classmethod
    def read(cls) -> Expected:
        """Read them from the project's file."""
        found = json.loads(EXPECTED.read_text(encoding="utf-8"))
        programs = {name: Hashes(*pair.split()) for name, pair in found["programs"].items()}
        return cls(found["numerics"], found["in all"], frozenset(found["of the machine"]), programs)


class Sheet:
    """Prints a line per program as it is finished, and keeps count.

    Parameters
    ----------
    expected : what to compare with, if anything.
    """

    def __init__(self, expected: Expected | None) -> None:
        self.expected = expected
        self.counted: dict[str, str] = {}
        self.lines = self.wrong = self.left_out = 0

    def add(self, name: str, found: list[Hashes], of_the_machine: bool) -> None:
        """Print the line of one program, run in one or several ways."""
        results = list(dict.fromkeys(hashes.results for hashes in found))
        if results == [None]:
            self.left_out += 1
            print(f"{name:38} {'-':{DIGITS}}  cannot run in this way")
            return
        said = ["engines differ"] if len(results) > 1 else []
        if self.expected is not None and not of_the_machine:
            said += self._differences(name, found[0])
        if said:
            self.wrong += 1
        if not of_the_machine and (self.expected is None or name in self.expected.programs):
            self.counted[name] = str(results[0])
        self.lines += 1
        print(f"{name:38} {'  '.join(map(str, results))}{' ~' if of_the_machine else ''}  {'; '.join(said)}".rstrip())
        sys.stdout.flush()

    def _differences(self, name: str, found: Hashes) -> list[str]:
        assert self.expected is not None
        wanted = self.expected.programs.get(name)
        if wanted is None:
            print(f"{name:38} is new: --write -k {name} makes its hash an expected one")
            return []
        if wanted.inputs != found.inputs:
            return [f"its inputs differ ({found.inputs}, expected {wanted.inputs}), so its results cannot be compared"]
        return [] if wanted.results == found.results else [f"expected {wanted.results}"]

    def summary(self) -> str:
        """The last line: the hash in all, and what it stands for."""
        from common.core.numerics import NUMERICS_VERSION

        text = f"{'in all':38} {in_all(self.counted)}  {len(self.counted)} programs, numerics {NUMERICS_VERSION}"
        text += f", {self.left_out} left out" if self.left_out else ""
        if self.expected is None:
            return text + (f", {self.wrong} differ" if self.wrong else "")
        return text + (f": {self.wrong} are not as expected" if self.wrong else ": as expected")


def write(chosen: list[PassportProgram], ways: list[Way]) -> int:
    """Make the hashes of a run those expected of its programs; refused if the engines differ."""
    from benchmarks.passport.programs import depends_on_the_machine, programs
    from common.core.numerics import NUMERICS_VERSION

    names = [p.name for p in programs()]
    before = Expected.read() if EXPECTED.exists() else Expected(NUMERICS_VERSION, "", frozenset(), {})
    pairs = {name: hashes for name, hashes in before.programs.items() if name in names}
    of_the_machine = {name for name in before.of_the_machine if name in names}
    sheet = Sheet(None)
    for program in chosen:
        (of_the_machine.add if depends_on_the_machine(program) else of_the_machine.discard)(program.name)
        found = [Hashes.of(program, way) for way in ways]
        pairs[program.name] = found[0]
        sheet.add(program.name, found, program.name in of_the_machine)
    print(sheet.summary())
    if sheet.wrong:
        return 1
    record = {
        "numerics": NUMERICS_VERSION,
        "in all": in_all({name: str(pairs[name].results) for name in pairs if name not in of_the_machine}),
        "of the machine": sorted(of_the_machine),
        "programs": {name: f"{pairs[name].inputs} {pairs[name].results}" for name in names if name in pairs},
    }
    EXPECTED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    from benchmarks.passport.emulated import COMPILER, EMULATORS, emulator

    options = parser().parse_args(arguments)
    if options.threads < 1:
        parser().error(f"--threads is at least 1, not {options.threads}")
    if options.through == "arm64" and emulator() is None:
        parser().error(
            f"--through arm64 needs {COMPILER} and {EMULATORS[0]}: apt install gcc-aarch64-linux-gnu qemu-user"
        )
    if options.target:  # before LLVM is asked for the processor
        os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = options.target, ""
    if options.compiler:
        os.environ["TWINGRAD_COMPILER"] = options.compiler
    from benchmarks.passport.programs import programs
    from benchmarks.passport.ways import Way

    engines = ("dynamic", "static") if options.engine == "both" else (options.engine,)
    if options.through:
        engines = ("static",)
    ways = [Way(e, not options.no_fuse, options.interpret, options.through) for e in engines]
    for way in ways:
        way.tw.set_num_threads(options.threads)
    try:
        chosen = [p for p in programs(options.select) if p.pure or not options.through]
    except LookupError as problem:
        parser().error(str(problem.args[0]))
    if options.write:
        return write(chosen, ways)
    expected = Expected.read()
    sheet = Sheet(expected if options.check else None)
    for program in chosen:
        sheet.add(program.name, [Hashes.of(program, way) for way in ways], program.name in expected.of_the_machine)
    print(sheet.summary())
    return int(sheet.wrong > 0)
