"""TensorFlow's way to use an optimiser: gradients of a loss, and their application, as calls or as operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from common.autograd import backward
from common.core.errors import GradientError
from common.core.int_arguments import members


class Minimizing:
    """Methods of optimisers besides `step`.

    In a graph (`static.Graph`) these return an operation that a session runs. Elsewhere they act at once.
    """

    param_groups: list[Any]
    step: Any
    has_stepped: bool

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Iterable[Any] | None = None,
        grad_loss: Any = None,
        name: str | None = None,
    ) -> Any:
        """Update parameters so that `loss` gets smaller.

        Parameters
        ----------
        loss : tensor.
        global_step : a variable that is counted up by one, in a graph only.
        var_list : parameters; all that the optimiser was made with by default.
        grad_loss : cotangent of the loss.
        name : of the operation.
        """
        return self.apply_gradients(self.compute_gradients(loss, var_list, grad_loss), global_step, name)

    def compute_gradients(
        self, loss: Any, var_list: Iterable[Any] | None = None, grad_loss: Any = None
    ) -> list[tuple[Any, Any]]:
        """Pairs of gradient and parameter; None where `loss` does not depend on it."""
        if var_list is None:
            wanted = [p for group in self.param_groups for p in group.params]
        else:
            wanted = members(var_list, "compute_gradients", "var_list")
        graph = getattr(loss, "graph", None)
        if graph is None:
            found = backward.grad(loss, wanted, grad_loss, allow_unused=True)
        else:
            found = graph.gradients(loss, wanted, grad_loss)
        return list(zip(found, wanted, strict=True))

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """Update parameters along gradients.

        Raises
        ------
        GradientError : there is no gradient for any parameter.
        """
        pairs = members(grads_and_vars, "apply_gradients", "grads_and_vars")
        given = [(g, p) for g, p in pairs if g is not None]
        if not given:
            raise GradientError(f"no gradients provided for any variable: {[getattr(p, 'name', '') for _, p in pairs]}")
        graph = getattr(given[0][0], "graph", None)
        if graph is not None:
            self.has_stepped = True
            return graph.apply(self, given, global_step, name)
        updated = [p for group in self.param_groups for p in group.params]
        before = [p.grad for p in updated]
        gradients = {id(p): g for g, p in given}
        for p in updated:
            p.grad = gradients.get(id(p))
        self.step()
        for p, grad in zip(updated, before, strict=True):
            p.grad = grad
        return None
