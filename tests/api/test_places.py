"""PyTorch's longer paths, and the small rooms that scripts ask for."""

import gzip
import importlib
import importlib.util
import time

import numpy as np
import pytest

import dynamic
import static
from common.api import written_first
from common.api.places import INNER, PLACES

PATHS = [(package, name, home) for package, (names, home) in PLACES.items() for name in names.split()]


@pytest.mark.parametrize("engine", [dynamic, static])
def test_every_place_is_a_module_that_offers_what_its_home_has(engine):
    root = engine.__name__
    for package, name, home in PATHS:
        module = importlib.import_module(".".join(x for x in (root, package, name) if x))
        own = importlib.import_module(f"{root}.{home}".rstrip("."))
        if not module.__name__.startswith(root):  # both engines have this one
            assert module is getattr(own, name)
            continue
        for wanted in own.__all__[:1]:
            assert getattr(module, wanted) is getattr(own, wanted), (package, name)
        with pytest.raises(AttributeError):
            module.no_such_name  # noqa: B018


@pytest.mark.parametrize("engine", [dynamic, static])
def test_names_of_one_place_are_there_and_nowhere_else(engine):
    for place, (_, names) in INNER.items():
        module = importlib.import_module(f"{engine.__name__}.{place}")
        for name in names.split():
            assert getattr(module, name) is getattr(importlib.import_module(f"{engine.__name__}.{place}"), name)
            assert name in ("from_dlpack", "Any", "gather", "scatter", "_tensor_str") or not hasattr(engine, name)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_modules_below_modules(engine):
    name = engine.__name__
    assert importlib.import_module(f"{name}.distributions.constraints") is engine.distributions.constraints
    assert importlib.import_module(f"{name}.cuda.amp.grad_scaler").GradScaler is engine.cuda.amp.GradScaler
    writer = importlib.import_module(f"{name}.utils.tensorboard.writer").SummaryWriter
    assert writer is importlib.import_module(f"{name}.utils.tensorboard").SummaryWriter
    told = importlib.import_module(f"{name}.utils.collect_env").get_pretty_env_info()
    assert all(word in told for word in ("numpy", "LLVM", "get_num_threads"))
    numbers = engine.nn.functional._Reduction
    assert numbers is importlib.import_module(f"{name}.nn._reduction")
    assert [numbers.get_enum(word) for word in ("none", "mean", "sum")] == [0, 1, 2]
    assert (numbers.legacy_get_string(False, None), numbers.legacy_get_enum(None, False)) == ("sum", 0)
    with pytest.raises(RuntimeError, match="not a valid value for reduction"):
        numbers.get_enum("most")
    init = importlib.import_module(f"{name}.nn.init")
    assert init._no_grad_uniform_(engine.empty(2), 3.0, 3.0).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="no GPU"):
        engine.nn.parallel.gather([engine.ones(2)], 0)
    result = engine.nn.Linear(1, 1).load_state_dict({}, strict=False)
    assert isinstance(result, importlib.import_module(f"{name}.nn.modules.module")._IncompatibleKeys)
    assert isinstance((2, 3), importlib.import_module(f"{name}.nn.common_types")._size_1_t.__args__[0] | tuple)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_small_places(engine):
    utils = importlib.import_module(f"{engine.__name__}.nn.modules.utils")
    assert [utils._single(3), utils._pair(3), utils._triple((1, 2, 3)), utils._quadruple([1, 2, 3, 4])] == [
        (3,), (3, 3), (1, 2, 3), (1, 2, 3, 4)
    ]  # fmt: skip
    assert utils._ntuple(5)("a") == ("a",)
    module = importlib.import_module(f"{engine.__name__}.nn.modules.module")
    assert module._addindent("(0): A(\n)\n", 2) == "(0): A(\n  )\n  "
    assert isinstance(2.5, importlib.import_module(f"{engine.__name__}.types").Number)
    handle = engine.nn.Linear(2, 2).register_forward_hook(lambda *_: None)
    assert isinstance(handle, importlib.import_module(f"{engine.__name__}.utils.hooks").RemovableHandle)
    call = importlib.import_module(f"{engine.__name__}.nn.utils.stateless").functional_call
    layer = engine.nn.Linear(2, 1, bias=False)
    assert call(layer, {"weight": engine.ones(1, 2)}, engine.tensor([[3.0, 4.0]])).tolist() == [[7.0]]
    importlib.import_module(f"{engine.__name__}.cuda.random").manual_seed(3)
    for name in ("comm", "nccl"):  # which modules import that synchronise batches of several GPUs
        with pytest.raises(AttributeError, match="there are no distributed programs"):
            importlib.import_module(f"{engine.__name__}.cuda.{name}").broadcast_coalesced  # noqa: B018
    with engine.backends.cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):
        assert engine.backends.cuda.math_sdp_enabled()
    engine.testing.assert_allclose(engine.tensor([1, 2]), [1.0, 2.0])
    with pytest.raises(AssertionError):
        engine.testing.assert_allclose(engine.tensor([1.0]), [1.1])


