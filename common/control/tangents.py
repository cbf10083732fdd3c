"""Forward mode through branches and loops: tangents are operands and results beside the others.

A construct with tangents is the same construct with more operands, which its functions take up as tangents of their
leaves, and more results. So it runs once, as one node, and tangents have gradients. What a function captures carries
its tangent into the function by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from common.autograd.backward import stand_ins
from common.autograd.forward_level import Level
from common.control.body import Body
from common.control.branches import Branches, Choice, choice_run
from common.control.checkpointed_while import Thinning, run_thinned
from common.control.loop import LoopRun, Request, loop_run
from common.core import mode
from common.core.switching import Change, Switching
from common.ops.math.arithmetic import zeros_like
from common.tensor.base import TensorBase

Sums = dict[Hashable, TensorBase]


def _tangents(level: Level, tensors: Sequence[TensorBase]) -> list[Any]:
    """Per tensor its tangent; zeros if it has none."""
    with mode.activate_dual_level(None), mode.no_grad():
        found = [level.tangent(x) for x in tensors]
        return [zeros_like(x.detach()) if t is None else t for x, t in zip(tensors, found, strict=True)]


def _moving(level: Level, tensors: Sequence[TensorBase]) -> tuple[list[int], list[Any]]:
    """Positions of the tensors that have a tangent, and the tangents."""
    found = [(i, t) for i, x in enumerate(tensors) if (t := level.tangent(x)) is not None]
    return [i for i, _ in found], [t for _, t in found]


def _floating(tensors: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(tensors) if x.dtype.kind == "f"]


def _within(level: Level, run: Callable[[], Body], leaves: Sequence[Any], at: Sequence[int], given: Any) -> Body:
    """Run a function whose leaves at some positions have tangents."""
    for i, tangent in zip(at, given, strict=True):
        level.set(leaves[i], tangent)
    with mode.activate_dual_level(level):
        return run()


def _with_sums(level: Level, body: Body) -> Body:
    """A body that sums up the tangents of what it sums up, too."""
    with mode.activate_dual_level(None):
        tangents: Sums = {("tangent", key): t for key, t in zip(body.summed, _tangents(level, [*body.summed.values()]))}
    body.summed.update(tangents)
    return body


def _without_sums(level: Level, summed: Sums) -> Sums:
    """Sums without those of tangents, which they have got."""
    own = {key: x for key, x in summed.items() if ("tangent", key) in summed}
    for key, x in own.items():
        level.set(x, summed["tangent", key])
    return own


def push_choice(level: Level, choice: Choice) -> tuple[list[TensorBase], Sums, Branches]:
    """`choice_run` where tensors may have tangents: the results get theirs."""
    count = len(choice.operands)
    at, given = _moving(level, choice.operands)

    def step(i: int, leaves: list[TensorBase], body: Body | None) -> Body:
        own = leaves[:count]
        made = _within(level, lambda: choice.step(i, own, body), own, at, leaves[count:])
        made.inputs = [*leaves, *made.inputs[count:]]  # those of what is differentiated come last
        made.carried += _tangents(level, made.carried)
        return _with_sums(level, made)

    def settle(i: int, body: Body) -> None:
        assert choice.settle is not None
        choice.settle(i, body)
        half = len(body.carried) // 2
        for k, y in enumerate(body.carried[:half]):  # a number's dtype is known only now
            if body.carried[half + k].dtype != y.dtype:
                body.carried[half + k] = zeros_like(y.detach())

    pushed = Choice(
        choice.name, choice.index, choice.count, step, [*choice.operands, *given], choice.old,
        None if choice.settle is None else settle,
    )  # fmt: skip
    with mode.activate_dual_level(None):
        results, summed, ran = choice_run(pushed)
    half = len(results) // 2
    for i in _floating(results[:half]):
        level.set(results[i], results[half + i])
    return results[:half], _without_sums(level, summed), ran


def push_loop(level: Level, request: Request) -> tuple[list[TensorBase], list[TensorBase], Sums, LoopRun]:
    """`loop_run` where tensors may have tangents: what is carried, stacked or summed up gets its own."""
    sizes = [len(x) for x in (request.carried, request.rows, request.constants)]
    carried_at = _floating(request.carried)
    carried_given = _tangents(level, [request.carried[i] for i in carried_at])
    (rows_at, rows_given), (constants_at, constants_given) = (
        _moving(level, x) for x in (request.rows, request.constants)
    )
    stacked_at: list[int] = []
    parts = [sizes[0], len(carried_at), sizes[1], len(rows_at), sizes[2], len(constants_at)]
    at = [*carried_at, *(sizes[0] + i for i in rows_at), *(sizes[0] + sizes[1] + i for i in constants_at)]

    def step(leaves: list[TensorBase], body: Body | None) -> Body:
        place = iter(leaves)
        split = [[next(place) for _ in range(n)] for n in parts]
        own = [x for part in split[::2] for x in part]
        made = _within(level, lambda: request.step(own, body), own, at, [x for part in split[1::2] for x in part])
        first, last = sum(parts[:4]), sizes[0] + sizes[1]
        again = [] if request.old is None else made.inputs[last : last + sum(request.old.counts)]
        made.inputs = [*leaves[:first], *again, *leaves[first:], *made.inputs[last + len(again) + sizes[2] :]]
        stacked_at[:] = _floating(made.stacked)
        made.carried += _tangents(level, [made.carried[i] for i in carried_at])
        made.stacked += _tangents(level, [made.stacked[i] for i in stacked_at])
        made.forget(stand_ins.__contains__)
        return _with_sums(level, made)

    condition = request.condition
    pushed = request._replace(
        step=step,
        carried=[*request.carried, *carried_given],
        rows=[*request.rows, *rows_given],
        constants=[*request.constants, *constants_given],
        condition=None if condition is None else lambda leaves: condition(leaves[: sizes[0]]),
    )
    with mode.activate_dual_level(None):
        carried, stacked, summed, ran = loop_run(pushed)
    n, m = sizes[0], len(stacked) - len(stacked_at)
    for results, first, places in ((carried, n, carried_at), (stacked, m, stacked_at)):
        for k, i in enumerate(places):
            level.set(results[i], results[first + k])
    return carried[:n], stacked[:m], _without_sums(level, summed), ran


class _general_path(Switching):
    """Context manager inside which ops look at levels, as they do while one is open."""

    def _change(self) -> Change:
        begin, end = mode.watched()
        return Change((begin,), (end,))


def push_thinned(level: Level, asked: Thinning) -> list[TensorBase]:
    """`run_thinned` where tensors may have tangents: tangents are carried beside their values.

    Its gradient runs the function again, maybe after the level has been left, so it keeps the tangents of now.
    """
    at, count = _floating(asked.given), len(asked.given)
    given, kept = _tangents(level, [asked.given[i] for i in at]), level.copy()

    def step(leaves: list[TensorBase], body: Body | None) -> Body:
        own = leaves[:count]
        with _general_path():
            made = _within(kept, lambda: asked.step(own, body), own, at, leaves[count:])
        made.inputs = list(leaves)
        made.carried += _tangents(kept, [made.carried[i] for i in at])
        made.forget(stand_ins.__contains__)
        return made

    pushed = Thinning(step, lambda leaves: asked.holds(leaves[:count]), [*asked.given, *given], asked.size, kept)
    with mode.activate_dual_level(None):
        results = run_thinned(pushed)
    for i, tangent in zip(at, results[count:], strict=True):
        level.set(results[i], tangent)
    return results[:count]


Level.pushers.update({Choice: push_choice, Request: push_loop, Thinning: push_thinned})
