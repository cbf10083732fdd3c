"""Classes and modes that take functions over: `__torch_function__`."""

import pickle
from typing import Any

import pytest


def _plain(tw):
    class Plain(tw.Tensor):
        pass

    return Plain


def _logging(tw, seen):
    class Logged(tw.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged


def _mode(tw, seen):
    from importlib import import_module

    overrides = import_module(f"{tw.__name__}.overrides")

    class Noted(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self, func.__name__))
            return func(*args, **(kwargs or {}))

    return Noted()


def results_have_the_class_of_the_operands(tw):
    Plain = _plain(tw)
    x = tw.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Plain)
    other = tw.ones(2, 2)
    for result in (
        x + 1, 1 + x, x + other, other + x, other * x, 2 - x, 2 / x, x**2, -x, x @ other, x == x, x > 1, x[0],
        x.T, x.data, x.detach(), x.clone(), x.to(tw.float64), x.sum(), x.mean(0), x.new_zeros(2), x.view(4),
        tw.relu(x), tw.stack([x, other]), tw.cat([other, x]), tw.zeros_like(x), tw.add(other, x), tw.matmul(other, x),
        tw.nn.functional.softmax(x, 0), tw.nn.functional.linear(other, x), tw.einsum("ij,jk->ik", other, x),
        tw.nn.Linear(2, 3)(x), tw.where(x > 1, x, other), tw.Tensor.add(other, x), tw.linalg.inv(x),
    ):  # fmt: skip
        assert type(result) is Plain
    for several in (x.max(0), x.split(1), x.unbind(), tw.sort(x), list(x), tw.chunk(x, 2), tw.linalg.qr(x)):
        assert all(type(part) is Plain for part in several)
    assert x.max(0).values.tolist() == [3.0, 4.0]
    assert type(tw.nn.Parameter(other) * 2) is tw.Tensor
    return x + 1


def what_is_no_tensor_is_itself(tw):
    x = tw.tensor([1.0, 2.0]).as_subclass(_plain(tw))
    assert x.tolist() == [1.0, 2.0]
    assert float(x.sum()) == 3.0
    assert len(x) == 2
    assert x.shape == (2,)
    assert x.dtype is tw.float32
    assert tw.equal(x, x)
    assert bool(x[0] > 0)
    assert repr(x) == "Plain([1., 2.])"


def the_memory_is_the_tensors(tw):
    base = tw.zeros(3)
    x = base.as_subclass(_plain(tw))
    x[0] = 5
    assert base.tolist() == [5.0, 0.0, 0.0]
    y = x
    x += 1
    assert x is y
    assert base.add_(1) is base
    assert x.tolist() == [7.0, 2.0, 2.0]


def gradients_go_through_a_class(tw):
    w = tw.tensor([1.0, 2.0], requires_grad=True)
    x = w.as_subclass(_plain(tw))
    assert not x.is_leaf
    (x * x).sum().backward()
    assert type(w.grad) is tw.Tensor
    leaf = tw.tensor([3.0, 4.0]).as_subclass(_plain(tw)).requires_grad_()
    (leaf**2 * w).sum().backward()
    assert leaf.is_leaf
    assert type(leaf.grad) is tw.Tensor
    return w.grad, leaf.grad


def a_class_sees_the_functions_by_their_names(tw):
    seen = []
    x = tw.ones(2).as_subclass(_logging(tw, seen))
    y = (x + 1) * 2 - x
    y[0], tw.stack([x, y]), tw.nn.functional.relu(x), x.sum(), x == y, x.shape, x.to(tw.float64), x.relu()
    assert seen == ["add", "mul", "sub", "__getitem__", "stack", "relu", "sum", "__eq__", "__get__", "to", "relu"]


def attributes_of_an_object_are_its_own(tw):
    class Named(tw.Tensor):
        def __new__(cls, data, name=""):
            return tw.as_tensor(data).as_subclass(cls)

        def __init__(self, data, name=""):
            self.name_of_it = name

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs)
            if isinstance(result, cls):
                result.name_of_it = "+".join(x.name_of_it for x in args if isinstance(x, cls))
            return result

    a, b = Named([1.0], "a"), Named([2.0], name="b")
    assert (a + b).name_of_it == "a+b"
    assert (a * 2).name_of_it == "a"
    assert type(a + b) is Named
    return a + b


def a_class_is_asked_before_the_class_that_it_inherits_from(tw):
    Plain = _plain(tw)

    class Below(Plain):
        pass

    x, y = tw.ones(2).as_subclass(Plain), tw.ones(2).as_subclass(Below)
    assert type(x + y) is Below
    assert type(y + x) is Below
    assert isinstance(y, Plain)
    assert issubclass(Below, tw.Tensor)
    with pytest.raises(TypeError):
        x + tw.ones(2).as_subclass(type("Apart", (tw.Tensor,), {}))


