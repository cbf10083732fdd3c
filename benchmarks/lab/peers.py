"""A user's program in other frameworks: PyTorch runs the same file; others have a function ``NAME_jax`` in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.lab.libraries import PYTORCH, in_its_place, use
from benchmarks.peers import Built
from benchmarks.workload import Array, Inputs, Program
from common.random.generator import default_generator

Call = Callable[..., Any]
Make = Callable[[Any], Program]


class NotWritten(LookupError):
    """The file has no version of the program for a peer."""


def build(
    own: ModuleType, name: str, peer: str, inputs: Sequence[Inputs], initial: dict[str, Array], make: Make
) -> Built:
    """Return a peer's version of a program.

    Parameters
    ----------
    own, name : the user's file as a module, and which of its functions is measured.
    peer : a name in `benchmarks.peers.PEERS`.
    inputs, initial : input sets, and parameters by name.
    make : builds the program with an engine.

    Raises
    ------
    NotWritten
        If there is none.
    """
    package = peer.partition(".")[0]
    written = getattr(own, f"{name}_{package}", None)
    if package == "torch":
        return _torch(peer, inputs, initial, written, make)
    if written is None:
        raise NotWritten(f"the file has no {name}_{package}")
    if package == "tinygrad":
        from benchmarks.peers.with_tinygrad import finished

        return finished(peer, written, inputs)
    return _jax(peer, written, inputs) if package == "jax" else (written, list(inputs))


def _jax(peer: str, function: Call, inputs: Sequence[Inputs]) -> Built:
    import jax

    from benchmarks.peers.with_jax import op_by_op

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(function)
    own = [tuple(jax.numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in arrays) for arrays in inputs]

    def call(*arguments: Any) -> Any:
        return jax.block_until_ready(compiled(*arguments))

    return (call if peer == "jax.jit" else op_by_op(call)), own


class _Torch(ModuleType):
    """PyTorch with the few names of ours that it lacks."""

    def __init__(self, wrap: Callable[[Call], Call]) -> None:
        super().__init__("torch")
        self.wrap = wrap

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch, name)

    def function(self, target: Call | None = None, **_: Any) -> Any:
        """Compile, or leave as it is."""
        return self.function if target is None else self.wrap(target)

    def manual_seed(self, seed: int) -> Any:
        """Seed both generators: while the program is built, ours draws."""
        import torch

        default_generator.manual_seed(seed)
        return torch.manual_seed(seed)

    def value_and_grad(self, function: Call, argnums: Any = 0) -> Call:
        """The value of a function, and its gradients, by autograd."""
        import torch

        positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

        def call(*arguments: Any) -> Any:
            given = [x.detach().requires_grad_() if i in positions else x for i, x in enumerate(arguments)]
            value = function(*given)
            return value.detach(), torch.autograd.grad(value, [given[i] for i in positions])

        return call


def _torch(peer: str, inputs: Sequence[Inputs], initial: dict[str, Array], written: Call | None, make: Make) -> Built:
    use(PYTORCH)
    import torch

    from benchmarks.measure import threads

    torch.set_num_threads(threads())
    own = [tuple(torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in arrays) for arrays in inputs]
    wrap: Callable[[Call], Call] = torch.compile if peer == "torch.compile" else lambda function: function
    if written is not None:
        return in_its_place(wrap(written), PYTORCH), own
    from benchmarks.peers.torch_draws import OurDraws

    with OurDraws():
        program = make(_Torch(wrap))
    with torch.no_grad():
        for name, parameter in program.named_parameters:
            parameter.copy_(torch.tensor(initial[name]))
    return program.call, own
