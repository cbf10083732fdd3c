"""Modules of PyTorch that are absent here say why when they are imported, from the table of `common.core.absent`.

>>> import dynamic.package
Traceback (most recent call last):
...
ModuleNotFoundError: no module 'dynamic.package': there is no TorchScript and no FX; dynamic.function traces, ...
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from common.core.absent import answer


class AbsentModules:
    """The last finder: what it is asked for, no other finder has.

    Parameters
    ----------
    engine : the package whose modules it answers for.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Find nothing.

        Raises
        ------
        ModuleNotFoundError : with the reason, if PyTorch has such a module; not in `importlib.util.find_spec`, which
            asks whether there is one.
        """
        space, _, name = fullname.rpartition(".")
        if space.partition(".")[0] != self.engine or sys._getframe(2).f_code.co_name == "find_spec":
            return
        told = answer(space, name)
        if told is not None:
            raise ModuleNotFoundError(f"no module {fullname!r}: {told}", name=fullname)


def explain_imports(engine: str) -> None:
    """Let imports of an engine's absent modules say why."""
    sys.meta_path.append(AbsentModules(engine))
