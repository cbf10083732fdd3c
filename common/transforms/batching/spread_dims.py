"""Where the arguments and results of a mapped function have the dimension of its examples."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.core.int_arguments import shown
from common.core.tree import LEAF, MAPS, NODES, apart


def spread_dims(dims: Any, structure: Any, what: str) -> list[Any]:
    """A dimension per leaf of a structure.

    Parameters
    ----------
    dims : one for all, or such of the structure's parts.
    structure : see `common.core.tree.flatten`.
    what : "in_dims" or "out_dims", for messages.

    Raises
    ------
    ArgumentError : `dims` has another structure, or something else than numbers and None.
    """
    if structure is None:
        return []
    if structure == LEAF:
        if isinstance(dims, (tuple, list, dict)):
            raise _incompatible(dims, what)
        if dims is not None and (not isinstance(dims, int) or isinstance(dims, bool)):
            raise ArgumentError(
                f"vmap: Got {what.removesuffix('s')}={shown(dims)} for an input but it must be either an integer "
                "dimension or None"
            )
        return [dims]
    kind, parts = structure[0], structure[-1]
    if dims is None or isinstance(dims, int):
        return [d for part in parts for d in spread_dims(dims, part, what)]
    members = dims if type(dims) is kind or kind not in (tuple, list) else None
    if kind in MAPS and isinstance(dims, dict):
        members = [dims.get(name) for name in structure[1]]
    elif type(dims) is kind and (node := NODES.get(kind)) is not None:
        members = apart(node, dims)[0]
    if not isinstance(members, (tuple, list)) or len(members) != len(parts):
        raise _incompatible(dims, what)
    return [d for each, part in zip(members, parts, strict=True) for d in spread_dims(each, part, what)]


def _incompatible(dims: Any, what: str) -> ArgumentError:
    of = "inputs" if what == "in_dims" else "outputs"
    return ArgumentError(f"vmap: {what} is not compatible with the structure of `{of}`, got {shown(dims)}")
