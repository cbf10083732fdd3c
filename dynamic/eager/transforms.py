"""The functional transforms: a call of their result is a region, as the other engine compiles it as one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from common.api import surface
from common.nn.functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state
from common.transforms import func, grad
from dynamic.eager.function import EagerFunction, inlining

Function = Callable[..., Any]


def _as_function(transform: Function, module: str = "dynamic.func") -> Function:
    """A transform whose result is one node: numbers are weak, inner functions are inlined; `module` offers it."""

    @functools.wraps(transform)
    def bound(target: Function, *args: Any, **kwargs: Any) -> Function:
        transformed = EagerFunction(transform(target, *args, **kwargs), always=True)
        transformed._maker = module, transform.__name__, (target, *args), kwargs
        return transformed

    return bound


@functools.wraps(grad.vjp)
def _vjp(target: Function, *primals: Any, has_aux: bool = False) -> Any:
    with inlining():
        return grad.vjp(target, *primals, has_aux=has_aux)


@functools.wraps(func.jvp)
def _jvp(target: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    call = functools.partial(func.jvp, target, strict=strict, has_aux=has_aux)
    return EagerFunction(call, always=True)(primals, tangents)


@functools.wraps(func.linearize)
def _linearize(target: Function, *primals: Any) -> Any:
    with inlining():
        y, push = func.linearize(target, *primals)
    return y, EagerFunction(push, always=True)


TRANSFORMS: dict[str, Function] = surface.owned(
    {
        "grad": _as_function(grad.grad, "dynamic"),
        "value_and_grad": _as_function(grad.value_and_grad, "dynamic"),
        "vjp": _vjp,
        "vmap": _as_function(func.vmap, "dynamic"),
    },
    "dynamic",
)

#: Those of `func`.
FUNC: dict[str, Function] = {
    **surface.owned(
        {
            **{
                name: _as_function(getattr(func, name))
                for name in ("chunk_vmap", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev")
            },
            "jvp": _jvp,
            "linearize": _linearize,
        },
        "dynamic.func",
    ),
    "functional_call": functional_call,
    "replace_all_batch_norm_modules_": replace_all_batch_norm_modules_,
    "stack_module_state": stack_module_state,
    "vjp": _vjp,
    "vmap": TRANSFORMS["vmap"],
}
