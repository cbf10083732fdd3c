"""A profiler of eager ops, gradient rules and compiled calls, in the shape of `torch.profiler`.

While a profile is open, ops take the general path and tell it when they begin and end; without one nothing is measured
and nothing costs anything. A profile sees the context in which it was opened: its thread, and its asynchronous tasks.
"""

from __future__ import annotations

import enum
import functools
import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns, time_ns
from types import CodeType
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError, FileError
from common.core.int_arguments import members
from common.core.source_lines import user_frame
from common.core.switching import Change
from common.tensor.boundary import guards_itself
from common.tensor.observers import Watching
from common.tools.profiling.events import EventList, FunctionEvent, averages, chrome_trace
from common.tools.profiling.schedule import ProfilerAction, Schedule, schedule

__all__ = [
    "EventList", "FunctionEvent", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile",
    "record_function", "schedule", "tensorboard_trace_handler",
]  # fmt: skip


def kineto_available() -> bool:
    """False: the profiler is this project's own."""
    return False


class ProfilerActivity(enum.Enum):
    """Activities to profile: the CPU; a profile of anything else has no events of it."""

    CPU = 0
    XPU = 1
    CUDA = 2


#: Options of PyTorch's profilers that are accepted.
_OPTIONS = frozenset(
    {
        "acc_events", "custom_trace_id_callback", "execution_trace_observer", "experimental_config",
        "post_processing_timeout_s", "profile_memory", "use_cpu", "use_cuda", "use_device", "use_kineto", "with_flops",
        "with_modules",
    }
)  # fmt: skip


class _Thread:
    """The open spans of one thread: the op that runs, and the spans around it, [start, ns of the ops inside]."""

    __slots__ = ("ident", "op_start", "spans")

    def __init__(self) -> None:
        self.ident, self.op_start = get_ident(), 0
        self.spans: list[list[int]] = []


