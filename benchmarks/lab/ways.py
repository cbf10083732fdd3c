"""An engine seen in another way: the same names, but functions are compiled with given options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any

from benchmarks.lab.libraries import package


class Way(ModuleType):
    """An engine whose `function` has options.

    Parameters
    ----------
    engine : module
        Answers all other names.
    options : dict
        Of `static.function`; they overrule those of the program.

    Attributes
    ----------
    made : the functions that were made.
    """

    def __init__(self, engine: ModuleType, **options: Any) -> None:
        super().__init__(package(engine))
        self.engine, self.options = engine, options
        self.made: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        """Any other attribute of the engine."""
        return getattr(self.engine, name)

    def function(self, target: Callable[..., Any] | None = None, **options: Any) -> Any:
        """The engine's `function` with the options of this way."""
        if target is None:
            return functools.partial(self.function, **options)
        options = {**options, **self.options}
        if options.get("control_flow") == "convert" and not isinstance(target, (FunctionType, MethodType)):
            del options["control_flow"]  # it is made of functions that `part` has converted
        made = self.engine.function(target, **options)
        self.made.append(made)
        return made

    def part(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of which another one is made: converted, if this way converts functions."""
        return self.function(function) if self.options.get("control_flow") == "convert" else function

    def compile(self, model: Any = None, **options: Any) -> Any:
        """The engine's `compile`; of functions, the `function` of this way."""
        if callable(model) and not hasattr(model, "parameters"):
            return self.function(model)
        return self.engine.compile(model, **options)
