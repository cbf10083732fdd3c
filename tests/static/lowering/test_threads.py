"""Loops that threads share: the bits of one thread, whatever is cut, and into however many parts."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import dynamic
import static as tw
from common.core.errors import IndexRangeError
from static.jit.function import function
from static.lowering import lowered_program as program
from static.lowering.ir.options import CompileOptions
from static.lowering.threads import sharing, work
from static.lowering.threads import side_by_side as beside
from static.running import program_store
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import examples, rotated
from tests.helpers.python_kernels import run_unjitted
from tests.static.compare import as_tuple
from tests.static.lowering.test_random import inputs
from tests.static.programs import draw_program

UNJITTED = 10_000
"""Elements up to which Python runs the kernels too: it takes a second for so many."""

DTYPES = (np.float32, np.float64)


@pytest.fixture(autouse=True)
def everything_is_cut(monkeypatch):
    """Small loops too, so that tests are quick."""
    monkeypatch.setattr(work, "SMALL_ELEMENTS", 0)
    monkeypatch.setattr(sharing, "PART_NS", 1e-9)
    monkeypatch.setattr(sharing, "SAVED_NS", -(10**9))
    monkeypatch.setattr(sharing, "UNIT", {"c": 3, "c0": 5})
    yield
    tw.set_num_threads(1)


def steps_of(compiled, *arrays):
    """The variables of the loops that were cut, each with its number of parts."""
    plan = compiled.newest_plan
    parts = plan.layout.shared
    return {call.cut: len(parts[i]) for i, call in enumerate(plan.program.frame.calls) if i in parts}


def check(program, *inputs):
    """Compare runs with one, two, three and five threads; returns what was cut with five."""
    compiled = function(program)
    for arrays in inputs:
        tw.set_num_threads(1)
        expected = as_tuple(compiled(*arrays))
        for count in (2, 3, 5):
            tw.set_num_threads(count)
            assert_all_same_bits(as_tuple(compiled(*arrays)), expected, f"{count} threads")
    cut = steps_of(compiled)
    whole = compiled.newest.executable
    plan = compiled.newest_plan
    if sum(x.size for x in inputs[-1]) <= UNJITTED:
        assert_all_same_bits(run_unjitted(plan.program.lowered.cut, plan.env, inputs[-1]), expected, "un-jitted")
    assert whole is not plan.program
    return cut


def orders_kept(steps, reordered):
    """Whether no step has changed places with one that it depends on, and no set has members that depend."""
    place = {id(step): i for i, step in enumerate(reordered)}
    touched = [beside._touched(step) for step in steps]
    for i, earlier in enumerate(steps):
        for j in range(i + 1, len(steps)):
            if touched[i].before(touched[j]):
                later = steps[j]
                assert place[id(earlier)] < place[id(later)]
                assert earlier.beside == 0 or earlier.beside != later.beside
    numbers = [step.beside for step in reordered]
    assert all(
        numbers[i] == n
        for n in set(numbers) - {0}
        for i in range(numbers.index(n), numbers.index(n) + numbers.count(n))
    )


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def layer_norm(x, w, b, g):
    y, pullback = tw.vjp(lambda *args: tw.nn.functional.layer_norm(args[0], (args[0].shape[1],), *args[1:]), x, w, b)
    return y, *pullback(g)


@pytest.mark.parametrize(("rows", "dtype"), rotated([2, 3, 15, 17, 300, 1024, 1025, 3000], DTYPES))
def test_columns_beside_whole_rows_are_cut_by_blocks_and_lanes(rows, dtype):
    x, w, b, g = normal(rows, 40, dtype=dtype), normal(40, dtype=dtype), normal(40, dtype=dtype), normal(rows, 40)
    cut = check(layer_norm, (x, w, b, g.astype(dtype)))
    assert cut["lane"] >= 2


@pytest.mark.parametrize(
    ("shape", "how"), rotated([(70, 9), (1100, 9), (3, 40, 7), (0, 4), (5, 0)], ["sum", "prod", "amax", "amin"])
)
def test_reductions_of_columns(shape, how):
    def program(x):
        y = x * x - 1
        return y, getattr(tw, how)(y, len(shape) - 2)

    if shape[-2] == 0 and how in ("amax", "amin"):
        return
    check(program, (normal(*shape),), (normal(*shape) * 2,))


@pytest.mark.parametrize("how", ["sum", "prod", "amax", "amin"])
def test_reductions_of_columns_of_what_rows_give(how):
    """Each part has accumulators of its own, also of extremes."""
    arrays = [(normal(rows, 9),) for rows in (70, 1100, 2100)]
    assert check(lambda x: getattr(tw, how)(tw.log_softmax(x, 1), 0), *arrays).keys() == {"lane"}


def test_elements_rows_columns_and_lanes_are_cut():
    x = normal(40, 50)
    assert check(lambda x: tw.tanh(x) * 2, (x,)).keys() == {"c"}
    assert check(lambda x: tw.softmax(x, 1), (x,)).keys() == {"r0"}
    assert check(lambda x: tw.sum(tw.tanh(x), 0), (x,)).keys() == {"c0"}
    assert check(lambda x: tw.sum(tw.softmax(x, 1), 0), (x,)).keys() == {"lane"}
    assert check(lambda x, w: tw.softmax(tw.cumsum(x, 0), 1), (x, x)).keys() == {"r0"}  # in the memory of the first


WHOLE = {
    "sum": (lambda x: x.sum(), "k0"),
    "of squares": (lambda x: (x * x).sum(), "k0"),
    "of what a loop makes": (lambda x: (tw.tanh(x).sum(), tw.tanh(x) * 2), "k0"),
    "maximum": (lambda x: x.amax(), "k0"),
    "minimum of what a loop makes": (lambda x: tw.tanh(x).amin(), "k0"),
    "product": (lambda x: (x * 0.01 + 1).prod(), "k0"),
    "several": (lambda x: (x.sum(), x.amin(), (x * x).sum() + 1, tw.exp(x).sum()), "k0"),
    "count": (lambda x: (x > 0).sum(), "k0"),
    "a mean, and what follows": (lambda x: (x - 1.5).abs().mean() * 2, "k0"),
    "a sum, then a loop": (lambda x: x / (x * x).sum(), "c"),
    "loops before and after": (lambda x: tw.exp(x) / tw.exp(x).sum(), "c"),
    "two sums in turn": (lambda x: (x - x.mean()).square().sum(), "k0"),
    "the place of a single value": (lambda x: (x.sum() + x[0], x * x[0]), "k0"),
}


@pytest.mark.parametrize(("name", "dtype"), rotated(WHOLE, DTYPES))
def test_reductions_of_whole_arrays_are_cut_by_blocks(name, dtype):
    program, expected = WHOLE[name]
    arrays = [normal(n, dtype=dtype) for n in (1, 5, 1024, 5000, 9 * 1024, 1025)]  # Python runs the last
    arrays[-1][7] = -0.0
    cut = check(program, *((x,) for x in arrays))
    assert expected in cut
    special = np.full(1500, -0.0, dtype)
    check(program, (special,))
    special[[3, 1400]] = np.nan, np.inf
    check(program, (special,))
    if "min" not in name and "max" not in name and name not in ("several", "the place of a single value"):
        check(program, (special[:0],), (special,))


def test_a_state_of_single_values_is_written_once_beside_a_loop_that_is_cut():
    """Each part reads the count that is replaced, and rows have scratch memory of their own."""
    found = []
    for count in (1, 2, 5):
        tw.set_num_threads(count)
        steps, rows = tw.nn.Parameter(np.zeros(())), tw.nn.Parameter(normal(60, 40))

        @function
        def step(steps=steps, rows=rows):
            with tw.no_grad():
                rows.copy_(tw.softmax(rows * (steps + 1), 1) - rows.sum(1, keepdim=True))
                steps.add_(1)

        for _ in range(3):
            step()
        found.append([steps.numpy().copy(), rows.numpy().copy()])
    assert_all_same_bits(found[1], found[0], "two threads")
    assert_all_same_bits(found[2], found[0], "five threads")


@settings(max_examples=examples(15), phases=[Phase.generate])
@given(st.randoms(use_true_random=False), st.integers(2, 20), st.integers(1, 5))
def test_random_programs(random, length, returned):
    program = draw_program(random.randrange, length, returned)
    check(program, inputs(1, 5, 7, 3), inputs(2, 20, 33, 4), inputs(3, 9, 1300, 2))


def test_state_that_is_read_elsewhere_is_not_cut():
    """Each element is replaced by one that depends on another place of the same array, or on its first element."""
    for replaced in (lambda x: x.flip(0) + x, lambda x: x * x[0], lambda x: x + tw.sum(x)):
        results = []
        for count in (1, 3):
            tw.set_num_threads(count)
            state = tw.nn.Parameter(np.arange(1.0, 60.0))

            @function
            def step(state=state, replaced=replaced):
                with tw.no_grad():
                    state.copy_(replaced(state))

            for _ in range(3):
                step()
            results.append(state.numpy().copy())
        assert_all_same_bits(results[:1], results[1:], "state")


def test_an_index_out_of_range_in_one_part_is_an_error_and_state_stays():
    tw.set_num_threads(3)
    seen = tw.nn.Parameter(np.zeros(1), requires_grad=False)

    @function
    def loss(x, labels):
        seen.add_(1)
        return tw.nn.functional.cross_entropy(x, labels)

    x, labels = normal(64, 10), np.arange(64) % 10
    loss(x, labels)
    labels[47] = 10
    with pytest.raises(IndexRangeError):
        loss(x, labels)
    assert seen.item() == 1


def test_several_threads_may_call_one_program():
    tw.set_num_threads(3)
    compiled, x = function(lambda x: tw.softmax(tw.tanh(x) * 2, 1)), normal(200, 30)
    expected, wrong = compiled(x), []

    def work():
        for _ in range(50):
            if compiled(x).numpy().tobytes() != expected.numpy().tobytes():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_small_loops_stay_whole(monkeypatch):
    monkeypatch.undo()
    tw.set_num_threads(4)
    compiled = function(lambda x: tw.tanh(x))
    compiled(normal(100))
    assert compiled.newest_plan.layout.shared == {}
    compiled(normal(1_000_000))
    assert len(compiled.newest_plan.layout.shared[0]) == 16


def test_programs_from_the_disk_are_cut_as_well():
    """The second function finds the first one's program, which knows no more than how to run in one thread."""
    x, texts = normal(60, 50), []
    for _ in range(2):
        tw.set_num_threads(1)
        compiled = function(lambda x: tw.softmax(tw.tanh(x) - 0.123456, 1))
        expected = compiled(x)
        tw.set_num_threads(3)
        assert_all_same_bits([compiled(x)], [expected], "three threads")
        texts.append(str(compiled.explain()))
    assert all("parts)" in text for text in texts)


