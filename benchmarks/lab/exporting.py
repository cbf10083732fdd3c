"""``export RUN.json``: a record in the format of pyperf, for its commands ``stats``, ``hist`` and ``compare_to``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import store

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


def main(arguments: list[str]) -> int:
    """Write a record for pyperf."""
    p = argparse.ArgumentParser(prog="twingrad export", description="Write a run as pyperf reads it.")
    p.add_argument("record", nargs="?", type=Path, help="a run's JSON file; default: the newest in .benchmarks")
    p.add_argument("--to", type=Path, help="file; default: standard output")
    options = p.parse_args(arguments)
    text = json.dumps(pyperf(store.load(options.record or store.newest())), indent=1)
    if options.to is None:
        sys.stdout.write(text + "\n")
    else:
        options.to.write_text(text + "\n", encoding="utf-8")
        print(options.to)
    return 0
