"""Helpers of those who write modules: numbers for one dimension or for all, their types, prefixes of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from common.core.errors import ArgumentError
from common.core.int_arguments import mapping


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that repeats one value `n` times in a tuple; several values become a tuple as they are.

    Examples
    --------
    >>> _ntuple(3)(2), _ntuple(3)([1, 2, 3])
    ((2, 2, 2), (1, 2, 3))
    """

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


def _addindent(s_: str, numSpaces: int) -> str:
    """A text of several lines with blanks before each line but the first."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix from the names in a module's state, in place: "module." of one that was saved in a wrapper.

    Parameters
    ----------
    state_dict : as from `Module.state_dict`.
    prefix : with its dot; names without it stay.

    Raises
    ------
    ArgumentError : something that is no dictionary of names, or no prefix.
    """
    own = "consume_prefix_in_state_dict_if_present"
    mapping(state_dict, own, "state_dict")
    for what, x in [("prefix", prefix), *(("state_dict", name) for name in state_dict)]:
        if not isinstance(x, str):
            raise ArgumentError(f"{own}(): names in argument '{what}' must be str, not {type(x).__name__}")
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
    metadata = getattr(state_dict, "_metadata", {})
    for name in [name for name in metadata if f"{name}.".startswith(prefix)]:
        metadata[name.removeprefix(prefix.rstrip(".")).removeprefix(".")] = metadata.pop(name)


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")

_size_any_t = int | tuple[int, ...]
_size_1_t = int | tuple[int]
_size_2_t = int | tuple[int, int]
_size_3_t = int | tuple[int, int, int]
_size_any_opt_t = int | None | tuple[int | None, ...]
_size_2_opt_t = int | None | tuple[int | None, int | None]
_size_3_opt_t = int | None | tuple[int | None, int | None, int | None]
_ratio_any_t = float | tuple[float, ...]
_ratio_2_t = float | tuple[float, float]
_ratio_3_t = float | tuple[float, float, float]
