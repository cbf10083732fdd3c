"""A traced graph after the passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from common.core.lazy import cached_property
from common.core.sizes import resolve
from static.graph import Graph
from static.graph.verify import verify
from static.lowering.ir.options import CompileOptions
from static.lowering.memory.layout import lay_out
from static.passes import Pass, PassReport, run_passes
from static.passes.rematerialise import Rematerialiser
from static.tracing.described import Described


class Optimised:
    """A traced graph after the passes; if its program came from the disk, made when somebody asks for it.

    Programs from the disk refer to this, so that they do not refer to who has them.

    Parameters
    ----------
    passes : the user's own pipeline, if there is one.
    within : the last pass, if there is a budget of memory.
    known : gives a context in which sizes are known to be equal that were so when it was traced; that of the caller by
        default.
    """

    def __init__(
        self,
        raw: Graph,
        passes: Sequence[Pass] | None,
        within: Rematerialiser | None = None,
        known: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.raw, self._passes, self._within, self._known = raw, passes, within, known

    def optimise(self, given: Sequence[Any], late: Collection[Any], env: Mapping[Any, int]) -> None:
        """Run the passes now.

        Parameters
        ----------
        given : arrays on which passes of the user's own are checked.
        late : keys of inputs for which there is none.
        env : sizes.
        """
        arrays, rest = [], iter(given)
        for x in self.raw.inputs:
            arrays.append(np.ones(resolve(tuple(x.shape), env), x.dtype) if x.key in late else next(rest))
        from static.running.parity import check_parity

        self.rewritten = self._run(partial(check_parity, arrays=arrays, env=env))

    @cached_property
    def rewritten(self) -> tuple[Graph, list[PassReport]]:
        """The graph, and what the passes did."""
        return self._run(None)

    def _run(self, check: Callable[..., None] | None) -> tuple[Graph, list[PassReport]]:
        with self._known():
            verify(self.raw, "tracing")
            return run_passes(self.raw, self._passes, check, self._within)

    def graph(self) -> Graph:
        """The graph."""
        return self.rewritten[0]


def budgeted(owner: Described, env: Mapping[Any, int]) -> Rematerialiser | None:
    """The pass that keeps to a function's budget of memory, for given sizes; None if there is no budget."""
    if owner.memory_budget is None:
        return None
    return Rematerialiser(owner.__name__, owner.memory_budget, partial(_arena, fuse=owner.options.fuse, env=env))


def _arena(graph: Graph, fuse: bool, env: Mapping[Any, int]) -> int:
    """The size of the memory for temporaries that a program needs in one thread."""
    from static.lowering.lowered_program import LoweredProgram

    return lay_out(LoweredProgram(graph, CompileOptions(fuse)).frame, env).total
