"""The runs of `gradcheck`: a function at moved inputs, its backward pass, and its tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.autograd import backward, forward_mode
from common.core import mode
from common.core.errors import CheckError, GradcheckError
from common.ops.math.arithmetic import zeros_like
from common.tensor.base import wrap

Function = Callable[..., Any]


class Check(NamedTuple):
    """One call of `gradcheck`.

    Attributes
    ----------
    function : of the inputs; returns a tuple of the results that can have gradients.
    inputs : all of them.
    places : positions of those that require grad.
    """

    function: Function
    inputs: tuple[Any, ...]
    places: list[int]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    rng: np.random.Generator

    def moved(self, place: int, step: np.ndarray) -> list[np.ndarray]:
        """The results where one input is moved: in its own memory, because the function may use it by another name."""
        given, array = list(self.inputs), self.inputs[place].payload
        before = np.array(array)
        there = np.asarray(before + step, array.dtype)
        in_place = isinstance(array, np.ndarray) and array.flags.writeable
        if in_place:
            array[...] = there
        else:  # elements that are one element of memory
            given[place] = wrap(there).requires_grad_()  # the function may differentiate inside
        try:
            with mode.enable_grad():
                return [np.array(y.payload) for y in self.function(*given)]  # not numpy(): this is nobody else's memory
        finally:
            if in_place:  # no write is noted: what has been saved is as it was
                array[...] = before

    def slope(self, place: int, direction: np.ndarray) -> list[np.ndarray]:
        """Per result the central difference along a direction of one input."""
        ahead, behind = (self.moved(place, sign * self.eps * direction) for sign in (1.0, -1.0))
        for what in ("shape", "dtype"):
            forms = [[getattr(y, what) for y in moved] for moved in (ahead, behind)]
            if forms[0] != forms[1]:
                raise CheckError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed up to a value "
                    f"of {self.eps}, but got: {forms[0]} and {forms[1]}."
                )
        wide = ((np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(ahead, behind, strict=True))
        return [(a - b) / (2 * self.eps) for a, b in wide]

    def tangents(self, place: int, dual: Any, others: Callable[[Any], Any] | None = zeros_like) -> tuple[Any, ...]:
        """Per result its tangent, where one input is a dual tensor; zeros if it has none.

        Parameters
        ----------
        others : makes the tangents of the other checked inputs; None for none.
        """
        given = list(self.inputs)
        if others is not None:
            for i in self.places:
                given[i] = forward_mode.make_dual(given[i], others(given[i].detach()))
        given[place] = dual
        pairs = [(y, forward_mode.unpack_dual(y).tangent) for y in self.function(*given)]
        return tuple(zeros_like(y.detach()) if t is None else t for y, t in pairs)

    def pushed(self, place: int, direction: np.ndarray, *others: Any) -> list[np.ndarray]:
        """`tangents` along one direction, as arrays."""
        x = self.inputs[place]
        with forward_mode.dual_level():
            found = self.tangents(place, forward_mode.make_dual(x, wrap(np.asarray(direction, x.dtype))), *others)
        return [t.payload for t in found]

    def pulled(self, outputs: Sequence[Any], position: int, cotangent: np.ndarray) -> list[np.ndarray]:
        """Per checked input the gradient for a cotangent of one result; twice, and the two have to agree."""
        inputs, y = [self.inputs[i] for i in self.places], outputs[position]
        if y.grad_fn is None and not y.requires_grad:
            return [np.zeros(x.shape) for x in inputs]
        runs = []
        for _ in range(2):
            seed = wrap(np.asarray(cotangent.reshape(y.shape), y.dtype))
            found = backward.grad(y, inputs, seed, retain_graph=True, allow_unused=True)
            runs.append([np.zeros(x.shape) if g is None else g.payload for g, x in zip(found, inputs)])
        for place, first, second in zip(self.places, *runs, strict=True):
            difference = largest(first - second)
            if difference > self.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    f"gives different values: they differ by {difference:.3g} for input {place}, nondet_tol is "
                    f"{self.nondet_tol}"
                )
        return runs[0]


def largest(difference: np.ndarray) -> float:
    """The largest absolute value; 0 of none."""
    return float(np.max(np.abs(difference))) if difference.size else 0.0
