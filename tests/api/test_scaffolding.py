"""The words of a training script around its computation: devices, types, precision, tracing; in both engines."""

import importlib
import inspect
import re
import warnings

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, DeviceError, DTypeError, GradientError
from common.version import __version__
from tests.helpers.proofs import each

ENGINES = [dynamic, static]
engines = pytest.mark.parametrize("tw", ENGINES, ids=lambda e: e.__name__)
CREATED = [
    ("zeros", (2, 3)), ("ones", (2, 3)), ("empty", (2, 3)), ("rand", (2,)), ("randn", (2,)), ("full", ((2,), 1.5)),
    ("arange", (3,)), ("eye", (2,)), ("linspace", (0, 1, 3)), ("randperm", (4,)), ("randint", (3, (2,))),
    ("tensor", ([1.0, 2.0],)), ("as_tensor", ([1, 2],)), ("asarray", ([1, 2],)), ("scalar_tensor", (2,)),
    ("zeros_like", (np.ones(2),)), ("ones_like", (np.ones(2),)), ("rand_like", (np.ones(2),)),
    ("randn_like", (np.ones(2),)), ("full_like", (np.ones(2), 3)), ("empty_like", (np.ones(2),)),
    ("tril_indices", (2, 2)), ("empty_strided", ((2, 3), (1, 2))), ("empty_permuted", ((2, 3), (1, 0))),
]  # fmt: skip


@engines
@pytest.mark.parametrize(("name", "args"), CREATED)
def test_whatever_makes_tensors_takes_a_device(tw, name, args):
    make = getattr(tw, name)
    for device in ("cpu", tw.device("cpu"), None, tw.device("cpu:0")):
        assert make(*args, device=device, pin_memory=False).device == tw.device("cpu")
    for device in ("cuda", "cuda:1", tw.device("mps"), 0):
        with pytest.raises(DeviceError, match=rf"^{name}\(\): device '\w+(:\d)?' is not available: there is no GPU"):
            make(*args, device=device)
    with pytest.raises(ArgumentError, match="Expected one of cpu, cuda"):
        make(*args, device="gpu")


@engines
def test_devices(tw):
    assert repr(tw.device("cuda", 1)) == "device(type='cuda', index=1)"
    assert str(tw.device("cuda:1")) == "cuda:1"
    assert len({tw.device("cpu"), tw.device(tw.device("cpu")), tw.device("cpu", 0)}) == 2
    for wrong in ("gpu", "cpu:x", None, 1.5):
        with pytest.raises(ArgumentError):
            tw.device(wrong)
    with tw.device("cpu"):
        assert not tw.ones(1).is_cuda
    with pytest.raises(DeviceError), tw.device("cuda"):
        pass
    tw.set_default_device("cpu")
    assert tw.get_default_device() == tw.device("cpu") == tw.Generator("cpu").key.device


@engines
def test_the_ways_of_to(tw):
    x = tw.ones(2, 3)
    device = tw.device("cuda" if tw.cuda.is_available() else "cpu")
    assert x.to(device) is x.to("cpu", non_blocking=True) is x.cpu() is x.to(tw.float32) is x.to(device=device) is x
    assert x.to(x.double()).dtype == x.to(device, tw.float64).dtype == x.to("cpu", dtype=tw.float64).dtype == np.float64
    assert x.to(tw.float32, copy=True) is not x
    for call in (lambda: x.to("cuda"), lambda: x.to(0), lambda: x.cuda(), lambda: x.type("torch.cuda.FloatTensor")):
        with pytest.raises(DeviceError, match="no GPU and no device but the CPU"):
            call()
    with pytest.raises(ArgumentError):
        x.to(1.5, 2.5, 3.5)
    layer = tw.nn.Linear(2, 2)
    assert layer.to(device).cpu().to("cpu", tw.float64) is layer
    assert layer.weight.dtype == np.float64
    assert layer.type("torch.FloatTensor").weight.dtype == np.float32
    assert layer.weight.device.type == "cpu"
    with pytest.raises(DeviceError):
        layer.cuda()


