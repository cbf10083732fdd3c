"""Names of PyTorch that are absent here, each with a reason or a substitute. One table for functions, tensors and
modules.

A name that a package of an engine does not have is looked up here before Python says that it does not exist. What
stands in `HERE` has another name in this project; what matches a line of `REASONS` has a reason; the first that
matches counts. Nothing else is claimed: a name that PyTorch does not have either gets Python's own answer.

>>> import dynamic as tw
>>> tw.qint8
Traceback (most recent call last):
...
common.core.errors.MissingAttributeError: module 'dynamic' has no 'qint8': there is no quantisation; compute in float32
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from common.core.errors import MissingAttributeError

_LINALG = "numpy.linalg and scipy.linalg have it, for x.numpy(), without derivatives; in a trace by pure_callback"
_SPECIAL = "scipy.special has it, for x.numpy(), without derivatives; in a trace by pure_callback"
_FUTURE = "not here yet"
_NO_GPU = "there is no GPU and no device but the CPU; leave it out"
_ONE_PROGRAM = (
    "there are no distributed programs of this kind; {tw}.parallel.GlobalBatch trains in several processes, and one "
    "uses the cores of a machine"
)
_OWN_FILES = "files are safetensors plus JSON and hold no code; {tw}.save and {tw}.load write and read them"

#: Names for which this project has another, in all spaces: `{tw}` is the engine.
HERE = {
    "from_file": "{tw}.from_numpy(numpy.memmap(path, dtype))", "to_dlpack": "{tw}.utils.dlpack.to_dlpack",
    "get_device": "leave it out: everything is on the CPU",
    "NLLLoss2d": "NLLLoss()", "Container": "Module", "dlpack": "{tw}.from_dlpack",
    "nuclear_norm": "numpy.linalg.norm(x.numpy(), 'nuc')",
    "frobenius_norm": "x.norm()", "name": "a Python variable", "native_dropout": "dropout",
    "native_norm": "norm",
    **{
        f"{pool}_with_indices": f"{pool}(..., return_indices=True)"
        for pool in [f"{kind}max_pool{n}d" for kind in ("", "adaptive_", "fractional_") for n in (1, 2, 3)]
    },
}  # fmt: skip

#: Reasons of names that mean this in some packages only: the packages, the reason, patterns of the names.
PLACED: tuple[tuple[str, str, str], ...] = (
    (
        "distributed",
        _ONE_PROGRAM,
        "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions GatherOptions "
        "ReduceOptions ReduceScatterOptions ScatterOptions Backend BackendConfig DebugLevel DeviceMesh "
        "DistBackendError DistError DistNetworkError DistStoreError GradBucket GroupMember GroupName P2POp "
        "QueueEmptyError Reducer Work algorithms autograd batch_isend_irecv breakpoint c10d_logger config constants "
        "default_pg_timeout distributed_c10d elastic gather gather_object get_backend get_backend_config "
        "get_debug_level get_default_backend_for_device get_global_rank get_group_rank get_node_local_rank "
        "get_pg_count get_process_group_ranks group init_device_mesh is_backend_available "
        "launch launcher logging_handlers monitored_barrier new_group new_subgroups new_subgroups_by_enumeration nn "
        "optim pipeline pipelining record_comm recv_object_list reduce reduce_op register_rendezvous_handler "
        "remote_device rendezvous rpc run scatter scatter_object_list send_object_list set_debug_level "
        "set_debug_level_from_env shrink_group split_group supports_complex tensor utils",
    ),
    (
        "distributed.tensor distributed.device_mesh",
        _ONE_PROGRAM,
        "DTensor DeviceMesh Partial Placement Replicate Shard distribute_* init_device_mesh parallel experimental",
    ),
    (
        "cuda xpu mps cpu accelerator",
        _NO_GPU,
        "AcceleratorError CudaError DeferredCudaCallError OutOfMemoryError ExternalStream Stream StreamContext "
        "GreenContext CUDAPluggableAllocator XPUPluggableAllocator CUDAGraph Graph XPUGraph caching_allocator_alloc "
        "caching_allocator_delete caching_allocator_disabled caching_allocator_enable can_device_access_peer "
        "change_current_allocator check_error clock_rate comm compile_shader current_accelerator "
        "current_allocated_memory current_blas_handle current_device current_device_idx current_device_index "
        "current_solver_handle current_stream default_generators device_count device_index device_memory_used "
        "device_of empty_host_cache get_allocator_backend get_arch_list get_capabilities get_device_capability "
        "get_device_name get_device_properties get_gencode_flags get_memory_info get_per_process_memory_fraction "
        "get_rng_state get_rng_state_all get_stream_from_external get_sync_debug_mode gds graph graphs "
        "host_memory_stats init is_available is_bf16_supported is_current_stream_capturing is_initialized "
        "is_tf32_supported jiterator list_gpu_processes load_metallib make_graphed_callables max_memory_reserved "
        "mem_get_info memory memory_allocated memory_cached memory_reserved memory_snapshot memory_stats "
        "memory_stats_as_nested_dict memory_summary memory_usage nccl nvtx power_draw profiler "
        "reset_accumulated_host_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated "
        "reset_max_memory_cached reset_peak_host_memory_stats reset_peak_memory_stats set_device set_device_idx "
        "set_device_index set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream "
        "set_sync_debug_mode sparse stream streams temperature tunable utilization",
    ),
    ("backends", "the CPU is the only backend; leave it out", "cusparselt kleidiai mha miopen nnpack quantized xeon"),
    (
        "serialization",
        _OWN_FILES,
        "SourceChangeWarning register_package check_module_version_greater_or_equal validate_cuda_device "
        "validate_hpu_device location_tag default_restore_location LoadEndianness get_crc32_options set_crc32_options "
        "get_default_load_endianness set_default_load_endianness get_default_mmap_options set_default_mmap_options "
        "get_unsafe_globals_in_checkpoint skip_data",
    ),
    (
        "jit",
        "there is no TorchScript and no FX; {tw}.function traces, static.compile compiles a module",
        "Attribute Error enable_onednn_fusion onednn_fusion_enabled export_opnames frontend interface isinstance "
        "mobile set_fusion_strategy strict_fusion",
    ),
    (
        "fx",
        "there is no TorchScript and no FX; {tw}.function traces, static.compile compiles a module",
        "symbolic_trace Tracer Graph GraphModule CodeGen Interpreter Transformer Node Proxy ProxyableClassMeta "
        "replace_pattern has_side_effect map_arg map_aggregate immutable_collections passes experimental proxy node "
        "graph graph_module interpreter operator_schemas subgraph_rewriter traceback tensor_type PH annotate",
    ),
    (
        "onnx",
        "what static compiles becomes an ONNX model; there are no exporters or symbols to set",
        "errors OnnxExporterError ONNXProgram ExportableModule InputObserver operators symbolic_helper "
        "symbolic_opset10 symbolic_opset9 utils verification",
    ),
    (
        "utils.data",
        "there are no data pipes; a Dataset or an IterableDataset goes through DataLoader",
        "DFIterDataPipe IterDataPipe MapDataPipe DataChunk datapipes graph graph_settings argument_validation "
        "functional_datapipe guaranteed_datapipes_determinism non_deterministic runtime_validation "
        "runtime_validation_disabled",
    ),
    (
        "utils.checkpoint",
        "checkpoint recomputes all ops of a block, and there is no policy by op",
        "CheckpointPolicy SelectiveCheckpointContext create_selective_checkpoint_contexts SAC_IGNORED_OPS",
    ),
    (
        "utils",
        "ops are written in Python; autograd.Function gives them derivatives, static compiles them",
        "cpp_extension",
    ),
    (
        "",
        "static compiles programs; {tw}.compile and {tw}.function are all there is to call",
        "_inductor _functorch _export _higher_order_ops _logging",
    ),
    (
        "",
        "there is no C++ below: public names of {tw} do what this package is imported for",
        "_C _utils _jit_internal _refs _prims _decomp _subclasses _guards _tensor _ops _VF",
    ),
)

#: Reasons, and patterns of the names that have them.
REASONS: tuple[tuple[str, str], ...] = (
    ("there are no complex numbers; keep real and imaginary parts as two tensors",
     "complex* cfloat cdouble chalf imag view_as_complex* view_as_real* polar *Complex* conj_physical* *fft* "
     "stft istft eig eigvals has_spectral"),
    ("there is no half precision; compute in float32",
     "half bfloat16 float16 *Half* BFloat16* *autocast* amp GradScaler float8_* float4_* fp16* *_fp16_* "
     "tf32_notes grad_dtype"),
    ("there are no unsigned integers but uint8; use a larger signed one",
     "uint16 uint32 uint64 uint[1-7] int[1-7] bits* bit"),
    (_NO_GPU,
     "cuda* cudnn* miopen_* mtia xpu ipu hip "
     "is_vulkan* emit_* Stream Event get_device_module "
     "record_stream AcceleratorError DeviceObjType StreamObjType DeviceType "
     "*vulkan* "
     "swizzle* to_mkldnn mkldnn_* *cudagraph*"),
    ("there is no quantisation; compute in float32",
     "quantiz* quantis* quantized* *quantize* q_* qint* quint* qscheme QInt* QUInt* per_channel* per_tensor* int_repr "
     "fake_quant* fused_moving_avg_obs* choose_qparams* fbgemm_* ao qat intrinsic quantizable"),
    ("there are no sparse tensors; tensors are dense",
     "sparse* *sparse* to_dense coalesce is_coalesced dense_dim indices *_indices *indices_copy values values_copy "
     "row_indices hspmm dsmm hsmm saddmm smm sspaddmm SparseAdam jagged *nested* to_padded_tensor"),
    (_ONE_PROGRAM,
     "futures fork wait is_distributed multiprocessing Future* RRef* *process_group* ProcessGroup* "
     "ZeroRedundancyOptimizer "
     "*Store all_gather* all_reduce* all_to_all* broadcast* reduce_scatter* barrier get_rank get_world_size "
     "isend irecv rpc fsdp tensor device_mesh checkpoint Await*"),
    ("there is no TorchScript and no FX; {tw}.function traces, static.compile compiles a module",
     "fx export compiler package CompilationUnit Script* *Type FunctionSchema Graph* ExecutionPlan ErrorReport "
     "parse_* import_ir_* merge_type* unify_type* Lite* AliasDb AnyType Argument* Code CallStack Concrete* FileCheck "
     "IODescriptor Block Use Value Node Gradient TracingState JITException StaticModule ThroughputBenchmark Benchmark* "
     "Deserialization* Serialization* DeepCopyMemo* library ops cpp classes functionalize "
     "debug_unwrap OperatorInfo Capsule Logger* *Logger Tag Dispatch* DisableTorchFunction* Exclude* "
     "CompleteArgument* Broadcasting* boolean_dispatch assert_int* common_types FatalError classproperty"),
    (_OWN_FILES, "PyTorchFile*"),
    ("sizes in a trace are numbers of their own kind; use them as they are", "sym_* Sym*"),
    ("nothing takes over what runs below the public functions; a class's __torch_function__ takes functions over, and "
     "overrides.TorchFunctionMode does", "TorchDispatchMode"),
    ("{tw}.compile gives a module that is called as before; keep the module itself for its attributes",
     "OptimizedModule"),
    ("there are no storages; tensors are views of numpy arrays, x.numpy() shows the memory",
     "*storage* *Storage resize_as_* resize resize_as const_data_ptr "
     "*_format dim_order"),
    ("there are no typed tensor classes; tensor(data, dtype=...)", "*Tensor"),
    ("not here yet; products and unfold do for small ones",
     "*mkldnn*conv* conv_tbc convolution *[Pp]ool* *upsampl* affine_grid_generator "
     "CrossMapLRN2d GRID_SAMPLE* native_channel_shuffle"),
    ("not here; nn.functional.scaled_dot_product_attention and nn.MultiheadAttention are", "attention"),
    ("not here yet; Dropout and dropout are",
     "*lpha_dropout_ *feature_dropout*"),
    ("not here yet; compute the weight in forward() from your own parameters",
     "norm_except_dim"),
    ("not here; UninitializedParameter is", "UninitializedBuffer call_super_init"),
    ("it is a layer that other names offer: RNN, LSTM, GRU and their cells",
     "rnn_* gru gru_cell lstm lstm_cell"),
    ("there are no options: linear_cross_entropy computes all logits at once", "LinearCrossEntropyOptions"),
    (f"not here yet; {_LINALG}",
     "*eigh* lstsq matrix_rank solve* symeig "
     "slice_inverse"),
    (f"not here yet; {_SPECIAL}",
     "i0* *bessel_* "
     "polygamma*"),
    ("it changes how PyTorch is run, which has no meaning here; leave it out",
     "*deterministic_debug_mode set_warn* is_warn* "
     "*anomaly_enabled is_anomaly_check* init_num_threads has_* "
     "USE_* PRIVATE_OPS *privateuse* backend_registration cpp_backtrace *_cpp_backtrace "
     "is_view_replay_enabled enforce_grad_layout_policy "
     "thread_safe_generator autocast* prepare_multiprocessing* cmake_prefix_path backcompat generate_methods* "
     "throughput_benchmark set_module dump_patches overrides *torch_function* get_file_path *override_stale* "
     "set_warn_on* region_activation* *_notes factory_kwargs torch_version profiler_* overrides "
     "reproducibility_notes weak"),
    ("not here yet",
     "hash_tensor masked_tensor as_masked_tensor is_masked_tensor MaskedTensor "
     "monitor set_submodule module_load grouped_mm scaled_*mm batch_norm_* "
     "embedding_renorm_ rearrange "
     "NestedIOFunction reinforce T_destination "
     "profiler BufferDict AVG SUM deterministic "
     "ExecutionTraceObserver itt supported_activities tensorboard_trace_handler swap_in_optimizer* "
     "RecordScope KinetoStepTracker Profiler* profiler_legacy profiler_util"),
)  # fmt: skip

#: Public attributes of `torch.Tensor` that tensors do not have.
TENSOR = """
bfloat16 ccol_indices cdouble cfloat chalf
coalesce col_indices const_data_ptr crow_indices dense_dim dequantize dim_order eig grad_dtype
half hash_tensor imag index indices int_repr is_coalesced is_distributed istft lstsq
module_load name q_per_channel_axis q_per_channel_scales
q_per_channel_zero_points q_scale q_zero_point qscheme record_stream reinforce resize resize_as
resize_as_sparse_ row_indices slice_inverse smm solve sparse_dim sparse_mask sparse_resize_
sparse_resize_and_clear_ sspaddmm stft storage_type symeig to_dense to_mkldnn to_padded_tensor to_sparse
to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr values
"""
#: Attributes that scripted modules have in PyTorch, and modules here do not.
OF_PROGRAMS = dict.fromkeys(
    ("code", "graph", "save"),
    "static.jit.trace(module, inputs) has it; an eager module has no program, but {tw}.save(module.state_dict(), path)",
)
#: Methods of `torch.nn.Module` that modules do not have; users' own attributes may have any other name.
MODULE = (
    "bfloat16", "compile", "half", "ipu", "mtia", "set_submodule", "xpu", *OF_PROGRAMS,
)  # fmt: skip
_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


@cache
def why(name: str) -> str | None:
    """The reason why a name of PyTorch is not here, or what to use instead; None for what is no name of PyTorch."""
    if name in HERE:
        plain = HERE[name].startswith(("always", "leave", "not here"))
        return HERE[name] if plain else f"use {HERE[name]}"
    for reason, patterns in REASONS:
        if any(fnmatchcase(name, pattern) for pattern in patterns.split()):
            return reason
    return None


@cache
def why_there(inner: str, name: str) -> str | None:
    """The reason why a name is not in a package of the engines, "" being their own, if that package gives it one."""
    for spaces, reason, patterns in PLACED:
        if inner in (spaces.split() or [""]) and any(fnmatchcase(name, pattern) for pattern in patterns.split()):
            return reason
    return None


def answer(space: str, name: str) -> str | None:
    """A package's answer about a name that it does not have; None if there is nothing to say."""
    root, _, inner = space.partition(".")
    engine = sys.modules.get(root)
    if engine is None:
        return None
    placed = why_there(inner, name)
    if placed is not None or name.startswith("_"):
        return None if placed is None else placed.format(tw=root)
    for other in ("", "nn.functional", "nn", "optim", "autograd", "func", "utils", "linalg", "special"):
        module = sys.modules.get(f"{root}.{other}".rstrip("."))
        found = f"{root}.{other}".rstrip(".")
        if space not in (found, f"{found}.{name}") and name in getattr(module, "__all__", ()):
            return f"here it is {found}.{name}"
    reason = why(name)
    method = engine.Tensor.__dict__.get(name) or getattr(engine.Tensor, name, None)
    if method is not None and not isinstance(method, Absent) and (reason is None or callable(method)):
        return f"it is {'a method' if callable(method) else 'an attribute'} of tensors: x.{name}"
    if reason is None and name.endswith("_"):
        pure = name[:-1]
        own = pure in getattr(sys.modules.get(space), "__all__", ())
        told = f"use {space}.{pure}" if own else answer(space, pure)
        return None if told is None else f"functions do not write to their arguments; {told}"
    return None if reason is None else reason.format(tw=root)


