"""`autograd.grad`, higher order, and the functional transforms."""

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import ArgumentError, DTypeError, GradientError, GraphFreedError

pytestmark = pytest.mark.quick

rng = np.random.default_rng(0)


def leaf(*values):
    return tw.tensor(list(values), requires_grad=True)


def test_grad_returns_and_leaves_dot_grad_alone():
    x, w = leaf(2.0), leaf(3.0)
    gx, gw = tw.autograd.grad((x * x * w).sum(), [x, w])
    assert (gx.tolist(), gw.tolist(), x.grad, w.grad) == ([12.0], [4.0], None, None)


def test_grad_of_an_intermediate_result():
    x = leaf(2.0)
    y = x * 3
    (g,) = tw.autograd.grad((y * y).sum(), y)
    assert g.tolist() == [12.0]


def test_grad_of_a_result_and_what_it_depends_on():
    x = leaf(2.0)
    y = x * 3
    gy, gx = tw.autograd.grad((y * y).sum() + x.sum(), [y, x])
    assert (gy.tolist(), gx.tolist()) == ([12.0], [37.0])


@pytest.mark.parametrize("engine", [tw, static], ids=["dynamic", "static"])
def test_a_quotient_may_be_written_over(engine):
    """Its gradient needs the operands only, as in PyTorch: programs scale and shift what they have normalised."""

    def scaled(x, n):
        y = x / n
        y *= 2
        y += 1
        return (y * y).sum()

    found = engine.function(engine.grad(scaled, argnums=(0, 1)))(np.array([1.0, -3.0]), np.array([4.0, 0.5]))
    for values, expected in zip(found, ([1.5, -88.0], [-0.375, -528.0]), strict=True):
        assert values.tolist() == expected


def test_unused_inputs():
    x, other = leaf(1.0), leaf(1.0, 2.0)
    y = (x * 2).sum()
    with pytest.raises(GradientError, match="appears to not have been used in the graph"):
        tw.autograd.grad(y, other, retain_graph=True)
    assert tw.autograd.grad(y, other, retain_graph=True, allow_unused=True) == (None,)
    (g,) = tw.autograd.grad(y, other, materialize_grads=True)
    assert g.tolist() == [0.0, 0.0]


def test_grad_frees_the_graph():
    x = leaf(1.0)
    y = (x * x).sum()
    tw.autograd.grad(y, x)
    with pytest.raises(GraphFreedError):
        tw.autograd.grad(y, x)


def test_create_graph_twice_and_thrice():
    x = leaf(2.0)
    y = (x**4).sum()
    (g,) = tw.autograd.grad(y, x, create_graph=True)
    (h,) = tw.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = tw.autograd.grad(h.sum(), x)
    assert (g.tolist(), h.tolist(), k.tolist()) == ([32.0], [48.0], [48.0])
    assert g.requires_grad
    assert not k.requires_grad


