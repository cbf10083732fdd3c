"""RecordedCall programs as one compiled function, with the state that they read and write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.core.errors import PickleError
from common.core.pickling import is_global, otherwise
from common.tensor.base import TensorBase, wrap
from common.tensor.leaf import Parameter
from static.export.recorded import RecordedCall
from static.export.rerun import Rerun
from static.jit.function import CompiledFunction


class ProgramFunction(CompiledFunction):
    """A compiled function that is made of programs, not of Python; otherwise like one of `static.function`.

    Parameters
    ----------
    programs : recorded calls.
    names : of the state, by id of the tensor.
    options : of `static.function`.
    """

    target: Rerun
    __qualname__: str

    def __init__(self, programs: Sequence[RecordedCall], names: Mapping[int, str], **options: Any) -> None:
        super().__init__(Rerun(programs), **options)
        self.programs, self.names = tuple(programs), dict(names)

    def named_state(self) -> Iterator[tuple[str, TensorBase]]:
        """Names and tensors of all state, each once, in the order in which the programs meet it."""
        seen: dict[int, TensorBase] = {}
        for program in self.programs:
            owners = [x.owner for x in program.captured if x.kind != "array"]
            for x in (*owners, *program.targets, *program.cleared):
                seen.setdefault(id(x), x)
        order = {key: n for n, key in enumerate(self.names)}
        for i, x in enumerate(sorted(seen.values(), key=lambda x: order.get(id(x), len(order)))):
            yield self.names.get(id(x)) or getattr(x, "name", "") or f"state.{i}", x

    def named_parameters(self) -> Iterator[tuple[str, TensorBase]]:
        """Names and tensors of the state that needs gradients."""
        return ((name, x) for name, x in self.named_state() if isinstance(x, Parameter) or x.requires_grad)

    def parameters(self) -> Iterator[TensorBase]:
        """The state that needs gradients, for an optimiser."""
        return (x for _, x in self.named_parameters())

    def state_dict(self) -> dict[str, TensorBase]:
        """All state by name, without history; shares memory."""
        return {name: wrap(x.payload) for name, x in self.named_state()}

    def module(self) -> Any:
        """The function itself, as what `torch.export` gives has a module."""
        return self

    def train(self, mode: bool = True) -> Any:
        """The function itself: whether it trains has been decided when it was traced."""
        return self

    def eval(self) -> Any:
        """The function itself, see `train`."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, arguments = self._as_file()
        return make(*arguments)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__qualname__ if is_global(self) else self._as_file()

    def _as_file(self) -> Any:
        """The pickled form: a file, and the function that reads it.

        Raises
        ------
        PickleError : a file cannot hold the programs.
        """
        for reduce in otherwise:
            if (found := reduce(self)) is not None:
                return found
        raise PickleError(f"cannot copy or pickle {self.__name__}: no file can hold its program, see static.save")
