"""Operators of users' own (`library`): values, forms in traces, gradients, and what is refused."""

import numpy as np
import pytest

import dynamic
import static
from common.control.custom_ops import OPERATORS


@pytest.fixture(params=[dynamic, static], ids=["dynamic", "static"])
def engine(request):
    kept = dict(OPERATORS)
    yield request.param
    OPERATORS.clear()
    OPERATORS.update(kept)


def cube_of(engine):
    @engine.library.custom_op("tests::cube", mutates_args=())
    def cube(x: dynamic.Tensor, factor: float = 1.0) -> dynamic.Tensor:
        return engine.from_numpy(x.numpy() ** 3 * np.float32(factor))

    @cube.register_fake
    def form(x, factor=1.0):
        return x.new_empty(x.shape)

    def keep(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    cube.register_autograd(lambda ctx, g: (3 * ctx.factor * g * ctx.saved_tensors[0] ** 2, None), setup_context=keep)
    return cube


def test_an_operator_is_a_node_in_both_engines_compiled_too(engine):
    cube = cube_of(engine)
    data = np.array([1.0, -2.0, 0.5], np.float32)

    def value_and_gradient(x):
        x = engine.tensor(x) if isinstance(x, np.ndarray) else x
        return engine.value_and_grad(lambda x: (cube(x * 2, factor=0.5) * x).sum())(x)

    value, gradient = value_and_gradient(engine.tensor(data))
    np.testing.assert_allclose(float(value), (4 * data**4).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient.numpy(), 16 * data**3, rtol=1e-6)
    compiled = static.function(value_and_gradient)(data) if engine is static else (value, gradient)
    assert [x.numpy().tobytes() for x in compiled] == [value.numpy().tobytes(), gradient.numpy().tobytes()]
    assert engine.ops.tests.cube is engine.ops.tests.cube.default is cube
    assert repr(cube) == "<CustomOpDef(tests::cube)>"
    assert cube(data).tolist() == [1.0, -8.0, 0.125]
    assert engine.function(cube)(data).tolist() == [1.0, -8.0, 0.125]


def test_a_compiled_operator_is_called_anew_for_every_size(engine):
    cube = cube_of(engine)
    twice = engine.function(lambda x: cube(x) * 2)
    for n in (2, 3, 5):
        assert twice(np.arange(n, dtype=np.float32)).tolist() == [2.0 * i**3 for i in range(n)]


def test_lists_of_tensors_and_several_results(engine):
    @engine.library.custom_op("tests::ends", mutates_args=())
    def ends(xs: list[dynamic.Tensor]) -> tuple[dynamic.Tensor, dynamic.Tensor]:
        return xs[0] * 2, xs[-1] * 3

    asked = []
    ends.register_autograd(lambda ctx, a, b: (asked.append(ctx.needs_input_grad[:2]), [2 * a, 3 * b])[1])
    x, y = (engine.tensor([v], requires_grad=True) for v in (1.0, 5.0))
    first, last = ends([x, y])
    (first * 10 + last).sum().backward()
    assert (first.tolist(), last.tolist(), x.grad.tolist(), y.grad.tolist()) == ([2.0], [15.0], [20.0], [3.0])
    assert asked == [(True, True)]


def test_a_library_defines_and_gives_kernels_one_by_one(engine):
    mine = engine.library.Library("pieces", "DEF")
    assert mine.define("twice(Tensor x) -> Tensor") == "twice"
    with pytest.raises(NotImplementedError, match="pieces::twice: no kernel for the CPU"):
        engine.ops.pieces.twice(engine.ones(1))
    mine.impl("twice", lambda x: x * 4, "CUDA")
    mine.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    mine.impl("twice", lambda x: x.new_empty(x.shape), "Meta")
    x = engine.tensor([3.0], requires_grad=True)
    engine.ops.pieces.twice.default(x).backward()  # recorded as it runs
    assert x.grad.tolist() == [2.0]

    @engine.library.impl("pieces::thrice", "cpu")
    def thrice(x):
        return x * 3

    engine.library.define("pieces::thrice", "(Tensor x) -> Tensor")
    assert engine.ops.pieces.thrice(engine.ones(1)).tolist() == [3.0]


def test_what_is_missing_is_told(engine):
    plain = engine.library.custom_op("tests::plain", lambda x: x * 1, mutates_args=())
    with pytest.raises(RuntimeError, match="backward through tests::plain but no autograd formula was registered"):
        plain(engine.ones(2, requires_grad=True)).sum().backward()
    engine.library.register_fake("tests::spoken_of", lambda x: x)  # as libraries do whose C++ is not there
    with pytest.raises(AttributeError, match="'_OpNamespace' 'tests' object has no attribute 'spoken_of'"):
        engine.ops.tests.spoken_of  # noqa: B018
    with pytest.raises(ValueError, match="an operator's name is 'namespace::name', not 'plain'"):
        engine.library.custom_op("plain", lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match=r"kind is 'DEF'"):
        engine.library.Library("tests", "OTHER")
    with pytest.raises(OSError, match=r"Could not load this library: x\.so"):
        engine.ops.load_library("x.so")
    wrong = engine.library.custom_op("tests::wrong", lambda x, y: x * y, mutates_args=())
    wrong.register_autograd(lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="returned 1 gradients for 2 arguments"):
        wrong(engine.ones(2, requires_grad=True), engine.ones(2)).sum().backward()


def test_the_engines_functions_are_operators_of_aten(engine):
    x = engine.tensor([1.0, 2.0])
    assert engine.ops.aten.add.Tensor(x, x).tolist() == [2.0, 4.0]
    assert engine.ops.aten.relu.default is engine.ops.aten.relu  # a key of dictionaries
    assert repr(engine.ops.aten.add) == "<operator aten.add>"
    with pytest.raises(NotImplementedError, match=r"ops\.aten\._no_such: .* has no function of that name"):
        engine.ops.aten._no_such.default(x)
