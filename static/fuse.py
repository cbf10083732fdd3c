"""Which items share a kernel."""

from __future__ import annotations

from static.lowering.groups import Group, single
from static.lowering.legalise import Work


def fuse_items(work: Work) -> list[Group]:
    """Groups of items, in program order."""
    return [single(item) for item in work.items]
