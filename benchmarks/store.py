"""Results as JSON files: one per run, complete enough to be compared years later."""

import json
import time
from pathlib import Path
from typing import Any

from benchmarks.bootstrap import ROOT
from common.tools.files.whole_file import whole_file

SCHEMA = 3
"""Of the records that are written; docs/laboratory.md describes it."""
READ = (1, 2, 3)
"""Schemas that `load` takes: 1 had no key, stability or ladder, 2 a line of text per peer."""
FOLDER = ROOT / ".benchmarks"


def default_path(now: float | None = None) -> Path:
    """Return the path of a run that starts now: a name that sorts by time (UTC)."""
    base = FOLDER if (ROOT / "pyproject.toml").is_file() else Path.cwd() / FOLDER.name
    return base / time.strftime("run-%Y%m%d-%H%M%S.json", time.gmtime(now))


def newest() -> Path:
    """Return the path of the last run.

    Raises
    ------
    LookupError
        If there is none.
    """
    found = sorted(default_path().parent.glob("run-*.json"))
    if not found:
        raise LookupError(f"no run in {default_path().parent}: `python3 -m benchmarks` makes one")
    return found[-1]


def save(path: Path, record: dict[str, Any]) -> None:
    """Write a record; a reader never sees half of it.

    Parameters
    ----------
    path : Path
        Its folder is made if need be.
    record : dict
        Plain data; NaN and infinities are refused, because JSON has none.

    Raises
    ------
    OSError
        If the file can't be written.
    ValueError
        If the record holds NaN or an infinity.
    """
    text = json.dumps({"schema": SCHEMA, **record}, indent=1, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    """Read a record.

    Raises
    ------
    ValueError
        If the file isn't a record of this schema.
    """
    record = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(record, dict) or record.get("schema") not in READ:
        raise ValueError(f"{path} is not a benchmark record of schema {' or '.join(map(str, READ))}")
    for workload in record["workloads"]:
        workload.setdefault("key", workload["name"])
        if record["schema"] < SCHEMA:
            workload.pop("agreement", None)
    return record


MIXED = ("quick", "threads", "machine.commit", "machine.cpu", "machine.packages")
"""Keys that two parts of one run must have in common."""


Records = dict[str, dict[str, Any]]


def resumed(wanted: str | None, path: Path | None, begun: dict[str, Any]) -> tuple[Path, Records, Records]:
    """Return where a run is stored, and by key what an earlier one, that it goes on with, has finished and has at all.

    What failed there is not kept; what was unstable is not finished, and kept until it is measured again.

    Parameters
    ----------
    wanted : str or None
        Of ``--resume``: a path, "" for the newest run, None to begin anew.
    path : Path or None
        Of ``--json``.
    begun : dict
        The record of the run that begins, without workloads.

    Raises
    ------
    ValueError
        If the earlier run was made in another way; figures of both in one record would not compare.
    """
    if wanted is None:
        return path or default_path(), {}, {}
    earlier = Path(wanted) if wanted else newest()
    record = load(earlier)
    for name in MIXED:
        outer, _, inner = name.partition(".")
        before, now = (r[outer].get(inner) if inner else r[outer] for r in (record, begun))
        if before != now:
            raise ValueError(f"{earlier} was measured with {inner or outer} {before}, this run has {now}; "
                             "without --resume everything is measured")  # fmt: skip
    had = {w["key"]: w for w in record["workloads"] if not w["error"]}
    return path or earlier, {key: w for key, w in had.items() if not w.get("unstable")}, had


def with_earlier(measured: list[dict[str, Any]], had: Records) -> list[dict[str, Any]]:
    """The records of a run, and those of the earlier one that it goes on with and has not measured again."""
    return [*measured, *(w for key, w in had.items() if key not in {new["key"] for new in measured})]
