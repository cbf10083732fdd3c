"""What libraries written for PyTorch import, ask and subclass."""

import importlib
import threading

import numpy as np
import pytest

import dynamic
import static


@pytest.fixture(params=[dynamic, static], ids=["dynamic", "static"])
def engine(request):
    return request.param


def part(engine, path):
    return importlib.import_module(f"{engine.__name__}.{path}")


def test_a_subclass_of_tensor_has_no_other_instances(engine):
    class Mask(engine.Tensor):
        pass

    assert not isinstance(engine.ones(2), Mask)
    assert isinstance(engine.nn.Parameter(engine.ones(2)), engine.Tensor)


def test_optimizers_mix_with_abstract_classes(engine):
    import abc

    class Base(abc.ABC, engine.optim.Optimizer):
        pass

    class Mixed(engine.optim.SGD, Base):
        pass

    weight = engine.nn.Parameter(engine.ones(1))
    optimizer = Mixed([weight], lr=0.5)
    weight.grad = engine.ones(1)
    optimizer.step()
    assert weight.tolist() == [0.5]


def test_layouts_are_compared_and_tensors_are_dense(engine):
    x = engine.ones(2)
    assert x.layout == engine.strided != engine.sparse_csr
    assert engine.zeros(2, layout=engine.strided).tolist() == [0.0, 0.0]
    for make in (lambda **how: engine.zeros(2, **how), lambda **how: x.new_full((2,), 1.0, **how)):
        with pytest.raises(ValueError, match=r"layout torch\.sparse_coo: there are no sparse tensors"):
            make(layout=engine.sparse_coo)
        with pytest.raises(ValueError, match=r"argument 'layout' must be torch\.layout, not int"):
            make(layout=3)


@pytest.mark.parametrize(
    ("name", "bits", "largest", "eps", "tiny"),
    [("float16", 16, 65504.0, 2.0**-10, 2.0**-14), ("bfloat16", 16, 3.3895313892515355e38, 2.0**-7, 2.0**-126),
     ("float8_e4m3fn", 8, 448.0, 0.125, 2.0**-6), ("float8_e5m2", 8, 57344.0, 0.25, 2.0**-14)],
)  # fmt: skip
def test_limits_of_absent_dtypes_are_known(engine, name, bits, largest, eps, tiny):
    limits = engine.finfo(getattr(engine, name))
    assert (limits.bits, limits.max, limits.min, limits.eps, limits.tiny) == (bits, largest, -largest, eps, tiny)
    with pytest.raises(TypeError, match="no half precision"):
        engine.ones(1, dtype=getattr(engine, name))


def test_futures(engine):
    first, second = engine.futures.Future(), engine.futures.Future(devices=["cpu"])
    both = engine.futures.collect_all([first, second])
    later = first.then(lambda future: future.wait() + 1)
    wrong = first.then(lambda future: future.wait().missing)
    with pytest.raises(RuntimeError, match="not completed"):
        first.value()
    threading.Timer(0.01, first.set_result, [1]).start()
    assert (later.wait(), first.done(), both.done()) == (2, True, False)
    second.set_result(5)
    assert engine.futures.wait_all(both.wait()) == [1, 5]
    assert engine.futures.collect_all([]).value() == []
    with pytest.raises(AttributeError, match="missing"):
        wrong.wait()
    with pytest.raises(RuntimeError, match="completed already"):
        first.set_result(2)
    assert isinstance(first, engine.Future)


def test_classes_of_what_is_not_there_are_named_and_not_made(engine):
    for space, name in (("cuda", "Stream"), ("cuda", "FloatTensor"), ("distributed", "ProcessGroup"),
                        ("distributed.optim", "ZeroRedundancyOptimizer")):  # fmt: skip
        kind = getattr(part(engine, space), name)
        assert not isinstance(engine.ones(1), kind | None)
        with pytest.raises(Exception, match=r"there is no GPU|no distributed programs"):
            kind()
    assert not part(engine, "distributed.rpc").is_available()
    with pytest.raises(ValueError, match="no distributed programs"):
        part(engine, "distributed.nn").all_reduce(engine.ones(1))


def test_marks_of_quantisation_change_nothing(engine):
    stubs = part(engine, "ao.quantization")
    x = engine.ones(2)
    assert engine.nn.Sequential(stubs.QuantStub(), stubs.DeQuantStub())(x) is x
    with pytest.raises(ValueError, match="no quantisation"):
        stubs.QuantStub(qconfig="int8")


