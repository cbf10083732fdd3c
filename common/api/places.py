"""Modules of an engine as users see them, and PyTorch's longer paths, which forward to them or have own names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from common.core import absent
from common.core.lazy import Late
from common.tensor import boundary

#: Package of PyTorch -> its modules, and the package here that has what stands in them.
PLACES: dict[str, tuple[str, str]] = {
    "": ("_C __config__ _custom_ops _tensor_str ao functional overrides serialization torch_version", ""),
    "_C": ("_nn", "_C"),
    "nn": ("_reduction common_types", "nn"),
    "nn.modules": (
        "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm lazy "
        "linear loss normalization padding pixelshuffle pooling rnn sparse transformer upsampling utils",
        "nn",
    ),
    "nn.parallel": (
        "_functions data_parallel distributed parallel_apply replicate scatter_gather", "nn.parallel",
    ),
    "nn.utils": ("clip_grad convert_parameters fusion init spectral_norm stateless weight_norm", "nn.utils"),
    "optim": ("adadelta adagrad adam adamax adamw asgd lbfgs nadam radam rmsprop rprop sgd", "optim"),
    "autograd": ("gradcheck anomaly_mode grad_mode variable", "autograd"),
    "amp": ("autocast_mode grad_scaler", "amp"),
    "cuda": ("_utils comm nccl random", "cuda"),
    "cuda.amp": ("autocast_mode grad_scaler", "cuda.amp"),
    "ao": ("quantization", "quantization"),
    "_dynamo": ("_trace_wrapped_higher_order_op eval_frame utils", "_dynamo"),
    "jit": ("annotations", "jit"),
    "onnx": ("symbolic_helper symbolic_opset9 symbolic_opset11", "onnx"),
    "distributed": ("device_mesh nn optim rpc tensor", "distributed"),
    "utils": ("_foreach_utils _python_dispatch collect_env dlpack flop_counter hooks", "utils"),
    "utils.data": ("_utils distributed", "utils.data"),
    "utils.data._utils": ("collate", "utils.data"),
    "utils.tensorboard": ("writer", "utils.tensorboard"),
    "distributions": (
        "bernoulli beta binomial categorical cauchy chi2 constraint_registry constraints continuous_bernoulli "
        "dirichlet distribution exp_family exponential fishersnedecor gamma geometric gumbel half_cauchy half_normal "
        "independent inverse_gamma kl kumaraswamy laplace lkj_cholesky log_normal logistic_normal "
        "lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal negative_binomial normal "
        "one_hot_categorical pareto poisson relaxed_bernoulli relaxed_categorical studentT "
        "transformed_distribution transforms uniform utils von_mises weibull wishart",
        "distributions",
    ),
}  # fmt: skip

#: Names that stand in one such module only, base classes above all: the module, where they are here, the names. A
#: place is one module or several.
INNER: dict[str, tuple[str, str]] = {
    "_C": (
        "common.api.machine.reports common.methods.torch_function",
        "DisableTorchFunction DisableTorchFunctionSubclass DispatchKey DispatchKeySet _ExcludeDispatchKeyGuard "
        "_TensorMeta _are_functorch_transforms_active _disabled_torch_function_impl "
        "_get_tracing_state _jit_override_can_fuse_on_cpu _jit_override_can_fuse_on_gpu _jit_set_nvfuser_enabled "
        "_jit_set_profiling_executor _jit_set_profiling_mode _jit_set_texpr_fuser_enabled _log_api_usage_once",
    ),
    "_C._nn": ("common.api.machine.reports", "_parse_to"),
    "__config__": ("common.api.machine.build_text", "parallel_info show"),
    "_dynamo._trace_wrapped_higher_order_op": ("common.api.machine.compiling", "TransformGetItemToIndex"),
    "_dynamo.utils": ("common.api.machine.compiling", "is_compile_supported"),
    "_custom_ops": ("common.control.custom_ops", "get_ctx"),
    "_tensor_str": ("common.tensor.printing", "PRINT_OPTS _tensor_str"),
    "serialization": (
        "common.tools.files.save_load common.tools.files.safe_globals",
        "DEFAULT_PROTOCOL FILE_LIKE MAP_LOCATION add_safe_globals clear_safe_globals default_restore_location "
        "get_safe_globals safe_globals",
    ),
    "overrides": (
        "common.methods.torch_function common.methods.function_modes",
        "BaseTorchFunctionMode TorchFunctionMode get_default_nowrap_functions handle_torch_function "
        "has_torch_function has_torch_function_unary has_torch_function_variadic is_tensor_like "
        "is_tensor_method_or_property resolve_name wrap_torch_function",
    ),
    "torch_version": ("common.version", "TorchVersion"),
    "cuda._utils": ("common.nn.parallel", "_get_device_index"),
    "distributions.transforms": ("common.distributions.transforms", "_InverseTransform"),
    "distributions.utils": ("common.distributions.shared", "_standard_normal _sum_rightmost"),
    "jit.annotations": (
        "typing common.api.machine.scripting",
        "Any BroadcastingList1 BroadcastingList2 BroadcastingList3 Dict List Optional Tuple Union",
    ),
    "nn.modules.batchnorm": ("common.nn.normalization", "_BatchNorm _NormBase"),
    "nn._reduction": ("common.nn.reduction_names", "get_enum legacy_get_enum legacy_get_string"),
    "nn.common_types": (
        "common.nn.writing_modules",
        "_ratio_2_t _ratio_3_t _ratio_any_t _size_1_t _size_2_opt_t _size_2_t _size_3_opt_t _size_3_t _size_any_opt_t "
        "_size_any_t",
    ),
    "nn.modules.conv": (
        "common.nn.convolution common.nn.writing_modules",
        "_ConvNd _ConvTransposeNd _pair _single _triple",
    ),
    "nn.modules.dropout": ("common.nn.feature_dropout", "_DropoutNd"),
    "nn.modules.instancenorm": ("common.nn.normalization", "_InstanceNorm"),
    "nn.modules.loss": ("common.nn.losses", "_Loss _WeightedLoss"),
    "nn.modules.pooling": (
        "common.nn.pooling",
        "_AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _AvgPoolNd _LPPoolNd _MaxPoolNd _MaxUnpoolNd",
    ),
    "nn.modules.rnn": ("common.nn.sequences", "apply_permutation"),
    "nn.modules.transformer": ("common.nn.transformer", "_get_activation_fn _get_clones"),
    "nn.modules.utils": (
        "common.nn.writing_modules",
        "_ntuple _pair _quadruple _single _triple consume_prefix_in_state_dict_if_present",
    ),
    "nn.parallel._functions": ("common.nn.parallel", "Broadcast Gather ReduceAddCoalesced Scatter _get_stream"),
    "nn.parallel.parallel_apply": ("common.nn.parallel", "get_a_var parallel_apply"),
    "nn.parallel.replicate": ("common.nn.parallel", "replicate"),
    "nn.parallel.scatter_gather": ("common.nn.parallel", "gather scatter scatter_kwargs"),
    "nn.utils.spectral_norm": ("common.nn.former_norms", "SpectralNorm"),
    "nn.utils.weight_norm": ("common.nn.former_norms", "WeightNorm"),
    "nn.utils.stateless": ("common.nn.functional_call", "functional_call"),
    "onnx.symbolic_helper": ("common.api.machine.exporting", "parse_args"),
    "optim.lbfgs": ("common.optim.line_search", "_cubic_interpolate _strong_wolfe"),
    "utils._foreach_utils": ("common.api.foreach", "_group_tensors_by_device_and_dtype"),
    "utils.collect_env": ("common.api.machine.build_text", "get_pretty_env_info"),
    "utils.data._utils.collate": ("common.data.collate", "np_str_obj_array_pattern"),
    "utils.dlpack": ("common.tensor.create", "from_dlpack to_dlpack"),
    "utils.flop_counter": ("common.api.machine.flop_counter", "FlopCounterMode"),
    "utils.hooks": ("common.tensor.hook_handles", "RemovableHandle"),
}


def _forward(own: str, target: str) -> Callable[[str], Any]:
    def module_getattr(name: str) -> Any:
        if name == "__all__":  # of `from ... import *`
            return list(importlib.import_module(target).__all__)
        if name.startswith("__"):
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        source, names = INNER.get(own.partition(".")[2], ("", ""))
        if name in names.split():
            homes = map(importlib.import_module, source.split())
            found = next(getattr(home, name) for home in homes if hasattr(home, name))
            return boundary.published(found) if isinstance(found, FunctionType) else found
        from common.core.absent_types import TYPES

        inner = own.partition(".")[2]
        if name in TYPES.get(inner, "").split() or absent.why_there(inner, name) is not None:
            return absent.refuse(own, name)
        return getattr(importlib.import_module(target), name)

    return module_getattr


def open_places(package: str) -> None:
    """Make the modules of a package, so that they can be imported, as attributes too where it has no others.

    Parameters
    ----------
    package : a package of an engine, such as "dynamic.optim".

    Examples
    --------
    >>> import dynamic as tw
    >>> from dynamic.nn.modules.linear import Linear
    >>> Linear is tw.nn.Linear
    True
    """
    engine, _, inner = package.partition(".")
    names, home = PLACES[inner]
    target = f"{engine}.{home}".rstrip(".")
    for name in names.split():
        if isinstance(there := vars(sys.modules[package]).get(name), ModuleType):
            sys.modules[f"{package}.{name}"] = there
            continue
        module = ModuleType(f"{package}.{name}", f"What PyTorch has there; here it is in `{target}`.")
        module.__getattr__ = _forward(module.__name__, target)  # type: ignore[method-assign]
        module.__path__ = []  # so that imports of modules below are told why there are none
        sys.modules[module.__name__] = module
        if f"{inner}.{name}".lstrip(".") in PLACES:
            open_places(module.__name__)
        there = vars(sys.modules[package]).setdefault(name, module)
        if there is not module:  # a function of that name, which the module's import may put the module in place of
            setattr(module, name, boundary.published(there))


class _OnDemand(ModuleType):
    """A module whose classes are loaded one by one, and all of them when a program looks them up in its `__dict__`."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        space = _names_of(self)
        for name in space["__all__"]:
            if name not in space:
                getattr(self, name)
        return space


