"""The order in which groups run, and which of them write state in place."""

from __future__ import annotations

import heapq

from static.lowering.groups import Group, single
from static.lowering.ir.items import ArrayBuffer, Item, Operand, dense_layout, strip_ones
from static.lowering.ir.program_values import Work
from static.lowering.memory.update_in_place import write_over


def order_groups(work: Work, groups: list[Group]) -> list[Group]:
    """Groups in a valid order, program order where possible; groups that only write state in place come last.

    A group that others read keeps its place: behind it, groups that do not depend on it would run first. What plans
    keep comes first: whether a value may be overwritten follows from the order in which groups run.

    A value goes directly into its state if no later group needs what the state held, and nothing that runs later
    can fail; else into a temporary, copied at the end. So a call that fails leaves all state as it was.
    """
    by_buffer = {b.id: g for g in groups for item in g.items for b in item.results}
    writes = {value.id: state for state, value in work.writes}
    used = {id(by_buffer[b.id]) for g in groups for b in g.reads if b.id in by_buffer}
    candidates = {id(g) for g in groups if any(b.id in writes for item in g.items for b in item.results)} - used
    ordered = sorted(_sort(groups, by_buffer, candidates), key=lambda group: group.id not in work.kept)
    write_over(work, ordered)
    last_read: dict[int, int] = {}
    last_failure = -1
    for position, group in enumerate(ordered):
        for buffer in group.reads:
            last_read[buffer.id] = position
        if any(item.can_fail for item in group.items):
            last_failure = position
    position_of = {id(g): i for i, g in enumerate(ordered)}
    for state, value in work.writes:
        if value.storage is state:
            continue
        group = by_buffer[value.id]
        position = position_of[id(group)]
        early = last_read.get(state.id, -1) > position or last_failure >= position
        if not early and _in_place(group, state, value):
            value.into = state
        else:
            ordered.append(_copy(work, state, value))
    return ordered


def _sort(groups: list[Group], by_buffer: dict[int, Group], late: set[int]) -> list[Group]:
    users: dict[int, list[Group]] = {}
    missing: dict[int, int] = {}
    for group in groups:
        makers = {id(by_buffer[b.id]) for b in group.reads if b.id in by_buffer}
        missing[id(group)] = len(makers)
        for maker in makers:
            users.setdefault(maker, []).append(group)
    index = {id(g): i for i, g in enumerate(groups)}
    ready = [(id(g) in late, g.id, index[id(g)]) for g in groups if not missing[id(g)]]
    heapq.heapify(ready)
    out = []
    while ready:
        group = groups[heapq.heappop(ready)[2]]
        out.append(group)
        for user in users.get(id(group), ()):
            missing[id(user)] -= 1
            if not missing[id(user)]:
                heapq.heappush(ready, (id(user) in late, user.id, index[id(user)]))
    assert len(out) == len(groups), "groups depend on each other in a cycle"
    return out


def _in_place(group: Group, state: ArrayBuffer, value: ArrayBuffer) -> bool:
    """Whether every read of the old state inside the group comes before the same element is written."""
    maker = value.maker
    if maker is not None and maker.puts:  # what it begins as is written before
        return False
    if group.native or maker is None or maker.kind != "map":
        return not group.native and state not in group.reads
    if state not in group.reads:
        return True
    if any(item.kind != "map" for item in group.items):
        return False
    count = len(maker.dims)
    return all(
        access.prefix == count == len(item.dims)
        for item in group.items
        for access in item.accesses
        if access.buffer is state
    )


def _copy(work: Work, state: ArrayBuffer, value: ArrayBuffer) -> Group:
    assert value.maker is not None
    dims = strip_ones(state.shape)
    out = ArrayBuffer(len(work.buffers), state.dtype, state.shape)
    work.buffers.append(out)
    source = dense_layout(value).access(dims, _strides(state))
    item = Item(len(work.items), value.maker.node, "map", dims, "", state.dtype, [Operand(source, state.dtype)], [out])
    work.items.append(item)
    out.maker = item
    out.into = state
    return single(item)


def _strides(state: ArrayBuffer) -> tuple[object, ...]:
    from common.core.shapes import contiguous_strides

    return contiguous_strides(strip_ones(state.shape))
