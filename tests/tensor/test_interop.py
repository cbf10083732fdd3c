"""Arrays, scalars and memory of other libraries; tensors in files."""

import importlib
import json
import operator
import struct
import typing

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import (
    ArgumentError,
    DTypeError,
    FileError,
    GradientError,
    StateError,
    TraceError,
    TwingradError,
)
from tests.bits import assert_same_bits

A, B = np.array([[1, -2, 3], [0.5, 4, -1]], np.float32), np.array([2, 3, 0.25], np.float32)
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.le,
             operator.gt, operator.ge, operator.eq, operator.ne]  # fmt: skip
OTHERS = {"array": B, "float32": np.float32(2), "float64": np.float64(1.5), "int64": np.int64(3), "0-d": np.array(2.0)}


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("other", OTHERS)
def test_numpys_operands_in_both_orders(op, other):
    y, x = OTHERS[other], np.abs(A)
    for swapped in (False, True):
        f = (lambda t, y: op(y, t)) if swapped else op
        with np.errstate(all="ignore"):
            expected = f(x, y)
        result, compiled = f(tw.tensor(x), y), static.function(lambda t, y=y, f=f: f(t, y))(x)
        assert type(result) is tw.Tensor
        assert np.allclose(result.numpy(), expected, rtol=1e-6)
        assert_same_bits(compiled, result.numpy(), f"{op.__name__} with {other}")


def test_matrix_products_with_arrays():
    x = tw.tensor(A, requires_grad=True)
    (B @ x.T).sum().backward()
    assert x.grad.tolist() == [B.tolist()] * 2
    assert type(B @ x.T) is tw.Tensor
    assert (x @ B).tolist() == (A @ B).tolist()


def test_as_an_array():
    x = tw.tensor(A)
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.stack([x, x]).shape == (2, 2, 3)
    with pytest.raises(GradientError, match="detach"):
        np.asarray(x.clone().requires_grad_() * 1)


@pytest.mark.parametrize("make", [tw.from_numpy, tw.as_tensor, tw.from_dlpack])
def test_memory_is_shared(make):
    a = A.copy()
    x = make(a)
    a[0, 0] = 7
    assert x[0, 0].item() == 7
    with tw.no_grad():
        x.mul_(2)
    assert a[0, 0] == 14


