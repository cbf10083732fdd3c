"""`static.function`: which trace and which plan serve a call, compiled gradients on the caller's tape, modules.

As `jit` of PyTorch it also has `trace` and `script`, which call `function`.
"""

from typing import TYPE_CHECKING, Any
from typing import Final as Final

from common.api.places import open_places
from common.core import absent

__all__ = [
    "ScriptModule", "TracerWarning", "_overload", "_overload_method", "_script_if_tracing", "annotate", "export",
    "freeze", "ignore", "interface", "is_scripting", "is_tracing", "load", "optimize_for_inference", "save",
    "script", "script_if_tracing", "script_method", "trace", "trace_module", "unused",
]  # fmt: skip

open_places(__name__)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            return absent.refuse(__name__, name)
        from common.api.machine.scripting import make
        from common.api.surface import owned
        from common.tensor.boundary import published
        from static.jit.compile_module import compile
        from static.jit.shown import program_files

        made = make(compile, program_files().save, program_files().load)
        globals().update(owned({name: published(f) for name, f in made.items()}, __name__))
        return globals()[name]
