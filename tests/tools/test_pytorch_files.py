"""Files in PyTorch's format, made here byte by byte: tensors in plain containers are read, nothing else is."""

import contextlib
import io
import pickle
import struct
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import StateError

ENGINES = [dynamic, static]
W = np.arange(12, dtype=np.float32).reshape(3, 4)


def name(module, word):
    return f"c{module}\n{word}\n".encode()


def text(x):
    return b"X" + struct.pack("<I", len(x)) + x.encode()


def number(n):
    return b"J" + struct.pack("<i", n)


def tuple_of(*parts):
    return b"(" + b"".join(parts) + b"t"


def ints(*values):
    return tuple_of(*map(number, values))


def tensor(key, kind, count, offset, size, stride, grad=b"\x89", view=b""):
    """Opcodes of `_rebuild_tensor_v2`; `view` is what files before 1.6 say of a part of a memory."""
    memory = tuple_of(text("storage"), name("torch", kind), text(key), text("cpu"), number(count), view) + b"Q"
    hooks = name("collections", "OrderedDict") + b")R"
    given = tuple_of(memory, number(offset), ints(*size), ints(*stride), grad, hooks)
    return name("torch._utils", "_rebuild_tensor_v2") + given + b"R"


def parameter(made):
    hooks = name("collections", "OrderedDict") + b")R"
    return name("torch._utils", "_rebuild_parameter") + tuple_of(made, b"\x88", hooks) + b"R"


def dictionary(**entries):
    return b"}(" + b"".join(text(k) + v for k, v in entries.items()) + b"u"


def ordered(**entries):
    return name("collections", "OrderedDict") + b")R" + dictionary(**entries)[1:]


def pickled(made):
    return b"\x80\x02" + made + b"."


def archive(made, order=b"little", **memories):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("model/data.pkl", pickled(made))
        z.writestr("model/byteorder", order)
        for key, raw in memories.items():
            z.writestr(f"model/data/{key.removeprefix('m')}", raw)
    return file.getvalue()


