"""`function`: run as it is, differentiated as one node; placeholder body replaced below."""

from __future__ import annotations

from typing import Any

from common.create import lift
from common.tree import flatten, unflatten
import functools


def function(target: Any = None, **options: Any) -> Any:
    """Run as it is."""
    if target is None:
        return functools.partial(function, **options)

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        args, kwargs = unflatten(structure, [lift(x) for x in leaves])
        return target(*args, **kwargs)

    return call