@engines
def test_sizes_of_arguments_are_sizes_for_the_classes_of_types(tw):
    def made(x, n):
        rows, columns = x.size(0), x.size(1)
        return tw.FloatTensor(rows) + 1, tw.LongTensor(n), x.new(columns).fill_(2), tw.DoubleTensor(rows, columns)

    for sizes in ((3, 4), (5, 4), (2, 7)):
        x = tw.ones(sizes)
        for found, expected in zip(tw.function(made)(x, 6), made(x, 6), strict=True):
            assert (found.tolist(), found.dtype) == (expected.tolist(), expected.dtype)
        assert [y.ndim for y in made(x, 6)] == [1, 1, 1, 2]


@engines
def test_types_and_memory(tw):
    x = tw.ones(2, 3)
    for name, dtype in {"int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "long": "int64"}.items():
        assert getattr(x, name)().dtype == dtype
    assert x.type() == "torch.FloatTensor"
    assert x.type(tw.LongTensor).type() == "torch.LongTensor"
    assert isinstance(x, tw.FloatTensor)
    assert not isinstance(x, tw.DoubleTensor)
    assert tw.FloatTensor([[1, 2]]).tolist() == [[1.0, 2.0]]
    assert tw.LongTensor(np.array([1.7])).tolist() == [1]
    assert tw.LongTensor(2, 3).shape == tw.FloatTensor(tw.Size([2, 3])).shape == (2, 3)
    assert (x.stride(), x.t().stride(), x.stride(0)) == ((3, 1), (1, 3), 3)
    assert (x.is_contiguous(), x.t().is_contiguous(), x.element_size(), x.nelement()) == (True, False, 4, 6)
    assert x[1:].storage_offset() == 3
    assert x[1:].data_ptr() - x.data_ptr() == 12
    assert [y.dtype.name for y in (x.new_zeros(2), x.new_ones((2,)), x.new_full((2,), 3), x.long().new_tensor([1.5]),
                                   x.double().new_empty(1), x.new([1]))] == [
        "float32", "float32", "float32", "int64", "float64", "float32"]  # fmt: skip
    assert (tw.finfo(tw.float32).max, tw.iinfo(tw.int8).min) == (float(np.finfo(np.float32).max), -128)
    assert tw.promote_types(tw.int64, tw.float32) == tw.result_type(x, 2.5) == np.float32
    assert tw.is_tensor(x)
    assert tw.is_floating_point(x)
    assert f"{x.sum():.2f} {x.sum()}" == "6.00 6.0"
    with pytest.raises(DTypeError, match="only floating-point types"):
        tw.set_default_dtype(tw.int64)


SIZED = {
    "view": lambda tw, x, size: x.view(-1).view(size),
    "reshape": lambda tw, x, size: tw.reshape(x.reshape(-1), size),
    "expand": lambda tw, x, size: x[:1].expand(size),
    "zeros": lambda tw, x, size: tw.zeros(size) + tw.full(size, 2.0) + x.new_ones(size) + tw.empty(size).fill_(0),
    "layer_norm": lambda tw, x, size: tw.nn.functional.layer_norm(x, size),
    "sum": lambda tw, x, size: x.sum(size[:0] + (0, 1)) / size.numel(),
    "repeat": lambda tw, x, size: x[:1, :1].repeat(size),
    "draws": lambda tw, x, size: tw.rand(size) * 0 + tw.randint(0, 5, size) * 0,
}


@engines
@each("use", SIZED)
def test_sizes_are_taken_and_given(tw, use):
    x = tw.arange(6.0).reshape(2, 3)
    size = x.shape
    assert (size, size.numel(), size[1:].numel(), size + (1,)) == ((2, 3), 6, 3, (2, 3, 1))
    assert (repr(2 * (size[:1] + (4,))), repr((1,) + size)) == ("torch.Size([2, 4, 2, 4])", "torch.Size([1, 2, 3])")
    assert type(x.size()) is type((x * 2).shape) is tw.Size
    assert str(size) == "torch.Size([2, 3])"
    assert type(size) is type(size[:1]) is type(size * 2) is tw.Size
    eager = SIZED[use](tw, x, size)
    assert eager.tolist() == SIZED[use](tw, x, tw.Size((2, 3))).tolist()
    compiled = tw.function(lambda x: SIZED[use](tw, x, x.shape) * (x.shape[1:].numel() - 2))
    assert eager.tolist() == compiled(x).tolist()
    y, found, inner = tw.function(lambda x, size: (x.reshape(size), x.shape, (size, x)))(x, size)
    assert (y.tolist(), found, inner[0]) == (x.tolist(), (2, 3), (2, 3))
    assert type(found) is tw.Size


@engines
@each("value", [3, "f", 2.5])
def test_what_is_to_be_called_is_refused_at_once_if_it_cannot_be(tw, value):
    for make in (tw.function, tw.compile, tw.grad, tw.value_and_grad, tw.vmap, tw.func.grad_and_value, tw.func.jacrev,
                 tw.func.jacfwd, tw.func.hessian, tw.func.vjp, tw.func.linearize):  # fmt: skip
        with pytest.raises(ArgumentError, match=rf"must be (callable|Function), not {type(value).__name__}"):
            make(value)


@engines
def test_shapes_change_in_place(tw):
    x = tw.arange(6.0).reshape(2, 3).clone()
    y = x.detach()
    assert y.t_() is y
    y.add_(1)
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert y.unsqueeze_(0).transpose_(0, 1).squeeze_().shape == (3, 2)
    assert tw.arange(6).as_strided_((2, 2), (1, 3), 1).tolist() == [[1, 4], [2, 5]]
    w = tw.ones(3, requires_grad=True)
    z = (w * w).unsqueeze_(0)
    z.sum().backward()
    assert (z.shape, w.grad.tolist()) == ((1, 3), [2.0] * 3)
    with pytest.raises(GradientError, match="leaf Variable"):
        w.unsqueeze_(0)
    assert tw.arange(4).resize_(2, 3).tolist() == [[0, 1, 2], [3, 0, 0]]
    assert tw.arange(4).resize_(2).tolist() == [0, 1]
    with pytest.raises(GradientError):
        w.resize_(2)


@engines
def test_types_in_a_trace(tw):
    def f(x):
        y = x.new_zeros(x.shape[0], device=x.device).to(x.device, x.dtype) + x.int().to(tw.float32)
        return y.unsqueeze(0).contiguous(), y.stride()[0], y.nelement() * x.element_size()

    x = np.arange(3, dtype=np.float32)
    assert [np.asarray(v).tolist() for v in tw.function(f)(x)] == [[[0, 1, 2]], 1, 12]


@engines
def test_machines_answer(tw):
    for space in (tw.cuda, tw.mps, tw.xpu, tw.accelerator):
        assert space.is_available() is False
        assert space.device_count() == 0
        with pytest.raises(DeviceError, match="is_available"):
            space.synchronize()
    tw.cuda.manual_seed_all(3)
    assert tw.accelerator.current_accelerator() is None
    cudnn = importlib.import_module(f"{tw.__name__}.backends.cudnn")
    cudnn.benchmark = True
    assert tw.backends.cudnn is cudnn
    assert not tw.backends.mps.is_available()
    with pytest.raises(AttributeError):
        tw.cuda.nothing_of_that_name  # noqa: B018


@engines
def test_half_precision_is_told_and_left_out(tw):
    with pytest.warns(UserWarning, match="no half precision"), tw.amp.autocast("cuda"):
        assert (tw.ones(2).dtype, tw.is_autocast_enabled()) == (np.float32, False)
    assert not tw.is_autocast_available("cpu")
    scaler = tw.cuda.amp.GradScaler()
    w = tw.nn.Parameter(np.ones(2, np.float32))
    optimizer = tw.optim.SGD([w], lr=0.5)
    with warnings.catch_warnings(), tw.amp.autocast(device_type="cpu", enabled=False):
        warnings.simplefilter("error")
        scaler.scale((w * w).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.0, 0.0]


def branching(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


@engines
def test_scripts_and_traces_are_functions(tw):
    x = tw.ones(2)
    assert tw.jit.script(branching)(x).tolist() == [2, 2]
    assert tw.jit.script(branching)(-x).tolist() == [-2, -2]
    assert tw.jit.trace(lambda x: x + 1, (x,))(x * 2).tolist() == [3, 3]
    layer = tw.nn.Linear(2, 1)
    fast = tw.compile(layer, mode="reduce-overhead")
    assert isinstance(fast, tw.nn.Linear)
    assert fast(x).tolist() == layer(x).tolist()
    assert tw.jit.optimize_for_inference(tw.jit.freeze(fast)) is fast
    assert tw.jit.annotate(int, 3) == 3
    assert tw.compile(mode="default")(lambda x: x + 1)(x).tolist() == [2, 2]
    v = tw.autograd.Variable(x, requires_grad=True)
    assert v.requires_grad
    assert not x.requires_grad
    assert isinstance(x, tw.autograd.Variable)


INPLACE = [("relu", ()), ("relu6", ()), ("elu", (0.5,)), ("selu", ()), ("celu", (0.7,)), ("leaky_relu", (0.2,)),
           ("silu", ()), ("mish", ()), ("hardtanh", (-0.5, 0.5)), ("hardswish", ()), ("hardsigmoid", ()),
           ("threshold", (0.1, 0.3))]  # fmt: skip
CLASSES = {"relu": "ReLU", "relu6": "ReLU6", "elu": "ELU", "selu": "SELU", "celu": "CELU", "leaky_relu": "LeakyReLU",
           "silu": "SiLU", "mish": "Mish"}  # fmt: skip


@engines
@pytest.mark.parametrize(("name", "args"), INPLACE)
def test_activations_in_place(tw, name, args):
    """The same value and gradient as without, and the input is overwritten."""
    function = getattr(tw.nn.functional, name)
    kind = CLASSES.get(name, name.capitalize())
    module = getattr(tw.nn, kind)(*args, inplace=True)
    assert "inplace=True" in repr(module)
    for call in (lambda z: function(z, *args, inplace=True), module):

        def both(x, call=call):
            z = x * 1
            return call(z), z

        for run in (both, tw.function(both)):
            x = tw.tensor([-2.0, -0.3, 0.05, 0.4, 7.0], requires_grad=True)
            y = tw.tensor([-2.0, -0.3, 0.05, 0.4, 7.0], requires_grad=True)
            written, z = run(x)
            assert z.tolist() == written.tolist() == function(y, *args).tolist()
            (written * written).sum().backward()
            (function(y * 1, *args) ** 2).sum().backward()
            assert x.grad.tolist() == y.grad.tolist()


@engines
def test_softmax_chooses_a_dimension(tw):
    for shape, dim in (((3,), 0), ((2, 3), 1), ((2, 3, 2), 0), ((1, 2, 3, 2), 1)):
        x = tw.rand(*shape)
        for call in (tw.nn.Softmax(), tw.nn.functional.softmax):
            with pytest.warns(UserWarning, match="Implicit dimension choice"):
                y = call(x)
            assert y.tolist() == tw.softmax(x, dim).tolist()


@engines
def test_tables_of_rows(tw):
    table = tw.arange(12.0).reshape(4, 3)
    layer = tw.nn.Embedding.from_pretrained(table, padding_idx=-3)
    assert (layer.padding_idx, layer.weight.requires_grad) == (1, False)
    layer = tw.nn.Embedding.from_pretrained(table.clone(), freeze=False, padding_idx=1, max_norm=3.0)
    y = tw.function(layer)(tw.tensor([0, 1, 3, 3]))
    y.sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0], [2, 2, 2]]
    assert layer.weight[3].norm().item() == pytest.approx(3, abs=1e-5)
    assert layer.weight[2].tolist() == [6, 7, 8]
    assert table[3].tolist() == [9, 10, 11]
    assert tw.nn.Embedding(3, 2, padding_idx=0).weight[0].tolist() == [0, 0]
    for call, error in [(lambda: tw.nn.Embedding(3, 2, padding_idx=3), AssertionError),
                        (lambda: tw.nn.Embedding.from_pretrained(tw.ones(3)), ValueError)]:  # fmt: skip
        with pytest.raises(error):
            call()


