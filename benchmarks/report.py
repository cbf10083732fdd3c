"""The run's results as a page of Markdown that reads well in a terminal."""

import textwrap
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks import machine, peak_memory, stats
from benchmarks.lab.stability import first_line, told
from benchmarks.lab.verdict import interval, times
from benchmarks.run import ENGINES, Result
from benchmarks.terminal import megabytes, seconds, table

MARKERS = (
    "<!-- results: written by `python3 -m benchmarks --peers --readme README.md --results docs/results.md` -->",
    "<!-- end of results -->",
)
COLUMNS = 80
SHORT = {"torch": "torch", "torch.compile": "compile", "jax.jit": "jax.jit"}
"""The peers of the short table, and the heads of their columns."""


def text(results: list[Result], about: dict[str, Any], peers: list[str], threads: int = 1) -> str:
    """Return tables of at most 80 columns, the machine named; a workload without equal bits has no timings.

    A run that is unstable says so in its first line, and has no mean over workloads.
    """
    used = "One thread" if threads == 1 else f"{threads} threads"
    unstable = {result.workload.name: result.unstable for result in results if result.unstable}
    parts = [first_line(next(iter(unstable.values())))] if unstable else []
    parts.append(machine.one_line(about) + f". {used}; medians, 95 % intervals in brackets.")
    parts.append(table(
        ["workload", "bits", "dynamic", "static", "static is so many times as fast"],
        [call_row(result) for result in results],
    ))  # fmt: skip
    if peers:
        parts.append(
            "So many times as fast as the peer, static where dynamic is not named; intervals: in the JSON file."
        )
        compared = compared_with(peers)
        parts += tables(
            ["workload", *(other if ours == "static" else f"{ours} : {other}" for ours, other in compared)],
            [peer_row(result, compared) for result in results],
        )  # fmt: skip
        if unstable:
            parts.append(f"No mean over workloads: {len(unstable)} of {len(results)} are unstable.")
        else:
            parts += [line for line in [summary(results, peers)] if line]
        if any(result.agreement for result in results):
            parts.append(
                "How far a peer's first results are from dynamic's, relative to the largest element; and, of a peer "
                "that compiles, which share of elements has the bits of its own eager mode; of static all have."
            )
            parts += tables(["workload", *peers], [agreement_row(result, peers) for result in results])
    measured = [result for result in results if result.starts]
    if measured:
        parts.append(table(
            ["workload", *(f"{e} {s}" for s in ("cold", "disk") for e in ENGINES)],
            [once_row(result) for result in measured],
        ))  # fmt: skip
        parts.append(table(
            ["workload", "pays off, cold", "pays off, disk", *(f"peak {e}" for e in ENGINES)],
            [pays_row(result) for result in measured],
        ))  # fmt: skip
        parts.append(
            "Cold and disk: seconds from `import` to the end of the first call in a new process, with an "
            "empty compiler cache and with a filled one. Pays off: calls until static has cost less "
            f"than dynamic in all. Peak: {peak_memory.method()}, after 22 calls from a filled cache."
        )
    items = [f"- `{r.workload.name}`: {r.workload.title}" for r in results]
    wrong, remedies = told(unstable)
    items += [f"- `{name}` UNSTABLE: {what}" for name, what in wrong.items()]
    items += [f"- what to do: {remedy}" for remedy in remedies]
    items += [f"- `{r.workload.name}` BITS DIFFER: {line}" for r in results for line in r.differences]
    items += [f"- `{r.workload.name}` FAILED: {r.error.splitlines()[-1]}" for r in results if r.error]
    return "\n\n".join([*map(wrapped, parts), "\n".join(map(wrapped, items))])


def in_short(results: list[Result], about: dict[str, Any], peers: list[str], threads: int = 1) -> str:
    """Return one table of at most 80 columns, a line per workload that all peers run, and what its columns are.

    An unstable run says so in its first line, and a workload without equal bits has no timings.
    """
    unstable = [result.unstable for result in results if result.unstable]
    compared = [("static", peer) for peer in SHORT if peer in peers]
    used = "one thread" if threads == 1 else f"{threads} threads"
    others = "".join(f", {peer}" for _, peer in compared)
    rows = [[row[0], *row[2:4], row[4].partition(" [")[0], *peer_row(result, compared)[1:]]
            for result in results for row in [call_row(result)]]  # fmt: skip
    whole = [row for row, result in zip(rows, results, strict=True) if not result.calls or "-" not in row[4:]]
    whole = whole or rows
    left = f" The page of all tables has the workloads that some of these do not run ({len(rows) - len(whole)})."
    parts = [first_line(unstable[0])] if unstable else []
    parts.append(f"{about['cpu']}, {used}: time per call; how many times as fast static is as dynamic{others}."
                 f"{left * (len(whole) < len(rows))}")  # fmt: skip
    parts.append(table(["workload", "dynamic", "static", "as fast", *(SHORT[peer] for _, peer in compared)], whole))
    return "\n\n".join(map(wrapped, parts))


