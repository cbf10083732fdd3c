"""The functional transforms under the names that an engine offers them by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.api.surface import owned
from common.nn.functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state
from common.transforms import func, grad

Function = Callable[..., Any]
_OF_FUNC = ("chunk_vmap", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev")


def offered_transforms(
    engine: str, made: Callable[[Function, str], Function], vjp: Function, jvp: Function, linearize: Function
) -> tuple[dict[str, Function], dict[str, Function]]:
    """Return the transforms at the top of an engine, and those of its `func`.

    Parameters
    ----------
    engine : its name.
    made : ``made(transform, module)``: a transform of functions as the engine has it, which `module` offers.
    vjp, jvp, linearize : the engine's own.
    """
    of_functions = {"grad": grad.grad, "value_and_grad": grad.value_and_grad}
    top = {name: made(transform, engine) for name, transform in of_functions.items()}
    top |= {"vjp": vjp, "vmap": made(func.vmap, engine)}
    module = f"{engine}.func"
    own = {name: made(getattr(func, name), module) for name in _OF_FUNC}
    return owned(top, engine), {
        **owned({**own, "jvp": jvp, "linearize": linearize}, module),
        "functional_call": functional_call,
        "replace_all_batch_norm_modules_": replace_all_batch_norm_modules_,
        "stack_module_state": stack_module_state,
        "vjp": vjp,
        "vmap": top["vmap"],
    }