@engines
def test_initial_values(tw):
    init = tw.nn.init
    tw.manual_seed(0)
    shape, fans = (40, 30, 2), (60, 80)
    for name, args, std in [
        ("xavier_uniform_", (2.0,), 2 * (2 / sum(fans)) ** 0.5), ("xavier_normal_", (), (2 / sum(fans)) ** 0.5),
        ("kaiming_uniform_", (0, "fan_in", "relu"), (2 / 60) ** 0.5), ("kaiming_normal_", (1, "fan_out"), 80**-0.5),
        ("uniform_", (-1, 1), 3**-0.5), ("normal_", (0, 0.5), 0.5), ("trunc_normal_", (0, 1, -1, 1), 0.5396),
    ]:  # fmt: skip
        w = tw.nn.Parameter(np.zeros(shape, np.float32))
        assert getattr(init, name)(w, *args) is w
        assert w.grad_fn is None
        assert float(w.std()) == pytest.approx(std, rel=0.05), name
        assert abs(float(w.mean())) < std / 10
    w = init.orthogonal_(tw.zeros(5, 3), gain=2)
    assert (w.t() @ w).numpy() == pytest.approx(4 * np.eye(3), abs=1e-5)
    assert init.eye_(tw.ones(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.dirac_(tw.ones(2, 2, 3))[1].tolist() == [[0, 0, 0], [0, 1, 0]]
    assert (init.sparse_(tw.ones(10, 4), 0.3) == 0).sum(0).tolist() == [3] * 4
    assert [init.calculate_gain(n) for n in ("linear", "tanh")] == [1, 5 / 3]
    with pytest.warns(FutureWarning, match="xavier_uniform_"):
        init.xavier_uniform(tw.ones(2, 2))
    for call in (lambda: init.xavier_normal_(tw.ones(2)), lambda: init.eye_(tw.ones(2)),
                 lambda: init.calculate_gain("nothing"), lambda: init.kaiming_normal_(tw.ones(2, 2), mode="fan"),
                 lambda: init.uniform_([1.0])):  # fmt: skip
        with pytest.raises((ArgumentError, ValueError)):
            call()


@engines
def test_data_parallel_passes_through(tw):
    layer = tw.nn.Linear(2, 2)
    wrapped = tw.nn.DataParallel(layer)
    assert wrapped(tw.ones(1, 2)).tolist() == layer(tw.ones(1, 2)).tolist()
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(DeviceError):
        tw.nn.DataParallel(layer, device_ids=[0, 1])


def test_modules_that_take_a_dtype_take_a_device():
    kinds = [getattr(dynamic.nn, name) for name in dynamic.nn.__all__]
    options = {kind: set(inspect.signature(kind).parameters) for kind in kinds if isinstance(kind, type)}
    assert [kind.__name__ for kind, names in options.items() if "dtype" in names and "device" not in names] == []
    dynamic.nn.Linear(2, 2, device=dynamic.device("cpu"), dtype=dynamic.float64)
    with pytest.raises(DeviceError, match=r"^Linear\(\): device 'cuda'"):
        dynamic.nn.Linear(2, 2, device="cuda")


@engines
def test_the_class_makes_floats_of_lists_and_zeros_of_sizes(tw):
    assert tw.Tensor([1, 2]).dtype == tw.Tensor([[1.5]]).dtype == tw.Tensor(2, 3).dtype == np.float32
    assert [tw.Tensor(*sizes).shape for sizes in ((2, 3), (4,), (), (1, 2, 3))] == [(2, 3), (4,), (0,), (1, 2, 3)]
    assert tw.Tensor([1.0], requires_grad=True).requires_grad
    for wrong in ((2, -1), (2, "a"), (-1,)):
        with pytest.raises(ValueError, match="sizes must be ints"):
            tw.Tensor(*wrong)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_programs_that_ask_for_a_version_of_pytorch_are_answered(engine):
    like, _, own = engine.__version__.partition("+")
    assert engine.__version__ >= "1.5.0"  # as text
    assert tuple(map(int, engine.__version__.split(".")[:2])) >= (2, 0)
    assert own == f"twingrad.{__version__}"
    assert engine.version.__version__ == engine.__version__
    # PEP 440: numbers before the plus sign, letters and numbers between dots behind it
    assert re.fullmatch(r"\d+(\.\d+)*\+[a-z0-9]+(\.[a-z0-9]+)*", engine.__version__)
    assert like.count(".") == 2


def test_an_eager_module_says_where_there_are_programs():
    traced = dynamic.jit.trace(dynamic.nn.Linear(2, 1), (dynamic.ones(2),))
    for name in ("save", "graph", "code"):
        with pytest.raises(AttributeError, match=r"static.jit.trace\(module, inputs\) has it"):
            getattr(traced, name)
    with pytest.raises(ValueError, match=r"use static.jit.trace and static.jit.save"):
        dynamic.jit.save(traced, "nowhere.pt")
    with pytest.raises(ValueError, match=r"use static.jit.load\(f\)"):
        dynamic.jit.load("nowhere.pt")