def refuse(space: str, name: str) -> Any:
    """Raise the error for a name that a module does not have; to be called by its ``__getattr__``.

    Returns
    -------
    type : for classes that programs name, and which refuse to be made.

    Raises
    ------
    AttributeError, ImportError : always; the second where it is imported by ``from``.
    """
    told = answer(space, name)
    if told is None:
        raise MissingAttributeError(f"module {space!r} has no attribute {name!r}")
    text = f"module {space!r} has no {name!r}: {told}"
    from common.core.absent_types import absent_type

    if (kind := absent_type(space, name, text)) is not None:
        return kind
    caller = sys._getframe(2)
    if caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == _IMPORT_FROM:
        raise ImportError(text, name=space)
    raise MissingAttributeError(text, name=name, obj=None)  # with no object, Python does not guess what was meant


def getter(space: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module."""

    def module_getattr(name: str) -> Any:
        return refuse(space, name)

    return module_getattr


class Absent:
    """An attribute that tensors, or modules, do not have: reading it raises AttributeError with the reason."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        raise MissingAttributeError(missing(kind.__name__, self.name), name=self.name, obj=None)


def missing(kind: str, name: str) -> str:
    """The text of an error about an attribute."""
    reason = OF_PROGRAMS.get(name) or why(name) or _FUTURE
    return f"{kind!r} object has no attribute {name!r}: {reason.format(tw='tw')}"


def install(cls: type) -> None:
    """Let tensors say why they do not have attributes of PyTorch's; `dir` does not show these."""
    for name in TENSOR.split():
        if not hasattr(cls, name):
            setattr(cls, name, Absent(name))

    cls.__dir__ = _dir  # type: ignore[method-assign, assignment]


def _dir(self: Any) -> list[str]:
    kind = type(self)
    return [name for name in object.__dir__(self) if type(getattr(kind, name, None)) is not Absent]
