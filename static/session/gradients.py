"""Derivatives of tensors of a graph, as further tensors of it."""

from __future__ import annotations

from typing import Any

from common.autograd.backward import reached
from common.autograd.backward_pass import collect
from common.core.errors import ArgumentError
from common.ops.math.arithmetic import ones_like, zeros_like
from static.session.graph_tensor import GraphTensor
from static.session.placeholders import convert


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    stop_gradients: Any = None,
    unconnected_gradients: str = "none",
) -> list[GraphTensor | None]:
    """The derivatives of the sum of `ys` with respect to each of `xs`, by the one tape of both engines.

    Parameters
    ----------
    ys : a tensor or a list of them.
    xs : tensors, variables or parameters, or one of these.
    grad_ys : a cotangent for each of `ys`; ones by default.
    name : scope of the new operations.
    stop_gradients : tensors that count as constants: what they were computed from gets nothing through them.
    unconnected_gradients : "none", or "zero" for zeros where `ys` do not depend on one of `xs`.

    Returns
    -------
    list
        A tensor per `xs`; None where `ys` do not depend on it.

    Raises
    ------
    ArgumentError : an unknown word, or one of several results of an operation among `stop_gradients`.

    Examples
    --------
    >>> import static as tw
    >>> with tw.Graph().as_default(), tw.Session() as session:
    ...     x = tw.constant([1.0, 2.0])
    ...     y = x * x
    ...     session.run([tw.gradients(y + x, x), tw.gradients(y + x, [x, y], stop_gradients=[x, y])])
    [[array([3., 5.], dtype=float32)], [array([1., 1.], dtype=float32), array([1., 1.], dtype=float32)]]
    """
    if unconnected_gradients not in ("none", "zero"):
        raise ArgumentError(f'gradients(): unconnected_gradients is "none" or "zero", not {unconnected_gradients!r}')
    roots, targets = _listed(ys), _listed(xs)
    seeds = [None] * len(roots) if grad_ys is None else _listed(grad_ys)
    if len(seeds) != len(roots):
        raise ArgumentError(f"gradients(): {len(roots)} tensors and {len(seeds)} grad_ys")
    graph = next((x.graph for x in (*roots, *targets) if isinstance(x, GraphTensor)), None)
    if graph is None:
        raise ArgumentError(
            "gradients(): ys and xs are tensors of a graph (placeholders, variables, and what is made of them), but "
            "none of these is: of tensors that have elements use autograd.grad, of functions grad"
        )
    stopped = {_maker(x) for x in _listed([] if stop_gradients is None else stop_gradients)}
    with graph.building(), graph.name_scope(name):
        pairs = [
            (y, ones_like(y.detach()) if seed is None else convert(graph, seed, y.dtype))
            for y, seed in zip(roots, seeds, strict=True)
            if y.edge is not None
        ]
        inputs = [x for x in targets if x.edge is not None]
        found: dict[int, Any] = {}
        if pairs and inputs:
            outputs, cotangents = zip(*pairs, strict=True)
            order = _without(stopped, [y.edge for y in outputs]) if stopped else None
            found = dict(zip(map(id, inputs), reached(outputs, cotangents, inputs, order), strict=True))
        results = [found.get(id(x)) for x in targets]
        if unconnected_gradients == "zero":
            results = [zeros_like(x.detach()) if g is None else g for x, g in zip(targets, results, strict=True)]
        return results


def _maker(x: Any) -> Any:
    """The node of the tape behind a tensor that counts as a constant; None if there is none."""
    if isinstance(x.edge, tuple):
        raise _several(x.edge[0])
    return None if isinstance(x.edge, GraphTensor) else x.edge


def _without(stopped: set[Any], roots: list[Any]) -> list[Any]:
    """The nodes of a backward pass that ends at some nodes."""
    order = collect(roots)
    for edge in (*roots, *(edge for node in order for edge in node.edges)):
        if isinstance(edge, tuple) and edge[0] in stopped:
            raise _several(edge[0])
    return [node for node in order if node not in stopped]


def _several(node: Any) -> ArgumentError:
    return ArgumentError(
        f"gradients(): stop_gradients holds one of several results of {node.name()}: use identity() of it, there and "
        "in what follows"
    )


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]
