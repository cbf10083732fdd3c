"""Where the time of a program goes: a profiler in the shape of `torch.profiler`."""

from common.profiler import (
    EventList,
    FunctionEvent,
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
)

__all__ = [
    "EventList", "FunctionEvent", "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule",
]  # fmt: skip
