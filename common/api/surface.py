"""The names that both engines offer, and how an engine makes its own version of a function.

Everything a program needs is listed here once; `dynamic` and `static` bind it, and a test holds them equal. Both make
tensors of arrays and record what runs; `dynamic` has short paths for it, `static` compiles transformed functions.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

from common.api import tensors, typed
from common.control import callback, choose, iterate, side_effects
from common.core import absent, devices, dtypes, mode
from common.nn import ctc
from common.ops import functional
from common.ops.create import creation as fills
from common.ops.create import spaced
from common.ops.linalg import namespace as linalg
from common.ops.special import namespace as special
from common.random import distributions, feature_dropout, relaxed
from common.random import generator as random
from common.runtime import thread_pool
from common.tensor import create, printing
from common.tools.files import safetensors, saved
from common.transforms import grad, vmap

assert tensors  # gives tensors their methods


FUNCTIONS: dict[str, Any] = {
    **{name: getattr(functional, name) for name in functional.__all__ if name != "getitem"},
    "ctc_loss": ctc.ctc_loss,
    "dropout": random.dropout,
    **{name: getattr(feature_dropout, name) for name in feature_dropout.__all__},
    "gumbel_softmax": relaxed.gumbel_softmax,
    "rrelu": relaxed.rrelu,
    "rand_like": random.rand_like,
    "randint_like": random.randint_like,
    "randn_like": random.randn_like,
    "bernoulli": distributions.bernoulli,
    "multinomial": distributions.multinomial,
}
CREATION: dict[str, Any] = {
    **{name: getattr(fills, name) for name in ("zeros", "ones", "empty", "full", "arange", "eye")},
    **{name: getattr(spaced, name) for name in ("linspace", "logspace", "tril_indices", "triu_indices")},
    **{name: getattr(random, name) for name in ("rand", "randn", "randint", "randperm")},
    "normal": distributions.normal,
    "tensor": create.tensor, "as_tensor": create.as_tensor, "asarray": create.as_tensor,
    "scalar_tensor": typed.scalar_tensor,
    "from_numpy": create.from_numpy, "from_dlpack": create.from_dlpack,
}  # fmt: skip
NN_FUNCTIONS = (
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu",
    "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d",
    "dropout2d", "dropout3d", "elu", "embedding", "embedding_bag", "feature_alpha_dropout", "fold",
    "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm",
    "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "local_response_norm",
    "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d",
    "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss",
    "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "rms_norm", "rrelu",
    "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold",
)  # fmt: skip
LINALG: dict[str, Any] = dict(sorted(linalg.FUNCTIONS.items()))
SPECIAL: dict[str, Any] = dict(sorted(special.FUNCTIONS.items()))
TRANSFORMS: dict[str, Any] = {
    "grad": grad.grad, "value_and_grad": grad.value_and_grad, "vjp": grad.vjp, "vmap": vmap.vmap,
}  # fmt: skip
CONTROL: dict[str, Any] = {
    "cond": choose.cond, "switch": choose.switch, "while_loop": iterate.while_loop, "fori_loop": iterate.fori_loop,
    "scan": iterate.scan, "map": iterate.map,
}  # fmt: skip
MODES: dict[str, Any] = {
    "no_grad": mode.no_grad, "enable_grad": mode.enable_grad, "set_grad_enabled": mode.set_grad_enabled,
    "is_grad_enabled": mode.is_grad_enabled, "inference_mode": mode.inference_mode,
    "is_inference_mode_enabled": mode.is_inference_mode_enabled,
}  # fmt: skip
OUTSIDE: dict[str, Any] = {
    "set_printoptions": printing.set_printoptions,
    "get_printoptions": printing.get_printoptions,
    "save_file": safetensors.save_file,
    "load_file": safetensors.load_file,
    "save": saved.save,
    "load": saved.load,
}
ACTS: dict[str, Any] = {
    "print": side_effects.print, "assert_": side_effects.assert_, "ShapeDtypeStruct": callback.ShapeDtypeStruct,
}  # fmt: skip
#: Functions that run Python, which a compiled program calls.
HOST: dict[str, Any] = {"pure_callback": callback.pure_callback}
THREADS: dict[str, Any] = {
    "set_num_threads": thread_pool.set_num_threads,
    "get_num_threads": thread_pool.get_num_threads,
}
DTYPES: dict[str, Any] = {
    "float32": dtypes.float32, "float64": dtypes.float64, "int8": dtypes.int8, "int16": dtypes.int16,
    "int32": dtypes.int32, "int64": dtypes.int64, "uint8": dtypes.uint8, "bool": dtypes.bool_,
    "float": dtypes.float32, "double": dtypes.float64, "long": dtypes.int64, "int": dtypes.int32,
    "short": dtypes.int16,
}  # fmt: skip
#: What names types, sizes, limits and devices.
PLAIN: dict[str, Any] = {
    **typed.TYPED, **typed.PLAIN, "device": devices.device, "set_default_device": devices.set_default_device,
    "get_default_device": devices.get_default_device,
    "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi,
}  # fmt: skip
#: Modules of an engine that are loaded when they are first asked for.
LATE = ("accelerator", "amp", "backends", "cpu", "cuda", "distributions", "jit", "mps", "xpu")
RANDOM: dict[str, Any] = {
    "Generator": random.Generator, "manual_seed": random.manual_seed, "get_rng_state": random.get_rng_state,
    "set_rng_state": random.set_rng_state, "seed": random.seed, "initial_seed": random.initial_seed,
    "default_generator": random.default_generator,
}  # fmt: skip

#: Everything at the top level of an engine that this module provides; the engines add `function`, `Tensor`, and
#: the modules `nn`, `optim`, `autograd`, `profiler` and `random`.
NAMES = (
    *FUNCTIONS, *CREATION, *CONTROL, *TRANSFORMS, *MODES, *OUTSIDE, *ACTS, *HOST, *THREADS, *DTYPES, *PLAIN, *RANDOM,
)  # fmt: skip
ENGINE_NAMES = (
    "Tensor", "autograd", "compile", "func", "function", "linalg", "nn", "optim", "profiler", "random",
    "special", "utils", *LATE,
)  # fmt: skip


def on_demand(space: dict[str, Any], *tables: tuple[Callable[..., Any], dict[str, Any]]) -> tuple[Any, Any]:
    """A module's ``__getattr__`` and ``__dir__`` for functions that are bound when they are first asked for.

    Binding all of them takes longer than everything else that an import does.

    Parameters
    ----------
    space : the module's globals, in which bound functions stay.
    tables : pairs of ``bind(names) -> functions`` and the functions by name.
    """

    def module_getattr(name: str) -> Any:
        for bind, functions in tables:
            if name in functions:
                space[name] = bind({name: functions[name]})[name]
                return space[name]
        own = space["__name__"]
        if name in LATE and "." not in own:
            return importlib.import_module(f"{own}.{name}")
        if name in absent.NAMESPACES and "." not in own:
            return absent.namespace(own, name)
        return absent.refuse(own, name)

    for _, functions in tables:
        for name in functions.keys() & space.keys():  # a submodule of that name, loaded before
            del space[name]
            module_getattr(name)
    return module_getattr, lambda: sorted({*space, *space["__all__"]})


def owned(functions: dict[str, Any], module: str) -> dict[str, Any]:
    """Functions that `module` offers under these names, told so: a pickle finds them there."""
    for name, function in functions.items():
        function.__module__, function.__name__, function.__qualname__ = module, name, name
    return functions