class profile(Watching):
    """Context manager, and decorator, that measures what runs inside.

    Parameters
    ----------
    activities : None or a list with `ProfilerActivity.CPU`; others are accepted, and have no events.
    schedule : ``schedule(step) -> ProfilerAction``, see `schedule`; None records everything.
    on_trace_ready : ``on_trace_ready(profile)`` is called when the last step of a cycle, or the block in it, has ended.
    record_shapes, with_stack : as in PyTorch; shapes and lines are always recorded.
    options : PyTorch's `profile_memory`, `with_flops`, `with_modules`, `experimental_config`, `use_cuda` and the like,
        accepted; there are no figures for them.

    Attributes
    ----------
    step_num : number of the step that runs.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([2.0, 3.0], requires_grad=True)
    >>> with profile() as p:
    ...     (x * x).sum().backward()
    >>> [(event.name, event.input_shapes) for event in p.events() if event.kind == "op"]
    [('mul', [[2], [2]]), ('sum', [[2]]), ('ones_like', [[]])]
    >>> [(event.name, event.input_shapes) for event in p.events() if event.kind == "rule"]
    [('SumBackward0', [[]]), ('MulBackward0', [[2]])]
    """

    def __init__(
        self,
        activities: Sequence[ProfilerActivity] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        with_stack: bool = False,
        **options: Any,
    ) -> None:
        if unknown := options.keys() - _OPTIONS:
            raise ArgumentError(f"profile() got an unexpected keyword argument {min(unknown)!r}")
        for name, given in (("schedule", schedule), ("on_trace_ready", on_trace_ready)):
            if given is not None and not callable(given):
                raise ArgumentError(f"profile(): argument '{name}' must be callable, not {type(given).__name__}")
        super().__init__(mode.profiling, lambda: self)
        self.activities = activities
        self.step_num = 0
        self._schedule, self._on_trace_ready = schedule, on_trace_ready
        self._action = ProfilerAction.RECORD if schedule is None else self._asked(0)
        self._events: list[FunctionEvent] = []
        self._threads: dict[int, _Thread] = {}

    def _asked(self, step: int) -> ProfilerAction:
        """The schedule's answer for a step."""
        assert self._schedule is not None
        action = self._schedule(step)
        if not isinstance(action, ProfilerAction):
            raise ArgumentError(f"profile(): the schedule must return a ProfilerAction, not {type(action).__name__}")
        return action

    def step(self) -> None:
        """The next step of the schedule begins; a cycle that records begins without the events of the last one."""
        self.step_num += 1
        if self._schedule is None:
            return
        before, self._action = self._action, self._asked(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE and self._on_trace_ready is not None:
            self._on_trace_ready(self)
        if self._action.records and before is not ProfilerAction.RECORD:
            self._events.clear()

    def _change(self) -> Change:
        change = super()._change()
        return change._replace(off=(*change.off, self._ended))

    def _ended(self) -> None:
        if self._action.records and self._on_trace_ready is not None:
            self._on_trace_ready(self)

    # ------------------------------------------------------------------ what engines tell

    def begin(self) -> None:
        """An op begins; if it first converts its operands, it begins again."""
        self._thread().op_start = perf_counter_ns()

    def end(self, name: str, operands: Sequence[Any], number: int) -> None:
        """The op that began last has ended.

        Parameters
        ----------
        operands : its arrays and numbers.
        number : of the node that it has put on the tape, -1 for none.
        """
        now, thread = perf_counter_ns(), self._thread()
        self._add(thread, name, "op", thread.op_start, now, 0, operands, number, user_frame(1))

    def open(self) -> int:
        """A span begins; what to close it with."""
        spans = self._thread().spans
        spans.append([perf_counter_ns(), 0])
        return len(spans)

    def close(
        self, depth: int, name: str, kind: str, operands: Sequence[Any] = (), number: int = -1, frame: Any = None
    ) -> None:
        """A span ends, and with it those inside that an exception has left open."""
        now, thread = perf_counter_ns(), self._thread()
        start, inner = thread.spans[depth - 1]
        del thread.spans[depth - 1 :]
        self._add(thread, name, kind, start, now, inner, operands, number, frame or user_frame(1))

    @guards_itself
    @contextmanager
    def span(self, name: str, kind: str, operands: Sequence[Any] = ()) -> Iterator[None]:
        """A context that is one event."""
        depth, frame = self.open(), user_frame(3)
        try:
            yield
        finally:
            self.close(depth, name, kind, operands, frame=frame)

    def _thread(self) -> _Thread:
        ident = get_ident()
        found = self._threads.get(ident)
        if found is None:
            found = self._threads[ident] = _Thread()
        return found

    def _add(
        self,
        thread: _Thread,
        name: str,
        kind: str,
        start: int,
        end: int,
        inner: int,
        operands: Sequence[Any],
        number: int,
        frame: tuple[CodeType | None, int],
    ) -> None:
        if thread.spans:
            thread.spans[-1][1] += end - start
        if not self._action.records:
            return
        shapes = [list(getattr(x, "shape", ())) for x in members(operands, "profile", "operands")]
        own = end - start - inner
        self._events.append(FunctionEvent(name, kind, thread.ident, start, end, own, shapes, number, *frame))

    # ------------------------------------------------------------------ what users ask

    def events(self) -> EventList:
        """All events in the order of their beginning."""
        return EventList.ordered(self._events)

    @property
    def function_events(self) -> EventList:
        """`events`, by the name of `torch.autograd.profiler`."""
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, without those inside others counted twice."""
        return self.events().self_cpu_time_total

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Events of one name together; its `table` prints.

        Parameters
        ----------
        group_by_input_shape : only those of equal input shapes.
        group_by_stack_n : if not 0, only those of one line of the program.
        """
        return averages(self.events(), group_by_input_shape, group_by_stack_n > 0)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The table of `key_averages`, with the options of `EventList.table`."""
        return self.key_averages().table(sort_by, row_limit, **options)

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write a file for chrome://tracing and Perfetto, with an arrow from each forward op to its gradient rule.

        Parameters
        ----------
        path : of the file, JSON.
        """
        Path(path).write_text(chrome_trace(self.events()), encoding="utf-8")


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A handler for `on_trace_ready`: every trace goes to a file of its own.

    Parameters
    ----------
    dir_name : folder, made if it is not there.
    worker_name : begins the files' names; by default of the process.
    use_gzip : whether they are compressed.

    Raises
    ------
    FileError : the folder cannot be made.
    """
    folder = Path(dir_name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"tensorboard_trace_handler(): no folder {dir_name!r} can be made: {error}") from error

    def write(profiled: profile) -> None:
        name = f"{worker_name or f'worker_{os.getpid()}'}.{time_ns()}.pt.trace.json"
        text = chrome_trace(profiled.events()).encode()
        if use_gzip:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text))
        else:
            (folder / name).write_bytes(text)

    return write


class record_function:
    """Context manager, and decorator, that makes a part of the program an event of its own.

    Parameters
    ----------
    name : of the event.
    args : a note, shown behind the name.

    Examples
    --------
    >>> import dynamic as tw
    >>> with profile() as p, record_function("two steps"):
    ...     y = tw.zeros(3) + 1
    >>> [event.name for event in p.events()]
    ['two steps', 'add']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name if args is None else f"{name}({args})"
        self._open: list[tuple[Any, int, Any]] = []

    def __enter__(self) -> record_function:
        found = mode.profiling.get()
        self._open.append((found, 0 if found is None else found.open(), user_frame(1)))
        return self

    def __exit__(self, *exc: object) -> None:
        found, depth, frame = self._open.pop()
        if found is not None:
            found.close(depth, self.name, "user", frame=frame)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate: every call of `function` is an event."""

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapper
