"""Recording a program: while a trace is open, ops append nodes to its graph instead of computing.

Concrete tensors and arrays that the program meets are captured *by reference*: they become inputs whose
contents are read anew at each call. Writes to them (`p.sub_(...)`, `p.grad = ...`) change only the trace's own
picture of them and become effects, carried out after a call has succeeded. Python control flow on a traced
value cannot be recorded and raises an error that names the line and the way out.
"""

from __future__ import annotations

from static.tracing.decisions import Decisions
from static.tracing.recorder import Recorder
from static.tracing.repetitions import repeated
from static.tracing.trace_regions import act, callback, run_choice, run_loop


class Trace(Recorder):
    """An open trace.

    Parameters
    ----------
    control_flow : "guard" or "convert", where Python may ask for elements; see `static.tracing.decisions`.
    """

    def __init__(self, name: str, *, control_flow: str | None = None) -> None:
        super().__init__(name)
        self.decide = None if control_flow is None else Decisions(self, control_flow == "guard")

    #: Record a loop, branches, and what comes again: see `common.control.loop`, `common.control.branches`, and there.
    act, callback, run_loop, run_choice, repeated = act, callback, run_loop, run_choice, repeated
