"""One function, run by the eager engine and compiled with the interpreter out of reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.autograd import backward as autograd
from common.core.tree import flatten
from common.tensor.base import TensorBase
from static.jit.function import CompiledFunction
from static.jit.traced import CompiledTrace
from static.running import interpreter
from static.running.executable import Executable, compile_graph
from static.running.interpreter import Interpreted, with_room
from tests.bits import assert_all_same_bits
from tests.helpers import proofs
from tests.helpers.wrapped import wrap

Arrays = Sequence[np.ndarray]


class NoInterpreter:
    """Context manager: a graph that would be interpreted fails the test."""

    def __enter__(self) -> None:
        self.saved = interpreter.run_node
        interpreter.run_node = _refuse

    def __exit__(self, *exc: object) -> None:
        interpreter.run_node = self.saved


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("a compiled program fell back to the interpreter")


class Derivatives:
    """Value, gradient and second-order gradient of a function, as one program for both engines.

    Parameters
    ----------
    f : ``f(*tensors) -> tensor or tuple of tensors``; floating-point operands are differentiated.
    order : 0 for values only, 1 with the gradient, 2 with the gradient's gradient too; a quick run stops at 1.
    unfused : whether it is compiled without fusion too: once per op is enough, and a quick run does without.
    """

    def __init__(self, f: Callable[..., Any], order: int = 2, *, unfused: bool = True) -> None:
        self.f, self.order = f, min(order, 1) if proofs.quick else order
        self.unfused = unfused and not proofs.quick
        self.compiled = CompiledFunction(self._replay)
        self._alone: dict[CompiledTrace, Executable] = {}
        self.count = 0

    def eager(self, arrays: Arrays, rng: np.random.Generator) -> tuple[list[Any], list[np.ndarray]]:
        """Results of the eager engine, and the cotangents that it drew."""
        drawn: list[np.ndarray] = []

        def draw(root: Any) -> Any:
            drawn.append(cotangent(rng, root.shape, root.dtype))
            return wrap(drawn[-1])

        results = self._run([wrap(x) for x in arrays], draw)
        return [x if x is None else x.payload for x in results], drawn

    def _replay(self, *operands: Any) -> Any:
        rest = iter(operands[self.count :])
        return self._run(operands[: self.count], lambda root: next(rest))

    def _run(self, operands: Sequence[Any], draw: Callable[[Any], Any]) -> list[Any]:
        leaves = [x.detach().requires_grad_() if self.order and x.dtype.kind == "f" else x for x in operands]
        y = self.f(*leaves)
        outputs = list(y) if isinstance(y, (tuple, list)) else [y]
        results = [x.detach() for x in outputs]
        inputs = [x for x in leaves if x.requires_grad]
        roots = [x for x in outputs if x.requires_grad]
        if not roots:
            return results
        seeds = [draw(x) for x in roots]
        results += autograd.grad(roots, inputs, seeds, retain_graph=True, allow_unused=True)
        autograd.backward(roots, seeds, retain_graph=True)
        results += [x.grad for x in inputs]
        if self.order < 2:
            return results
        first = autograd.grad(roots, inputs, seeds, create_graph=True, allow_unused=True)
        again = [x for x in first if x is not None and x.requires_grad]
        if again:
            results += autograd.grad(again, inputs, [draw(x) for x in again], allow_unused=True)
        return [*results, *(x if x is None else x.detach() for x in first)]

    def check(self, arrays: Arrays, rng: np.random.Generator, what: str, *, interpreter: bool = False) -> None:
        """Compare the eager engine with the program compiled fused and unfused, and interpreted if asked."""
        self.count = len(arrays)
        expected, drawn = self.eager(arrays, rng)
        what = f"{what} on {', '.join(f'{x.dtype}{list(x.shape)}' for x in arrays)}"
        given = [*arrays, *drawn]
        with NoInterpreter():
            assert_all_same_bits(self.compiled(*given), expected, f"{what}, compiled fused")
            if self.unfused:
                assert_all_same_bits(self._run_graph(given, self._one_by_one), expected, f"{what}, compiled unfused")
        if interpreter and not proofs.quick:
            found = self._run_graph(given, lambda traced, env: Interpreted(traced.graph, env))
            assert_all_same_bits(found, expected, f"{what}, interpreted")

    def _run_graph(self, leaves: list[np.ndarray], plan: Callable[[CompiledTrace, Any], Any]) -> Any:
        """Results of the graph that has been compiled for such operands, in another way."""
        traced, _ = self.compiled.prepare(leaves, flatten((tuple(leaves), {}))[1], ())
        given, env = [leaves[i] for i in traced.positions], traced.env(leaves)
        return with_room(lambda env: traced.run(plan(traced, env), given, True, (), (leaves, {})), env)

    def _one_by_one(self, traced: CompiledTrace, env: Any) -> Any:
        """A plan in which each node is a kernel of its own."""
        if traced not in self._alone:
            self._alone[traced] = compile_graph(traced.graph, fuse=False)
        return self._alone[traced].plan(env)


def cotangent(rng: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    """A random cotangent: never ones, which would hide a rule that forgets it."""
    return np.asarray(rng.normal(size=tuple(shape)), dtype)


def payload(x: Any) -> Any:
    """The array of a tensor, an array as it is."""
    return x.payload if isinstance(x, TensorBase) else x
