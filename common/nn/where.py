"""Names of the modules of a model, for errors that come from inside."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError

NAMED = (ArgumentError, DTypeError, IndexRangeError, ShapeError)


def name_module(error: Exception, module: Any) -> None:
    """Add the path of the innermost module to an error that leaves `module`, and what is around it as it goes on."""
    if not isinstance(error, NAMED) or not error.args or not isinstance(error.args[0], str):
        return
    text, path, inner, last = getattr(error, "_in_module", (error.args[0], "", module, module))
    name = next((name for name, x in module.named_modules() if x is last), "")
    path = ".".join(filter(None, (name, path)))
    error._in_module = (text, path, inner, module)  # type: ignore[union-attr]
    kind, outer = type(inner).__name__, type(module).__name__
    where = f"{outer}.{path} ({kind})" if path else kind
    error.args = (f"{text}\n  in module {where}", *error.args[1:])
