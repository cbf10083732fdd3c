"""Classes of PyTorch that are absent here, where programs only name them: in annotations, ``isinstance`` and as bases.

Nothing is an instance of one; making one raises the error that names without a class raise when they are read.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn

from common.core.errors import MissingAttributeError

_STORAGES = "TypedStorage FloatStorage DoubleStorage LongStorage IntStorage BoolStorage"
_GRAPHS = "Graph GraphModule Interpreter Node Proxy Tracer Transformer"

#: Module -> its classes.
TYPES: dict[str, str] = {
    "": f"{_STORAGES} PyTorchFileReader PyTorchFileWriter ScriptFunction ScriptObject SymBool SymFloat SymInt",
    "_C": "ScriptFunction ScriptObject Value Node Graph",
    "_dynamo": "OptimizedModule",
    "_dynamo.eval_frame": "OptimizedModule",
    "distributed": "DeviceMesh Work Backend ProcessGroup",
    "distributed.optim": "ZeroRedundancyOptimizer",
    "distributed.device_mesh": "DeviceMesh",
    "distributed.tensor": "DTensor DeviceMesh Partial Placement Replicate Shard",
    "fx": _GRAPHS,
    "fx.graph_module": "GraphModule",
    "jit": "RecursiveScriptModule ScriptFunction TopLevelTracedModule TracedModule",
    "autograd.profiler": "emit_itt emit_nvtx",
    "utils._python_dispatch": "TorchDispatchMode",
}


@cache
def absent_type(space: str, name: str, text: str) -> type | None:
    """The class of that name, or None where programs make no use of it without objects.

    Parameters
    ----------
    space, name : the module, with the engine's name, and the class.
    text : what the error says.
    """
    if name not in TYPES.get(space.partition(".")[2], "").split():
        return None

    def new(cls: type, *args: Any, **options: Any) -> NoReturn:
        raise MissingAttributeError(text, name=name, obj=None)

    return type(name, (), {"__new__": new, "__module__": space, "__doc__": f"Refused: {text}."})
