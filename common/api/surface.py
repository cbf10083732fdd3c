"""The names that both engines offer, and how an engine makes its own version of a function.

Everything a program needs is listed here once; `dynamic` and `static` bind it, and a test holds them equal. Both make
tensors of arrays and record what runs; `dynamic` has short paths for it, `static` compiles transformed functions.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from common.api import places, tensors, typed, written_first
from common.api.machine import determinism
from common.core import absent, devices, dtypes, mode
from common.core.errors import AllocationError
from common.core.lazy import Late
from common.ops import functional
from common.tensor import boundary

assert tensors  # gives tensors their methods


FUNCTIONS = Late(
    {
        functional.__name__: " ".join(name for name in functional.__all__ if name != "getitem"),
        "common.nn.ctc": "ctc_loss",
        "common.nn.multi_head": "multi_head_attention_forward",
        "common.nn.scaled_attention": "scaled_dot_product_attention",
        "common.random.generator": "dropout rand_like randint_like randn_like",
        "common.random.feature_dropout": "alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
        "common.random.fractional_pooling": "fractional_max_pool2d fractional_max_pool3d",
        "common.random.low_rank": "pca_lowrank svd_lowrank",
        "common.random.relaxed": "gumbel_softmax rrelu",
        "common.random.counts": "binomial poisson",
        "common.random.sampling": "bernoulli multinomial",
    }
)
CREATION = Late(
    {
        "common.ops.create.creation": "zeros ones empty full arange eye",
        "common.ops.create.by_strides": "empty_permuted empty_strided",
        "common.ops.create.spaced": "linspace logspace range tril_indices triu_indices",
        "common.ops.create.signal_windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
        "common.random.generator": "rand randn randint",
        "common.random.orders": "randperm",
        "common.random.sampling": "normal",
        "common.tensor.create": "tensor as_tensor asarray from_numpy frombuffer from_dlpack",
        "common.api.typed": "scalar_tensor",
    }
)

#: Functions of `random`.
DRAWS = ("normal", "rand", "randint", "randn", "randperm")
NN_FUNCTIONS = (
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "channel_shuffle", "conv1d",
    "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu",
    "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d", "fractional_max_pool3d",
    "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "linear", "linear_cross_entropy", "local_response_norm", "log_softmax",
    "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot",
    "pad", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu",
    "relu6", "rms_norm", "rrelu", "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear",
    "upsample_nearest",
)  # fmt: skip
TRANSFORMS = Late({"common.transforms.grad": "grad value_and_grad vjp", "common.transforms.vmap": "vmap"})
CONTROL = Late(
    {
        "common.control.choose": "cond switch",
        "common.control.iterate": "while_loop fori_loop scan map",
        "common.control.associative": "associative_scan",
    }
)
MODES: dict[str, Any] = {
    "no_grad": mode.no_grad, "enable_grad": mode.enable_grad, "set_grad_enabled": mode.set_grad_enabled,
    "is_grad_enabled": mode.is_grad_enabled, "inference_mode": mode.inference_mode,
    "is_inference_mode_enabled": mode.is_inference_mode_enabled,
}  # fmt: skip
OUTSIDE = Late(
    {
        "common.tensor.printing": "set_printoptions get_printoptions",
        "common.tools.files.checkpoints": "Checkpoints",
        "common.tools.files.safetensors": "save_file load_file",
        "common.tools.files.save_load": "save load",
        "common.tools.onnx.imported_model": "import_onnx",
    }
)
#: Questions about precision and reproducibility.
SWITCHES = Late(
    {
        determinism.__name__: "use_deterministic_algorithms are_deterministic_algorithms_enabled "
        "is_deterministic_algorithms_warn_only_enabled set_float32_matmul_precision get_float32_matmul_precision "
        "set_num_interop_threads get_num_interop_threads compiled_with_cxx11_abi",
        "common.api.machine.precision": "autocast is_autocast_available is_autocast_enabled",
    }
)
ACTS = Late({"common.control.print_assert": "print assert_", "common.control.callback": "ShapeDtypeStruct"})
#: Functions that run Python, which a compiled program calls.
HOST = Late({"common.control.callback": "pure_callback"})
THREADS = Late(
    {
        "common.runtime.thread_pool": "set_num_threads get_num_threads",
        "common.runtime.flush_to_zero": "set_flush_denormal",
    }
)
DTYPES: dict[str, Any] = {
    "float32": dtypes.float32, "float64": dtypes.float64, "int8": dtypes.int8, "int16": dtypes.int16,
    "int32": dtypes.int32, "int64": dtypes.int64, "uint8": dtypes.uint8, "bool": dtypes.bool_,
    "float": dtypes.float32, "double": dtypes.float64, "long": dtypes.int64, "int": dtypes.int32,
    "short": dtypes.int16, "dtype": np.dtype,
}  # fmt: skip
#: Names of types, sizes, limits and devices.
PLAIN: dict[str, Any] = {
    **dtypes.ABSENT, **typed.TYPED, **typed.PLAIN,
    "device": devices.device, "set_default_device": devices.set_default_device,
    "get_default_device": devices.get_default_device,
    **devices.FORMATS, "OutOfMemoryError": AllocationError,
    "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi,
}  # fmt: skip
#: Modules of an engine; each is loaded when it is first asked for.
MODULES = (
    "accelerator", "amp", "array_api", "autograd", "backends", "compiler", "cpu", "cuda", "distributed",
    "distributions", "fft", "func", "futures", "fx", "hub", "jit", "library", "linalg", "masked", "mps",
    "multiprocessing", "nn", "onnx", "ops", "optim", "parallel", "profiler", "quantization", "quasirandom",
    "random", "return_types", "signal", "special", "testing", "tree_util", "types", "utils", "version", "xpu",
)  # fmt: skip
#: Questions about a tensor's place among modes.
MARKS = Late({"common.tensor.inference": "is_inference"})
RANDOM = Late(
    {"common.random.generator": "Generator manual_seed get_rng_state set_rng_state seed initial_seed default_generator"}
)

#: PyTorch's own names for what libraries take although they are not public.
UNLISTED = Late(
    {
        "common.api.complex_spectra": "complex=complex_ polar view_as_complex view_as_real",
        "common.api.machine.futures": "Future",
        "common.api.machine.scripting": "ScriptModule",
        "common.api.machine.storages": "UntypedStorage",
        "common.distributions.simplexes": "_sample_dirichlet",
        "common.control.print_assert": "_assert=assert_ _assert_async=assert_",
        "common.api.checks": "_check _check_index _check_value _check_type _check_not_implemented _check_is_size",
    }
)

#: Objects that are the same in both engines.
SHARED = (OUTSIDE, SWITCHES, ACTS, THREADS, MARKS, RANDOM, UNLISTED)

#: Everything at the top level of an engine that this module provides; the engines add `Tensor`, `function`, `compile`
#: and the modules.
NAMES = (
    *FUNCTIONS, *CREATION, *CONTROL, *TRANSFORMS, *MODES, *OUTSIDE, *SWITCHES, *ACTS, *HOST, *THREADS, *MARKS,
    *DTYPES, *PLAIN, *RANDOM,
)  # fmt: skip
ENGINE_NAMES = ("Tensor", "compile", "function", "install_as_torch", *MODULES)


def as_they_are(objects: Mapping[str, Any]) -> dict[str, Any]:
    """Objects that need no binding, because they are the same in both engines."""
    return {name: boundary.published(x) for name, x in objects.items()}


def on_demand(space: dict[str, Any], *tables: tuple[Callable[..., Any], Mapping[str, Any]]) -> tuple[Any, Any]:
    """A module's ``__getattr__`` and ``__dir__`` for functions that are bound when they are first asked for.

    Binding all of them takes longer than everything else that an import does.

    Parameters
    ----------
    space : the module's globals, in which bound functions stay.
    tables : pairs of ``bind(names) -> functions`` and the functions by name.
    """
    own = space["__name__"]
    if "." not in own:
        places.open_places(own)

    def module_getattr(name: str) -> Any:
        for bind, functions in tables:
            if name in functions:
                bound = space[name] = bind({name: functions[name]})[name]
                if getattr(bound, "__module__", own) is None:
                    bound.__module__ = own  # where a pickle finds it
                return bound
        if name.endswith("_") and (function := written_first.made(own, name)) is not None:
            space[name] = function
            return function
        if name.startswith("_foreach_") and "." not in own:
            foreach = importlib.import_module("common.api.foreach")
            if (function := foreach.made(own, name)) is not None:
                space[name] = function
                return function
        if name == "torch" and "." not in own:  # PyTorch is an attribute of itself, and libraries write torch.torch
            return sys.modules[own]
        if (name in MODULES or name == "_dynamo") and "." not in own:
            return importlib.import_module(f"{own}.{name}")
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
