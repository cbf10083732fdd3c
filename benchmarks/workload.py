"""The class of a workload: a program written once, run by any engine on the same inputs.

A workload is one file in ``benchmarks/workloads`` that defines ``WORKLOADS``. It names no engine:
:meth:`Workload.make` receives one (the module ``dynamic`` or ``static``) and uses only what both offer.
"""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Inputs = tuple[Array, ...]


@dataclass(frozen=True)
class Program:
    """A workload built with one engine.

    Parameters
    ----------
    call : callable
        One step on the arrays of one input set; returns the loss, or outputs and gradients.
    named_parameters : list of (str, Parameter)
        The state that a call changes, in a fixed order; empty for a pure function.
    optimizer : Optimizer, optional
        Its buffers, such as momentum, are state too.
    """

    call: Callable[..., Any]
    named_parameters: list[tuple[str, Any]] = field(default_factory=list)
    optimizer: Any = None

    def parameters(self) -> dict[str, Array]:
        """Return a copy of every parameter by name."""
        return {name: to_array(p).copy() for name, p in self.named_parameters}

    def state(self) -> dict[str, Array]:
        """Return a copy of every parameter and of the optimizer's buffers by name."""
        state = self.parameters()
        if self.optimizer is not None:
            buffers = self.optimizer.state_dict()["state"]
            for i, (name, _) in enumerate(self.named_parameters):
                state |= {f"{kind}({name})": to_array(buffer) for kind, buffer in buffers.get(i, {}).items()}
        return state

    def gradients(self) -> dict[str, Array]:
        """Return a copy of every gradient by the name of its parameter; a missing one is an empty array."""
        return {
            f"grad({name})": np.empty(0) if p.grad is None else to_array(p.grad).copy()
            for name, p in self.named_parameters
        }


class Workload(ABC):
    """One program on fixed inputs. The class docstring's first line describes it in reports."""

    name: str
    outputs: tuple[str, ...] = ("loss",)  # what a call returns, in order

    @abstractmethod
    def inputs(self) -> list[Inputs]:
        """Return at least two input sets of equal shapes; calls alternate between them."""

    @abstractmethod
    def make(self, tw: ModuleType) -> Program:
        """Build the program with the engine `tw`; two engines start from the same parameters."""

    def peer(self, name: str, initial: dict[str, Array]) -> tuple[Any, list[tuple[Any, ...]]] | None:
        """Return a peer's version of this workload and its input sets; None to look in `benchmarks.peers`."""
        return None

    @property
    def key(self) -> str:
        """The key by which a new process finds the workload, see `benchmarks.lab.target.find`."""
        return self.name

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return (type(self).__doc__ or self.name).strip().partition("\n")[0].rstrip(".")

    def results(self, returned: Any) -> dict[str, Array]:
        """Name what a call returned, as arrays."""
        values = returned if isinstance(returned, tuple | list) else (returned,)
        return {name: to_array(v).copy() for name, v in zip(self.outputs, values, strict=True)}


def to_array(value: Any) -> Array:
    """Return the numpy array behind a Tensor, a Parameter, an array or a number."""
    return np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)


def training(tw: ModuleType, model: Any, optimizer: Any, loss_of: Callable[[Any, Any], Any]) -> Program:
    """Return the usual training step of `model` as a program: zero_grad, loss, backward, step."""

    @tw.function  # type: ignore[untyped-decorator]
    def step(x: Any, target: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, list(model.named_parameters()), optimizer)


def discover(select: Iterable[str] = ()) -> list[Workload]:
    """Return the workloads whose name contains one of `select` (all of them by default), by file name.

    Raises
    ------
    LookupError
        If an entry of `select` matches nothing; the message lists the names there are.
    """
    from benchmarks import workloads

    found: list[Workload] = []
    for info in sorted(pkgutil.iter_modules(workloads.__path__), key=lambda info: info.name):
        found += importlib.import_module(f"{workloads.__name__}.{info.name}").WORKLOADS
    chosen = list(select)
    for text in chosen:
        if not any(text in workload.name for workload in found):
            names = ", ".join(workload.name for workload in found)
            raise LookupError(f"no workload's name contains {text!r}; there are: {names}")
    return [w for w in found if not chosen or any(text in w.name for text in chosen)]
