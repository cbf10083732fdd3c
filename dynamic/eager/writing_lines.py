"""In-place forms as kernels that write where they read: made of the ops that a function applies to forms.

Elementwise ops of one float dtype become one kernel. An op that changes some elements of a copy of its first operand
leaves the copy out. Of all else the result is computed, and copied over the operand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from common.compiler.host_kernels import is_host
from common.core import mode
from common.core.dispatch import Attrs
from common.core.op import Op
from common.core.shapes import overlapping
from common.core.spec import Spec
from common.evaluate import kernels, strided_loops
from common.evaluate.fused_lines import DelayedOp, expressions
from common.evaluate.kernels import compiled
from common.evaluate.kinds import number
from common.kernels.arrays import copying
from common.random.draw_counts import refuse_draws
from common.runtime.call_text import MAX_INPUTS
from common.tensor.base import Tensor, wrap
from dynamic.eager.op_lines import MoreThanFormsError, OpLine, StandIn
from dynamic.eager.remembered import KINDS, _has_tensors, _of_flat


def in_place(
    function: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any], may_copy: bool = True
) -> Any:
    """``run(*arrays)``: a function of tensors of these forms, in place; or False.

    It returns NotImplemented, with nothing done, where the general way is to be taken.

    Parameters
    ----------
    may_copy : whether a result may be computed beside the operand, and copied.
    """
    ways: list[tuple[type[OpLine], Any]] = [(_ElementwiseLine, _kernel), (OpLine, _without_copy)]
    if may_copy:
        ways.append((OpLine, _result_over))
    for kind, way in ways:
        try:
            return way(*_written_down(kind, function, operands, options))
        except Exception:  # the general way raises it again for the operands, unless only stand-ins cause it
            pass
    return False


def beside(function: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any], x: np.ndarray) -> Any:
    """``run(x, *arrays)``: a function of tensors of these forms, its result written to an array as x; or False."""
    ways: list[tuple[type[OpLine], Any]] = [(_ElementwiseLine, _kernel), (OpLine, _into)]
    for kind, way in ways:
        try:
            line, result = _written_down(kind, function, operands, options)
            return way(line, result, x) if result.payload.shape == x.shape else False
        except Exception:
            pass
    return False


class _ElementwiseLine(OpLine):
    """A line in which a composite stands as the ops that it is made of."""

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Write down an op."""
        if op.forward is None:
            return super().record(op, operands, attrs)
        return op.forward(*operands, **attrs)


def _written_down(
    kind: type[OpLine], function: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any]
) -> tuple[OpLine, Any]:
    """The ops that a function applies to operands of these forms, and its result."""
    flat = [z for x in operands for z in (x if _has_tensors(x) else (x,))]
    forms = [Spec(x.payload.shape, x.payload.dtype) if type(x) in KINDS else x for x in flat]
    with mode.GradSwitch(False), refuse_draws():
        line = kind(forms)
        return line, _of_flat(partial(function, **options), tuple(operands))(*line.operands)


def _result_over(line: OpLine, result: Any) -> Any:
    """The steps of a line one after the other; their result, of the first operand's form, is copied over it.

    Raises
    ------
    MoreThanFormsError : the result has another form.
    """
    first: Any = line.operands[0]
    if result.payload.shape != first.payload.shape or result.payload.dtype != first.payload.dtype:
        raise MoreThanFormsError
    text, scope = line.function(result)
    exec(compile(text, f"{__file__}: remembered", "exec"), scope)
    run = scope["line"]

    def over(*arrays: np.ndarray) -> Any:
        try:
            y = run(*map(wrap, arrays))
        except Exception:  # the general way raises it again
            return NotImplemented
        arrays[0][...] = y.payload
        return None

    return over


class _Program(NamedTuple):
    """The steps of a line as one program: op and operands of each step, and what is read.

    Attributes
    ----------
    shapes, dtypes : of the line's tensors, and of the constants behind them.
    """

    steps: list[tuple[Op, list[tuple[str, Any]]]]
    shapes: list[tuple[int, ...]]
    dtypes: list[np.dtype[Any]]
    constants: list[np.ndarray]