@pytest.mark.parametrize("engine", [dynamic, static])
def test_a_function_hides_the_module_of_its_name(engine):
    module = importlib.import_module(f"{engine.__name__}.autograd.gradcheck")
    assert vars(module)["gradcheck"] is engine.autograd.gradcheck
    x = engine.tensor([2.0], requires_grad=True)
    (slope,) = engine.autograd.grad(x * x, x, engine.ones(1), True, True, True)  # the last: only_inputs
    assert slope.tolist() == [4.0]
    assert callable(engine.autograd.gradcheck)
    assert callable(engine.nn.utils.weight_norm)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_switches_of_precision_and_determinism_are_accepted(engine):
    engine.use_deterministic_algorithms(True, warn_only=True)
    assert engine.are_deterministic_algorithms_enabled()
    assert engine.is_deterministic_algorithms_warn_only_enabled()
    engine.use_deterministic_algorithms(False)
    engine.set_float32_matmul_precision("high")
    assert engine.get_float32_matmul_precision() == "highest"
    engine.set_num_interop_threads(2)
    assert engine.get_num_interop_threads() == 1
    with pytest.raises(ValueError, match="precision must be one of"):
        engine.set_float32_matmul_precision("low")
    with pytest.raises(ValueError, match="positive int"):
        engine.set_num_interop_threads(0)
    assert engine.version.cuda is None
    assert engine.ones(2, 2).to(memory_format=engine.channels_last).shape == (2, 2)
    for form in (engine.preserve_format, engine.contiguous_format):
        copied = engine.function(lambda x, form=form: engine.clone(x, memory_format=form) * 2)
        assert copied(engine.ones(2)).tolist() == [2, 2]
    with pytest.raises(TypeError):
        engine.clone(engine.ones(2), device="cpu")


def doubled(rank, queue):
    queue.put((rank, dynamic.ones(2) * (rank + 1)))


def failing(rank):
    raise SystemExit(3)


def test_processes_are_pythons():
    processes = dynamic.multiprocessing
    assert processes.cpu_count() >= 1
    queue = processes.get_context("fork").SimpleQueue()
    processes.spawn(doubled, (queue,), nprocs=2, start_method="fork")
    found = dict(queue.get() for _ in range(2))
    assert {rank: x.tolist() for rank, x in found.items()} == {0: [1.0, 1.0], 1: [2.0, 2.0]}
    with pytest.raises(RuntimeError, match="process 0 terminated with exit code 3"):
        processes.spawn(failing, start_method="fork")
    processes.set_sharing_strategy(processes.get_sharing_strategy())
    with pytest.raises(ValueError, match="as copies"):
        processes.set_sharing_strategy("file_descriptor")


