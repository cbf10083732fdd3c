"""The engine as the builtin ``apply`` sees it: the classes of tensors and nodes, and the state that it reads."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from common.runtime import cpython_abi
from common.runtime.apply_text import NODE, RECIPE, TENSOR
from common.runtime.recall_text import LINE, PLAIN_CLASSES


class Tape(NamedTuple):
    """How tensors and nodes are made, and the state that decides whether a node is made.

    Attributes
    ----------
    tracing, exposed : dicts of what watches ops, and of memory that the outside can write; both are mostly empty.
    no_attrs : the attributes of an op that is given none.
    due : an int64, the number of the node that calls `look`.
    grad_mode : the ContextVar that says whether ops are recorded.
    counter : the iterator that numbers nodes.
    user_files, own_files : names of files, by whether their frames are the user's.
    place : ``place(depth)``, code and instruction of the user's nearest frame.
    look, seal : called with the number of a node, and with a node, where `due` and `exposed` say so.
    note : ``note(operand, result, op, attrs, position)``, called with a tensor that may show memory of another.
    template : a tensor without history; results are like it.
    node : the class of nodes.
    kinds : three classes of tensors, with the slots of the template's class at the same places.
    recipe : the class of recipes.
    """

    tracing: dict[Any, Any]
    exposed: dict[Any, Any]
    no_attrs: Any
    due: np.ndarray
    grad_mode: Any
    counter: Any
    user_files: set[str]
    own_files: set[str]
    place: Callable[[int], Any]
    look: Callable[[int], Any]
    seal: Callable[[Any], Any]
    note: Callable[..., Any]
    template: Any
    node: type
    kinds: Sequence[type]
    recipe: type

    def words(self, cells: np.ndarray, ready: bool = False) -> list[int]:
        """The table of ``apply``, or of ``show``, see `common.runtime.apply_text`."""
        tensor = type(self.template)
        state = [
            *(cells.ctypes.data, id(self.tracing), id(self.exposed), id(self.no_attrs), self.due.ctypes.data),
            *(id(self.grad_mode), id(self.counter), id(self.user_files), id(self.own_files), id(self.place)),
            *(id(self.look), id(self.seal), id(self.note), id(self.template), tensor.__basicsize__ // 8, id(self.node)),
            *map(id, self.kinds), cpython_abi.slot_offset(CodeType, "co_filename") // 8, ready,
        ]  # fmt: skip
        places = [(tensor, TENSOR), (self.node, NODE), (self.recipe, RECIPE)]
        return [*state, *(_word_of(owner, name) for owner, names in places for name in names)]


class KnownLine:
    """The ops that a public function applies, for tensors of some shapes and dtypes and values of other arguments.

    Attributes
    ----------
    function : applies them to the tensors among the arguments.
    op, attrs : the op and its attributes, if it is only one.
    order : the operands of that op, see `common.runtime.recall_text`; None for several ops.
    constants : the operands of that op that are no arguments.
    held : objects that the line is found by, which must stay alive.
    """

    __slots__ = ("function", "op", "attrs", "order", "constants", "held")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.op: Any = None
        self.attrs: Any = None
        self.order: bytes | None = None
        self.constants: tuple[Any, ...] = ()
        self.held: list[Any] = []

    def is_one_op(self, op: Any, attrs: Any, operands: Sequence[int], constants: Sequence[Any]) -> None:
        """Let the line be one op; operands are positions among the tensors, and -1 for constants in their order."""
        self.op, self.attrs, self.constants = op, attrs, tuple(constants)
        self.order = array("q", [len(operands), *operands]).tobytes()

    def __call__(self, *tensors: Any) -> Any:
        """The result for the tensors."""
        return self.function(*tensors)


def line_words(lines: np.ndarray, store: bool, plain: Sequence[type], tape: Tape, cells: np.ndarray) -> list[int]:
    """The table of ``recall``, see `common.runtime.recall_text`."""
    classes = [*map(id, plain), *(0,) * (PLAIN_CLASSES - len(plain))]
    return [lines.ctypes.data, store, *(_word_of(KnownLine, name) for name in LINE), *classes, *tape.words(cells)]


class WriteLog(NamedTuple):
    """The log of writes, see `common.tensor.write_log`.

    Attributes
    ----------
    log : per memory its entries by place.
    module, newest : a dict and a name in it: of the number of the newest write.
    everything, end : the place of a write to all of a memory, and where it ends.
    entries : the class of entries, which have a `count` in a list of one.
    """

    log: dict[int, Any]
    module: dict[str, Any]
    newest: str
    everything: Any
    end: int
    entries: type

    def words(self, tape: Tape) -> list[int]:
        """The table of ``write``, see `common.runtime.write_text`."""
        places = [_word_of(self.entries, "count"), _word_of(type(tape.template), "_family")]
        zero = [id(self.everything), id(0), id(self.end)]
        return [id(self.log), id(self.module), id(self.newest), *zero, *places, *tape.words(np.zeros(0, np.int64))]


def _word_of(owner: type, name: str) -> int:
    return cpython_abi.slot_offset(next(c for c in owner.__mro__ if name in c.__dict__), name) // 8
