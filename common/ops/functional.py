"""The public functions, engine-neutral: operands decide which engine runs.

They are what the modules of `common.ops` name in their `__all__`. `_contents.py` lists them, and each module is loaded
when one of its functions or ops is first asked for; a new file, which is not in the list, is found by its place.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from common import ops
from common.core.op import REGISTRY
from common.ops._contents import CONTENTS
from common.ops._node_names import shown

#: Public function -> the module that defines it.
_HOMES: dict[str, str] = {}


def _new() -> list[str]:
    """The modules that the list does not have: those that somebody has just added."""
    here = Path(next(iter(ops.__path__)))
    found: set[str] = set()
    for theme in {name.rpartition(".")[0] for name in CONTENTS}:
        names = [path.name for path in (here / theme).iterdir()]
        found |= {f"{theme}.{name[:-3]}".lstrip(".") for name in names if name.endswith(".py") and name[0] != "_"}
    return sorted(found - CONTENTS.keys() - {"functional"})


for _name, _words in CONTENTS.items():
    _functions, _, _ops = _words.partition("|")
    _HOMES.update(dict.fromkeys(_functions.split(), f"{ops.__name__}.{_name}"))
    REGISTRY.homes.update(dict.fromkeys(_ops.split(), f"{ops.__name__}.{_name}"))
for _stems, _name, _most in (
    ("cat stack", "shape.cat", 32),
    ("split slices unbind", "shape.split", 1 << 20),
    ("index_get index_put_zeros index_add index_set index_mul index_max index_min index_clear index_last",
     "index.coordinates", 64),
):  # fmt: skip
    REGISTRY.families.update(dict.fromkeys(_stems.split(), (f"{ops.__name__}.{_name}", _most)))
for _name in _new():
    _module = import_module(f"{ops.__name__}.{_name}")
    _HOMES.update(dict.fromkeys(getattr(_module, "__all__", ()), _module.__name__))

__all__ = list(dict(sorted(_HOMES.items())))


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = globals()[name] = shown(name, getattr(import_module(_HOMES[name]), name))
    return function
