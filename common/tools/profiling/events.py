"""Events of a profile, as averages, a table, and a trace for the browser."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from common.core.errors import ArgumentError
from common.core.source_lines import locate

#: PyTorch's names of what rows can be sorted by.
SORTS = ("count", "cpu_time", "cpu_time_total", "self_cpu_time_total")


@dataclass(slots=True)
class FunctionEvent:
    """One run of an op, a gradient rule, a backward pass, a compiled function, or a part that the user has named.

    Attributes
    ----------
    name : of the op, node, function or part.
    kind : "op", "rule", "backward", "compiled" or "user".
    thread : the thread's number.
    start_ns, end_ns : nanoseconds of `time.perf_counter_ns`.
    self_ns : nanoseconds without the events inside.
    input_shapes : of the operands; of a rule those of the gradients that it gets; [] for numbers.
    sequence_nr : number of the node that an op has put on the tape, and whose rule a rule is; -1 for none.
    inside : whether another event of its thread was open; known to `EventList.ordered`.
    """

    name: str
    kind: str
    thread: int
    start_ns: int
    end_ns: int
    self_ns: int
    input_shapes: list[list[int]]
    sequence_nr: int
    code: CodeType | None
    lasti: int
    inside: bool = False

    count = 1

    @property
    def key(self) -> str:
        """PyTorch's word for the name."""
        return self.name

    @property
    def source(self) -> tuple[str, int, str]:
        """The user's file, line and function; of a rule those of the forward op."""
        return locate(self.code, self.lasti)

    @property
    def stack(self) -> list[str]:
        """The user's line as PyTorch writes it, ``file(line): function``."""
        return ["{}({}): {}".format(*self.source)]

    @property
    def cpu_time_total(self) -> float:
        """Microseconds."""
        return (self.end_ns - self.start_ns) / 1e3

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without the events inside."""
        return self.self_ns / 1e3

    @property
    def cpu_time(self) -> float:
        """Microseconds."""
        return self.cpu_time_total


@dataclass(slots=True)
class FunctionEventAvg:
    """Events of one key together.

    Attributes
    ----------
    key : their name.
    count : how many.
    cpu_time_total, self_cpu_time_total : microseconds, with and without the events inside.
    input_shapes, stack : those of the first; of all, if they were grouped by it.
    inside : whether all of them lie inside other events.
    """

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    input_shapes: list[list[int]]
    stack: list[str]
    inside: bool = False

    @property
    def name(self) -> str:
        """The key."""
        return self.key

    @property
    def cpu_time(self) -> float:
        """Microseconds per event."""
        return self.cpu_time_total / self.count


class EventList(list[Any]):
    """Events, or averages of events.

    Attributes
    ----------
    by_shape, by_line : by what else than the name averages were grouped; the table has a column for it.
    """

    by_shape = by_line = False

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each moment counted once."""
        return float(sum(event.self_cpu_time_total for event in self))

    @classmethod
    def ordered(cls, events: Iterable[FunctionEvent]) -> EventList:
        """Events in the order of their beginning, with what lies inside others marked."""
        found = cls(sorted(events, key=lambda event: (event.start_ns, -event.end_ns)))
        ends: dict[int, int] = {}
        for event in found:
            end = ends.get(event.thread, 0)
            event.inside = event.end_ns <= end
            ends[event.thread] = max(end, event.end_ns)
        return found

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as text.

        Parameters
        ----------
        sort_by : "cpu_time_total", "self_cpu_time_total", "cpu_time" or "count", largest first; None keeps the order.
        row_limit : how many rows; -1 for all.
        max_src_column_width, max_name_column_width, max_shapes_column_width : characters of a line of the program, a
            name and input shapes; longer ones are cut.
        header : a line above.
        top_level_events_only : leave out what lies inside other events.

        Raises
        ------
        ArgumentError : another `sort_by`.
        """
        if sort_by is not None and sort_by not in SORTS:
            raise ArgumentError(f"sort_by should be one of {SORTS} or None, got {sort_by!r}")
        rows = [e for e in self if not (top_level_events_only and e.inside)]
        rows = sorted(rows, key=lambda e: -getattr(e, sort_by)) if sort_by else rows
        rows = rows if row_limit < 0 else rows[:row_limit]
        whole = self.self_cpu_time_total or 1.0
        head = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
        head += ["Input Shapes"] * self.by_shape + ["Source Location"] * self.by_line
        cells = [head]
        for e in rows:
            own, total = e.self_cpu_time_total, e.cpu_time_total
            name = _cut(e.key, max_name_column_width)
            cells.append([name, f"{own / whole:.2%}", _time(own), f"{total / whole:.2%}", _time(total)])
            cells[-1] += [_time(e.cpu_time), str(e.count)]
            shapes, lines = str(e.input_shapes), e.stack[:1]
            cells[-1] += [_cut(shapes, max_shapes_column_width)] * self.by_shape
            cells[-1] += [_cut(line, max_src_column_width) for line in lines * self.by_line]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rule = "  ".join("-" * width for width in widths)
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        above = [] if header is None else [rule, header]
        return "\n".join([*above, rule, lines[0], rule, *lines[1:], rule, f"Self CPU time total: {_time(whole)}"])

    def __str__(self) -> str:
        return self.table()


def averages(events: EventList, by_shape: bool, by_line: bool) -> EventList:
    """Events of one name together, and if asked of one shape or line, in the order of the first of each."""
    groups: dict[Any, list[FunctionEvent]] = {}
    for event in events:
        shapes = str(event.input_shapes) if by_shape else ""
        groups.setdefault((event.name, shapes, event.source if by_line else ()), []).append(event)
    found = EventList(
        FunctionEventAvg(
            group[0].name,
            len(group),
            sum(event.cpu_time_total for event in group),
            sum(event.self_cpu_time_total for event in group),
            group[0].input_shapes,
            group[0].stack,
            all(event.inside for event in group),
        )
        for group in groups.values()
    )
    found.by_shape, found.by_line = by_shape, by_line
    return found


def chrome_trace(events: EventList) -> str:
    """The events as JSON in Chrome's trace event format, with flow events from forward ops to their rules.

    References
    ----------
    N. Duca, D. Sinclair: Trace Event Format, 2016.
    """
    origin = events[0].start_ns if events else 0
    process = os.getpid()
    made: dict[int, FunctionEvent] = {}
    out: list[dict[str, Any]] = []
    for event in events:
        where = {"pid": process, "tid": event.thread, "ts": (event.start_ns - origin) / 1e3}
        args = {"Input Dims": event.input_shapes, "Call stack": event.stack[0]}
        if event.sequence_nr >= 0:
            args["Sequence number"] = event.sequence_nr
        category = "user_annotation" if event.kind == "user" else "cpu_op"
        out.append({"ph": "X", "cat": category, "name": event.name, **where, "dur": event.cpu_time_total, "args": args})
        if event.kind == "op" and event.sequence_nr >= 0:
            made[event.sequence_nr] = event
        forward = made.get(event.sequence_nr) if event.kind == "rule" else None
        if forward is not None:
            flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": len(out)}
            start = {"pid": process, "tid": forward.thread, "ts": (forward.start_ns - origin) / 1e3}
            out += [{"ph": "s", **flow, **start}, {"ph": "f", "bp": "e", **flow, **where}]
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": out})


def _cut(text: str, width: int) -> str:
    """A text of at most `width` characters."""
    return text if len(text) <= width else f"{text[: max(width - 3, 0)]}..."


def _time(microseconds: float) -> str:
    """A time as PyTorch prints it."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"
