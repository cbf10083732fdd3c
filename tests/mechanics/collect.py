"""All programs of this folder, by name."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

Program = Callable[[ModuleType], Any]


def _programs() -> dict[str, Program]:
    found: dict[str, Program] = {}
    for path in sorted(Path(__file__).parent.glob("programs_*.py")):
        module = import_module(f"{__package__}.{path.stem}")
        theme = path.stem.removeprefix("programs_")
        for name, value in vars(module).items():
            own = isinstance(value, FunctionType) and value.__module__ == module.__name__
            if own and not name.startswith("_"):
                found[f"{theme}.{name}"] = value
    return found


PROGRAMS = _programs()
