"""The inner module of PyTorch's compiler, whose switches programs set: they change nothing here."""

from common.api.machine import compiling
from common.api.places import publish

__all__: list[str] = []
config = compiling.Switches()
disable, allow_in_graph, reset = compiling.disable, compiling.allow_in_graph, compiling.reset
__getattr__ = publish(__name__)
