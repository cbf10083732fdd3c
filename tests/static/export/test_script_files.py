"""Scripted, traced and exported modules in files: `static.jit` and `static.export` as PyTorch's users call them."""

import pytest

import static
from common.core.errors import ArgumentError, StateError
from tests.bits import assert_same_bits


class Gate(static.nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Cell(static.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = static.jit.script(Gate())
        self.linear = static.nn.Linear(4, 4)

    def forward(self, x, h):
        return (self.gate(self.linear(x)) + h).tanh()


class Unrolled(static.nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, xs):
        h = static.zeros(3, 4)
        for x in xs:
            h = self.cell(x, h)
        return h


@pytest.fixture
def xs():
    static.manual_seed(0)
    return static.randn(5, 3, 4)


def trace(module, x):
    return static.jit.trace(module, (x,))


def script(module, x):
    made = static.jit.script(module)
    made(x)
    return made


@pytest.mark.parametrize("make", [trace, script])
@pytest.mark.parametrize("inner", [lambda cell: cell, static.compile])
def test_a_scripted_module_is_saved_and_loaded(make, inner, xs, tmp_path):
    model = Unrolled(inner(Cell()))
    made = make(model, xs)
    assert isinstance(made, static.jit.ScriptModule)
    made.save(tmp_path / "method.pt")
    static.jit.save(made, tmp_path / "function.pt")
    for name in ("method.pt", "function.pt"):
        loaded = static.jit.load(tmp_path / name, map_location="cpu").eval()
        for x in (xs, -3 * xs):  # both paths of the gate
            assert_same_bits(loaded(x).detach().numpy(), model(x).detach().numpy(), "result")
        loaded(xs).sum().backward()
        (wanted,) = static.autograd.grad(model(xs).sum(), [model.cell.linear.weight])
        found = dict(loaded.named_parameters())["cell.linear.weight"]
        assert_same_bits(found.grad.numpy(), wanted.numpy(), "gradient")


def test_a_function_is_saved_and_shown(tmp_path):
    f = static.jit.script(lambda x, n: x * n)
    f(static.ones(2), 3.0)
    assert "mul(%0, %2)" in f.code
    f.save(tmp_path / "f.pt")
    assert static.jit.load(tmp_path / "f.pt")(static.ones(3), 2.0).tolist() == [2.0, 2.0, 2.0]


def test_a_name_of_the_module_goes_before_that_of_the_program():
    class Named(static.nn.Module):
        def __init__(self):
            super().__init__()
            self.graph = "mine"
            self.code = static.nn.Linear(2, 2)

        def forward(self, x):
            return self.code(x)

    made = static.compile(Named())
    made(static.ones(2))
    assert made.graph == "mine"
    assert isinstance(made.code, static.nn.Linear)
    assert made.explain().kernels


def test_an_exported_module_is_saved_and_loaded(tmp_path):
    model = static.nn.Sequential(static.nn.Linear(4, 8), static.nn.ReLU(), static.nn.Linear(8, 2))
    batch = static.export.Dim("batch", min=1)
    program = static.export.export(model, (static.ones(3, 4),), dynamic_shapes={"input": {0: batch}})
    static.export.save(program, tmp_path / "m.pt2")
    x = static.randn(7, 4)
    for found in (program, static.export.load(tmp_path / "m.pt2")):
        assert_same_bits(found.module()(x).detach().numpy(), model(x).detach().numpy(), "result")


def test_what_cannot_be_saved_is_told(tmp_path):
    model = static.jit.script(static.nn.Linear(2, 1))
    with pytest.raises(ArgumentError, match="Linear has not been traced yet: call it once"):
        model.save(tmp_path / "m.pt")
    model(static.ones(2))
    for write in (static.jit.save, static.export.save):
        with pytest.raises(ArgumentError, match="write files of your own beside it"):
            write(
                model, tmp_path / "m.pt", **{"_extra_files" if write is static.jit.save else "extra_files": {"a": "b"}}
            )
    with pytest.raises(ArgumentError, match="'args' must be a tuple of arguments, not Tensor"):
        static.export.export(model, static.ones(2))
    (tmp_path / "other.pt").write_bytes(b"nothing")
    with pytest.raises(StateError, match="is no file of a program"):
        static.jit.load(tmp_path / "other.pt")
