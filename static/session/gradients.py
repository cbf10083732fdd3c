"""Derivatives of tensors of a graph, as further tensors of it."""

from __future__ import annotations

from typing import Any

from common.autograd import derivatives
from common.ops.arithmetic import ones_like
from static.session.sources import convert
from static.session.tensors import GraphTensor


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients") -> list[GraphTensor | None]:
    """The derivatives of the sum of `ys` with respect to each of `xs`, by the one tape of both engines.

    Parameters
    ----------
    ys : a tensor or a list of them.
    xs : tensors, variables or parameters, or one of these.
    grad_ys : a cotangent for each of `ys`; ones by default.
    name : scope of the new operations.

    Returns
    -------
    list
        A tensor per `xs`; None where `ys` do not depend on it.

    Examples
    --------
    >>> import static as tw
    >>> with tw.Graph().as_default(), tw.Session() as session:
    ...     x = tw.constant([1.0, 2.0])
    ...     session.run(tw.gradients(x * x, x))
    [array([2., 4.], dtype=float32)]
    """
    roots, targets = _listed(ys), _listed(xs)
    seeds = [None] * len(roots) if grad_ys is None else _listed(grad_ys)
    graph = next(x for x in (*roots, *targets) if isinstance(x, GraphTensor)).graph
    with graph.building(), graph.name_scope(name):
        pairs = [
            (y, ones_like(y.detach()) if seed is None else convert(graph, seed, y.dtype))
            for y, seed in zip(roots, seeds, strict=True)
            if y.edge is not None
        ]
        reached = [x for x in targets if x.edge is not None]
        if not pairs or not reached:
            return [None] * len(targets)
        outputs, cotangents = zip(*pairs, strict=True)
        found = derivatives.grad(
            outputs, tuple(reached), cotangents, retain_graph=True, create_graph=True, allow_unused=True
        )
        by_target = {id(x): g for x, g in zip(reached, found, strict=True)}
        return [by_target.get(id(x)) for x in targets]


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]