_names_of: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__


def publish(
    module: str,
    objects: Mapping[str, Any] | None = None,
    late: Sequence[str] = (),
    classes: Late | None = None,
) -> Callable[[str], Any]:
    """Open a module of an engine to users: absent names say why, longer paths lead here, errors are the library's.

    Parameters
    ----------
    module : such as "dynamic.optim". A ``__getattr__`` of its own stays.
    objects : by name, which the module offers and lists in ``__all__``.
    late : modules below, each loaded when it is first asked for.
    classes : likewise. With one of them the others are published that its file has loaded, since they can be reached
        through it.

    Returns
    -------
    callable
        The module's ``__getattr__``; a module whose names come from `objects` assigns it, for type checkers.
    """
    space = vars(sys.modules[module])
    if objects is not None:
        space.update(objects)
        space["__all__"] = [*objects, *space.get("__all__", ())]
    if module.partition(".")[2] in PLACES:
        open_places(module)

    def module_getattr(name: str) -> Any:
        if name in late:
            return importlib.import_module(f"{module}.{name}")
        if classes is not None and name in classes:
            found = classes[name]
            space.update({other: boundary.published(x) for other, x in classes.loaded().items() if other not in space})
            return found
        return absent.refuse(module, name)

    boundary.close(module)
    space.setdefault("__dir__", lambda: sorted({*space, *space.get("__all__", ()), *late}))
    getattr_of_module: Callable[[str], Any] = space.setdefault("__getattr__", module_getattr)
    if classes is not None:
        sys.modules[module].__class__ = _OnDemand
    return getattr_of_module