def test_tensors_are_compared_as_closely_as_their_dtype_allows():
    close, x = dynamic.testing.assert_close, dynamic.tensor([1.0, 2.0])
    close(x, x * (1 + 1e-6))
    close({"a": [x, 1]}, {"a": [x.clone(), 1]})
    for other, text in (
        (x + 1e-3, "Tensor-likes are not close"),
        (x[:1], "'shape' do not match"),
        (x.double(), "'dtype' do not match"),
        (x * float("nan"), "not close"),
    ):
        with pytest.raises(AssertionError, match=text):
            close(x, other)
    close(x, x.double(), check_dtype=False)
    with pytest.raises(AssertionError, match="mine"):
        close(x, x + 1, msg="mine")
    with pytest.raises(ValueError, match="both be specified"):
        close(x, x, rtol=0.1)
    with pytest.raises(AssertionError, match="length"):
        close([x], [x, x])
    made = dynamic.testing.make_tensor(3, 4, dtype=dynamic.int64, low=0, high=2, exclude_zero=True)
    assert set(np.unique(made.numpy())) == {1}
    assert dynamic.testing.make_tensor((2, 3), dtype=dynamic.float64, noncontiguous=True).stride() == (6, 2)


def test_a_timer_measures_seconds_per_run():
    timer = dynamic.utils.benchmark.Timer(
        "\n  time.sleep(0.001)", "\n    pass\n    pass", globals={"time": time}, label="sleep", description="a"
    )
    found = timer.timeit(3)
    assert 0.001 <= found.median < 0.1
    assert found.times == [found.mean]
    again = timer.blocked_autorange(min_run_time=0.01)
    assert again.iqr >= 0
    assert "sleep" in repr(again)
    assert "sleep" in str(dynamic.utils.benchmark.Compare([found, again]))


@pytest.mark.parametrize("engine", [dynamic, static])
def test_tensors_are_swapped_under_all_their_names(engine):
    a, b = engine.nn.Parameter([1.0]), engine.nn.Parameter([2.0, 3.0])
    module = engine.nn.Module()
    module.p = a
    b.grad = engine.tensor([4.0, 5.0])
    engine.utils.swap_tensors(a, b)
    assert module.p.tolist() == [2.0, 3.0]
    assert module.p.grad.tolist() == [4.0, 5.0]
    assert (b.tolist(), b.grad) == ([1.0], None)
    with pytest.raises(TypeError, match="two tensors of one class"):
        engine.utils.swap_tensors(a, engine.ones(1))


@pytest.mark.parametrize("engine", [dynamic, static])
def test_functions_that_write_to_their_argument(engine):
    for name in sorted(written_first.METHODS - {"detach_", "index_put_", "resize_as_"}):
        more = {"addmv_": (engine.ones(2, 2), engine.ones(2)), "fill_": (2.0,), "ldexp_": (engine.tensor([1, 2]),),
                "xlogy_": (engine.ones(2),), "clamp_": (0.3,), "clip_": (0.3,), "clamp_max_": (0.3,),
                "clamp_min_": (0.3,)}.get(name, ())  # fmt: skip
        x, y = engine.tensor([0.25, 0.5]), engine.tensor([0.25, 0.5])
        if name in ("acosh_", "arccosh_"):
            x, y = x + 1, y + 1
        assert getattr(engine, name)(x, *more) is x
        assert x.tolist() == getattr(y, name)(*more).tolist(), name
    for name in sorted(written_first.ACTIVATIONS):
        more = (0.1, 20.0) if name == "threshold_" else ()
        x = engine.tensor([-1.0, 0.5])
        wanted = getattr(engine.nn.functional, name[:-1])(x.clone(), *more)
        assert getattr(engine.nn.functional, name)(x, *more) is x
        assert x.tolist() == wanted.tolist(), name