def tensors_are_made_by_a_class(tw):
    class Kept(tw.Tensor):
        pass

    x = Kept([1.0, 2.0])
    assert type(x) is Kept
    assert x.tolist() == [1.0, 2.0]
    y = tw.Tensor._make_subclass(Kept, tw.ones(2), True)
    assert y.requires_grad
    assert y.is_leaf
    assert type(y) is Kept
    with pytest.raises(TypeError):
        tw.ones(2).as_subclass(int)


class Scalar:
    """No tensor; it stands for a multiple of the identity."""

    handled: dict[Any, Any] = {}

    def __init__(self, n, value):
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in cls.handled:
            return NotImplemented
        return cls.handled[func](*args, **(kwargs or {}))


def objects_that_are_no_tensors_take_functions_over(tw):
    x = Scalar(5, 2.0)
    Scalar.handled = {
        tw.mean: lambda one: one.value / one.n,
        tw.add: lambda one, other: Scalar(one.n, one.value + other.value),
        tw.cat: lambda tensors, dim=0: (len(tensors), dim),
        tw.nn.functional.pad: lambda one, pad, value=None, **rest: (pad, value),
    }
    assert tw.mean(x) == 0.4
    assert tw.add(x, x).value == 4.0
    assert tw.cat([tw.ones(2), x], dim=1) == (2, 1)
    assert tw.nn.functional.pad(x, (1, 1), value=3.0) == ((1, 1), 3.0)
    with pytest.raises(TypeError):
        tw.mul(x, 2)


def the_innermost_mode_calls_the_functions(tw):
    seen = []
    outer, inner = _mode(tw, seen), _mode(tw, seen)
    x = tw.ones(2)
    with outer:
        y = x + 1
        with inner:
            z = tw.stack([x, y])
        w = z.sum().relu_()
        y.add_(w)[0].item()
    assert (x * 2).tolist() == [2.0, 2.0]
    names = [name for mode, name in seen if mode is outer]
    assert names == ["add", "stack", "sum", "relu_", "add_", "__getitem__", "item"]
    assert [name for mode, name in seen if mode is inner] == ["stack"]
    return y


def a_mode_may_enter_another_one_when_it_is_asked(tw):
    from importlib import import_module

    seen = []
    overrides = import_module(f"{tw.__name__}.overrides")

    class Nested(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            with _mode(tw, seen):
                return func(*args, **(kwargs or {}))

    x = tw.ones(2)
    with Nested():
        y = tw.add(x, 1)
    z = x * y
    assert [name for _, name in seen] == ["add"]
    return z


def a_mode_sees_classes_before_they_are_asked(tw):
    seen = []
    Plain = _plain(tw)
    with _mode(tw, seen):
        y = tw.relu(tw.ones(2).as_subclass(Plain) + 1)
    assert [name for _, name in seen][-2:] == ["add", "relu"]
    assert type(y) is Plain


def a_function_of_a_program_can_be_taken_over(tw):
    from importlib import import_module

    overrides = import_module(f"{tw.__name__}.overrides")
    seen = []

    @overrides.wrap_torch_function(lambda x, y: (x, y))
    def twice(x, y):
        return x * 2

    def told(x):
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(told, (x,), x)
        return "told"

    x = tw.ones(2).as_subclass(_logging(tw, seen))
    assert type(twice(x, 1)) is type(x)
    assert seen == ["twice"]
    assert told(tw.ones(1)) == "told"
    assert not overrides.has_torch_function((tw.ones(1), tw.nn.Parameter(tw.ones(1)), 3))
    assert overrides.is_tensor_like(Scalar(1, 1))
    assert not overrides.is_tensor_like(3)


def a_pickle_keeps_class_and_attributes(tw):
    global Kept
    Kept = type("Kept", (tw.Tensor,), {"__module__": __name__, "__qualname__": "Kept"})
    x = tw.tensor([1.0, 2.0]).as_subclass(Kept)
    x.note = "n"
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is Kept
    assert y.note == "n"
    return y


def modules_keep_the_class(tw):
    x = tw.ones(2, 3).as_subclass(_plain(tw))
    nn = tw.nn

    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4))

        def forward(self, x):
            return self.inner(x) * 2

    model = Mine()
    seen = []
    model.inner[1].register_forward_hook(lambda module, given, result: seen.append(type(result)))
    y = model(x)
    assert type(y) is type(x)
    assert seen == [type(x)]
    assert type(nn.Conv1d(3, 1, 1)(tw.ones(1, 3, 2).as_subclass(type(x)))) is type(x)
    y.sum().backward()
    assert type(model.inner[0].weight.grad) is tw.Tensor


def a_mode_without_its_function_is_refused(tw):
    from importlib import import_module

    overrides = import_module(f"{tw.__name__}.overrides")
    with pytest.raises(NotImplementedError), overrides.TorchFunctionMode():
        tw.ones(1)
