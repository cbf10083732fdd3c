"""Hints of sizes for another call than the traced one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from threading import get_ident

from common.core.polynomials import Atom
from common.core.sizes import DimScope
from common.core.switching import Change, switching


@switching
def measured(scope: DimScope, sizes: Mapping[Atom, int]) -> Change:
    """A context in which `common.core.sizes.hint` gives, in this thread, the values of a trace's Dims for other sizes.

    Kernels that are shaped by hints suit these sizes then. Guards are as they were: nothing may be decided there.
    """
    on, off = (partial(setattr, scope, "sizes", x) for x in ((get_ident(), sizes), scope.sizes))
    return Change((on,), (off,))


__all__ = ["measured"]