@pytest.mark.parametrize("engine", [dynamic, static])
def test_marks_of_a_compiler_change_nothing(engine, tmp_path):
    compiler, seen = engine.compiler, []

    def shifted(x):
        seen.append(compiler.is_compiling())
        return x + 1

    assert [compiler.disable(shifted), compiler.disable(recursive=False)(shifted)] == [shifted, shifted]
    assert compiler.set_stance("default")(shifted) is shifted
    assert engine.function(shifted)(engine.ones(1)).tolist() == [2.0]
    shifted(engine.ones(1))
    assert seen == [engine is static, False]
    with pytest.raises(ValueError, match="without @function"), compiler.set_stance("force_eager"):
        pass
    with pytest.raises(TypeError, match="a function is needed, not int"):
        compiler.disable(3)
    x = engine.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    attention, attend = engine.nn.attention, engine.nn.functional.scaled_dot_product_attention
    with attention.sdpa_kernel([attention.SDPBackend.MATH, attention.SDPBackend.FLASH_ATTENTION]):
        assert attend(x, x, x).tolist() == attend(x, x, x).tolist()
    with pytest.raises(TypeError, match="backends must be SDPBackend"), attention.sdpa_kernel("math"):
        pass
    assert not engine.distributed.is_available()
    assert isinstance(engine.float64, engine.dtype)
    assert issubclass(engine.cuda.OutOfMemoryError, engine.OutOfMemoryError)
    assert not engine.onnx.is_in_onnx_export()
    path = tmp_path / "model.onnx"
    if engine is dynamic:
        with pytest.raises(ValueError, match="export_onnx"):
            engine.onnx.export(engine.tanh, x, path)
    else:
        assert engine.onnx.export(engine.tanh, x, path, input_names=["x"]).read_bytes()


@pytest.mark.parametrize("engine", [dynamic, static])
def test_a_buffer_is_shared_and_a_sampler_takes_its_part(engine):
    memory = bytearray(np.arange(4, dtype=np.int32).tobytes())
    x = engine.frombuffer(memory, dtype=engine.int32, count=2, offset=4)
    memory[4] = 7
    assert x.tolist() == [7, 2]
    assert engine.frombuffer(b"\x01\x02", dtype=engine.uint8).add_(1).tolist() == [2, 3]
    with pytest.raises(ValueError, match="smaller than requested"):
        engine.frombuffer(memory, dtype=engine.int32, count=9)
    made = [engine.utils.data.DistributedSampler(range(10), 3, rank, seed=5) for rank in range(3)]
    first = [list(one) for one in made]
    assert {len(part) for part in first} == {4}
    assert {i for part in first for i in part} == set(range(10))
    made[0].set_epoch(1)
    assert list(made[0]) != first[0]
    assert len(list(engine.utils.data.DistributedSampler(range(10), 3, 2, drop_last=True))) == 3
    with pytest.raises(ValueError, match="Invalid rank 3"):
        engine.utils.data.DistributedSampler(range(10), 3, 3)


def test_traces_go_to_a_folder(tmp_path):
    made = dynamic.profiler.tensorboard_trace_handler(str(tmp_path / "log"), "mine", use_gzip=True)
    activities = [dynamic.profiler.ProfilerActivity.CPU, dynamic.profiler.ProfilerActivity.CUDA]
    with dynamic.profiler.profile(activities, on_trace_ready=made, profile_memory=True):
        dynamic.ones(2) + 1
    (file,) = (tmp_path / "log").iterdir()
    assert file.name.startswith("mine.")
    assert b'"add"' in gzip.decompress(file.read_bytes())
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="no folder"):
        dynamic.profiler.tensorboard_trace_handler(str(tmp_path / "file" / "log"))


@pytest.mark.parametrize("engine", [dynamic, static])
def test_programs_that_can_do_without_a_group_of_processes_name_its_functions(engine):
    distributed = importlib.import_module(f"{engine.__name__}.distributed")
    wrapped = importlib.import_module(f"{engine.__name__}.nn.parallel").DistributedDataParallel
    model = engine.nn.Sequential(engine.nn.Linear(2, 3), engine.nn.BatchNorm1d(3))
    assert not isinstance(model, (engine.nn.DataParallel, wrapped))
    assert [isinstance(m, (engine.nn.BatchNorm1d, engine.nn.SyncBatchNorm)) for m in model] == [False, True]
    assert not isinstance(model[1], engine.nn.SyncBatchNorm)
    rank = distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
    assert rank == 0
    for refused in (
        lambda: distributed.init_process_group("gloo", rank=0, world_size=1), lambda: distributed.get_rank(),
        lambda: distributed.all_reduce(engine.ones(2)), lambda: wrapped(model), lambda: engine.nn.SyncBatchNorm(3),
        lambda: engine.nn.SyncBatchNorm.convert_sync_batchnorm(model),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"Default process group has not been initialized: .*GlobalBatch"):
            refused()
    x = engine.tensor([[1.0, 2.0]])
    assert engine.nn.parallel.data_parallel(model[0], x, None).tolist() == model[0](x).tolist()
    assert engine.nn.parallel.data_parallel(model[0], (x,), []).tolist() == model[0](x).tolist()


