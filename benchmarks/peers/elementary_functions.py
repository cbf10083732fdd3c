"""The elementary functions of both engines, numpy (or scipy), PyTorch and JAX, as calls to time.

JAX's are under jax.jit, and waited for. numpy and PyTorch write to memory made once; the others make their results.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.workload import Array

Call = Callable[[], Any]


def libraries() -> list[str]:
    """Return the libraries that are installed, without importing them."""
    return [name for name in ("numpy", "torch", "jax") if find_spec(name) is not None]


def call(library: str, name: str, arguments: tuple[Array, ...]) -> Call | None:
    """Return one evaluation of a function on arrays that are converted once; None where there is no such function.

    Parameters
    ----------
    library : str
        "dynamic", "static", "numpy", "torch" or "jax".
    name : str
        A name in `benchmarks.elementary.ulp_errors.FUNCTIONS`.
    arguments : arrays
        (n,) each.
    """
    return LIBRARIES[library](name, arguments)


def _numpy(name: str, arguments: tuple[Array, ...]) -> Call | None:
    out = np.empty_like(arguments[0])

    def rsqrt(x: Array, out: Array) -> Array:
        return np.reciprocal(np.sqrt(x, out=out), out=out)

    def sigmoid(x: Array, out: Array) -> Array:
        e = np.exp(np.negative(x, out=out), out=out)
        return np.reciprocal(np.add(e, 1, out=out), out=out)

    composed: dict[str, Any] = {"rsqrt": rsqrt, "sigmoid": sigmoid, "pow": np.power}
    renamed = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
               "acosh": "arccosh", "atanh": "arctanh"}  # fmt: skip
    function = composed.get(name) or getattr(np, renamed.get(name, name), None)
    if function is None and find_spec("scipy") is not None:
        from scipy import special

        function = getattr(special, {"lgamma": "gammaln", "digamma": "psi"}.get(name, name), None)
    return None if function is None else lambda: function(*arguments, out=out)


def _torch(name: str, arguments: tuple[Array, ...]) -> Call | None:
    import torch

    torch.set_num_threads(1)
    tensors = [torch.from_numpy(x) for x in arguments]
    out = torch.empty_like(tensors[0])
    if name == "softplus":
        return lambda: torch.nn.functional.softplus(*tensors)
    if order := _order(name):
        return lambda: torch.polygamma(order, *tensors, out=out)
    function = getattr(torch, name, None)
    return None if function is None else lambda: function(*tensors, out=out)


def _jax(name: str, arguments: tuple[Array, ...]) -> Call | None:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    if order := _order(name):
        function = jax.jit(lambda x: jax.lax.polygamma(jnp.full_like(x, order), x))
    else:
        elsewhere = {"erfinv": "erf_inv", "asin": "asin", "acos": "acos", "atan": "atan"}
        places = (
            getattr(space, elsewhere.get(name, name), None) for space in (jax.nn, jnp, jax.lax, jax.scipy.special)
        )
        place = next((place for place in places if place is not None), None)
        if place is None:
            return None
        function = jax.jit(place)
    own = [jnp.asarray(x) for x in arguments]
    return lambda: jax.block_until_ready(function(*own))


def _order(name: str) -> int:
    """The order in a name such as polygamma(2); 0 without one."""
    return int(name.partition("(")[2].rstrip(")") or 0)


def _dynamic(name: str, arguments: tuple[Array, ...]) -> Call | None:
    import dynamic

    return _engine(dynamic, name, [dynamic.from_numpy(x) for x in arguments])


def _static(name: str, arguments: tuple[Array, ...]) -> Call | None:
    import static

    program = static.function(lambda *operands: _engine(static, name, operands)())
    return _engine(static, name, arguments) and (lambda: program(*arguments))


def _engine(engine: Any, name: str, operands: Any) -> Any:
    if order := _order(name):
        return lambda: engine.polygamma(order, *operands)
    function = getattr(engine, name, None)
    return None if function is None else lambda: function(*operands)


LIBRARIES: dict[str, Callable[[str, tuple[Array, ...]], Call | None]] = {
    "dynamic": _dynamic,
    "static": _static,
    "numpy": _numpy,
    "torch": _torch,
    "jax": _jax,
}
