"""If, Loop and Scan: Python where it is known what happens, else `cond`, `while_loop` and `scan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.control.choose import cond
from common.control.iterate import scan, while_loop
from common.core import mode
from common.core.errors import ArgumentError, DTypeError, FormError, ShapeError, TraceError
from common.core.sizes import Dim
from common.ops import functional as F
from common.tools.onnx.applied import Applied, axis_of, meaning
from common.tools.onnx.host_values import arange, number, tensor

_FOREVER = np.iinfo(np.int64).max
_BRANCHES = (
    "a compiled If has both branches, so both must fit these sizes; if an input of the model decides, compile the "
    "model with a number in its place, such as function(lambda x: model(x, 16000))"
)


def _scalar(x: Any) -> Any:
    """One element as a 0-d tensor."""
    return F.reshape(tensor(x), ())


def _tensors(values: Sequence[Any]) -> list[Any]:
    for x in values:
        if isinstance(x, list):
            raise TraceError("control flow that elements decide gives a list of tensors: run the model uncompiled")
    return list(map(tensor, values))


@meaning("If")
def _if(a: Applied, condition: Any) -> Any:
    yes, no = a.graph("then_branch"), a.graph("else_branch")
    if isinstance(condition, np.ndarray):
        return a.inside(yes if number(condition, "the condition") else no, [])
    chosen = _scalar(condition)
    with _OrPython() as here:
        try:
            return list(cond(chosen, lambda: _tensors(a.inside(yes, [])), lambda: _tensors(a.inside(no, []))))
        except ShapeError as error:
            if not here.may and _BRANCHES not in getattr(error, "__notes__", ()):
                error.add_note(_BRANCHES)
            raise
    return a.inside(yes if bool(chosen) else no, [])


@meaning("Loop")
def _loop(a: Applied, limit: Any = None, condition: Any = None, *carried: Any) -> Any:
    body = a.graph("body")
    n = len(carried)
    stacks = len(body.outputs) - 1 - n
    if len(body.inputs) != n + 2 or stacks < 0:
        raise ArgumentError(f"{n} values are carried through a body of {len(body.inputs)} inputs")
    with _OrPython() as here:
        if _always(body, condition) and limit is not None and (isinstance(limit, np.ndarray) or here.may):
            return _counted(a, number(limit, "the number of iterations"), list(carried), stacks)
        if stacks:
            raise TraceError("how many rows it stacks depends on elements of tensors: run the model uncompiled")
        return _until(a, limit, condition, carried)
    return _in_python(a, limit, condition, list(carried), stacks)


class _OrPython:
    """An attempt with `cond`, `scan` or `while_loop`, whose gradients have the same bits in both engines.

    What they refuse, such as shapes that change, is left to Python outside a trace.
    """

    def __init__(self) -> None:
        self.may = mode.current_trace() is None

    def __enter__(self) -> _OrPython:
        return self

    def __exit__(self, kind: Any, error: Any, _: Any) -> bool:
        return self.may and isinstance(error, (FormError, ShapeError, TraceError, DTypeError))


def _until(a: Applied, limit: Any, condition: Any, carried: Sequence[Any]) -> list[Any]:
    body = a.graph("body")
    start = [_scalar(np.asarray(0, np.int64)), _scalar(np.asarray(True) if condition is None else condition)]
    most = _scalar(np.asarray(_FOREVER, np.int64) if limit is None else limit)

    def step(state: Any) -> Any:
        i, on, *values = state
        asked, *new = _tensors(a.inside(body, [i, on, *values]))
        return [i + 1, _scalar(asked), *new]

    done = while_loop(lambda s: F.logical_and(s[1], F.lt(s[0], most)), step, [*start, *_tensors(carried)])
    return list(done[2:])


def _always(body: Any, condition: Any) -> bool:
    """Whether only the number of iterations ends a loop."""
    if isinstance(condition, np.ndarray):
        if not bool(condition.reshape(-1)[0]):
            return False
    elif condition is not None:
        return False
    name, asked = body.outputs[0].name, body.inputs[1].name
    if name in body.arrays:
        return bool(body.arrays[name].reshape(-1)[0])
    made = {out: node for node in body.nodes for out in node.outputs}
    while name != asked:
        node = made.get(name)
        if node is None or node.kind not in ("Identity", "Constant"):
            return False
        if node.kind == "Constant":
            value = node.attrs.get("value")
            return isinstance(value, np.ndarray) and bool(value.reshape(-1)[0])
        name = node.inputs[0]
    return True


def _in_python(a: Applied, limit: Any, condition: Any, carried: list[Any], stacks: int) -> list[Any]:
    most = _FOREVER if limit is None else int(number(limit, "the number of iterations"))
    on = True if condition is None else bool(number(condition, "the condition"))
    body, i = a.graph("body"), 0
    rows: list[list[Any]] = [[] for _ in range(stacks)]
    while on and i < most:
        asked, *new = a.inside(body, [np.asarray(i, np.int64), np.asarray(True), *carried])
        on = bool(number(asked, "the condition"))
        carried = new[: len(carried)]
        for told, row in zip(rows, new[len(carried) :], strict=True):
            told.append(tensor(row))
        i += 1
    return [*carried, *(F.stack(told, 0) if told else _no_rows(a, k, len(carried)) for k, told in enumerate(rows))]


def _no_rows(a: Applied, k: int, n: int) -> Any:
    from common.tools.onnx.records import dtype_of

    told = a.graph("body").outputs[1 + n + k]
    shape = [0, *(s if isinstance(s, int) else 0 for s in told.shape or [])]
    return tensor(np.zeros(shape, dtype_of(told.dtype or 1, "a stack")))


def _counted(a: Applied, count: Any, carried: list[Any], stacks: int) -> list[Any]:
    body, n = a.graph("body"), len(carried)
    if any(isinstance(x, list) for x in carried) and not isinstance(count, Dim):
        return _in_python(a, np.asarray(count), None, carried, stacks)

    def step(state: Any, i: Any) -> Any:
        _, *new = _tensors(a.inside(body, [i, np.asarray(True), *state]))
        return new[:n], new[n:]

    done, rows = scan(step, _tensors(carried), arange(count if isinstance(count, Dim) else max(int(count), 0)))
    return [*done, *rows]


@meaning("Scan")
def _scan(a: Applied, *given: Any) -> Any:
    body, m = a.graph("body"), a.need("num_scan_inputs", int)
    if a.opset < 9:
        raise ArgumentError("the Scan of version 8 has no counterpart: convert the model to version 9 or later")
    n = len(given) - m
    stacks = len(body.outputs) - n
    if n < 0 or stacks < 0 or len(body.inputs) != len(given) or m < 1:
        raise ArgumentError(f"{n} values and {m} rows for a body of {len(body.inputs)} inputs")
    ways, axes = a.get("scan_input_directions") or [0] * m, a.get("scan_input_axes") or [0] * m
    out_ways = a.get("scan_output_directions") or [0] * stacks
    out_axes = a.get("scan_output_axes") or [0] * stacks
    rows = [tensor(x) for x in given[n:]]
    rows = [F.movedim(x, axis_of(d, x.ndim, "axis"), 0) if d else x for x, d in zip(rows, axes, strict=True)]
    back = all(ways) and all(out_ways)
    if not back:
        rows = [F.flip(x, (0,)) if way else x for x, way in zip(rows, ways, strict=True)]

    def step(state: Any, row: Any) -> Any:
        new = _tensors(a.inside(body, [*state, *row]))
        return new[:n], new[n:]

    done, told = scan(step, _tensors(given[:n]), rows, reverse=back)
    stacked = []
    for x, way, d in zip(told, out_ways, out_axes, strict=True):
        x = F.flip(x, (0,)) if way and not back else x
        stacked.append(F.movedim(x, 0, axis_of(d, x.ndim, "axis")) if d else x)
    return [*done, *stacked]