def _program(line: OpLine, result: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Program:
    """The steps of a line as one program.

    Raises
    ------
    MoreThanFormsError : they are no elementwise ops of that shape and dtype, or none at all.
    """
    steps = line.steps
    if dtype.kind != "f" or not prod(shape) or not steps or [result.name] != steps[-1][4]:
        raise MoreThanFormsError
    tensors = [x for x in line.operands if type(x) is StandIn]
    places: dict[str, tuple[str, int]] = {x.name: ("x", i) for i, x in enumerate(tensors)}
    shapes = [x.payload.shape for x in tensors]
    constants: list[np.ndarray] = []
    program: list[tuple[Op, list[tuple[str, Any]]]] = []
    for at, (op, operands, attrs, _, names) in enumerate(steps):
        found = line.recipes[at]
        if op.kind == "view":
            kind, i = places.pop(operands[0].name)
            if kind != "x" or not _is_reshaped(op, operands[0].payload, attrs):
                raise MoreThanFormsError
            places[names[0]], shapes[i] = (kind, i), found.spec.shape
            continue
        plain = [x.payload if type(x) is StandIn else x if op.versions else 1.0 for x in operands]
        made = DelayedOp(op, tuple(plain), None, None, found.dtype)
        if op.kind != "elementwise" or attrs or found.spec.shape != shape or not made.is_fusible(found.spec):
            raise MoreThanFormsError
        if found.dtype not in (dtype, np.dtype(np.bool_)):
            raise MoreThanFormsError
        given = []
        for x in operands:
            if type(x) is StandIn:
                given.append(places[x.name])
            elif op.versions:  # another kernel for some numbers
                given.append(("n", x))
            else:
                given.append(("x", len(shapes)))
                shapes.append(())
                constants.append(number(x, dtype))
        program.append((op, given))
        places[names[0]] = "t", len(program) - 1
    if found.spec.dtype != dtype or len(shapes) > MAX_INPUTS:
        raise MoreThanFormsError
    dtypes = [*(x.payload.dtype for x in tensors), *(dtype for _ in constants)]
    return _Program(program, shapes, dtypes, constants)


def _kernel(line: OpLine, result: Any, out: np.ndarray | None = None) -> Any:
    """The steps of a line as one kernel that writes to its first operand, or to an array of the form of `out`."""
    first: Any = line.operands[0].payload if out is None else out
    shape, dtype = first.shape, first.dtype
    program, shapes, dtypes, constants = _program(line, result, shape, dtype)
    classes, ints = kernels.arrange(shapes, shape)
    if None in classes:
        raise MoreThanFormsError
    letters = "".join(map(str, classes))
    if len(program) == 1 and program[0][1] == [("x", i) for i in range(len(dtypes))]:  # the op's own kernel
        name = program[0][0].name
        short = kernels.short_columns([name], classes, ints)
        call = kernels.general(name, tuple(dtypes), dtype, letters, (), short, False)
    else:
        body = expressions(program, dtype)
        source = kernels.loop_source("fused", body, dtypes, dtype, letters, apart=False)
        call = kernels.compiled(source, "fused", False)

    def run(*arrays: np.ndarray) -> None:
        call(*arrays, *constants, arrays[0], *ints)

    def run_two(x: np.ndarray, z: np.ndarray) -> None:
        call(x, z, *constants, x, *ints)

    def run_beside(x: np.ndarray, *arrays: np.ndarray) -> None:
        call(*arrays, *constants, x, *ints)

    if out is not None:
        return run_beside
    return run_two if len(dtypes) - len(constants) == 2 else run


def among_rows(
    function: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any], arrays: Sequence[np.ndarray]
) -> Any:
    """``run(*arrays)``: a function of tensors over the first of these arrays, which lie so; or False.

    It reads and writes the elements where they lie, along the dimension in which those of the first are next to each
    other.
    """
    x = arrays[0]
    try:
        line, result = _written_down(_ElementwiseLine, function, operands, options)
        program, shapes, dtypes, constants = _program(line, result, x.shape, x.dtype)
    except Exception:  # as in `in_place`
        return False
    order = sorted(range(x.ndim), key=lambda d: -abs(x.strides[d]))
    if overlapping(x.shape, x.strides) or [z.shape for z in (*arrays, *constants)] != shapes:
        return False

    def turned(z: np.ndarray) -> np.ndarray:
        return z[(None,) * (x.ndim - z.ndim)].transpose(order) if z.ndim else z

    first = turned(x)
    how = strided_loops.reading([*map(turned, arrays), *constants], first.shape, first)
    if how is None or how.copied[0]:
        return False
    body = expressions(program, x.dtype)
    source = strided_loops.source("fused", body, dtypes, x.dtype, how.letters, how.outer, apart=False)
    write = how.writing(compiled(source, "fused", False), dtypes)

    def run(*arrays: np.ndarray) -> None:
        given = [*map(turned, arrays)]
        write(given[0], *given, *constants)

    return run


def _is_reshaped(op: Op, form: Any, attrs: Attrs) -> bool:
    """Whether a view of a whole array has its elements, in the same order."""
    x = np.empty(form.shape, form.dtype)
    y = op.array(x, **attrs)
    return bool(y.flags.c_contiguous and y.size == x.size and y.ctypes.data == x.ctypes.data)