@pytest.mark.parametrize("engine", [dynamic, static])
def test_places_of_data(engine):
    data = engine.utils.data
    collate = importlib.import_module(f"{engine.__name__}.utils.data._utils.collate")
    assert collate.default_collate is data.default_collate
    assert data._utils.collate.default_convert is data.default_convert
    loader = data.DataLoader[int]([1, 2, 3], 2)
    assert [x.tolist() for x in loader] == [[1, 2], [3]]
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3


@pytest.mark.parametrize("engine", [dynamic, static])
def test_what_libraries_of_pytorch_import(engine):
    name = engine.__name__
    vmap = importlib.import_module(f"{name}._vmap_internals")._vmap
    assert vmap(lambda row: row.sum())(engine.ones(2, 3)).tolist() == [3, 3]
    importlib.import_module(f"{name}.optim.optimizer").ParamsT  # noqa: B018
    files = importlib.import_module(f"{name}.serialization")
    files.add_safe_globals([dict])
    with files.safe_globals([dict]):
        assert files.get_safe_globals() == []
    assert isinstance(engine.channels_last, engine.memory_format)
    assert isinstance(engine.ones(2).layout, engine.layout)
    assert issubclass(engine.jit.TracerWarning, Warning)
    assert (engine.ones(2) > 0).type(engine.Tensor).dtype == np.float32
    with pytest.warns(UserWarning, match="elementwise_mean"):
        assert engine.nn.MSELoss(reduction="elementwise_mean").reduction == "mean"


@pytest.mark.parametrize("engine", [dynamic, static])
def test_versions_are_compared_by_numbers(engine):
    version, kind = engine.__version__, importlib.import_module(f"{engine.__name__}.torch_version").TorchVersion
    assert version >= "2.4"
    assert version > (1, 10)
    assert not version < "2.9"
    assert version != "2.13.0"
    assert version == str(version)
    ascending = ["1.9", "1.10.0a0", "1.10.0rc1", "1.10", "1.10.0+cpu", "1.10.1", "2"]
    assert sorted(map(kind, reversed(ascending))) == ascending
    assert kind("1.10") == "1.10.0"
    assert kind("1.10") != 1


def _loss_along(engine, start):
    """The loss and gradient of a convex function after a step from `start`."""

    def loss(x, t, d):
        z = (x + t * d).detach().requires_grad_()
        f = (z**4).sum() + ((z - 1) ** 2).sum()
        return f.item(), engine.autograd.grad(f, z)[0]

    f, g = loss(start, 0.0, start * 0)
    return loss, f, g


@pytest.mark.parametrize("step", [1e-4, 0.3, 50.0])
@pytest.mark.parametrize("engine", [dynamic, static])
def test_line_searches_satisfy_both_conditions(engine, step):
    search = importlib.import_module(f"{engine.__name__}.optim.lbfgs")
    x = engine.tensor([2.0, -1.5, 0.5], dtype=engine.float64)
    loss, f, g = _loss_along(engine, x)
    found, gradient, size, count = search._strong_wolfe(loss, x, step, -g, f, g, -g.dot(g))
    assert found == loss(x, size, -g)[0]
    assert found <= f - 1e-4 * size * g.dot(g).item()
    assert abs(gradient.dot(g).item()) <= 0.9 * g.dot(g).item()
    assert 1 <= count <= 25
    assert search._cubic_interpolate(0.0, 1.0, -2.0, 2.0, 1.0, 2.0) == pytest.approx(1.0)
    assert search._cubic_interpolate(0.0, 1.0, -2.0, 2.0, 1.0, 2.0, bounds=(0.1, 0.5)) == 0.5
