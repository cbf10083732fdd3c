"""Named parts of a program: in which module, or for which parameter of an optimiser, an op runs.

A trace always notes it, in the scope of its nodes. The eager engine does while somebody asks, see
`common.tools.pictures.recorded_picture.module_scopes`; otherwise a module that is called reads one number of the
process more.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import Any

from common.core import mode
from common.core.switching import Change, Effect, switching

#: Told of every part that begins or ends, as ``mark(path)``; None where nobody asks.
recorder: ContextVar[Any] = ContextVar("twingrad_scopes", default=None)


class _Part:
    """A part that is running.

    Attributes
    ----------
    path : names from the outermost part to this one.
    """

    __slots__ = ("owner", "path", "_known")

    def __init__(self, owner: Any, path: tuple[str, ...]) -> None:
        self.owner, self.path = owner, path
        self._known: dict[int, tuple[str, ...]] | None = None

    def names_of(self, module: Any) -> tuple[str, ...]:
        """How this part calls a module below it: a name for each step down; its class alone if it is not below."""
        if self._known is None:
            found = dict(self.owner.named_modules()) if hasattr(self.owner, "named_modules") else {}
            self._known = {id(m): _steps(name, found) for name, m in found.items() if name}
        return self._known.get(id(module)) or (type(module).__name__,)


_running: ContextVar[tuple[_Part, ...]] = ContextVar("twingrad_running_scopes", default=())


def _steps(name: str, modules: dict[str, Any]) -> tuple[str, ...]:
    """``a.b`` as ("Kind[a]", "Kind[b]")."""
    parts = name.split(".")
    prefixes = [".".join(parts[: i + 1]) for i in range(len(parts))]
    return tuple(f"{type(modules[p]).__name__}[{part}]" for p, part in zip(prefixes, parts, strict=True))


@switching
def inside(owner: Any, name: str = "") -> Change:
    """Enter a named part of the program.

    Parameters
    ----------
    owner : a module, whose place in the module that runs around it is its name; or anything, with a name.
    """
    asks, trace = recorder.get(), mode.current_trace()
    if asks is None and trace is None:
        return Change((), ())
    around = _running.get()
    outer = around[-1].path if around else ()
    names = (name,) if name else around[-1].names_of(owner) if around else (type(owner).__name__,)
    on: list[Effect] = [partial(_running.set, (*around, _Part(owner, (*outer, *names))))]
    off: list[Effect] = [partial(_running.set, around)]
    if trace is not None:
        on.append(partial(trace.scope.extend, names))
        off.append(partial(trace.scope.__delitem__, slice(-len(names), None)))
    if asks is not None:
        on.append(partial(asks.mark, (*outer, *names)))
        off.append(partial(asks.mark, outer))
    return Change(tuple(on), tuple(off))
