"""Arrays of other libraries come in through DLPack; numpy's functions and failing modules say what is to be done."""

import numpy as np
import pytest

import dynamic
import static

V = np.arange(3.0, dtype=np.float32)
ENGINES = [dynamic, static]


class Foreign:
    """An array of a library of which only DLPack is known."""

    def __init__(self, array, device=None):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        if self.device:
            raise BufferError("on another device")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


TAKEN = {
    "tensor": lambda tw, x: tw.tensor(x),
    "as_tensor": lambda tw, x: tw.as_tensor(x),
    "function": lambda tw, x: tw.tanh(x),
    "second operand": lambda tw, x: tw.add(tw.tensor(V), x),
    "sequence": lambda tw, x: tw.cat([x, tw.tensor(V)]),
    "operator": lambda tw, x: tw.tensor(V) + x,
    "reflected": lambda tw, x: x * tw.tensor(V),
    "product": lambda tw, x: tw.tensor(V) @ x,
    "module": lambda tw, x: tw.nn.Tanh()(x),
    "compiled": lambda tw, x: tw.function(lambda x: x * 2 + x.sum())(x),
    "captured": lambda tw, x: tw.function(lambda y: y * x)(V),
}


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_arrays_of_other_libraries_are_taken(engine, name):
    found = np.asarray(TAKEN[name](engine, Foreign(V.copy())))
    assert np.asarray(found).tobytes() == np.asarray(TAKEN[name](engine, engine.tensor(V))).tobytes()
    with pytest.raises(ValueError, match="a Foreign cannot be shared: on another device"):
        TAKEN[name](engine, Foreign(V, "gpu"))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (np.tanh, r"np.tanh .* use static.tanh or x.tanh\(\)"),
        (np.arcsin, "np.arcsin .* use static.asin"),
        (np.sum, "np.sum .* use static.sum"),
        (np.add.reduce, "np.add.reduce .* use static.sum"),
        (lambda x: np.add(x, 1), "np.add .* use static.add"),
        (lambda x: np.concatenate([x, x]), "np.concatenate .* use static.cat"),
        (lambda x: np.where(x > 0, x, 0), "np.where .* use static.where"),
        (np.linalg.norm, "np.linalg.norm .* use static.norm"),
        (lambda x: np.interp(x, [0, 1], [0, 1]), "np.interp .*pure_callback"),
    ],
)
def test_functions_of_numpy_name_what_to_use_in_a_trace(call, told):
    with pytest.raises(TypeError, match=told):
        static.function(call)(V)


@pytest.mark.parametrize(
    "operator",
    [lambda a, x: a + x, lambda a, x: a @ x, lambda a, x: a**x, lambda a, x: a < x, lambda a, x: a // (x + 1),
     lambda a, x: np.float32(2) - x, lambda a, x: a != x],
)  # fmt: skip
def test_operators_of_numpy_arrays_are_the_tensors(operator):
    found = static.function(lambda x: operator(V, x))(V)
    assert np.asarray(found).tobytes() == np.asarray(operator(V, dynamic.tensor(V))).tobytes()


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_a_failing_product_names_sizes_and_module(engine, inside):
    class Model(engine.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = engine.nn.Sequential(engine.nn.Tanh(), engine.nn.Sequential(engine.nn.Linear(6, 2)))

        def forward(self, x):
            return self.body(x)

    model = Model()
    run = engine.function(lambda x: model(x)) if inside else model
    with pytest.raises(ValueError, match=r"\(3x5 and 6x2\)\n  in module Model.body.1.0 \(Linear\)"):
        run(np.ones((3, 5), np.float32))


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_functions_of_numpy_take_tensors_without_history(engine):
    x = engine.tensor(V)
    for f in (np.tanh, np.isfinite, lambda x: np.add(x, 1), lambda x: np.maximum(V[::-1], x), np.add.reduce):
        y = f(x)
        assert type(y) is type(x)
        assert y.numpy().tobytes() == np.asarray(f(V)).tobytes()
    assert [type(part) for part in np.modf(x)] == [type(x)] * 2
    total = V.copy()
    total += x
    assert total.tolist() == (V + V).tolist()


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_functions_of_numpy_say_that_they_lose_the_gradient(engine):
    x = engine.tensor(V, requires_grad=True)
    assert (V * x).requires_grad
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad.* Use x.tanh\(\)"):
        np.tanh(x)
    with pytest.raises(ValueError, match="could not be broadcast"):
        np.maximum(engine.tensor(V), np.ones(7))
    with pytest.raises(TypeError, match="must be an array, not a Tensor"):
        np.tanh(engine.tensor(V), out=engine.tensor(V))
