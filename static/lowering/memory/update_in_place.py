"""Results that begin as a copy of another value, written over that value instead.

A write to a slice or to places that are data gives all of an array with a few elements replaced. If nothing needs the
old array afterwards, only what is replaced is written, into its memory. State is overwritten so only if nothing that
may fail runs later; kernels that write to places check all indices first. What a loop carries from one iteration to the
next can be overwritten too: it has a copy of what it begins with, and is lost if the loop fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from common.core.sizes import same
from common.core.spec import numel
from static.lowering.groups import Group
from static.lowering.ir.items import Access, ArrayBuffer, Item, sizes_key
from static.lowering.ir.program_values import Work


def write_over(work: Work, ordered: Sequence[Group]) -> None:
    """Let results take over the memory of what they begin as a copy of, where the order of the groups allows it."""
    at = {item.id: i for i, group in enumerate(ordered) for item in group.items}
    readers: dict[int, list[int]] = {}
    for i, group in enumerate(ordered):
        for buffer in group.reads:
            readers.setdefault(buffer.id, []).append(i)
    failing = [i for i, group in enumerate(ordered) if any(item.can_fail for item in group.items)]
    bound = {buffer.id for buffer, _ in work.outputs} | {value.id for _, value in work.writes}
    # From the last group to the first, so that a chain of results ends up in the memory of its last one, or in state.
    for group in reversed(ordered):
        item = group.items[0]
        if item.copied is None:
            continue
        old, out = item.copied, item.out.into if item.prepares else item.out
        assert out is not None
        writers = {at[item.id]} | {at[b.maker.id] for b in item.inputs if b.into is out and b.maker is not None}
        first = min(writers)
        if any(i >= first and i not in writers for i in readers[old.id]):
            continue
        if not all(_reads_what_it_writes(ordered[i], old, out) for i in writers if ordered[i] is not group):
            continue
        if any(old.id in ordered[i].read_again for i in writers):
            continue
        if old.maker is not None:
            # the old array is complete before the first write: windows do not wait for it by themselves
            kept = old.maker.id in work.kept and item.id not in work.kept
            if kept or old.id in bound or old.storage is not old or at[old.maker.id] >= first:
                continue
            old.into = out
        elif any(begin is old and end.storage is out.storage for begin, end in work.carried):
            out.storage.into = old  # the next iteration finds it there
        else:
            written = any(state is old and value.storage is out.storage for state, value in work.writes)
            if not written or any(i > first or (i == first and len(writers) > 1) for i in failing):
                continue
            out.storage.into = old
        item.calls = [call for i, call in enumerate(item.calls) if i not in item.copies]


def _reads_what_it_writes(group: Group, old: ArrayBuffer, out: ArrayBuffer) -> bool:
    """Whether a group that writes to windows of `out` reads no other elements of `old` than those at hand."""
    if old not in group.reads:
        return True
    windows = {_place(item.window) for item in group.items if item.window is not None and item.out.into is out}
    return all(
        item.kind == "map" and len(item.dims) == len(group.dims) and _place(access) in windows
        for item in group.items
        for access in item.accesses
        if access.buffer is old
    )


def _place(access: Access) -> object:
    return sizes_key((access.offset, *access.strides))


def begins_as_copy(item: Item, there: Sequence[int], sources: Sequence[ArrayBuffer]) -> None:
    """Note which calls of a native item only copy what lies at the same place of an array as large as the result.

    Parameters
    ----------
    there : the calls that copy from and to the same place.
    sources : per call what it copies; what is copied to another place is not written over.
    """
    for old in dict.fromkeys(sources[k] for k in there):
        own = [k for k, source in enumerate(sources) if source is old]
        if set(own) <= set(there) and old.dtype == item.out.dtype and same(numel(old.shape), numel(item.out.shape)):
            item.copied, item.copies = old, frozenset(own)
            return


__all__ = ["begins_as_copy", "write_over"]
