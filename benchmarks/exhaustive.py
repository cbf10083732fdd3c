"""Largest error of the float32 functions of one argument over all 2^32 bit patterns.

``python -m benchmarks.exhaustive [name ...] [--write]``, one to four minutes per function. Every value is compared with
the float64 function of numpy or scipy, which shares no code with ours; its own error is about 2^-29 ulp of a float32.
The worst arguments of all parts of the number line are then compared with mpmath, and only those figures count. NaN
must stand where the reference has it. ``--write`` keeps the results in benchmarks/data/exhaustive.json, where
`benchmarks.accuracy` finds them as long as the function has the same bits on a sample.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.elementary.mpmath_definitions import REFERENCES
from benchmarks.elementary.scalar_loop import compile_loop
from benchmarks.elementary.ulp_errors import (
    FUNCTIONS,
    definition,
    operands,
    reference,
    sample,
    special_values,
    ulp_error,
)
from common.compiler.primitives import Value, absolute, bits, constant, convert, evaluate, from_bits, select

__all__ = ["RECORDS", "Record", "main", "recorded", "worst_arguments"]

CHUNK = 2**16
CONFIRMED = 300
RECORDS = Path(__file__).with_name("data") / "exhaustive.json"


class Record(NamedTuple):
    """The result for one function."""

    ulp: float
    argument: float
    values: int
    """Checksum of the function's values on a sample: another one means another function."""


def _checksum(name: str) -> int:
    (points,) = sample(name, np.float32, 20_000)
    values = evaluate(definition(name), np.concatenate([points, special_values(np.float32)]))
    values[np.isnan(values)] = np.nan
    return zlib.crc32(values.tobytes())


def recorded(name: str) -> Record | None:
    """Return the kept result of a function; None where there is none, or it has changed since."""
    kept = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    if name not in kept:
        return None
    record = Record(**kept[name])
    return record if record.values == _checksum(name) else None


def _error(floor: float) -> Callable[[Value, Value], Value]:
    """Return the scalar definition of the error of a float32, in ulp of the exact value; infinite for a wrong NaN."""

    def error(value: Value, exact: Value) -> Value:
        size = absolute(exact)
        size = select(size < floor, constant(floor, exact), size)
        unit = from_bits(bits(size) & (0x7FF << 52)) * 2.0**-23
        unit = select(unit < 2.0**-149, constant(2.0**-149, exact), unit)
        distance = absolute(convert(value, np.float64) - exact) / unit
        right = (value == convert(exact, np.float32)) | ((value != value) & (exact != exact))
        distance = select(distance == distance, distance, np.inf)
        return select(right, constant(0.0, exact), distance)

    return error


def worst_arguments(name: str, chunks: range = range(2**32 // CHUNK)) -> list[float]:
    """Return the arguments that seem worst, one of each 2^16 neighbours, the worst first.

    Raises
    ------
    AssertionError
        A value is NaN or infinite where the reference is not, or the other way round.
    """
    entry = REFERENCES[name]
    assert entry.quick is not None, f"{name} has no float64 function to compare with"
    loop = compile_loop(f"{name}_float32", definition(name), np.float32)
    compare = compile_loop(f"error_{entry.floor:g}".replace(".", "_"), _error(entry.floor), np.float32, np.float64)
    found: list[tuple[float, float]] = []
    first = np.arange(CHUNK, dtype=np.uint32)
    with np.errstate(all="ignore"):
        for part in chunks:
            x = (first + np.uint32(part * CHUNK)).view(np.float32)
            error = compare(loop(x), entry.quick(x.astype(np.float64)))
            if entry.keep is not None:
                error[~(np.isfinite(x) & entry.keep(x))] = 0.0  # scipy has no limit at -inf
            worst = int(np.argmax(error))
            if not np.isfinite(error[worst]):
                raise AssertionError(f"{name}({x[worst]!r}) is {loop(x)[worst]!r}")
            found.append((float(error[worst]), float(x[worst])))
    return [argument for _, argument in sorted(found, reverse=True)]


def measured(name: str) -> Record:
    """Compare all values of a function with the reference, and the worst with mpmath."""
    loop = compile_loop(f"{name}_float32", definition(name), np.float32)
    floor, errors = REFERENCES[name].floor, []
    for argument in worst_arguments(name)[:CONFIRMED]:
        value = float(loop(np.array([argument], np.float32))[0])
        errors.append((ulp_error(value, reference(name, argument), np.float32, floor), argument))
    return Record(*max(errors), _checksum(name))


def main(arguments: list[str] | None = None) -> None:
    """Print one line per function."""
    known = [name for name in FUNCTIONS if operands(name) == 1]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exhaustive", description="All float32 arguments.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(known)}; all by default")
    parser.add_argument("--write", action="store_true", help="keep the results for the table of benchmarks.accuracy")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    for name in options.names or known:
        record = measured(name)
        print(f"{name} {record.ulp:.4f} at {record.argument!r}", flush=True)
        if options.write:
            kept = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
            kept = dict(sorted((kept | {name: record._asdict()}).items()))
            RECORDS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