def _without_copy(line: OpLine, result: Any) -> Any:
    """The last op of a line on the memory of its first operand, which it would copy.

    Raises
    ------
    MoreThanFormsError : it copies another one, or reads the first operand besides.
    """
    name = result.name
    while (step := line.steps[-1])[0].kind == "view" and step[4] == [name] and _is_reshaped(*_viewed(step)):
        name = step[1][0].name
        del line.steps[-1], line.recipes[-1]
    op, operands, attrs, _, names = line.steps[-1]
    if [name] != names or _whole(line, operands[0]) is not line.operands[0] or op.native is None:
        raise MoreThanFormsError
    fixed = [x if type(x) is StandIn else np.array(x.payload if type(x) is Tensor else x) for x in operands]
    specs = [Spec(x.payload.shape, x.payload.dtype) if type(x) is StandIn else Spec(x.shape, x.dtype) for x in fixed]
    copies, *rest = op.native(specs, (op.spec(*specs, **attrs),), attrs)
    last = len(specs)
    if copies.source != copying.copy_source(specs[0].dtype) or copies.buffers != (0, last):
        raise MoreThanFormsError
    calls = []
    for call in rest:
        if call.buffers is None or 0 in call.buffers:
            raise MoreThanFormsError
        calls.append((compiled(call.source, call.name), call.buffers, (call.scratch,) * bool(call.scratch), call.ints))
    given = _operands(line, fixed)

    def run(x: np.ndarray, *arrays: np.ndarray) -> Any:
        buffers = [x, *given(x, *[z.copy() if z is x else z for z in arrays]), x]
        for kernel, slots, scratch, ints in calls:
            if kernel(*[buffers[i] for i in slots], *(np.empty(n, np.uint8) for n in scratch), *ints):
                return NotImplemented  # a wrong index, found before anything is written
        return None

    if len(calls) == 1 and calls[0][1:3] == (tuple(range(1, last + 1)), ()):
        only, _, _, numbers = calls[0]

        def run_one(x: np.ndarray, *arrays: np.ndarray) -> Any:
            for z in arrays:
                if z is x:
                    return run(x, *arrays)
            return NotImplemented if only(*given(x, *arrays), x, *numbers) else None

        return run_one

    return run


def _into(line: OpLine, result: Any, out: np.ndarray) -> Any:
    """The only op of a line, whose kernels write to an array of the form of `out`.

    Raises
    ------
    MoreThanFormsError : there are more, or it has no kernels, or such as refuse some operands once they write.
    """
    ((op, operands, attrs, _, names),) = line.steps
    if [result.name] != names or op.native is None or result.payload.dtype != out.dtype:
        raise MoreThanFormsError
    tensors = [x for x in line.operands if type(x) is StandIn]
    if [id(x) for x in operands] != [id(x) for x in tensors]:
        raise MoreThanFormsError
    specs = [Spec(x.payload.shape, x.payload.dtype) for x in operands]
    given = op.native(specs, (op.spec(*specs, **attrs),), attrs)
    if any(call.errors or is_host(call) for call in given):
        raise MoreThanFormsError
    calls, last = [], len(specs)
    for call in given:
        slots = tuple(range(last + 1)) if call.buffers is None else call.buffers
        calls.append((compiled(call.source, call.name), slots, call.scratch, call.ints))
    pieces = [(kernel, slots[0], ints) for kernel, slots, held, ints in calls if not held and slots[1:] == (last,)]

    def run(x: np.ndarray, *arrays: np.ndarray) -> None:
        buffers = [*[z.copy() if z is x else z for z in arrays], x]
        for kernel, slots, held, ints in calls:
            more = (np.empty(held, np.uint8),) if held else ()
            kernel(*[buffers[i] for i in slots], *more, *ints)

    def run_pieces(x: np.ndarray, *arrays: np.ndarray) -> None:
        if any(z is x for z in arrays):
            return run(x, *arrays)
        for kernel, i, ints in pieces:
            kernel(arrays[i], x, *ints)
        return None

    return run_pieces if len(pieces) == len(calls) and all(i < last for _, i, _ in pieces) else run


def _viewed(step: Any) -> tuple[Op, Any, Attrs]:
    return step[0], step[1][0].payload, step[2]


def _whole(line: OpLine, x: Any) -> Any:
    """The operand of a line that an op takes reshaped; what the op takes if that is something else."""
    made = {step[4][0]: step for step in line.steps if step[0].kind == "view"}
    while (step := made.get(getattr(x, "name", ""))) is not None and _is_reshaped(*_viewed(step)):
        x = step[1][0]
    return x


def _operands(line: OpLine, operands: Sequence[Any]) -> Callable[..., Any]:
    """``given(*arrays)``: the operands of the last op of a line but the first, in order and beside the first array."""
    tensors = [x for x in line.operands if type(x) is StandIn]
    rest = [_whole(line, x) for x in operands[1:]]
    if all(any(x is z for z in tensors[1:]) for x in rest if type(x) is StandIn):
        if [id(x) for x in rest] == [id(x) for x in tensors[1:]]:
            return lambda x, *arrays: arrays
        places = [next((i for i, z in enumerate(tensors) if z is x), x) for x in rest]
        return lambda *arrays: [arrays[i] if type(i) is int else i for i in places]
    made = tuple(x for x in rest if type(x) is StandIn)
    del line.steps[-1], line.recipes[-1]
    text, scope = line.function(made)
    exec(compile(text, f"{__file__}: remembered", "exec"), scope)
    before = scope["line"]

    def given(*arrays: np.ndarray) -> list[Any]:
        found = [np.ascontiguousarray(y.payload).reshape(y.shape) for y in before(*map(wrap, arrays))]
        found = [y.copy() if np.may_share_memory(y, arrays[0]) else y for y in found]
        left = iter(found)
        return [next(left) if type(x) is StandIn else x for x in rest]

    return given
