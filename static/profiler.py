"""Where the time of a program goes: a profiler in the shape of `torch.profiler`."""

from common.profiler import EventList, FunctionEvent, ProfilerActivity, profile, record_function

__all__ = ["EventList", "FunctionEvent", "ProfilerActivity", "profile", "record_function"]
