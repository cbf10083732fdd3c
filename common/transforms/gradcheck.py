"""Derivatives against finite differences: an oracle that shares no code with the rules.

The slow mode compares every element of every Jacobian. The fast mode compares v.(J u) for one random direction u and
one random cotangent v per input and output, at the cost of two evaluations: a wrong element goes unnoticed only if it
meets a zero of u or v, which has probability 0. Signatures and tolerances are PyTorch's.

References
----------
HIPS autograd's `check_vjp`, for the projection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.autograd import backward, forward_mode
from common.core import mode
from common.core.dtypes import float64
from common.core.errors import ArgumentError, CheckError, GradcheckError
from common.core.source_lines import warn_user
from common.core.spec import numel
from common.ops.math.arithmetic import zeros_like
from common.tensor.base import TensorBase, wrap
from common.transforms.gradcheck_runs import Check, Function, largest
from common.transforms.vmap import vmap


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of a function with central differences.

    Parameters
    ----------
    func : of tensors; returns a tensor or a tuple of them. Smooth within `eps` of the inputs.
    inputs : a tensor or a tuple; those that require grad are checked, and should be float64.
    eps : half the distance of the two evaluations.
    atol, rtol : the largest difference is ``atol + rtol * |numerical|``.
    raise_exception : raise, or return False.
    nondet_tol : how much two backward passes may differ.
    check_undefined_grad : whether gradients that are absent for some results count as zeros; of forward mode, tangents
        that are absent for some inputs.
    check_grad_dtypes : whether gradients have the dtypes of their inputs.
    check_batched_grad : whether `is_grads_batched` gives what single passes give.
    check_batched_forward_grad : whether a batch of tangents, by `vmap`, gives what single ones give.
    check_forward_ad : whether `autograd.forward_ad` gives what differences give.
    check_backward_ad : whether gradients do.
    fast_mode : compare one random projection of each Jacobian instead of all its elements.
    masked : accepted, as in PyTorch, where it concerns sparse tensors.

    Returns
    -------
    bool
        Whether all of that holds.

    Raises
    ------
    ArgumentError : no input requires grad.
    CheckError : nothing is to be checked.
    GradcheckError : something does not hold; names input, output, and both numbers.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([1.0, 2.0], dtype=tw.float64, requires_grad=True)
    >>> tw.autograd.gradcheck(lambda x: x * x, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise CheckError("Expected at least one of check_forward_ad and check_backward_ad to be True")
    given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    places = [i for i, x in enumerate(given) if isinstance(x, TensorBase) and x.requires_grad]
    if not places:
        raise ArgumentError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i in places:
        if given[i].dtype != float64:
            warn_user(
                f"Input #{i} requires gradient and is not a double precision floating point. This check will likely "
                "fail if all the inputs are not of double precision floating point."
            )
    check = Check(
        lambda *xs: _results(func(*xs)), tuple(given), places, eps, atol, rtol, nondet_tol, np.random.default_rng(0)
    )
    try:
        outputs = check.function(*given)
        if check_backward_ad:
            if not any(y.requires_grad for y in outputs):
                _constant(check)
            (_fast if fast_mode else _slow)(check, outputs)
            if check_undefined_grad:
                _undefined(check, outputs)
            if check_grad_dtypes:
                _dtypes(check, outputs)
            if check_batched_grad:
                _batched(check, outputs)
        if check_forward_ad:
            _forward(check, fast_mode, check_undefined_grad, check_batched_forward_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare second derivatives with central differences of the first: `gradcheck` of the backward pass.

    Parameters
    ----------
    func, inputs : see `gradcheck`.
    grad_outputs : a cotangent per result; random ones by default.
    gen_non_contig_grad_outputs : make these strided.
    check_fwd_over_rev, check_rev_over_rev : `check_forward_ad` and `check_backward_ad` of the backward pass.
    eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad,
    fast_mode, masked : see `gradcheck`.

    Returns
    -------
    bool
        Whether they agree.

    Raises
    ------
    ArgumentError, GradcheckError : see `gradcheck`.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([1.0, 2.0], dtype=tw.float64, requires_grad=True)
    >>> tw.autograd.gradgradcheck(lambda x: x * x * x, (x,))
    True
    """
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        rng = np.random.default_rng(1)
        cotangents = [_cotangent(rng, y, gen_non_contig_grad_outputs) for y in _results(func(*given))]
    else:
        cotangents = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]
    checked = [i for i, x in enumerate(given) if isinstance(x, TensorBase) and x.requires_grad]

    def first(*arguments: Any) -> Any:
        xs, cs = list(arguments[: len(given)]), arguments[len(given) :]
        for i in checked:
            xs[i] = xs[i] if xs[i].requires_grad else xs[i].detach().requires_grad_()  # a tangent's, without recording
        pairs = [(y, c) for y, c in zip(_results(func(*xs)), cs, strict=True) if y.requires_grad]
        wanted = [xs[i] for i in checked]
        with mode.enable_grad():
            found = backward.grad(
                [y for y, _ in pairs], wanted, [c for _, c in pairs], create_graph=True, allow_unused=True
            )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        _recording(first), (*given, *cotangents), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode,
    )  # fmt: skip


