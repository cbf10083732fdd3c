"""The inner module of PyTorch's compiler, whose switches programs set: they change nothing here."""

import sys

from common.api.machine import compiling
from common.api.places import publish

__all__: list[str] = []
config = sys.modules[f"{__name__}.config"] = compiling.Switches(f"{__name__}.config")
disable, allow_in_graph, reset = compiling.disable, compiling.allow_in_graph, compiling.reset
assume_constant_result, is_compiling = compiling.assume_constant_result, compiling.is_compiling
mark_dynamic = maybe_mark_dynamic = mark_static = mark_static_address = compiling.mark_sizes
__getattr__ = publish(__name__)
