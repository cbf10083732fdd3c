"""`debug`: a compiled program, stepped through at the user's own lines with Python's debugger.

Bits do not depend on how a program is run, so what the debugger shows is what the compiled call computes. Per node a
line of code is made that carries the user's file and line number; pdb steps from one to the next, and shows the user's
source, because everything else on the way is skipped.
"""

from __future__ import annotations

import ast
import bdb
import pdb  # noqa: T100  a debugger is what this is
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from static.graph import Node, Value
from static.running.interpreter import run_node, with_room
from static.tools.replay import phase, trace_call

STEPS = "__twingrad_debug__"
"""Name of the module whose lines stand for the user's; the debugger stops in no other."""


def debug(
    f: Callable[..., Any], *args: Any, stdin: Any = None, stdout: Any = None, **kwargs: Any
) -> list[np.ndarray] | None:
    """Step through a call of a compiled program with pdb.

    The debugger stops at the user's line of each op, first forward, then those of a backward pass inside the program.
    `step` runs the op; `result` is what the last one gave, `operands` what this one takes, `node` the op itself, and
    `values` everything so far by the names of the printed graph (``values["%3"]``). The other commands of pdb work as
    well: `break file:line`, `continue`, `list`, `quit`. A breakpoint ends with the call. Nothing outside is changed:
    state that the program would write is copied.

    Parameters
    ----------
    f : a `function`, a Python function that could be one, a session's `run`, or what its `make_callable` returns.
    args, kwargs : of the call.
    stdin, stdout : files for the commands and what they print, the terminal by default.

    Returns
    -------
    list of ndarray or None : the results in order, without their structure; None if the user has quit.

    Raises
    ------
    TraceError : `f` cannot be traced.
    """
    call = trace_call(f, args, kwargs)
    values: dict[tuple[int, int], Any] = {v.key: x for v, x in zip(call.graph.inputs, call.arrays, strict=True)}
    shown: dict[str, Any] = {repr(v): x for v, x in zip(call.graph.inputs, call.arrays, strict=True)}
    steps = [_step_at(node) for node in call.graph.nodes if node.op is not None]
    nodes = [node for node in call.graph.nodes if node.op is not None]

    def run(node: Node) -> Any:
        results = with_room(partial(run_node, node, values), call.env)
        for value, result in zip(node.outputs, results, strict=True):
            values[value.key] = shown[repr(value)] = result
        return results[0] if len(results) == 1 else results

    def walk() -> bool:
        scope: dict[str, Any] = {"__name__": STEPS, "values": shown, "run": run, "result": None}
        for node, code in zip(nodes, steps, strict=True):
            operands = [values[x.key] if type(x) is Value else x for x in node.operands]
            scope.update(node=node, operands=operands, phase=phase(node))
            exec(code, scope)
        return True

    for name, stream, method in (("stdin", stdin, "readline"), ("stdout", stdout, "write")):
        if not (stream is None or hasattr(stream, method)):
            raise ArgumentError(f"debug(): argument '{name}' must be a file, not {type(stream).__name__}")
    debugger = _Debugger(skip=["*"], stdin=stdin, stdout=stdout, nosigint=True)
    before = set(bdb.Breakpoint.bpbynumber)
    try:
        finished = debugger.runcall(walk)
    finally:
        for point in bdb.Breakpoint.bpbynumber:
            if point is not None and point not in before:  # pdb would keep it for the whole process
                point.deleteMe()
    if not finished:
        return None
    return [np.array(values[v.key]) for v in call.graph.outputs]


class _Debugger(pdb.Pdb):
    """Python's debugger; where it stops it also says which op is about to run."""

    def is_skipped_module(self, module_name: str | None) -> bool:
        return module_name != STEPS

    def user_call(self, frame: Any, argument_list: Any) -> None:
        """Not at the call, where there is no line yet."""

    def user_return(self, frame: Any, return_value: Any) -> None:
        """Not at the end: the next op is the next stop."""

    def print_stack_entry(self, frame_lineno: Any, prompt_prefix: str = pdb.line_prefix) -> None:
        super().print_stack_entry(frame_lineno, prompt_prefix)
        node = frame_lineno[0].f_globals.get("node")
        if isinstance(node, Node):
            self.message(f"   {frame_lineno[0].f_globals['phase']}: {node}")


def _step_at(node: Node) -> CodeType:
    """``result = run(node)`` as code of the user's file and line, in a function of the user's name."""
    file, line, function = node.source
    module = ast.parse("result = run(node)")
    for part in ast.walk(module):
        if isinstance(part, (ast.stmt, ast.expr)):
            part.lineno = part.end_lineno = max(line, 1)
            part.col_offset = part.end_col_offset = 0
    return compile(module, file, "exec").replace(co_name=function)
