"""In-place forms that write where they read give the bits of the general way, and leave what it leaves."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as tw
import static
from common.tensor import write_log
from dynamic.eager import writing_kernels
from dynamic.eager.remembered import OFTEN
from tests.bits import assert_same_bits

#: Per call what it comes to, and whether it is remembered: as one kernel, or as ops whose result is copied.
CALLS = {
    "add": (lambda x, y: x.add_(y), lambda x, y: x + y, True),
    "alpha": (lambda x, y: x.add_(y, alpha=-0.25), lambda x, y: x - 0.25 * y, True),
    "operator": (lambda x, y: x.__imul__(0.5), lambda x, y: x * 0.5, True),
    "itself": (lambda x, y: x.mul_(x), lambda x, y: x * x, True),
    "a row": (lambda x, y: x.sub_(y[0]), lambda x, y: x - y[0], True),
    "a column": (lambda x, y: x.div_(y[:, :1].contiguous()), lambda x, y: x / y[:, :1], True),
    "clamp": (lambda x, y: x.clamp_(-0.5, 0.5), lambda x, y: x.clamp(-0.5, 0.5), True),
    "clamp to ints": (lambda x, y: x.clamp_(0, 1), lambda x, y: x.clamp(0, 1), True),
    "addcmul": (lambda x, y: x.addcmul_(y, y, value=0.25), lambda x, y: tw.addcmul(x, y, y, value=0.25), True),
    "lerp": (lambda x, y: x.lerp_(y, 0.25), lambda x, y: tw.lerp(x, y, 0.25), True),
    "power": (lambda x, y: x.pow_(3), lambda x, y: x**3, True),
    "tanh": (lambda x, y: x.tanh_(), lambda x, y: x.tanh(), True),
    "a comparison": (lambda x, y: x.lt_(y), lambda x, y: (x < y).to(x.dtype), False),
    "rows summed": (lambda x, y: x.cumsum_(1), lambda x, y: x.cumsum(1), True),
}


def test_pairs_of_numbers_are_told_apart():
    """1 and 1.0, 0.0 and -0.0, one order and the other; of calls that are known and of those that are not."""
    x = np.linspace(-2, 2, 37, dtype=np.float32)
    pairs = [(-1, 1), (-1.0, 1), (0.0, 1.0), (-0.0, 1.0), (0, 1), (1, 0), (-1.5, float("nan")), (-0.5, 0.5)]
    for _ in range(6):
        for low, high in pairs:
            assert_same_bits(tw.tensor(x).clamp_(low, high).numpy(), tw.clamp(x, low, high).numpy(), f"{low}, {high}")


@pytest.mark.parametrize("name", CALLS)
def test_bits_are_those_of_the_function(name, monkeypatch):
    write, function, is_remembered = CALLS[name]
    learn, made = writing_kernels._learnt, []
    with tw.inference_mode():  # which other tests may have entered, too
        pass
    monkeypatch.setattr(writing_kernels, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    rng, shape = np.random.default_rng(3), (6, len(name) + 3)  # forms that no other test has
    for dtype in ("float32", "float64"):
        for _ in range(OFTEN + 2):
            x, y = (rng.normal(size=shape).astype(dtype) for _ in range(2))
            x[0, :4] = 0.0, -0.0, np.nan, np.inf
            target, other = tw.from_numpy(x), tw.from_numpy(y)
            wanted = function(tw.tensor(x), other).numpy()
            assert write(target, other) is target
            assert target.numpy().tobytes() == wanted.tobytes()
    assert all(made) if is_remembered else not any(made)
    assert made or not is_remembered


def test_ints_are_written_by_what_is_remembered():
    count, twice = tw.tensor(0), tw.arange(4)
    for _ in range(OFTEN + 5):
        count.add_(1)
        twice.mul_(2)
    assert count.item() == OFTEN + 5
    assert twice.tolist() == [n * 2 ** (OFTEN + 5) for n in range(4)]
    for _ in range(OFTEN + 2):
        with pytest.raises(RuntimeError, match="cast"):
            count.add_(0.5)
    for _ in range(OFTEN + 2):
        version = count._version
        count.add_(1)
        assert count._version == version + 1


def test_what_the_kernel_may_not_do_takes_the_general_way():
    def often(call):
        for _ in range(OFTEN + 1):
            call()

    x = tw.arange(12.0).reshape(3, 4)
    often(lambda: x.add_(0.0 * x))
    x[1:].add_(x[:2])  # parts of the same memory
    assert x.tolist() == [[0, 1, 2, 3], [4, 6, 8, 10], [12, 14, 16, 18]]
    y = tw.zeros(4, 3)
    often(lambda: y.t().add_(x))  # a matrix that lies by columns
    assert y[2].tolist() == [26, 104, 208]
    p = tw.ones(3, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        p.add_(x)
    with tw.no_grad():
        often(lambda: p.add_(x * 0))
    z = tw.ones(3, 4) * 2
    often(lambda: z.add_(0.0 * x))
    loss = (z * p).sum()
    z.add_(x)  # the product has saved it
    with pytest.raises(RuntimeError, match="inplace operation"):
        loss.backward()
    q = p * 1
    q.add_(x)
    assert q.grad_fn.name() == "AddBackward0"


def _positive(x):
    return (x > 0) | (x != x)


#: Writes at masks and at rows by number, some of them twice.
PLACES = {
    "a number at a mask": lambda x, rows, y: x.__setitem__(_positive(x), 0.5),
    "a negative zero": lambda x, rows, y: x.__setitem__(_positive(x), -0.0),
    "an int": lambda x, rows, y: x.__setitem__(_positive(x), 7),
    "a number in rows": lambda x, rows, y: x.__setitem__(rows, 2.5),
    "rows from the end": lambda x, rows, y: x.__setitem__(rows - len(x), y[: len(rows), : x.shape[1]]),
    "its own rows": lambda x, rows, y: x.__setitem__(rows, x[rows] * 3),
    "a number at pairs": lambda x, rows, y: x.__setitem__((rows, -1 - rows % x.shape[1]), 2.5),
    "pairs": lambda x, rows, y: x.__setitem__((rows, rows % x.shape[1]), y[0, : len(rows)]),
    "too few columns": lambda x, rows, y: x.__setitem__((rows, rows % x.shape[1]), y[:1, : len(rows)]),
    "one row": lambda x, rows, y: x.__setitem__(rows, y[0, : x.shape[1]]),
}
PARTS = {"all": lambda x: x, "rows": lambda x: x[1:], "columns": lambda x: x.t(), "steps": lambda x: x[::2]}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", PLACES)
def test_masks_and_rows_are_written_as_in_a_compiled_program(name, part):
    def program(x, rows, y):
        whole = x.clone()
        shown = PARTS[part](whole)
        PLACES[name](shown, rows % len(shown), y)
        return whole

    rng = np.random.default_rng(5)
    x, y = (rng.normal(size=(9, 9)).astype("float32") for _ in range(2))
    x[0, :3] = np.nan, -0.0, np.inf
    given = x, np.array([3, 0, 3, 8, 1, 3]), y
    eager = program(*map(tw.tensor, given))
    assert eager.numpy().tobytes() == static.function(program)(*given).numpy().tobytes()
    shown = PARTS[part](eager)
    assert shown[_positive(shown)].numpy().tobytes() == shown.masked_select(_positive(shown)).numpy().tobytes()


def test_what_is_recorded_watched_or_wrong_at_masks_and_rows_goes_the_general_way():
    x = tw.ones(3, 2, requires_grad=True)
    y = x * 1
    y[tw.tensor([0, 2])] = 5.0
    y[y > 4] = 6.0
    y.sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 1], [0, 0]]
    y = x * 1
    y[tw.tensor([0, 2]), tw.tensor([1, 0])] = 5.0
    (gradient,) = tw.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [[1, 0], [1, 1], [0, 1]]
    for key in (tw.tensor([3]), (tw.tensor([1, 2]), tw.tensor([1, 2]))):
        with pytest.raises(IndexError, match="out of"):
            (kept := tw.ones(3, 2))[key] = 3.0
        assert kept.tolist() == [[1, 1]] * 3
    z, w = tw.ones(3), tw.ones(3, requires_grad=True)
    product = z * w
    z[z > 0] = 2.0
    with pytest.raises(RuntimeError, match="inplace"):
        product.sum().backward()
    with pytest.raises(RuntimeError, match="leaf"):
        w[tw.tensor([0])] = 1.0
    assert tw.ones(3).zero_().fill_(2.0).copy_(tw.arange(3.0)).tolist() == [0, 1, 2]
    for write in (lambda t: t.zero_(), lambda t: t.fill_(3.0), lambda t: t.copy_(tw.ones(3)), lambda t: t.add_(z)):
        product, version = z * w, z._version
        write(z)
        assert z._version == version + 1
        with pytest.raises(RuntimeError, match="inplace"):
            product.sum().backward()
        with pytest.raises(RuntimeError, match="leaf"):
            write(w)


def test_what_is_remembered_is_not_for_inference_tensors():
    with tw.inference_mode():
        made = tw.ones(5, 3)
    normal, weight = tw.zeros(5, 3), tw.ones(5, 3, requires_grad=True)
    for _ in range(OFTEN + 2):
        normal.add_(made).mul_(weight.detach()).zero_()
    mask = tw.tensor([True, False, False, False, True])
    for write in (
        lambda: made.add_(normal), lambda: made.mul_(2.0), lambda: made.zero_(), lambda: made.fill_(1.0),
        lambda: made.copy_(normal), lambda: made.__setitem__(mask, 2.0),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            write()
    recorded = weight * 1
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        recorded.mul_(made)
    assert made.tolist() == [[1.0] * 3] * 5


def _native():
    """The builtin that asks and logs, which is made after some calls."""
    x = tw.ones(2)
    for _ in range(OFTEN + 2):
        x.zero_()
    return writing_kernels.write


def test_what_may_be_overwritten_at_once():
    write, x = _native(), tw.ones(4, 3)
    assert write(x) is x.payload
    leaf, family = tw.ones(4, requires_grad=True), tw.ones(4)
    part = family[1:]
    read_only = np.ones(3, np.float32)
    read_only.flags.writeable = False
    declined = [leaf, leaf * 2, family, part, x.T, x.payload, None, tw.from_numpy(np.ones((3, 4), np.float32).T)]
    assert not any(write(z) is not None for z in declined)
    assert write(tw.as_tensor(np.broadcast_to(np.ones(1, np.float32), 3))) is None


def test_writes_are_logged_as_by_the_log_itself():
    _native()
    writes = {"zero": lambda x: x.zero_(), "fill": lambda x: x.fill_(2.0), "copy": lambda x: x.copy_(tw.ones(3)),
              "add": lambda x: x.add_(tw.ones(3)), "mul": lambda x: x.mul_(0.5)}  # fmt: skip
    for write in writes.values():
        for _ in range(OFTEN + 1):
            write(tw.ones(3))
        x = tw.ones(3)
        write(x)  # makes the log of that memory
        before, count = write_log.last_write, write_log.writes_to(x.payload)
        write(x)
        assert write_log.last_write > before
        assert write_log.writes_to(x.payload) == count + 1
        ((_, (number, low, _, code, _)),) = write_log._overlapping(x.payload)
        assert (number, low, code) == (write_log.last_write, 0, write.__code__)


def test_a_saved_value_that_was_overwritten_at_once_is_noticed():
    _native()
    leaf, x = tw.ones(3, requires_grad=True), tw.full((3,), 2.0)
    x.zero_()
    y = (leaf * x).sum()
    y.backward(retain_graph=True)
    x.fill_(3.0)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*test_writing_kernels"):
        y.backward()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"])
def test_zeros_are_written_to_a_tensor_and_nowhere_else(dtype):
    memory = np.ones((5, 6), dtype)
    whole = tw.from_numpy(memory)
    middle = whole[1:3]
    for _ in range(OFTEN + 1):
        version = whole._version
        assert middle.zero_() is middle
        assert whole._version == version + 1
    assert memory.sum() == 18
    assert not memory[1:3].any()
    every_second = tw.from_numpy(memory)[:, ::2]
    every_second.zero_()
    assert memory.sum() == 9
    alone = tw.ones(3, 4).to(whole.dtype)
    version = alone._version
    assert not alone.zero_().any()
    assert alone._version == version + 1
    assert tw.zeros(0, dtype=whole.dtype).zero_().shape == (0,)


def test_zeros_are_no_way_around_what_a_write_is_refused_for():
    leaf = tw.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.zero_()
    assert leaf.tolist() == [1, 1, 1]
    x = leaf * 2
    y = x * x
    x.zero_()
    with pytest.raises(RuntimeError, match="modified"):
        y.sum().backward()


def test_ways_are_told_apart_by_values_and_types_of_numbers():
    x = tw.zeros(3, 3)
    for value in (2, 2.0, 0.0, -0.0, 1e-9, 2.5):
        for _ in range(OFTEN + 2):
            x.fill_(1.0)
            x.div_(value) if value else x.mul_(value)
            expected = 1 / value if value else value
            assert x.tolist() == [[pytest.approx(expected, rel=1e-6, abs=0)] * 3] * 3
            assert np.signbit(x.numpy()).all() == np.signbit(expected)
    y = tw.arange(9.0).reshape(3, 3)
    for _ in range(2):
        for alpha in range(1, 400):  # more than are kept
            x.zero_().add_(y, alpha=alpha)
            assert x[2, 2].item() == 8 * alpha


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_numbers_of_any_class_fill(dtype):
    """As a program does, and as numpy's cast."""
    for value in (0, 1, -3, 16777217, 2**62 + 1, True, False, 2.5):
        x = tw.ones(3, dtype=getattr(tw, dtype))
        program = static.function(lambda x, v=value: x.clone().fill_(v))
        if np.dtype(dtype).kind in "iu" and value > np.iinfo(dtype).max:
            for call in (x.fill_, lambda _, program=program: program(static.ones(3, dtype=getattr(static, dtype)))):
                with pytest.raises(ValueError, match="without overflow"):
                    call(value)
            continue
        assert x.fill_(value) is x
        expected = np.full(3, value).astype(dtype).tobytes()
        assert (
            x.numpy().tobytes() == program(static.ones(3, dtype=getattr(static, dtype))).numpy().tobytes() == expected
        )
        part = tw.zeros(4, 3, dtype=getattr(tw, dtype))
        part[:, 1].fill_(value)
        assert part[:, 1].numpy().tobytes() == np.full(4, value).astype(dtype).tobytes()
        assert not part[:, ::2].any()
    for y in (tw.ones(2), tw.ones(2, dtype=tw.int64)):
        with pytest.raises(ValueError, match=r"does not fit|without overflow"):
            y.fill_(2**64)
    leaf = tw.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.fill_(1)
    y = leaf * 2
    z = y * y
    with tw.no_grad():
        y.fill_(3)
    with pytest.raises(RuntimeError, match="modified"):
        z.sum().backward()
