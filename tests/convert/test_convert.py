"""`control_flow="convert"`: what is rewritten, what stays Python's, what is refused and where."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, EscapedTracerError, ShapeError, TraceError
from tests.bits import assert_same_bits

X = np.array([1.0, 2.0, 3.0], np.float32)
SCALE = 2.0


def same(f, *arguments, traces=1):
    """Converted in both engines and plain: the same bits; one trace for all paths."""
    fast, slow = (tw.function(f, control_flow="convert") for tw in (static, dynamic))
    for args in arguments:
        expected = f(*(dynamic.tensor(x) if isinstance(x, np.ndarray) else x for x in args)).payload
        assert_same_bits(fast(*args), expected, f.__name__)
        assert_same_bits(slow(*args).payload, expected, f"{f.__name__}, eager")
    assert len(fast.traces) == traces, fast.retraces
    return fast


def helper(v):
    if v.sum() > 0:
        return v.sin()
    return v.cos()


def test_branches_and_early_returns():
    def early(x):
        if x.sum() > 10:
            return x * SCALE
        y = x + 1
        if x.sum() > 3:
            return y * x
        elif x.sum() > 1:
            y = y * 3
        return helper(y) + (x if x.max() > 2 else -x)

    f = same(early, (X,), (X * 2,), (X / 4,), (-X,))
    lines = {node.source[1] for node in f.newest.graph.nodes if node.regions}
    first = early.__code__.co_firstlineno
    assert first + 1 in lines, "a branch has the line of its if"
    assert {node.source[2] for node in f.newest.graph.nodes if node.regions} == {"early"}


def test_loops_with_break_continue_and_return():
    def loops(x):
        total, i = x * 0, 0
        while True:
            i += 1
            if i > 10:
                break
            if total.sum() > 7:
                break
            if x.sum() < 0:
                total = total - 1
                continue
            total = total + x.sin()
        for v in x:
            if v > 2:
                continue
            if v > 8:
                break
            total = total + v
        for k in range(5):
            x = x * 2
            while x.sum() < 40:
                x = x + 1
                if x[0] > 9:
                    return x * 0 + k
            if x.sum() > 100:
                return x - total
        return total * i

    same(loops, (X,), (X * 9,), (-X,), (X * 7,), (-X * 100,))


def test_ranges_of_tensors():
    def nested(x, n):
        for i in range(n):
            for j in range(1, i, 2):
                x = x + i * j
        for i in range(n, 0, -1):
            x = x - i
        return x

    same(nested, *((X, np.array(n)) for n in (0, 1, 4, 7)))


def test_what_is_not_traced_is_left_alone():
    ran = []

    def python(x, flag=True, count=3):
        out = []
        for i in range(count):
            if flag and i != 1 and 0 <= i < 9:
                out.append(x * i)
        ran.append(len(out))
        return sum(out, x * 0) if flag else x

    same(python, (X,))
    assert set(ran) == {2}
    f = static.function(python, control_flow="convert")
    assert not any(node.regions for node in (f(X), f.newest.graph.nodes)[1])


def test_numbers_that_become_tensors():
    def fibonacci(x):
        n, m = 0, 1
        while x.sum() < 50:
            n, m = m, n + m
            x = x + 3
        return x * n

    same(fibonacci, (X,), (X * 9,))

    def logic(x):
        a, b = x[0], x[1]
        if 0 < a < b and not (b > 4 or a == 2):
            return x
        return -x

    same(logic, (X,), (X * 2,), (-X,), (X * 3,))
    same(lambda x: x * 2 if x.sum() > 0 else x - 1, (X,), (-X,))


def test_writes_in_place_are_to_the_branchs_own():
    def write(x):
        y = x * 1
        if x.sum() > 0:
            y += x
            y[0] = 5
        return y

    same(write, (X,), (-X,))


class Layer(dynamic.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = dynamic.nn.Linear(3, 3)
        self.__scale = 2.0

    def forward(self, x):
        if x.sum() > 0:
            return self.linear(x) * self.__scale
        return self.half(x)

    def half(self, x):
        return x / 2 if x.min() < -1 else x


class Derived(Layer):
    def forward(self, x):
        y = super().forward(x)
        if y.sum() > 0:
            y = y + 1
        return y


def test_modules_methods_and_super():
    model = Derived()
    with dynamic.no_grad():  # whole numbers, whose sums are exact in any order
        model.linear.weight.copy_(dynamic.round(model.linear.weight * 9))
    fast, slow = (tw.function(lambda x: model(x), control_flow="convert") for tw in (static, dynamic))
    compiled = static.compile(model, control_flow="convert")
    for sign in (1, -1, -3):
        expected = model(dynamic.tensor(X * sign)).detach().payload
        for call in (fast, slow, compiled):
            y = call(X * sign)
            assert_same_bits(np.asarray(y.detach().payload if hasattr(y, "detach") else y), expected, "module")
    assert len(fast.traces) == 1
    x = dynamic.tensor(X, requires_grad=True)
    compiled(x).sum().backward()
    assert_same_bits(x.grad.payload, (2 * model.linear.weight.sum(0)).detach().payload, "gradient")


def names(x):
    if x.sum() > 0:
        name = "a"
    else:
        name = "b"
    return x, name


def undefined(x):
    if x.sum() > 0:
        y = x
    return y


def not_before_the_loop(x):
    while x.sum() < 100:
        y = x * 2
        x = x + y
    return y


def attribute(x):
    if x.sum() > 0:
        attribute.seen = x
    return x


def raises(x):
    if x.sum() > 0:
        raise ValueError("no")
    return x


def inside_with(x):
    for v in x:
        with static.no_grad():
            if v > 2:
                return v
    return x.sum()


def loop_else(x):
    while x.sum() < 100:
        x = x + 1
    else:  # noqa: PLW0120  this is what is refused
        x = x * 2
    return x


REFUSED = {
    names: (1, "'name' must be made of tensors and numbers on every path, but on one it is a str"),
    undefined: (3, "the function returns 'y', which gets its value at .*on some paths only"),
    not_before_the_loop: (4, "the function returns 'y'"),
    attribute: (2, "sets the attribute 'seen'"),
    raises: (2, "it raises an exception"),
    inside_with: (1, "it leaves a with, try or match by return"),
    loop_else: (1, "the loop has an else"),
}


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_refusals_name_file_line_and_reason(f):
    below, reason = REFUSED[f]
    line = f.__code__.co_firstlineno + below
    with pytest.raises(TraceError, match=rf"test_convert.py:({line}|{line - 1})\b(.|\n)*{reason}"):
        static.function(f, control_flow="convert")(X)


def test_other_refusals():
    def shapes(x):
        if x.sum() > 0:
            return x
        return x.sum()

    with pytest.raises(ShapeError, match=r"shapes at .*test_convert.py"):
        static.function(shapes, control_flow="convert")(X)

    def growing(x):
        while x.sum() < 100:
            x = static.cat([x, x])
        return x

    with pytest.raises(ShapeError, match=r"growing at .*test_convert.py"):
        static.function(growing, control_flow="convert")(X)

    def appended(x):
        out = []
        while x.sum() < 100:
            x = x * 2
            out.append(x)
        return sum(out)

    with pytest.raises(EscapedTracerError, match=r"test_convert.py(.|\n)*used outside(.|\n)*stack it with scan"):
        static.function(appended, control_flow="convert")(X)
    made = compile("lambda x: x if x.sum() > 0 else -x", "<made up>", "eval")  # Python 3.13 knows a "<string>"
    with pytest.raises(TraceError, match="source is not available"):
        static.function(eval(made), control_flow="convert")
    with pytest.raises(TraceError, match="elements"):
        static.function(lambda x: x * int(x.sum()), control_flow="convert")(X)
    with pytest.raises(ArgumentError, match="control_flow"):
        static.function(shapes, control_flow="autograph")
