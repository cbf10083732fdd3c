"""`save` and `load`: what went in comes out, by bits, and nothing else is read."""

import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, DeviceError, StateError
from tests.bits import assert_same_bits

ENGINES = [dynamic, static]
engines = pytest.mark.parametrize("tw", ENGINES, ids=lambda e: e.__name__)


def through(tw, obj, **options):
    file = io.BytesIO()
    tw.save(obj, file)
    file.seek(0)
    return tw.load(file, **options)


@engines
def test_nested_containers(tw):
    x = tw.arange(6.0).reshape(2, 3)
    obj = {"a": [1, 2.5, float("inf"), None, True, "text"], 3: (x, x.t(), np.float32(2.5), np.arange(3)), (1, "k"): {2},
           "d": tw.float64, "dev": tw.device("cpu"), "b": b"\x00\xff", "empty": [{}, (), tw.zeros(0, 3)],
           "leaf": tw.ones(2, requires_grad=True), "same": x, "flags": x > 2}  # fmt: skip
    back = through(tw, obj, map_location=tw.device("cpu"), weights_only=True)
    assert list(back) == list(obj)
    for key in ("a", (1, "k"), "d", "dev", "b"):
        assert back[key] == obj[key]
    assert [type(v) for v in back[3]] == [tw.Tensor, tw.Tensor, np.float32, np.ndarray]
    for got, expected in zip(back[3], obj[3]):
        assert_same_bits(np.asarray(got), np.asarray(expected), "element")
    assert back["empty"][2].shape == (0, 3)
    assert back["leaf"].requires_grad
    assert back["flags"].dtype == bool
    back["same"].zero_()
    assert back[3][0].sum().item() == 0  # one tensor, as before


@engines
def test_a_training_goes_on(tw, tmp_path):
    def make():
        tw.manual_seed(1)
        net = tw.nn.Sequential(tw.nn.Linear(3, 4), tw.nn.BatchNorm1d(4), tw.nn.Linear(4, 1))
        return net, tw.optim.Adam(net.parameters(), lr=0.1)

    def step(net, optimizer):
        optimizer.zero_grad()
        loss = (net(tw.arange(12.0).reshape(4, 3)) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    first, path = make(), tmp_path / "model.pt"
    step(*first)
    tw.save(OrderedDict(net=first[0].state_dict(), optimizer=first[1].state_dict(), epoch=1), path)
    expected = [step(*first) for _ in range(2)]
    net, optimizer = make()
    state = tw.load(str(path))
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    assert [step(net, optimizer) for _ in range(2)] == expected
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]


@engines
def test_of_a_module_the_state_is_saved(tw, tmp_path):
    model = tw.nn.Linear(2, 1)
    with pytest.warns(UserWarning, match=r"the object\['m'\] is of type .*Linear.*load_state_dict"):
        tw.save({"m": model, "kind": "linear"}, tmp_path / "x")
    other = tw.nn.Linear(2, 1)
    other.load_state_dict(tw.load(tmp_path / "x")["m"])
    assert other.weight.tolist() == model.weight.tolist()


@pytest.mark.parametrize("tw", [dynamic, static])
def test_what_is_refused(tw, tmp_path):
    with pytest.raises(ArgumentError, match=r"the object\['m'\] is of type .*object.*save what it is made of"):
        tw.save({"m": object()}, tmp_path / "x")
    cycle = []
    cycle.append(cycle)
    with pytest.raises(ArgumentError, match="holds itself"):
        tw.save(cycle, tmp_path / "x")
    assert not list(tmp_path.iterdir())
    for data, told in ((pickle.dumps({"a": 1}), "a pickle of another kind"), (b"PK\x03\x04rest", "torch.save_file"),
                       (b"nothing of that kind", "another format"), (b"", "another format")):  # fmt: skip
        with pytest.raises(StateError, match=told):
            tw.load(io.BytesIO(data))
    with pytest.raises(DeviceError):
        through(tw, [1], map_location="cuda")
    with pytest.raises(FileNotFoundError):
        tw.load(tmp_path / "not there")
    tw.save_file({"w": tw.ones(2)}, tmp_path / "plain")
    assert tw.load(tmp_path / "plain")["w"].tolist() == [1, 1]
    good = io.BytesIO()
    tw.save({"w": [tw.ones(2)]}, good)
    for old, new in ((b"list", b"lisp"), (b'\\"0\\"', b'\\"7\\"')):
        with pytest.raises(StateError, match="damaged"):
            tw.load(io.BytesIO(good.getvalue().replace(old, new)))


@pytest.mark.parametrize("tw", [dynamic, static])
@pytest.mark.parametrize(("old", "new"), [(b'"w"', b'"v"'), (b'"x"', b'"y"')])
def test_a_name_that_stands_twice_is_refused(tw, tmp_path, old, new):
    """Of which two readers could believe different things: among the arrays, among their fields, in the metadata."""
    path = tmp_path / "twice.safetensors"
    tw.save_file({"w": np.zeros(0, np.float32), "v": np.zeros(2, np.float32)}, path, {"x": "1", "y": "2"})
    path.write_bytes(path.read_bytes().replace(old, new))
    for read in (tw.load_file, tw.load):
        with pytest.raises(StateError, match="damaged"):
            read(path)
    tw.save_file({}, path, {"twingrad.structure": '{"list": [1], "list": [2]}'})
    with pytest.raises(StateError, match=r"damaged.*'list' stands twice"):
        tw.load(path)


def test_files_of_every_length_of_header_are_read():
    """A file begins with the length of its header, which may begin with the first byte of a pickle."""
    for length in range(0, 280, 4):
        obj = {"k" * length: dynamic.ones(1)}
        assert through(dynamic, obj)["k" * length].tolist() == [1.0]


@engines
def test_arrays_that_tensors_cannot_be(tw):
    """Checkpoints of trainers hold the states of numpy's generators."""
    obj = {"state": np.random.RandomState(3).get_state(), "names": np.array(["a", "bc"]), "half": np.ones(2, "f2").T,
           "c": np.array([[1 + 2j, 3]])[:, ::-1], "none": np.zeros((2, 0), "u8"), "one": np.array(7, "u2")}  # fmt: skip
    loaded = through(tw, obj)
    for name in obj.keys() - {"state"}:
        assert loaded[name].dtype == obj[name].dtype
        assert loaded[name].shape == obj[name].shape
        np.testing.assert_array_equal(loaded[name], obj[name])
    ours, theirs = np.random.RandomState(0), np.random.RandomState(3)
    ours.set_state(loaded["state"])
    assert ours.rand() == theirs.rand()
    loaded["c"][0, 0] = 0
    with pytest.raises(TypeError, match="Could not infer dtype"):
        through(tw, np.array([object()]))