def block(tw):
    """A training step with products of several sizes, an optimiser with a count, and an index that is checked."""
    tw.manual_seed(0)
    layers = [tw.nn.Linear(12, 20), tw.nn.Linear(20, 20), tw.nn.Linear(20, 7)]
    params = [p for layer in layers for p in layer.parameters()]
    optimizer = tw.optim.Adam(params, lr=0.01)

    @tw.function
    def step(x, labels):
        optimizer.zero_grad()
        h = tw.tanh(layers[0](x))
        h = h + (tw.softmax(h @ h.transpose(0, 1), 1) @ layers[1](h)).relu()
        loss = tw.nn.functional.cross_entropy(layers[2](h), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, params


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_steps_side_by_side_train_as_one_after_the_other(threads):
    x, labels = normal(33, 12), np.arange(33) % 7
    found = []
    for engine, count in ((dynamic, 1), (tw, 1), (tw, threads)):
        tw.set_num_threads(count)
        step, params = block(engine)
        losses = [np.array(step(x, labels)) for _ in range(4)]
        found.append([*losses, *(p.detach().numpy().copy() for p in params)])
    assert_all_same_bits(found[0], found[1], "dynamic")
    assert_all_same_bits(found[0], found[2], f"{threads} threads")
    sets = step.newest_plan.layout.beside
    assert sum(map(len, sets.values())) >= 8
    assert "others)" in str(step.explain())
    before = [p.detach().numpy().copy() for p in params]
    labels[5] = 7
    with pytest.raises(IndexRangeError):
        step(x, labels)
    assert_all_same_bits([p.detach().numpy() for p in params], before, "state after an error")


def test_steps_side_by_side_do_not_depend_on_each_other(monkeypatch):
    seen = []

    def side_by_side(steps):
        reordered = beside.side_by_side(steps)
        orders_kept(steps, reordered)
        seen.append([step.beside for step in reordered])
        return reordered

    monkeypatch.setattr(program, "side_by_side", side_by_side)
    monkeypatch.setattr(program_store, "load", lambda *_: None)
    tw.set_num_threads(2)
    block(tw)[0](normal(33, 12), np.arange(33) % 7)

    @function
    @tw.value_and_grad
    def recurrence(w, x):
        def cell(h, v):
            h = tw.tanh(h @ w + v @ w)
            return h, h @ w * v

        return tw.scan(cell, x[0], x)[1].sum()

    expected = as_tuple(recurrence(normal(4, 4), normal(6, 5, 4)))
    assert len([1 for numbers in seen if any(numbers)]) >= 3, "the step, and both loops"
    tw.set_num_threads(1)
    assert_all_same_bits(as_tuple(recurrence(normal(4, 4), normal(6, 5, 4))), expected, "a scan")


@settings(max_examples=10, phases=[Phase.generate])
@given(st.randoms(use_true_random=False), st.integers(5, 25))
def test_random_programs_keep_their_order(random, length):
    drawn = draw_program(random.randrange, length, 3)
    compiled = function(
        lambda *args: tw.value_and_grad(lambda *args: sum(y.sum() for y in as_tuple(drawn(*args))))(*args)
    )
    arrays = inputs(1, 5, 7, 3)
    compiled(*arrays)
    graph = compiled.newest.executable.graph
    lowered = program.LoweredProgram(graph, CompileOptions())
    steps = list(lowered._steps(lowered.groups))
    for step in steps:  # all that can be, as if all were large
        step.cut = step.cut or ("c" if step.source else "")
    orders_kept(steps, beside.side_by_side(steps))
