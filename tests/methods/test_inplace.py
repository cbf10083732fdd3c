"""In-place operations: what they may write, and what backward says about it."""

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import DTypeError, GradientError, ShapeError
from common.tensor.view_families import family_of
from tests.bits import assert_all_same_bits

pytestmark = pytest.mark.quick


def leaf(*values):
    return tw.tensor(list(values), requires_grad=True)


def test_in_place_forms_write_to_the_same_memory():
    x = tw.tensor([1.0, 2.0])
    array = x.numpy()
    y = x.add_(1).mul_(tw.tensor([2.0, 3.0])).sub_(0.5).div_(2)
    assert y is x
    assert np.shares_memory(x.numpy(), array)
    assert array.tolist() == [1.75, 4.25]
    x += 1
    x *= 2
    x -= tw.ones(2)
    x /= 4
    assert array.tolist() == [1.125, 2.375]
    x.copy_(np.float32([7, 8]))
    assert array.tolist() == [7.0, 8.0]
    assert x.fill_(3).tolist() == [3.0, 3.0]
    assert x.zero_().tolist() == [0.0, 0.0]


def test_history_follows_in_place_operations():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.mul_(3.0)
    y += x
    assert y.grad_fn.name() == "AddBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_overwriting_with_a_constant_ends_history():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.zero_()
    y += x
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_copy_into_a_plain_tensor_brings_history():
    x, buffer = leaf(1.0, 2.0), tw.zeros(3, 2)
    buffer.copy_(x)
    buffer.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_leaves_that_require_grad_are_protected():
    x = leaf(1.0)
    with pytest.raises(GradientError, match="a leaf Variable that requires grad is being used in"):
        x.add_(1)
    with tw.no_grad():
        x.add_(1)
    assert (x.tolist(), x.requires_grad, x.is_leaf) == ([2.0], True, True)


@pytest.mark.parametrize("use", [lambda y, w: y * w, lambda y, w: w * y, lambda y, w: w / y, lambda y, w: y.log()])
@pytest.mark.parametrize("write", [lambda y: y.add_(1), lambda y: y.zero_(), lambda y: y[1:].fill_(3)])
def test_writes_into_saved_values(use, write):
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * 2
    result = use(y, w)
    with tw.no_grad():
        write(y)
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        result.sum().backward()


def test_a_saved_output_is_protected_and_both_lines_are_named():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.add_(1)
    with pytest.raises(GradientError) as caught:
        y.sum().backward()
    first = test_a_saved_output_is_protected_and_both_lines_are_named.__code__.co_firstlineno
    made, written = f"{__file__}:{first + 2}", f"{__file__}:{first + 3}"
    assert f"saved by ExpBackward0 at {made} was overwritten at {written}" in str(caught.value)


def test_values_that_no_rule_will_read_may_be_overwritten():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * tw.tensor([5.0, 6.0])  # the constant's gradient is not wanted, so y is not needed
    with tw.no_grad():
        y.zero_()
    z.sum().backward()
    assert x.grad.tolist() == [5.0, 6.0]


def test_writes_to_other_parts_of_the_memory_do_not_matter():
    memory = tw.zeros(4)
    first, second = memory[:2], memory[2:]
    x = leaf(1.0, 2.0)
    y = first * x
    second.fill_(9)
    y.sum().backward()
    z = first * x
    first.fill_(9)
    with pytest.raises(GradientError, match="inplace"):
        z.sum().backward()


#: Parts of a memory of (4, 6): what an op saves, and what is written afterwards.
INTERLEAVED = {
    "columns": (lambda m: m[:, :3], lambda m: m[:, 3:]), "column of columns": (lambda m: m[:, :5], lambda m: m[:, 5]),
    "every other": (lambda m: m[:, ::2], lambda m: m[:, 1::2]), "rows": (lambda m: m[::2], lambda m: m[1]),
    "one element": (lambda m: m[:, 1], lambda m: m[2, 2:3]), "transposed": (lambda m: m.T[:2], lambda m: m.T[2:]),
    "triangles": (lambda m: m[:2, 2:], lambda m: m[1:, :2]),
}  # fmt: skip