def _recording(function: Function) -> Function:
    """The differences run without recording; what takes gradients itself needs it."""

    def call(*xs: Any) -> Any:
        with mode.enable_grad():
            return function(*xs)

    return call


def _results(returned: Any) -> tuple[Any, ...]:
    """The results of a function that can have gradients."""
    listed = returned if isinstance(returned, (tuple, list)) else (returned,)
    return tuple(y for y in listed if isinstance(y, TensorBase) and y.dtype.kind == "f")


def _cotangent(rng: np.random.Generator, y: Any, strided: bool) -> Any:
    draw = np.asarray(rng.standard_normal((*y.shape, 2) if strided else y.shape), y.dtype)
    return wrap(draw[..., 0] if strided else draw).requires_grad_()


def _slow(check: Check, outputs: Sequence[Any]) -> None:
    """Every element of every Jacobian."""
    numerical = {place: _columns(check, place, outputs) for place in check.places}
    for position, y in enumerate(outputs):
        count = numel(y.shape)
        rows = [check.pulled(outputs, position, np.eye(count)[i]) for i in range(count)]
        for k, place in enumerate(check.places):
            size = numel(check.inputs[place].shape)
            analytical = np.array([row[k].reshape(-1) for row in rows], np.float64).reshape(count, size).T
            expected = numerical[place][position]
            if not np.allclose(analytical, expected, check.rtol, check.atol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {position} with respect to input {place},\n"
                    f"numerical:{expected}\nanalytical:{analytical}\n"
                )


def _columns(check: Check, place: int, outputs: Sequence[Any]) -> list[np.ndarray]:
    """Per result the numerical Jacobian with respect to one input, transposed: (input elements, result elements)."""
    shape = tuple(check.inputs[place].shape)
    count = int(np.prod(shape))
    found = []
    for i in range(count):
        direction = np.zeros(count)
        direction[i] = 1.0
        found.append(check.slope(place, direction.reshape(shape)))
    return [
        np.array([row[j].reshape(-1) for row in found]).reshape(count, numel(y.shape)) for j, y in enumerate(outputs)
    ]


def _constant(check: Check) -> None:
    """Results that depend on no input, so the tape says, do not change when one is moved."""
    for place in check.places:
        shape = tuple(check.inputs[place].shape)
        if any(not np.allclose(slope, 0, check.rtol, check.atol) for slope in check.slope(place, np.ones(shape))):
            raise GradcheckError(f"Numerical gradient for function expected to be zero: that of input {place} is not")


def _fast(check: Check, outputs: Sequence[Any]) -> None:
    """One projection of every Jacobian."""
    directions = {place: _unit(check.rng, check.inputs[place].shape) for place in check.places}
    slopes = {place: check.slope(place, directions[place]) for place in check.places}
    for position, y in enumerate(outputs):
        v = _unit(check.rng, y.shape)
        gradients = check.pulled(outputs, position, v)
        for place, gradient in zip(check.places, gradients, strict=True):
            u = directions[place]
            claimed, measured = float(np.sum(gradient * u)), float(np.sum(slopes[place][position] * v))
            allowed = check.atol * float(np.abs(u).sum() * np.abs(v).sum()) + check.rtol * abs(measured)
            if not abs(claimed - measured) <= allowed:
                raise GradcheckError(
                    f"Jacobian mismatch for output {position} with respect to input {place} along random directions, "
                    f"numerical:{measured!r}\nanalytical:{claimed!r}\nThe above quantities are projections of the "
                    "Jacobian (fast mode); fast_mode=False shows all its elements."
                )


def _unit(rng: np.random.Generator, shape: Any) -> np.ndarray:
    """A random direction of length 1."""
    draw = rng.standard_normal(tuple(shape))
    length = float(np.sqrt(np.sum(draw * draw)))
    return draw / length if length else draw


