"""Modules as functions of their parameters."""

import pytest


def _model(tw):
    class Model(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = tw.nn.Linear(2, 3)
            self.scale = tw.nn.Parameter(tw.ones(3))

        def forward(self, x):
            return self.first(x) * self.scale

    return Model()


def calling_with_functional_call(tw):
    m = _model(tw)
    x = tw.ones(1, 2)
    given = {n: tw.zeros_like(p) for n, p in m.named_parameters()}
    y = tw.func.functional_call(m, given, (x,))
    assert y.tolist() == [[0.0, 0.0, 0.0]]
    assert m.scale.tolist() == [1.0, 1.0, 1.0]
    other = {"scale": tw.full((3,), 2.0)}
    assert tw.func.functional_call(m, other, x).tolist() == (m(x) * 2).tolist()
    assert tw.func.functional_call(m, other, (), {"x": x}).tolist() == (m(x) * 2).tolist()


def functional_call_is_differentiated(tw):
    m = tw.nn.Linear(2, 1)
    params = dict(m.named_parameters())
    x = tw.tensor([[1.0, 2.0]])
    grads = tw.func.grad(lambda p: tw.func.functional_call(m, p, (x,)).sum())(params)
    assert {n: g.tolist() for n, g in grads.items()} == {"weight": [[1.0, 2.0]], "bias": [1.0]}
    assert m.weight.grad is None


def functional_call_with_tied_weights(tw):
    m = tw.nn.Module()
    m.a = tw.nn.Linear(1, 1, bias=False)
    m.b = tw.nn.Linear(1, 1, bias=False)
    m.b.weight = m.a.weight
    m.forward = lambda x: m.a(x) + m.b(x)
    w = tw.tensor([[3.0]])
    x = tw.ones(1, 1)
    assert tw.func.functional_call(m, {"a.weight": w}, x).tolist() == [[6.0]]
    one = tw.func.functional_call(m, {"a.weight": w}, x, tie_weights=False).tolist()[0][0]
    assert one == pytest.approx(3.0 + m.a.weight.item())
    assert m.a.weight is m.b.weight


def functional_call_restores_after_errors(tw):
    class Failing(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = tw.nn.Parameter(tw.ones(1))

        def forward(self, x):
            raise KeyError("inside")

    m = Failing()
    w = m.w
    with pytest.raises(KeyError, match="inside"):
        tw.func.functional_call(m, {"w": tw.zeros(1)}, tw.ones(1))
    assert m.w is w


def functional_call_strictly(tw):
    m = tw.nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="weight"):
        tw.func.functional_call(m, {"bias": tw.zeros(1)}, tw.ones(1, 1), strict=True)
    with pytest.raises(RuntimeError, match="extra"):
        tw.func.functional_call(m, {**dict(m.named_parameters()), "extra": tw.zeros(1)}, tw.ones(1, 1), strict=True)


def parameters_as_a_vector(tw):
    m = tw.nn.Linear(2, 1)
    v = tw.nn.utils.parameters_to_vector(m.parameters())
    assert v.shape == (3,)
    assert v.requires_grad
    tw.nn.utils.vector_to_parameters(tw.tensor([1.0, 2.0, 3.0]), m.parameters())
    assert (m.weight.tolist(), m.bias.tolist()) == ([[1.0, 2.0]], [3.0])


def stacked_modules(tw):
    models = [tw.nn.Linear(1, 1) for _ in range(3)]
    params, buffers = tw.func.stack_module_state(models)
    assert params["weight"].shape == (3, 1, 1)
    assert params["weight"].requires_grad
    assert buffers == {}
    x = tw.ones(1, 1)
    y = tw.func.vmap(lambda p: tw.func.functional_call(models[0], p, (x,)))(params)
    assert y.tolist() == [m(x).tolist() for m in models]


def attributes_and_what_a_module_assigns(tw):
    class Counts(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", tw.zeros(1))
            self.scale = tw.ones(2)

        def forward(self, x, *, shift=0):
            self.count = self.count + 1
            extra = self.extra if hasattr(self, "extra") else 0
            return x * self.scale + shift + extra

    m, count = Counts(), tw.tensor([2.0])
    state = {"count": count, "scale": tw.tensor([2.0, 3.0])}
    y = tw.func.functional_call(m, state, tw.ones(2), {"shift": 1})
    assert y.tolist() == [3.0, 4.0]
    assert (state["count"].item(), count.item(), m.count.item(), m.scale.tolist()) == (3.0, 2.0, 0.0, [1.0, 1.0])
    assert tw.func.functional_call(m, {"extra": tw.tensor(5.0)}, tw.ones(2)).tolist() == [6.0, 6.0]
    assert not hasattr(m, "extra")
    assert m.count.item() == 1