class Foreign:
    """Another library's tensor."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_in():
    a = A.copy()
    for view in (a, a.T, a[:, ::2]):
        x = tw.from_dlpack(Foreign(view))
        assert np.shares_memory(x.numpy(), a)
        assert x.tolist() == view.tolist()
    assert type(tw.from_dlpack(tw.tensor(A))) is tw.Tensor
    assert type(static.from_dlpack(Foreign(a))) is tw.Tensor


def test_results_of_compiled_functions_are_shared():
    y = static.function(lambda x: x * 2)(A)
    for taken in (np.asarray(y), np.from_dlpack(y), np.asarray(y.__buffer__(0))):
        assert np.shares_memory(taken, y.payload)
    with pytest.raises(GradientError, match="requires grad"):
        static.function(lambda x: x * 2)(tw.tensor(A, requires_grad=True)).__buffer__(0)


def test_dlpack_out():
    x = tw.tensor(A)
    assert np.shares_memory(np.from_dlpack(x), x.numpy())
    assert x.__dlpack_device__() == (1, 0)
    assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())
    with pytest.raises(GradientError, match=r"tensor\.detach"):
        np.from_dlpack(tw.tensor(A, requires_grad=True))


def test_read_only_memory():
    a = A.copy()
    a.flags.writeable = False
    x = tw.from_dlpack(a)
    assert (x + 1).tolist() == (A + 1).tolist()
    with pytest.raises(ValueError, match="read-only"):
        x.add_(1)
    with pytest.raises(BufferError):  # a capsule of the first version cannot say that it is read-only
        x.__dlpack__()
    assert not np.from_dlpack(x).flags.writeable


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tw.from_numpy(A.astype(">f4")), ArgumentError, "byte order different"),
        (lambda: tw.from_numpy(A.astype(np.float16)), DTypeError, "float16 is not supported"),
        (lambda: tw.from_numpy([1.0]), ArgumentError, "expected np.ndarray"),
        (lambda: tw.from_dlpack([1.0]), ArgumentError, "expected an object with __dlpack__"),
        (lambda: tw.from_dlpack(Foreign(A.astype(np.float16))), DTypeError, "float16 is not supported"),
        (lambda: tw.from_dlpack(Foreign(A.astype(">f4"))), ArgumentError, "a Foreign cannot be shared"),
    ],
)
def test_what_cannot_be_shared(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_what_has_no_memory_yet_or_a_history_is_not_shared():
    with pytest.raises(TraceError, match=r"test_interop.py:\d+ in .*needs the elements"):
        static.function(lambda x: static.from_dlpack(x))(A)
    with pytest.raises(GradientError, match="detach"):
        tw.from_dlpack(tw.tensor(A, requires_grad=True))


# ---------------------------------------------------------------------- files

STATE = {
    "weight": A, "bias": B.astype(np.float64), "mask": np.array([True, False, True]), "count": np.array(3),
    "none": np.zeros((0, 2), np.int16), "bytes": np.arange(5, dtype=np.uint8), "small": np.array([[-1]], np.int8),
    "columns": np.asfortranarray(A).astype(np.int32, order="K"),
}  # fmt: skip


def test_files_keep_everything(tmp_path):
    path = tmp_path / "state.safetensors"
    tw.save_file(STATE, path, {"format": "np"})
    found = tw.load_file(path)
    assert set(found) == set(STATE)
    for name, x in STATE.items():
        assert (found[name].dtype, found[name].shape) == (x.dtype, x.shape)
        assert_same_bits(found[name], x.copy("C"), name)
        assert found[name].flags.writeable
    assert [p.name for p in tmp_path.iterdir()] == ["state.safetensors"]
    data = path.read_bytes()
    assert struct.unpack("<Q", data[:8])[0] % 8 == 0


def test_modules_in_files(tmp_path):
    def model(seed):
        tw.manual_seed(seed)
        return tw.nn.Sequential(tw.nn.Embedding(5, 3), tw.nn.Linear(3, 2), tw.nn.LayerNorm(2))

    first, second = model(1), model(2)
    tw.save_file(first.state_dict(), tmp_path / "m")
    second.load_state_dict(static.load_file(tmp_path / "m"))
    assert {k: x.tolist() for k, x in second.state_dict().items()} == {
        k: x.tolist() for k, x in first.state_dict().items()
    }
    tw.save_file(dict(first.named_parameters()), tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == (tmp_path / "m").read_bytes()


# What the safetensors package 0.8 writes for {"b": int64 [1, 2], "a": float32 [[0.5]]} with the metadata {"k": "v"}.
FOREIGN = (
    b'\x90\x00\x00\x00\x00\x00\x00\x00{"__metadata__":{"k":"v"},"b":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},'
    b'"a":{"dtype":"F32","shape":[1,1],"data_offsets":[16,20]}}       ' + struct.pack("<2qf", 1, 2, 0.5)
)  # fmt: skip


def test_files_of_the_safetensors_package(tmp_path):
    (tmp_path / "x").write_bytes(FOREIGN)
    assert {k: x.tolist() for k, x in tw.load_file(tmp_path / "x").items()} == {"b": [1, 2], "a": [[0.5]]}
    tw.save_file({"b": np.array([1, 2]), "a": np.float32([[0.5]])}, tmp_path / "y", {"k": "v"})
    assert (tmp_path / "y").read_bytes() == FOREIGN


def entry(dtype="F32", shape=(2,), offsets=(0, 8), data=b"\0" * 8, **more):
    head = {"x": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}, **more}
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data


def raw(text, data=b""):
    return struct.pack("<Q", len(text)) + text + data


DAMAGED = {
    "empty": b"",
    "short": b"\1\0",
    "huge header": struct.pack("<Q", 2**63) + b"{}",
    "cut": entry()[:-1],
    "no JSON": raw(b"{x"),
    "deep JSON": raw(b"[" * 100_000),
    "no text": raw(b"\xff\xfe"),
    "a list": raw(b"[]"),
    "a number": raw(b'{"x":1}'),
    "no shape": raw(b'{"x":{"dtype":"F32","data_offsets":[0,0]}}'),
    "negative": entry(shape=(-2,)),
    "a fraction": entry(shape=(2.0,)),
    "a truth value": entry(shape=(True, 2)),
    "backwards": entry(offsets=(8, 0)),
    "wrong size": entry(shape=(3,)),
    "product beyond int64": entry(shape=(2**32, 2**32, 2)),
    "outside": entry(offsets=(8, 16)),
    "overlap": entry(y={"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}),
    "hole": entry(offsets=(8, 16), data=b"\0" * 16),
    "more": entry(data=b"\0" * 12),
    "dtype as a list": entry(dtype=["F32"]),
    "unknown dtype": entry(dtype="F33"),
    "100 dimensions": entry(shape=(1,) * 99 + (2,)),
    "sizes beyond 63 bits": entry(shape=(0, 2**63, 2**63), offsets=(0, 0), data=b""),
    "metadata that are no texts": entry(__metadata__={"a": 1}),
    "metadata as a list": entry(__metadata__=["a"]),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused(name, tmp_path):
    (tmp_path / "x").write_bytes(DAMAGED[name])
    with pytest.raises(StateError, match=r"is damaged, or of another format|which no array can have"):
        tw.load_file(tmp_path / "x")


def test_files_with_any_damage_are_read_or_refused(tmp_path):
    rng, path = np.random.default_rng(3), tmp_path / "x"
    for n in [*range(0, len(FOREIGN), 3), *[len(FOREIGN)] * 300]:
        data = bytearray(FOREIGN[:n])
        if n == len(FOREIGN):
            data[int(rng.integers(n))] = int(rng.integers(256))
        path.write_bytes(data)
        try:
            found = tw.load_file(path)
        except TwingradError:
            continue
        assert all(isinstance(x, np.ndarray) for x in found.values())


@pytest.mark.parametrize("path", [3, None, b"a", "a\0b", "", ".", ["a"], 1.5, "missing"])
@pytest.mark.parametrize("call", [tw.load_file, lambda path: tw.save_file({"a": A}, path)])
def test_paths_that_are_none(call, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if path == "missing" and call is tw.load_file:
        with pytest.raises(FileNotFoundError) as caught:
            call(path)
        assert isinstance(caught.value, FileError)
        assert caught.value.filename == "missing"
    elif path != "missing":
        with pytest.raises(TwingradError):
            call(path)


def test_dtypes_that_have_no_counterpart(tmp_path):
    (tmp_path / "x").write_bytes(entry(dtype="BF16", shape=(4,)))
    with pytest.raises(DTypeError, match="'x' has dtype BF16; supported are"):
        tw.load_file(tmp_path / "x")
    with pytest.raises(DTypeError, match="float16"):
        tw.save_file({"x": A.astype(np.float16)}, tmp_path / "y")
    with pytest.raises(ArgumentError, match="saved by names"):
        tw.save_file({1: A}, tmp_path / "y")
    with pytest.raises(ArgumentError, match="metadata are texts"):
        tw.save_file({"x": A}, tmp_path / "y", {"k": 1})
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize("tw", [tw, static], ids=lambda e: e.__name__)
def test_capsules_share_memory_and_are_used_once(tw):
    space = importlib.import_module(f"{tw.__name__}.utils.dlpack")
    x = tw.ones(3)
    capsule = space.to_dlpack(x)
    y = space.from_dlpack(capsule)
    y[0] = 5
    assert x.tolist() == [5, 1, 1]
    with pytest.raises(ValueError, match="cannot be shared"):
        space.from_dlpack(capsule)
    with pytest.raises(ValueError, match="a tensor is needed, not list"):
        space.to_dlpack([1.0])
    with pytest.raises(RuntimeError, match="require gradient"):
        space.to_dlpack(x.requires_grad_())


@pytest.mark.parametrize("tw", [tw, static], ids=lambda e: e.__name__)
def test_marks_of_symbolic_traces_change_nothing(tw):
    def f(x):
        return x * 2

    assert tw.fx.wrap(f) is f
    assert tw.fx.wrap("len") == "len"
    with pytest.raises(ValueError, match="a function or its name is needed, not int"):
        tw.fx.wrap(3)
    with pytest.raises(AttributeError, match="there is no TorchScript and no FX"):
        tw.fx.symbolic_trace  # noqa: B018


@pytest.mark.parametrize("name", ["dynamic", "static"])
def test_names_by_which_libraries_import(name):
    """What timm, kornia, GPyTorch and PyG import from PyTorch's inner places."""
    find = importlib.import_module
    engine = find(name)
    assert engine.torch is engine
    assert find(f"{name}.jit").Final is typing.Final
    assert find(f"{name}.jit.annotations").List is typing.List  # noqa: UP006
    assert find(f"{name}.hub").HASH_REGEX.search("resnet18-5c106cde.pth").group(1) == "5c106cde"
    assert find(f"{name}.hub").urlparse("https://a.b/c").path == "/c"
    assert "numpy" in find(f"{name}.__config__").show()
    assert "threads" in find(f"{name}.__config__").parallel_info()
    assert find(f"{name}.serialization").MAP_LOCATION
    assert set(find(f"{name}.distributions.transforms").__all__) >= {"Transform", "ExpTransform"}
    engine.manual_seed(3)
    drawn = find(f"{name}.distributions.utils")._standard_normal((2, 3), engine.float64, "cpu")
    engine.manual_seed(3)
    assert_same_bits(drawn, engine.randn(2, 3, dtype=engine.float64), "draws")
    assert find(f"{name}.distributions.utils")._sum_rightmost(drawn, 2).shape == ()