def test_backward_with_create_graph_keeps_history_in_dot_grad():
    x = leaf(3.0)
    (x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    (g,) = tw.autograd.grad(x.grad.sum(), x)
    assert g.tolist() == [2.0]


def test_gradient_penalty():
    # p = sum (w (1 - t^2))^2, t = tanh(w x); dp/dw = 2 w s (s - 2 w x t s), s = 1 - t^2
    x, w = leaf(1.0, 2.0), leaf(0.5, -1.0)
    (g,) = tw.autograd.grad((w * x).tanh().sum(), x, create_graph=True)
    (g * g).sum().backward()
    a, b = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    t = np.tanh(a * b)
    s = 1 - t * t
    assert np.allclose(w.grad.numpy(), 2 * b * s * (s - 2 * b * a * t * s), rtol=1e-5)


def test_create_graph_changes_no_bits():
    values = rng.standard_normal(37).astype(np.float32)

    def gradient(create_graph):
        x = tw.tensor(values, requires_grad=True)
        y = (x.sigmoid() * x.tanh() / (x * x + 1)).sum() + x.softmax(0).log().mean()
        return tw.autograd.grad(y, x, create_graph=create_graph)[0].detach().numpy().tobytes()

    assert gradient(False) == gradient(True)


# ------------------------------------------------------------------ transforms


def cube(x):
    return (x * x * x).sum()


def test_grad_transform_nests():
    x = tw.tensor(2.0)
    values = [f(x).item() for f in (cube, tw.grad(cube), tw.grad(tw.grad(cube)), tw.grad(tw.grad(tw.grad(cube))))]
    assert values == [8.0, 12.0, 12.0, 6.0]


def test_value_and_grad_of_several_arguments():
    value, (gx, gw) = tw.value_and_grad(lambda x, w: (x * w).sum(), (0, 1))(np.array([1.0, 2.0]), np.ones(2))
    assert (value.item(), gx.tolist(), gw.tolist()) == (3.0, [1.0, 1.0], [1.0, 2.0])
    g = tw.grad(lambda x, w: (x * w).sum(), argnums=-1)(tw.ones(2), tw.zeros(2))
    assert g.tolist() == [1.0, 1.0]


def test_structures_come_back_as_they_went_in():
    def loss(parameters, scale):
        return (parameters["w"] * parameters["b"][0]).sum() * scale

    g = tw.grad(loss)({"w": tw.tensor([1.0, 2.0]), "b": [tw.tensor([3.0, 4.0])]}, 2.0)
    assert g["w"].tolist() == [6.0, 8.0]
    assert g["b"][0].tolist() == [2.0, 4.0]


def test_has_aux():
    def f(x):
        return (x * x).sum(), x * 2

    g, aux = tw.grad(f, has_aux=True)(tw.tensor([3.0]))
    (value, again), _ = tw.value_and_grad(f, has_aux=True)(tw.tensor([3.0]))
    assert (g.tolist(), aux.tolist(), value.item(), again.tolist()) == ([6.0], [6.0], 9.0, [6.0])
    assert not aux.requires_grad
    assert not value.requires_grad


def test_pullbacks_can_be_called_again():
    y, pullback = tw.vjp(lambda a, b: (a * b, a + b), tw.tensor([2.0]), tw.tensor([5.0]))
    one, zero = tw.ones(1), tw.zeros(1)
    assert [v.tolist() for v in y] == [[10.0], [7.0]]
    assert [g.tolist() for g in pullback((one, zero))] == [[5.0], [2.0]]
    assert [g.tolist() for g in pullback((zero, one))] == [[1.0], [1.0]]
    with pytest.raises(ArgumentError, match="structure"):
        pullback(one)


def test_transforms_leave_no_traces_on_their_arguments():
    x = tw.tensor([3.0], requires_grad=True)
    with tw.no_grad():
        g = tw.grad(cube)(x)
    assert g.tolist() == [27.0]
    assert x.grad is None
    assert not g.requires_grad
    y = tw.tensor([3.0])
    tw.grad(cube)(y)
    assert not y.requires_grad
    gx, gy = tw.grad(lambda a, b: (a * a * b).sum(), (0, 1))(y, y)
    assert (gx.tolist(), gy.tolist()) == ([18.0], [9.0])


def test_an_outer_derivative_sees_through_a_transform():
    x = tw.tensor(2.0, requires_grad=True)
    tw.grad(cube)(x).backward()
    assert x.grad.item() == 12.0
    w = tw.tensor(5.0, requires_grad=True)
    g = tw.grad(lambda x: x * x * w)(tw.tensor(3.0))
    assert g.item() == 30.0
    g.backward()
    assert w.grad.item() == 6.0


def test_captured_values_are_constants_of_a_transform():
    x = tw.tensor(3.0, requires_grad=True)
    assert tw.grad(lambda a: a * x)(x).item() == 3.0


def test_functions_that_do_not_depend_on_their_argument():
    assert tw.grad(lambda x: tw.tensor(1.0))(tw.ones(2)).tolist() == [0.0, 0.0]
    assert tw.grad(lambda x, y: (y * 2).sum(), argnums=(0, 1))(tw.ones(1), tw.ones(2))[0].tolist() == [0.0]


def test_integers_are_not_differentiated():
    with pytest.raises(DTypeError, match="floating point"):
        tw.grad(lambda x: x.sum())(np.array([1, 2]))
    with pytest.raises(GradientError, match="scalar tensor, got tensor with 1 dims"):
        tw.grad(lambda x: x)(tw.ones(2))
    with pytest.raises(ArgumentError, match="argnum=1"):
        tw.grad(cube, argnums=1)(tw.ones(2))


@pytest.mark.parametrize("engine", [tw, static], ids=["dynamic", "static"])
def test_gradcheck_leaves_inputs_as_they_were_even_after_an_error(engine):
    x = engine.tensor([1.0, 2.0], dtype=engine.float64, requires_grad=True)
    spread = engine.tensor([3.0], dtype=engine.float64).expand(2).requires_grad_()  # one element of memory

    def run(y):
        if y.tolist() != before:
            raise ValueError("moved")
        return y * y

    for given in (x, spread):
        before, count = given.tolist(), given._version
        with pytest.raises(ValueError, match="moved"):
            engine.autograd.gradcheck(run, (given,))
        assert (given.tolist(), given._version) == (before, count)
        assert engine.autograd.gradcheck(lambda y: y * y, (given,))


@pytest.mark.parametrize("engine", [tw, static], ids=["dynamic", "static"])
def test_the_only_part_of_a_split_follows_its_base(engine):
    for cut in (lambda y: y.unbind()[0], lambda y: y.split(1)[0], lambda y: y.chunk(1)[0]):
        x = engine.tensor([[1.0, 2.0]], requires_grad=True)
        base = x.clone()
        part = cut(base)
        later = part[..., 1:]
        base.mul_(3)
        (part.sum() + later.sum()).backward()
        assert x.grad.tolist() == [[3.0, 6.0]]
        with engine.no_grad():
            part.zero_()
        assert base.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("engine", [tw, static])
def test_inputs_may_be_whatever_iterates_over_tensors(engine):
    held = engine.nn.ParameterList([engine.ones(2), engine.ones(3) * 2])
    loss = (held[0] ** 2).sum() + (held[1] ** 3).sum()
    first, second = engine.autograd.grad(loss, held, retain_graph=True)
    assert (first.tolist(), second.tolist()) == ([2, 2], [12, 12, 12])
    loss.backward(inputs=held)
    assert (held[0].grad == first).all()
