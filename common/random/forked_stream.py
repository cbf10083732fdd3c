"""The default generator put back: what runs inside draws, and the stream continues as if nothing had."""

from __future__ import annotations

from functools import partial
from typing import Any

from common.core import mode
from common.core.switching import Change, Switching
from common.random.generator import default_generator


class fork_rng(Switching):
    """Context manager: the default generator afterwards continues as if nothing inside had drawn.

    In a trace too, where seeding is refused.

    Parameters
    ----------
    devices : accepted; there is only one.
    enabled : whether anything is put back.

    Examples
    --------
    >>> import dynamic as tw
    >>> _ = tw.manual_seed(0)
    >>> with tw.random.fork_rng():
    ...     a = tw.rand(2)
    >>> bool((a == tw.rand(2)).all())
    True
    """

    def __init__(self, devices: Any = None, enabled: bool = True) -> None:
        self.enabled = enabled

    def _change(self) -> Change:
        if not self.enabled:
            return Change((), ())
        if mode.current_trace() is not None:
            with mode.GradSwitch(False):
                return Change((), (partial(_continue_from, default_generator.offset.clone()),))
        states = default_generator.key.payload, default_generator.offset.payload
        return Change((), tuple(partial(x.__setitem__, Ellipsis, x.copy()) for x in states))


def _continue_from(offset: Any) -> None:
    with mode.GradSwitch(False):
        default_generator.offset.copy_(offset)