def sequence(made, **memories):
    """A file as PyTorch wrote them before 1.6."""
    parts = [pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    keys = [key.removeprefix("m") for key in memories]
    raw = [struct.pack("<q", array.size) + array.tobytes() for array in memories.values()]
    return b"".join([*parts, pickled(made), pickle.dumps(keys, 2), *raw])


def load(tw, data):
    return tw.load(io.BytesIO(data), map_location="cpu")


@pytest.mark.parametrize("tw", ENGINES)
def test_a_state_dict_is_read(tw):
    weight = parameter(tensor("0", "FloatStorage", 12, 0, (3, 4), (4, 1)))
    turned = tensor("0", "FloatStorage", 12, 1, (4, 2), (1, 4))
    count = tensor("1", "LongStorage", 1, 0, (), ())
    made = dictionary(model=ordered(weight=weight, turned=turned, count=count), epoch=number(3), best=b"N")
    found = load(tw, archive(made, m0=W.tobytes(), m1=np.int64(7).tobytes()))
    assert type(found["model"]) is OrderedDict
    assert list(found) == ["model", "epoch", "best"]
    assert isinstance(found["model"]["weight"], tw.nn.Parameter)
    assert found["model"]["weight"].tolist() == W.tolist()
    assert found["model"]["turned"].tolist() == [[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [4.0, 8.0]]
    assert (found["model"]["count"].item(), found["epoch"], found["best"]) == (7, 3, None)
    layer = tw.nn.Linear(4, 3, bias=False)
    layer.load_state_dict({"weight": found["model"]["weight"]})
    assert layer.weight.tolist() == W.tolist()


KINDS = {"BoolStorage": "?", "ByteStorage": "u1", "CharStorage": "i1", "ShortStorage": "i2", "IntStorage": "i4",
         "LongStorage": "i8", "FloatStorage": "f4", "DoubleStorage": "f8"}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_dtype_in_both_orders_and_both_formats(kind):
    values = np.array([0, 1, 1], KINDS[kind])
    made = tensor("0", kind, 3, 0, (3,), (1,))
    for order, raw in (
        (b"little", values.tobytes()),
        (b"big", values.astype(values.dtype.newbyteorder(">")).tobytes()),
    ):
        found = load(dynamic, archive(made, order, m0=raw))
        assert (found.dtype, found.tolist()) == (values.dtype, values.tolist())
    found = load(static, sequence(tensor("0", kind, 3, 0, (3,), (1,), view=b"N"), m0=values))
    assert (found.dtype, found.tolist()) == (values.dtype, values.tolist())


def test_one_tensor_in_two_places_is_one_array():
    made = tensor("0", "FloatStorage", 12, 0, (12,), (1,), grad=b"\x88")
    first, second = load(dynamic, archive(tuple_of(made, made), m0=W.tobytes()))
    assert np.shares_memory(first.detach().numpy(), second.detach().numpy())
    assert first.requires_grad
    first.data[0] = 9.0
    assert second[0] == 9.0


def test_dtypes_sizes_and_numbers_are_read():
    size = name("torch", "Size") + tuple_of(ints(2, 3)) + b"R"
    made = tuple_of(name("torch", "float32"), size, b"G" + struct.pack(">d", 2.5), b"\x88", text("adam"))
    assert load(dynamic, archive(made)) == (dynamic.float32, (2, 3), 2.5, True, "adam")


CALL = name("builtins", "print") + tuple_of(text("it ran")) + b"R"
SYSTEM = name("os", "system") + tuple_of(text("exit 3")) + b"R"
ONE = tensor("0", "FloatStorage", 1, 0, (1,), (1,))
REFUSED = {
    "a call": (archive(CALL), "builtins.print, whose code"),
    "a command": (archive(SYSTEM), "os.system, whose code"),
    "a module": (archive(name("torch.nn.modules.linear", "Linear") + b")\x81"), "torch.nn.modules.linear.Linear"),
    "half precision": (archive(tensor("0", "HalfStorage", 2, 0, (2,), (1,)), m0=b"abcd"), "tensors of a HalfStorage"),
    "beyond the memory": (archive(tensor("0", "FloatStorage", 12, 3, (12,), (1,)), m0=W.tobytes()), "reaches beyond"),
    "before the memory": (archive(tensor("0", "FloatStorage", 12, -1, (2,), (1,)), m0=W.tobytes()), "reaches beyond"),
    "backwards": (archive(tensor("0", "FloatStorage", 12, 3, (2,), (-1,)), m0=W.tobytes()), "reaches beyond"),
    "expanded": (archive(tensor("0", "FloatStorage", 1, 0, (1 << 30,), (0,)), m0=b"abcd"), "reaches beyond"),
    "no memory": (archive(ONE), "data/0"),
    "half a number": (archive(ONE, m0=b"abc"), "multiple of element size"),
    "a name with attributes": (archive(name("torch", "Size") + dictionary(_make=text("x")) + b"b"), "no file of"),
    "a tensor without array": (archive(ONE + b"N" + dictionary(array=text("x")) + b"\x86b", m0=b"abcd"), "without el"),
    "a huge memory": (sequence(tensor("0", "FloatStorage", 1 << 30, 0, (1,), (1,), view=b"N")), "larger than"),
    "cut": (archive(ONE, m0=b"abcd")[:-30], "not a zip"),
    "cut pickle": (pickle.dumps(0x1950A86A20F9469CFC6C, 2) + b"\x80", "no file of PyTorch's save"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_tensor_in_a_plain_container_is_refused_and_does_not_run(what, capsys):
    data, told = REFUSED[what]
    with pytest.raises(StateError, match=told) as caught:
        load(dynamic, data)
    assert "torch.save_file" in str(caught.value)
    assert capsys.readouterr().out == ""


def test_damaged_files_end_in_one_kind_of_error():
    """Any byte of the pickle changed: the object is another one, or the error is the one that is promised."""
    rng = np.random.default_rng(5)
    made = dictionary(w=parameter(tensor("0", "FloatStorage", 12, 0, (3, 4), (4, 1))), n=number(3))
    for data in (archive(made, m0=W.tobytes()), sequence(made.replace(number(12) + b"t", number(12) + b"Nt"), m0=W)):
        for _ in range(400):
            bad = bytearray(data)
            bad[rng.integers(30, len(bad))] = rng.integers(256)
            with contextlib.suppress(StateError):
                load(dynamic, bytes(bad))
