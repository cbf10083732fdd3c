"""The kernels of a compiled call, run without the call: their times, and the largest of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.core.errors import TraceError
from common.core.tree import flatten
from common.runtime.builtins import make_run
from common.runtime.program_plan import Instruction, ProgramPlan
from common.tensor.base import TensorBase
from static.running.plan import Plan

Run = Callable[[], int]


class KernelsApart:
    """A compiled call without its arguments: all of it works on copies, state included.

    Attributes
    ----------
    empty : runs nothing, which is what starting a program takes.
    whole : runs all kernels in order.
    each : runs one kernel each, to be called in order, since a kernel may read indices that another has left where
        later results lie; none where loops or branches decide what runs. Those whose results the plan keeps do
        nothing.
    """

    def __init__(self, plan: Plan, arrays: Sequence[Any]) -> None:
        self._arrays = [x.copy() if isinstance(x, np.ndarray) else x for x in arrays]
        self._outputs = plan(*self._arrays)
        native = plan.native
        self._frame, self._keep = [int(word) for word in native.words], [native.keep, plan]
        instructions = [
            Instruction(native.exact(i.kernel), i.slots, tuple(native.exact(n) for n in i.ints))
            for i in native.instructions
        ]
        self.empty, self.whole = self._run([]), self._run(instructions)
        skipped = (
            native.exact(instructions[0].ints[3]) if plan.layout.kept else 0
        )  # a jump, the kernels, and a note that they ran
        skips = [self.empty] * max(skipped - 2, 0)
        straight = all(i.op < 0 for i in instructions[skipped:])
        self.each = [*skips, *(self._run([i]) for i in instructions[skipped:])] if straight else []

    def _run(self, instructions: Sequence[Instruction]) -> Run:
        program = ProgramPlan()
        program.frame, program.instructions = list(self._frame), list(instructions)
        run: Run = make_run(program.at([]))
        return run


def kernels_apart(function: Any, *args: Any) -> KernelsApart:
    """The kernels that a call of a `static.function` has run, for the arguments of that call.

    Raises
    ------
    TraceError : the function has not been called, is interpreted, or its program calls Python.

    Examples
    --------
    >>> import numpy as np, static
    >>> f = static.function(lambda x: (x * 2).sum())
    >>> x = np.ones(3)
    >>> value = f(x)
    >>> apart = kernels_apart(f, x)
    >>> len(apart.each), apart.whole()
    (1, 0)
    """
    traced, plan = function.newest, function.newest_plan
    if plan is None or plan.calls_python:
        raise TraceError(f"{function.__name__}: only programs that are compiled, and do not call Python, run apart")
    leaves, _ = flatten((args, {}))
    arrays = [leaves[i].payload if isinstance(leaves[i], TensorBase) else leaves[i] for i in traced.positions]
    return KernelsApart(plan, [*arrays, *(x.payload for x in traced.state)])
