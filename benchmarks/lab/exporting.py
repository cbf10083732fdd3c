"""``export``: a program as a C library, an ONNX model, a numba module or a file; or a record as pyperf reads it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import store
from benchmarks.lab.target import Target, UserProgram, is_target
from common.core.errors import TwingradError

VERSION = "1.0"
"""Of pyperf's format."""


def pyperf(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a suite: a benchmark per program and engine, whose values are the rounds.

    Raises
    ------
    LookupError
        If nothing of the record was timed.
    """
    about = record["machine"]
    common = {
        "cpu_model_name": about["cpu"], "cpu_count": about["cores_in_machine"], "platform": about["system"],
        "python_version": about["python"], "twingrad_version": about["twingrad"], "unit": "second",
    }  # fmt: skip
    found = [
        {"metadata": {"name": f"{w['name']} {way}"}, "runs": [{"values": values}]}
        for w in record["workloads"]
        for way, values in w.get("seconds_per_call", {}).items()
    ]
    if not found:
        raise LookupError("nothing of this run was timed")
    return {"benchmarks": found, "metadata": common, "version": VERSION}


SUFFIXES = {
    ".so": "export_library", ".dylib": "export_library", ".onnx": "export_onnx", ".py": "export_numba", ".tw": "save",
}  # fmt: skip
"""The writers of programs, by the ending of the file."""


def write(target: Target, path: Path, name: str | None = None, cpu: str = "native") -> list[Path]:
    """Write a program; the files.

    Parameters
    ----------
    target : Target
        What leaves: a module as it answers, a function, or the step that ``make()`` returns.
    path : Path
        Its ending says in which form.
    name : str, optional
        Of the function in a C library or numba module.
    cpu : str
        Of a C library, see `static.export_library`.

    Raises
    ------
    ValueError
        If no form has this ending.
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"--to takes a file that ends in {', '.join(SUFFIXES)}, not {path.name!r}")
    import static

    form = SUFFIXES[path.suffix]
    program = UserProgram(target, static)
    f, args = program.exported(static), program.inputs()[0]
    own = name or program.target.name
    if form == "export_library":
        made = static.export_library(f, path, *args, name=own, cpu=cpu)
        return [made.library, made.header]
    if form == "export_numba":
        return [static.export_numba(f, path, *args, name=own).path]
    if form == "export_onnx":
        return [static.export_onnx(f, path, *args)]
    static.save(static.export(f, *args), path)
    return [path]


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    p = argparse.ArgumentParser(
        prog="twingrad export",
        description="Write a program of yours as a C library (.so, and a header), an ONNX model (.onnx), a Python file "
        "that needs only numpy and numba (.py), or a file for static.load (.tw); or a run as pyperf reads it.",
    )
    p.add_argument("what", nargs="?", metavar="FILE.py:NAME | RUN.json", help="default: the newest run in .benchmarks")
    p.add_argument("--to", type=Path, help="file; of a run by default standard output")
    p.add_argument("--args", metavar="TEXT", help='an example of its arguments, such as "f32[64,n], i64[64]<10"')
    p.add_argument("--size", metavar="NAME=N", action="append", default=[], help="a number for a size's name")
    p.add_argument("--grad", action="store_true", help="value and gradient")
    p.add_argument("--loss", metavar="NAME", default="", help="of a module: its training step with this loss")
    p.add_argument("--optimizer", metavar="CALL", default="", help='of a module: its training step, as "SGD(lr=0.1)"')
    p.add_argument("--name", help="of the function in a C library or numba module; that in the file by default")
    p.add_argument("--cpu", choices=("portable", "native", "baseline"), default="portable", help="of a C library")
    return p


def main(arguments: list[str]) -> int:
    """Write a program, or a record for pyperf."""
    options = parser().parse_args(arguments)
    if options.what and is_target(options.what):
        if options.to is None:
            raise ValueError(f"say where to, as in --to {Path(options.what.partition(':')[0]).stem}.so")
        named = {key: int(n) for key, _, n in (text.partition("=") for text in options.size)}
        target = replace(
            Target.parse(options.what), args=options.args or "", sizes=named, grad=options.grad or None,
            loss=options.loss, optimizer=options.optimizer,
        )  # fmt: skip
        try:
            written = write(target, options.to, options.name, options.cpu)
        except TwingradError as problem:
            raise ValueError(str(problem)) from problem
        print(*written, sep="\n")
        return 0
    text = json.dumps(pyperf(store.load(Path(options.what) if options.what else store.newest())), indent=1)
    if options.to is None:
        sys.stdout.write(text + "\n")
    else:
        options.to.write_text(text + "\n", encoding="utf-8")
        print(options.to)
    return 0