def wrapped(part: str) -> str:
    """Return a paragraph in lines of at most 80 columns; tables stay."""
    if part.startswith("|"):
        return part
    return "\n".join(textwrap.wrap(part, COLUMNS, subsequent_indent="  " if part.startswith("- ") else "",
                                   break_long_words=False, break_on_hyphens=False))  # fmt: skip


def summary(results: list[Result], peers: list[str]) -> str:
    """Return how many times as fast as each peer, and as the fastest on each workload, static is in the mean."""
    timed = [result for result in results if result.calls]
    means = []
    for peer in peers:
        factors = [1 / ratio for result in timed if (ratio := result.over([peer])) is not None]
        means += [f"{peer} {geometric_mean(factors):.2f} ({len(factors)})"] if factors else []
    best = [1 / ratio for result in timed if (ratio := result.over(peers)) is not None]
    if not best:
        return ""
    return (
        f"Times as fast as a peer, geometric mean over workloads (their number): {', '.join(means)}; "
        f"as the fastest peer of each workload {geometric_mean(best):.2f} ({len(best)})."
    )


def compared_with(peers: list[str]) -> list[tuple[str, str]]:
    """Return which engine is compared with what: the eager one with its own kind, the compiled one with all."""
    eager = [("dynamic", "torch")] if "torch" in peers else []
    return [*(("static", peer) for peer in peers), *eager]


def call_row(result: Result) -> list[str]:
    """Return the first table's row."""
    state = "differ" if result.differences else "failed" if result.error else "equal"
    row = [result.workload.name, state]
    if not result.calls or result.error:
        return row + ["-"] * (len(ENGINES) + 1)
    row += [seconds(result.call(engine).value) for engine in ENGINES]
    ratio = stats.ratio(result.calls["static"], result.calls["dynamic"]).as_json()
    return [*row, f"{times(1 / (ratio['value'] or 1))} {interval(ratio)}"]


def peer_row(result: Result, compared: list[tuple[str, str]]) -> list[str]:
    """Return the row of the table of peers."""
    known = [not result.error and other in result.calls for _, other in compared]
    return [
        result.workload.name,
        *(
            times(1 / stats.ratio(result.calls[ours], result.calls[other]).value) if has else "-"
            for has, (ours, other) in zip(known, compared, strict=True)
        ),
    ]


def agreement_row(result: Result, peers: list[str]) -> list[str]:
    """Return how a workload's results in each peer compare, such as ``2e-07, 98 %``."""
    row = [result.workload.name]
    for peer in peers:
        found = result.agreement.get(peer)
        if found is None or found.distance is None:
            row.append("-")
        else:
            row.append(f"{found.distance:.0e}" + (f", {100 * found.shared:.0f} %" if found.shared is not None else ""))
    return row


def tables(header: list[str], rows: list[list[str]]) -> list[str]:
    """Return a table, divided where it would be wider than 80 columns; columns without a figure are left out."""
    kept = [i for i in range(1, len(header)) if any(row[i] != "-" for row in rows)]
    found: list[str] = []
    while kept:
        count = len(kept)
        while True:
            chosen = [0, *kept[:count]]
            made = table([header[i] for i in chosen], [[row[i] for i in chosen] for row in rows])
            if count == 1 or len(made.partition("\n")[0]) <= COLUMNS:
                break
            count -= 1
        found.append(made)
        kept = kept[count:]
    return found


def once_row(result: Result) -> list[str]:
    """Return the row of one-off costs."""
    starts = ("cold", "disk")
    found = (seconds(result.once(engine, start).value) for start in starts for engine in ENGINES)
    return [result.workload.name, *found]


def pays_row(result: Result) -> list[str]:
    """Return the row of what compiling needs to pay off, and of memory."""
    found = (result.break_even(start).value for start in ("cold", "disk"))
    calls = ("never" if value == float("inf") else f"{int(value):,}" for value in found)
    return [result.workload.name, *calls, *(megabytes(result.peak(engine)) for engine in ENGINES)]


def around(path: Path, markers: tuple[str, str] = MARKERS) -> tuple[str, str]:
    """Return what stands before and after the results in a file, markers included.

    Raises
    ------
    ValueError
        If the file lacks the markers.
    OSError
        If it can't be read.
    """
    page = path.read_text(encoding="utf-8")
    start, end = (page.find(marker) for marker in markers)
    if start < 0 or end < start:
        raise ValueError(f"{path} has no lines {markers[0]!r} and {markers[1]!r}")
    return page[: start + len(markers[0])], page[end:]


def insert(path: Path, results: str, markers: tuple[str, str] = MARKERS) -> None:
    """Replace what stands between the two markers of a file; raises as `around` does."""
    before, after = around(path, markers)
    path.write_text(f"{before}\n{results}\n\n{after}", encoding="utf-8")