def test_trees_of_classes_that_tell_lists(engine):
    trees = part(engine, "utils._pytree")

    class Output(dict):
        pass

    trees.register_pytree_node(Output, trees._dict_flatten, lambda values, keys: Output(zip(keys, values, strict=True)))
    leaves, spec = trees.tree_flatten(Output(a=1, b=[2, 3]))
    made = trees.tree_unflatten([x * 2 for x in leaves], spec)
    assert (leaves, made, type(made)) == ([1, 2, 3], {"a": 2, "b": [4, 6]}, Output)
    assert spec == trees.tree_flatten(Output(a=0, b=[0, 0]))[1] != trees.tree_flatten(Output(c=0, b=[0, 0]))[1]
    assert trees._dict_unflatten(*trees._dict_flatten({"x": 1})) == {"x": 1}
    assert trees._dict_flatten_with_keys({"x": 1}) == ([(trees.MappingKey("x"), 1)], ["x"])
    scale = engine.function(lambda out: Output(a=out["a"] * 2))
    assert scale(Output(a=engine.ones(1)))["a"].tolist() == [2.0]


def test_small_parts(engine):
    below = part(engine, "_C")
    assert (below._log_api_usage_once("a.b"), below._get_tracing_state()) == (None, None)
    keys = below.DispatchKeySet(below.DispatchKey.CPU) | below.DispatchKeySet(below.DispatchKey.CUDA)
    with below._ExcludeDispatchKeyGuard(keys), below.DisableTorchFunctionSubclass():
        assert below._disabled_torch_function_impl(engine.add, (), (engine.ones(1), 2.0)).tolist() == [3.0]
    assert engine.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    groups = part(engine, "utils._foreach_utils")._group_tensors_by_device_and_dtype
    a, b, c = engine.ones(1), engine.ones(1, dtype=engine.float64), engine.ones(2)
    found = groups([[a, b, c], [1, 2, 3]], with_indices=True)
    assert found[a.device, a.dtype] == ([[a, c], [1, 3]], [0, 2])
    assert part(engine, "hub")._get_torch_home() in engine.hub.get_dir()
    printing = part(engine, "_tensor_str")
    assert printing._tensor_str(engine.tensor([[1, 2], [3, 4]]), 2) == "[[1, 2],\n   [3, 4]]"
    assert printing._tensor_str(engine.ones(0), 0) == "[]"
    assert printing.PRINT_OPTS.threshold == 1000
    draws = engine._sample_dirichlet(engine.ones(5, 3))
    np.testing.assert_allclose(draws.sum(-1).numpy(), np.ones(5), rtol=1e-6)
    assert part(engine, "_dynamo.utils").is_compile_supported("cpu")
    loader = engine.utils.data.DataLoader([1, 2])
    assert isinstance(iter(loader), part(engine, "utils.data.dataloader")._BaseDataLoaderIter)
    assert part(engine, "onnx.symbolic_helper").parse_args("v")(len) is len
    assert engine.onnx.register_custom_op_symbolic("tests::f", len, 11) is None
    with part(engine, "_dynamo._trace_wrapped_higher_order_op").TransformGetItemToIndex():
        pass


def test_divergences_of_a_librarys_own_families(engine):
    class Family:
        pass

    class Point(Family, engine.distributions.Normal):
        pass

    @engine.distributions.register_kl(Point, Family)
    def apart(p, q):
        return "apart"

    assert engine.distributions.kl_divergence(Point(0.0, 1.0), Point(1.0, 1.0)) == "apart"
    with pytest.raises(ValueError, match="to be a Distribution subclass"):
        engine.distributions.register_kl(3, Family)


def test_classes_that_are_absent_are_named_and_not_made(engine):
    for place, name, told in [
        ("fx", "GraphModule", "no TorchScript and no FX"),
        ("utils._python_dispatch", "TorchDispatchMode", "takes functions over"),
        ("distributed.tensor", "DTensor", "no distributed programs"),
        ("_dynamo.eval_frame", "OptimizedModule", "keep the module itself"),
        ("autograd.profiler", "emit_nvtx", "there is no GPU"),
    ]:
        kind = getattr(part(engine, place), name)
        assert kind is getattr(part(engine, place), name)
        assert not isinstance(engine.ones(1), kind)
        below = type("Below", (kind,), {"__init__": lambda self: None})
        for made in (kind, below):
            with pytest.raises(AttributeError, match=told):
                made()
    assert issubclass(engine.ScriptModule, engine.nn.Module)


def test_no_tensor_takes_functions_over(engine):
    overrides = part(engine, "overrides")
    assert not overrides.has_torch_function((engine.ones(1),))
    with pytest.raises(TypeError, match="no implementation found for 'max'"):
        overrides.handle_torch_function(max, (), 1, 2)
    assert overrides.is_tensor_like(engine.ones(1))
    assert not overrides.is_tensor_like(1.0)