@pytest.mark.parametrize("engine", [tw, static], ids=lambda e: e.__name__)
@pytest.mark.parametrize("name", INTERLEAVED)
def test_writes_between_the_elements_of_a_saved_array_do_not_matter(name, engine):
    saved, written = INTERLEAVED[name]
    memory = engine.arange(24.0).reshape(4, 6).clone()
    x = engine.tensor(2.0, requires_grad=True)
    y = (saved(memory) * x).sum()
    expected = float(saved(memory).numpy().sum())
    written(memory.data)[...] = 100.0
    y.backward()
    assert float(x.grad) == expected
    z = (saved(memory) * x).sum()
    saved(memory.data)[-1:] = 7.0
    with pytest.raises(GradientError, match="inplace"):
        z.backward()


@pytest.mark.parametrize("engine", [tw, static], ids=lambda e: e.__name__)
def test_every_write_between_is_remembered(engine):
    memory, x = engine.ones(4, 6), engine.tensor(2.0, requires_grad=True)
    y = (memory[:, :2] * x).sum()
    memory.detach()[:3:2, 1:4:2] = 5.0
    memory.detach()[:3, 3:] = 6.0  # a later write between those elements
    with pytest.raises(GradientError, match="inplace"):
        y.backward()


def test_writes_before_saving_do_not_matter():
    w = tw.ones(2)
    w.mul_(3)
    x = leaf(1.0, 2.0)
    y = (x * w).sum()
    tw.ones(2).add_(1)  # a later write elsewhere
    y.backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_looking_at_views_changes_nothing():
    """In PyTorch a view's node is made when somebody looks, which changes the order of additions."""
    found = []
    for look in (False, True):
        x = tw.tensor(np.random.default_rng(0).standard_normal(50).astype(np.float32), requires_grad=True)
        y = x * 2
        views = [y[i:] for i in range(8)]
        for i, view in enumerate(views):
            view.mul_(1.1)
            if look:
                assert [v.grad_fn.name() for v in views[i:]]
        total = sum((v * (0.1 + i)).tanh().sum() for i, v in enumerate(views))
        total.backward()
        found.append(x.grad.numpy().tobytes())
    assert found[0] == found[1]


def test_views_that_are_gone_leave_no_trace():
    y = leaf(1.0, 2.0, 3.0) * 2
    for _ in range(100):
        y[0:1].add_(1.0)
    family, *_ = family_of(y)
    assert family is None or len(family.views) < 40


def test_views_without_history_share_memory():
    x = tw.zeros(2, 3)
    x[1].fill_(5)
    x.T.add_(1)
    assert x.tolist() == [[1.0, 1.0, 1.0], [6.0, 6.0, 6.0]]


def test_shapes_and_dtypes_stay():
    x = tw.ones(2)
    with pytest.raises(ShapeError, match="does not fit"):
        x.add_(tw.ones(3, 2))
    with pytest.raises(DTypeError, match="can't be cast"):
        tw.tensor([1, 2]).add_(0.5)
    assert tw.tensor([1, 2], dtype=tw.float64).add_(1).dtype == tw.float64
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int8", "uint8", "bool"])
def test_large_memory_takes_one_number(dtype):
    values = {"f": [1.5, -0.0, float("nan"), -1e30], "i": [-3, 7], "u": [200], "b": [True]}[np.dtype(dtype).kind]
    for shape, part in (
        ((9001,), slice(None)),
        ((90, 91), slice(None)),
        ((9001,), slice(1, None)),
        ((90, 91), (slice(None), slice(1, None))),
    ):
        for value in [*values, 0]:
            expected = np.ones(shape, dtype)
            x = tw.from_numpy(expected.copy())
            expected[part] = value
            if type(value) is int and value == 0:
                x[part].zero_()
            else:
                x[part].fill_(value)
            assert_all_same_bits([x.numpy()], [expected], f"{shape} {part} {value}")
            x = tw.ones(shape, dtype=getattr(tw, dtype))
            x[part] = value
            assert_all_same_bits([x.numpy()], [expected], f"{shape} {part} {value}")


@pytest.mark.parametrize("value", [-0.0, 0.0, 2.5, float("-inf")])
def test_fill_writes_a_number_with_its_sign(run, value):
    """Recorded or not, in a trace or not; a tensor as the number, too."""

    def filled(tw, x, v):
        x = tw.as_tensor(x)
        plain, recorded, given = x * 1, x.detach().requires_grad_() * 1, x * 1
        for y, number in ((plain, value), (recorded, value), (given, v)):
            y.fill_(number)
        return plain, recorded.detach(), given

    results = run(filled, np.ones(3, np.float32), np.array(value))
    assert [[str(number) for number in result] for result in results] == [[str(value)] * 3] * 3
