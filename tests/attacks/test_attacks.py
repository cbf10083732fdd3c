"""Programs that crashed, answered wrongly or misled once, found by hostile use."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections import OrderedDict, defaultdict, deque

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import AllocationError, ArgumentError, IndexRangeError, ShapeError, TraceError
from tests.bits import assert_all_same_bits, assert_same_bits
from tests.conftest import ROOT

RNG = np.random.default_rng(7)
X = RNG.normal(size=(5, 4)).astype(np.float32)
T = np.array([0, 1, 2, 3, 3])


def losses(tw, x, t):
    """Three cross-entropies of one input, with first and second derivatives."""
    x = x.detach().requires_grad_()
    outputs = [tw.nn.functional.cross_entropy(x, t, reduction=how) for how in ("mean", "sum", "none")]
    loss = sum((y * tw.cos(y.detach() * 3 + 0.3)).sum().to(tw.float64) for y in outputs)
    (g,) = tw.autograd.grad(loss, x, create_graph=True)
    return *(y.detach() for y in outputs), g.detach(), tw.autograd.grad((g * tw.sin(g.detach())).sum(), x)[0]


def test_groups_that_stretch_across_others_form_no_cycle():
    compiled = static.function(lambda x, t: losses(static, x, t))(X, T)
    eager = losses(dynamic, dynamic.tensor(X), dynamic.tensor(T))
    assert_all_same_bits(compiled, [y.payload for y in eager], "compiled against eager")


def test_a_failing_index_names_its_own_op_and_no_size_of_another_call():
    f = static.function(lambda x, t: static.nn.functional.cross_entropy(static.tanh(x), t))
    f(X, T)
    with pytest.raises(IndexRangeError, match=r"nll_loss\(\): .*index 6 .* with size 6"):
        f(np.ones((5, 6), np.float32), T + 4)


def test_sizes_among_results_are_those_of_the_call():
    f = static.function(lambda x: (x * 2, x.shape[0], x.shape))
    assert f(X)[1:] == (5, (5, 4))
    assert f(X[:3])[1:] == (3, (3, 4))


class Scale:
    """An object with a compiled method."""

    def __init__(self, factor):
        self.factor = factor

    @static.function
    def apply(self, x):
        return x * self.factor


def test_a_compiled_method_belongs_to_its_object():
    assert_all_same_bits([Scale(2).apply(X), Scale(3).apply(X)], [X * 2, X * np.float32(3)], "methods")


def number_programs():
    """Programs of an array and a number, by what they do with the number."""
    return {
        "an int divided": lambda tw, x, n: x * (n / 3),
        "a function of a number": lambda tw, x, n: x * tw.tanh(n * 0.1) + tw.exp(n * 0.01),
        "a tensor of a number": lambda tw, x, n: x + tw.tensor(n),
        "a branch": lambda tw, x, n: x * 2 if n * 0.5 > 1 else -x,
        "truth": lambda tw, x, n: x if n else -x,
        "a range": lambda tw, x, n: sum((x * i for i in range(int(n))), x),
        "floor and remainder": lambda tw, x, n: x * (n // 2) + n % 3,
        "rounding": lambda tw, x, n: x * round(n) + float(n) + max(n, 2),
        "a negative power": lambda tw, x, n: x * (n + 1) ** -1,
        "a power of a literal": lambda tw, x, n: x * 0.9**n,
        "a number times a size": lambda tw, x, n: x * (n * x.shape[0]),
    }


@pytest.mark.parametrize("name", number_programs())
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_number_arguments(name, dtype):
    program = number_programs()[name]
    eager = dynamic.function(lambda x, n: program(dynamic, x, n))
    x = np.arange(-3, 4).astype(dtype)
    compiled = static.function(lambda x, n: program(static, x, n))
    for n in (3, 0, 5, 2.5, 0.1, 3, -0.0, 0.0, 7):
        assert_all_same_bits([compiled(x, n)], [eager(x, n).payload], f"{name} with {n!r}")


def test_a_number_used_as_a_python_number_is_explained():
    f = static.function(lambda x, n: sum((x * i for i in range(n)), x))
    f(X, 3)
    f(X[:2], 3)
    assert "argument 1 == 3" in str(f.explain())
    f(X, 4)
    assert len(f.traces) == 2


def test_numbers_that_are_used_twice_over_and_over():
    def doubled(x, n):
        for _ in range(60):
            n = n * 0.5 + n * 0.5
        return x * n**2 if n > 1 else x

    x = np.ones(3, np.float32)
    compiled = static.function(doubled)(x, 3.5)
    assert_all_same_bits([compiled], [dynamic.function(doubled)(x, 3.5).payload], "doubled")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_an_optimiser_is_copied_with_its_parameters_and_state(copied):
    p = dynamic.nn.Parameter(X)
    pair = [dynamic.optim.Adam([p], lr=0.1)]
    pair[0].param_groups[0]["lr"] = 0.01
    for step in range(3):
        if step == 1:
            pair.append(copied(pair[0]))
        for optimiser in pair:
            (q,) = optimiser.param_groups[0]["params"]
            optimiser.zero_grad()
            (q * q * q).sum().backward()
            optimiser.step()
    first, second = (optimiser.param_groups[0]["params"][0] for optimiser in pair)
    assert first is not second
    assert_all_same_bits([second.payload], [first.payload], "copied optimiser")


def test_replacing_a_parameters_array_inside_a_trace_is_refused():
    p = dynamic.nn.Parameter(np.ones(4, np.float32))
    t = dynamic.tensor(np.ones(4, np.float32), requires_grad=True)

    def assign_parameter(x):
        p.data = p.data - 0.1 * x
        return x * 1

    def assign_tensor(x):
        y = (t * x).sum()
        t.data = t.data - x
        return y

    for function, owner in ((assign_parameter, p), (assign_tensor, t)):
        before = owner.payload
        with pytest.raises(TraceError, match=r"copy_\(value\)"):
            static.function(function)(X)
        assert owner.payload is before
    p.data = np.full(4, 2, np.float32)  # outside it is allowed
    assert (p * 1).tolist() == [2, 2, 2, 2]


def test_numbers_that_specialise_keep_their_plans():
    f = static.function(lambda x, n: x * n if n > 2 else x)
    for _ in range(5):
        assert_same_bits(f(X, 3), X * np.float32(3), "times 3")
        assert_same_bits(f(X, 1), X, "as it is")
    assert f.plans_made == 2
    assert len(f.traces) == 2


def test_joining_many_tensors_is_linear():
    parts = [dynamic.tensor(np.full(3, i, np.float32), requires_grad=True) for i in range(300)]
    joined = dynamic.stack(parts)
    (joined * joined).sum().backward()
    assert joined.shape == (300, 3)
    assert all(part.grad.tolist() == [2.0 * i] * 3 for i, part in enumerate(parts))
    assert static.cat([np.full(2, i) for i in range(70)]).tolist() == np.repeat(np.arange(70), 2).tolist()


def test_a_write_that_would_be_lost_is_refused():
    add = static.function(lambda x, y: (x.add_(y), x * 1)[1])
    with pytest.raises(ArgumentError, match="write would be lost"):
        add(X.astype(">f4"), X)
    z = X.copy()
    add(z, X)
    assert np.asarray(z).tobytes() == (X + X).tobytes()


def too_large():
    """Results that no memory holds, as calls on an engine."""
    return {
        "a product": lambda tw: tw.zeros(1, 1).expand(1 << 31, 1) @ tw.zeros(1, 1).expand(1, 1 << 30),
        "of nothing": lambda tw: tw.zeros(1 << 40, 0) @ tw.zeros(0, 1 << 20),
        "a little less": lambda tw: (tw.zeros(1 << 20, 1) @ tw.zeros(1, 1 << 20)).cumsum(0) + 1,
        "an operator": lambda tw: tw.zeros(1 << 20, 1) * tw.zeros(1, 1 << 20) - 1,
        "a sign": lambda tw: -tw.zeros(1).expand(1 << 45),
        "sizes": lambda tw: tw.zeros(1).expand(1 << 40, 1 << 22).sum(),
    }


@pytest.mark.parametrize("name", too_large())
def test_what_no_memory_holds_is_refused_alike(name):
    program, x = too_large()[name], np.zeros(1, np.float32)
    calls = [lambda: program(dynamic)]
    if name != "sizes":
        calls.append(lambda: static.function(lambda x: program(static))(x))
    if name not in ("sizes", "an operator", "a sign"):  # those a compiled program does not make
        calls.append(lambda: static.function(lambda x: x + program(static).sum())(x))
    for call in calls:
        with pytest.raises(
            AllocationError,
            match=r"\(\): (the result does not fit into memory: (Unable|array is|temp|it has|can)|an operand of shape)",
        ):
            call()


def test_an_int_that_is_no_int64_is_refused_by_name():
    f = static.function(lambda x, n: x * n)
    for n in (2**63, 3, 2**63, -(2**70)):
        if n == 3:
            assert f(np.ones(2), n).tolist() == [3, 3]
            continue
        with pytest.raises(ArgumentError, match=f"the number {n} does not fit into int64"):
            f(np.ones(2), n)


@pytest.mark.parametrize("bias", [(8, 4), (2, 4), (2, 1), (5,), (1, 1, 4)])
@pytest.mark.parametrize("rows", [(3,), (1, 3), (0, 3)])
def test_a_bias_makes_no_product_larger(rows, bias):
    """PyTorch refuses them; a result of the wrong shape was cut down to the right one."""
    arrays = [np.ones(shape, np.float32) for shape in (rows, (4, 3), bias)]
    linear = dynamic.nn.functional.linear
    for call in (
        lambda: linear(*map(dynamic.tensor, arrays)),
        lambda: static.function(static.nn.functional.linear)(*arrays),
    ):
        with pytest.raises(ShapeError, match=r"linear: the bias of shape .* does not expand"):
            call()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("number", [-1, 300, 2**40 + 3])
def test_numbers_beyond_a_dtype_wrap_in_arithmetic_and_are_refused_elsewhere(number, dtype):
    def wrapped(tw, x, n):
        return x * number, x + n

    held = {
        "clamp": lambda tw, x: tw.clamp(x, max=number),
        "where": lambda tw, x: tw.where(x > 0, x, number),
        "pad": lambda tw, x: tw.pad(x, (1, 0), value=number),
    }
    x = np.array([0, 1, 3], dtype)
    eager = dynamic.function(lambda x, n: wrapped(dynamic, x, n))(x, number)
    compiled = static.function(lambda x, n: wrapped(static, x, n))(x, number)
    assert_all_same_bits(compiled, [y.payload for y in eager], "numbers")
    for name, f in held.items():
        calls = lambda f=f: f(dynamic, dynamic.tensor(x)), lambda f=f: static.function(lambda x: f(static, x))(x)
        if number <= np.iinfo(dtype).max:
            assert_all_same_bits(calls[1](), calls[0]().payload, name)
            continue
        for call in calls:
            with pytest.raises(ArgumentError, match=f"{name}.*without overflow"):
                call()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_first_gradient_of_mixed_dtypes_is_that_of_all_others(dtype):
    """numpy makes float64 of float32 and int32."""
    rng = np.random.default_rng(3)
    x, t = rng.normal(size=(4, 5)).astype(np.float32), rng.integers(-4, 5, (4, 5)).astype(dtype)

    def gradient(tw):
        return tw.grad(lambda x, t: tw.nn.functional.mse_loss(x, t).square())

    expected = static.function(gradient(static))(x, t)
    for _ in range(3):
        assert_all_same_bits([gradient(dynamic)(x, t)], [expected], "gradients")


@pytest.mark.parametrize("kind", [OrderedDict, lambda items: defaultdict(list, items)], ids=["ordered", "default"])
def test_dictionaries_of_all_kinds_are_trees(kind):
    x = {name: X * i for i, name in enumerate(("b", "a", "c"))}

    def f(tw, tree):
        state = tw.fori_loop(0, 2, lambda _, t: t, tree)
        return kind({name: tw.tanh(y) for name, y in state.items()})

    compiled = static.function(lambda tree: f(static, tree))
    for _ in range(3):  # traced, planned, called
        found = compiled(kind(x))
        assert type(found) is type(kind(x))
        assert list(found) == list(x)
        assert getattr(found, "default_factory", None) is getattr(kind(x), "default_factory", None)
    eager = dynamic.function(lambda tree: f(dynamic, tree))(kind(x))
    assert_all_same_bits(list(found.values()), [y.payload for y in eager.values()], "values")
    gradients = static.function(static.grad(lambda tree: (tree["a"] * tree["c"]).sum()))(kind(x))
    assert type(gradients) is type(found)
    assert_all_same_bits([gradients["a"], gradients["b"]], [x["c"], np.zeros_like(X)], "gradients")


@pytest.mark.parametrize(
    "hide",
    [
        lambda x: {x},
        lambda x: deque([x]),
        lambda x: (y for y in [x]),
        lambda x: {"a": x}.values(),
        lambda x: map(abs, [x]),
    ],
)
def test_results_whose_values_only_the_trace_has_are_refused(hide):
    with pytest.raises(ArgumentError, match="return them in tuples, lists or dictionaries"):
        static.function(lambda x: (x, hide(x)))(X)


LAST_WORDS = """
import builtins, encodings, sys, threading
import numpy as np
import dynamic, static

f = static.function(lambda x: (x.tanh() * 2) @ x)
x = np.full((3, 3), 0.5, np.float32)
f(x), f(x)

class Last:
    def __init__(self, f):
        self.f, self.x = f, x

    def __del__(self):
        self.f(self.x)

for module in (builtins, encodings, sys, threading, np, static):
    module.last_words = [Last(f), Last(lambda x: dynamic.tanh(x) * 2)]
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_finalisers_that_call_compiled_functions_when_the_interpreter_ends(threads):
    """Modules are cleared by then, so Python may complain; machine code must still be there."""
    code = f"{LAST_WORDS}\nstatic.set_num_threads({threads})"
    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