def test_trees_level_by_level(engine):
    """Lightning takes batches of loaders apart itself, and puts them together."""
    import collections

    trees = part(engine, "utils._pytree")
    Pair = collections.namedtuple("Pair", "a b")

    class Own:
        def __init__(self, parts, label):
            self.parts, self.label = parts, label

    trees.register_pytree_node(Own, lambda own: (own.parts, [own.label]), lambda parts, told: Own(parts, told[0]))

    def apart(tree):
        kind = trees._get_node_type(tree)
        if kind not in trees.SUPPORTED_NODES:
            return [tree], trees.LeafSpec()
        children, context = trees.SUPPORTED_NODES[kind].flatten_fn(tree)
        pairs = [apart(child) for child in children]
        return [x for leaves, _ in pairs for x in leaves], trees.TreeSpec(kind, context, [spec for _, spec in pairs])

    counts = collections.defaultdict(list, z=[3])
    for tree in ({"a": (1, [2]), "b": 3}, Pair(1, (2, 3)), collections.OrderedDict(x=1), counts, [], 5, (1, {})):
        leaves, spec = apart(tree)
        assert spec == trees.tree_structure(tree)
        assert hash(spec) == hash(trees.tree_structure(tree))
        again = trees.tree_unflatten(leaves, spec)
        assert again == tree
        assert type(again) is type(tree)
        assert trees.TreeSpec(spec.type, spec.context, spec.children_specs) == spec
    leaves, spec = apart([Own([1, 2], "first")])
    (made,) = trees.tree_unflatten([x + 1 for x in leaves], spec)
    assert (made.parts, made.label) == ([2, 3], "first")
    assert spec.children_specs[0].context == ["first"]
    assert spec == trees.tree_structure([made])
    node = trees.SUPPORTED_NODES[dict]
    assert node.unflatten_fn([1, 2], ["a", "b"]) == {"a": 1, "b": 2}
    assert int not in trees.SUPPORTED_NODES
    assert isinstance(trees.tree_structure(1), trees.LeafSpec)


def test_the_arguments_of_to(engine):
    parsed = part(engine, "_C")._nn._parse_to
    cpu = engine.device("cpu")
    assert parsed("cpu", engine.float64) == (cpu, engine.float64, False, None)
    assert parsed(engine.float64)[:2] == (None, engine.float64)
    assert parsed(engine.ones(1))[:2] == (cpu, engine.float32)
    assert parsed(device="cpu", non_blocking=True) == (cpu, None, True, None)
    with pytest.raises(RuntimeError, match="no GPU"):
        parsed("cuda")


def test_bytes_of_files_and_counters_of_operations(engine, tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(10)))
    storage = engine.UntypedStorage.from_file(str(path), False, 8).untyped()
    assert storage[2:4].tolist() == [2, 3]
    assert len(storage) == storage.nbytes() == 8
    with pytest.raises(ValueError, match="has 10 bytes, not 11"):
        engine.UntypedStorage.from_file(path, False, 11)
    with pytest.raises(ValueError, match="there are no storages"):
        engine.UntypedStorage(3)
    counter = part(engine, "utils.flop_counter").FlopCounterMode(display=False)
    assert counter.get_total_flops() == 0
    with pytest.raises(ValueError, match="operations are not counted"), counter:
        pass


def test_the_generators_of_no_devices(engine):
    for place in (engine.cuda, part(engine, "xpu")):
        place.set_rng_state_all(place.get_rng_state_all())
        with pytest.raises(RuntimeError, match="there are states of 1 devices"):
            place.set_rng_state_all([engine.get_rng_state()])


def test_datasets_are_generic(engine):
    from typing import TypeVar

    data, T = part(engine, "utils.data"), TypeVar("T")
    for kind in (data.Subset, data.ConcatDataset, data.StackDataset, data.DataLoader):

        class Below(kind[T]):
            pass

        assert issubclass(Below, kind)


def test_attributes_that_libraries_delete_set_and_compare(engine):
    module = engine.nn.Module()
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        del module.absent
    module._computed = None
    assert not hasattr(module, "absent")
    module.below = module.again = engine.nn.Linear(1, 1)
    assert [name for name, _ in module._named_members(lambda m: m._parameters.items())] == [
        "below.weight",
        "below.bias",
    ]
    weight = engine.nn.Parameter(engine.ones(1))
    assert weight._cdata == weight._cdata != engine.ones(1)._cdata


def test_a_slice_of_no_modules_is_an_empty_sequence(engine):
    none = engine.nn.Sequential(engine.nn.ReLU())[:0]
    assert len(none) == 0
    assert none(engine.ones(1)).tolist() == [1.0]


def test_the_distributions_that_halves_are_of(engine):
    d, scale = part(engine, "distributions"), engine.tensor([2.0])
    value = engine.tensor([0.5])
    for half, base in ((d.HalfCauchy(scale), d.Cauchy), (d.HalfNormal(scale), d.Normal)):
        assert type(half.base_dist) is base
        np.testing.assert_allclose(
            half.log_prob(value).numpy(), half.base_dist.log_prob(value).numpy() + np.log(2), rtol=1e-6
        )
