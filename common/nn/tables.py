"""The tables in which a module keeps its parameters, buffers and modules, by their names."""

from __future__ import annotations

from typing import Any

from common.core import mode

TABLES = ("_parameters", "_buffers", "_modules")


class Table(dict[str, Any]):
    """A dictionary that tells compiled programs of its changes, also of those that go past the module's methods."""

    def __setitem__(self, name: str, value: Any) -> None:
        mode.note_change()
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        mode.note_change()
        super().__delitem__(name)

    def __ior__(self, *others: Any) -> Any:  # type: ignore[misc]
        self.update(*others)
        return self

    def pop(self, *arguments: Any) -> Any:
        """See `dict.pop`."""
        mode.note_change()
        return super().pop(*arguments)

    def popitem(self) -> tuple[str, Any]:
        """See `dict.popitem`."""
        mode.note_change()
        return super().popitem()

    def clear(self) -> None:
        """See `dict.clear`."""
        mode.note_change()
        super().clear()

    def update(self, *others: Any, **named: Any) -> None:
        """See `dict.update`."""
        mode.note_change()
        super().update(*others, **named)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """See `dict.setdefault`."""
        mode.note_change()
        return super().setdefault(name, default)


def held(module: Any) -> dict[str, Any]:
    """Everything in a module's tables, by name."""
    return {**module._parameters, **module._buffers, **module._modules}


def join(prefix: str, name: str) -> str:
    """The qualified name of what a module of the name `prefix`, perhaps "", has under a name."""
    return f"{prefix}.{name}" if prefix else name