def _undefined(check: Check, outputs: Sequence[Any]) -> None:
    """Results without gradient count as results with gradient 0."""
    inputs = [check.inputs[i] for i in check.places]
    roots = [y for y in outputs if y.requires_grad]
    for y in roots if len(roots) > 1 else ():
        seed = wrap(np.asarray(check.rng.standard_normal(y.shape), y.dtype))
        try:
            alone = backward.grad(y, inputs, seed, retain_graph=True, allow_unused=True)
        except GradcheckError:
            raise
        except Exception as error:
            raise GradcheckError(
                f"Expected backward function to handle undefined output grads, but it raised {error!r}"
            ) from error
        seeds = [seed if z is y else zeros_like(z.detach()) for z in roots]
        zeros = backward.grad(roots, inputs, seeds, retain_graph=True, allow_unused=True)
        for place, a, b in zip(check.places, alone, zeros, strict=True):
            one, two = (np.zeros(()) if g is None else g.detach().numpy() for g in (a, b))
            if not np.allclose(one, two, check.rtol, check.atol):
                raise GradcheckError(
                    "Expected undefined output grads to count as zeros, but the gradient of input "
                    f"{place} differs by {largest(one - two):.3g}"
                )


def _dtypes(check: Check, outputs: Sequence[Any]) -> None:
    inputs = [check.inputs[i] for i in check.places]
    roots = [y for y in outputs if y.requires_grad]
    seeds = [zeros_like(y.detach()) for y in roots]
    found = backward.grad(roots, inputs, seeds, retain_graph=True, allow_unused=True)
    for place, x, g in zip(check.places, inputs, found, strict=True):
        if g is not None and (g.dtype != x.dtype or tuple(g.shape) != tuple(x.shape)):
            raise GradcheckError(f"grad is of dtype {g.dtype}, input {place} of {x.dtype}")


def _batched(check: Check, outputs: Sequence[Any]) -> None:
    inputs = [check.inputs[i] for i in check.places]
    for y in (y for y in outputs if y.requires_grad):
        seeds = np.asarray(check.rng.standard_normal((2, *y.shape)), y.dtype)
        both = backward.grad(y, inputs, wrap(seeds), is_grads_batched=True, retain_graph=True, allow_unused=True)
        for i in range(2):
            one = backward.grad(y, inputs, wrap(seeds[i]), retain_graph=True, allow_unused=True)
            for place, a, b in zip(check.places, both, one, strict=True):
                if (a is None) != (b is None) or (a is not None and not np.array_equal(a.numpy()[i], b.numpy())):
                    raise GradcheckError(f"a batch of cotangents gives other gradients of input {place} than one")


def _forward(check: Check, fast: bool, undefined: bool, batched: bool) -> None:
    """Tangents of the results against differences."""
    for place in check.places:
        shape = tuple(check.inputs[place].shape)
        count = int(np.prod(shape))
        directions = [_unit(check.rng, shape)] if fast else [np.eye(count)[i].reshape(shape) for i in range(count)]
        for direction in directions:
            tangents = check.pushed(place, direction)
            for position, (a, b) in enumerate(zip(tangents, check.slope(place, direction), strict=True)):
                if not np.allclose(a, b, check.rtol, check.atol):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {position} with respect to input "
                        f"{place},\nnumerical:{b}\nanalytical:{a}\n"
                    )
    for place in check.places:
        shape = tuple(check.inputs[place].shape)
        if undefined:
            _undefined_forward(check, place, shape)
        if batched:
            _batched_forward(check, place, shape)


def _undefined_forward(check: Check, place: int, shape: tuple[int, ...]) -> None:
    """Other inputs without a tangent count as inputs with tangent 0; one input alone is checked along one more way."""
    direction = _unit(check.rng, shape)
    alone = check.pushed(place, direction, None)
    expected = check.pushed(place, direction) if len(check.places) > 1 else check.slope(place, direction)
    for position, (a, b) in enumerate(zip(alone, expected, strict=True)):
        if not np.allclose(a, b, check.rtol, check.atol):
            raise GradcheckError(
                f"Mismatch in tangent values for output with index {position}: with a tangent of input {place} alone "
                f"it differs by {largest(a - b):.3g} from what is expected"
            )


def _batched_forward(check: Check, place: int, shape: tuple[int, ...]) -> None:
    """Tangents in a batch, by `vmap`, against each alone."""
    x = check.inputs[place]

    def push(tangent: Any) -> tuple[Any, ...]:
        with forward_mode.dual_level():
            return check.tangents(place, forward_mode.make_dual(x.detach(), tangent))

    directions = np.asarray(check.rng.standard_normal((2, *shape)), x.dtype)
    try:
        both = vmap(push)(wrap(directions))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}") from error
    for i in range(2):
        for position, (a, b) in enumerate(zip(both, check.pushed(place, directions[i]), strict=True)):
            if not np.allclose(a.detach().numpy()[i], b, check.rtol, check.atol):
                raise GradcheckError(
                    f"While computing batched gradients, got: a batch of tangents of input {place} gives another "
                    f"tangent of output {position} than one of them alone"
                )


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
