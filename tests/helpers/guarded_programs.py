"""Random programs of all kinds in guarded memory: both engines, all ways to call, the same bits.

``python -m tests.helpers.guarded_programs --side begin --seconds 300 --seed 7`` runs longer, with other numbers;
``--only writes --from 12`` repeats programs. What is about to run stands in ``--trace-file``, so that a process that
dies has a name.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import dynamic
import static
from common.core.errors import ShapeError
from static.jit.function import CompiledFunction
from static.lowering.threads import cut_loops, sharing, work
from tests.bits import assert_all_same_bits
from tests.helpers import fuzz, guarded
from tests.static.lowering.test_in_place_random import draw as draw_writes
from tests.static.lowering.test_in_place_random import run as run_writes
from tests.static.programs import draw_program

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 65, 100, 127, 129, 130)
LONG = (255, 257, 1023, 1025, 1100, 2049, 2500)


# Arrays: x, y (n, m); w (m, k); v (m); i, j (n), places in m and in n.
PARTS: dict[str, Callable[..., Any]] = {
    "chain": lambda tw, x, y, w, v, i, j: tw.tanh(x * v) + y / (x.abs() + 1),
    "strided": lambda tw, x, y, w, v, i, j: x[::2].sin() + y[::2, :1],
    "turned": lambda tw, x, y, w, v, i, j: (x.transpose(0, 1).exp() * 0.1).flip(0) + v.unsqueeze(1),
    "softmax": lambda tw, x, y, w, v, i, j: tw.softmax(x, 0) + tw.log_softmax(y, -1),
    "rows": lambda tw, x, y, w, v, i, j: tw.nn.functional.layer_norm(x, (x.shape[1],), v, v),
    "columns": lambda tw, x, y, w, v, i, j: (x * y).sum(0) + x.amax(0) - (y * 0.5).mean(0),
    "both": lambda tw, x, y, w, v, i, j: (x - x.mean(1, True)) * (y.sum(0) + 1) + x.sum(),
    "products": lambda tw, x, y, w, v, i, j: tw.relu(x @ w + y.sum()) @ w.transpose(0, 1),
    "product of turned": lambda tw, x, y, w, v, i, j: x.transpose(0, 1) @ y,
    "matrix and vector": lambda tw, x, y, w, v, i, j: (x @ v) * 0.5 + (y.transpose(0, 1) @ x[:, 0])[0],
    "batch": lambda tw, x, y, w, v, i, j: x.unsqueeze(1).bmm(y.unsqueeze(2)) + x.unsqueeze(2).bmm(y.unsqueeze(1)),
    "sort": lambda tw, x, y, w, v, i, j: tw.sort(x, 1)[0] * tw.sort(y, 0, descending=True)[0],
    "order": lambda tw, x, y, w, v, i, j: tw.argsort(x, 0) + tw.topk(y, 1, 1)[1] + tw.searchsorted(tw.sort(v)[0], x),
    "scan": lambda tw, x, y, w, v, i, j: tw.cumsum(x, 0) + tw.cumsum(y, 1) + tw.cumprod(x * 0.3, 1),
    "running": lambda tw, x, y, w, v, i, j: tw.cummax(x, 0)[0] + tw.logcumsumexp(y, 1),
    "gather": lambda tw, x, y, w, v, i, j: tw.gather(x, 1, i.unsqueeze(1)) + x[j] * v[i].unsqueeze(1),
    "scatter": lambda tw, x, y, w, v, i, j: tw.zeros_like(v).scatter_add(0, i, x[:, 0]) + v.index_add(0, i, y[:, 0]),
    "table": lambda tw, x, y, w, v, i, j: tw.nn.functional.embedding(i, w) * 2 + w.index_select(0, i).sum(0),
    "copied": lambda tw, x, y, w, v, i, j: x.index_copy(0, j, y) + tw.index_put(x, (j, i), y[:, 0], accumulate=True),
    "joined": lambda tw, x, y, w, v, i, j: tw.cat([x.sin(), y, x * 2], 1) + tw.cat([y, x, y], 1).cos(),
    "stacked": lambda tw, x, y, w, v, i, j: tw.stack([x, y * 2], 1).sum(2) + tw.stack([y, x], 2).amax(1)[:, :1],
    "padded": lambda tw, x, y, w, v, i, j: tw.pad(x, (1, 2, 3, 0)).tanh() + tw.pad(y, (2, 1, 1, 2), value=1.5),
    "rolled": lambda tw, x, y, w, v, i, j: tw.roll(x, (1, -1), (0, 1)) - x.diff(dim=1).sum() + tw.tril(y),
    "loss": lambda tw, x, y, w, v, i, j: tw.nn.functional.cross_entropy(x, i, reduction="none") + tw.logsumexp(y, 1),
    "variance": lambda tw, x, y, w, v, i, j: tw.var(x, 0) + y.std(1).sum() + tw.norm(x) + tw.prod(v * 0.5),
    "integers": lambda tw, x, y, w, v, i, j: (i * 3 - j).sum() + (i // 2 + j % 3) * i.amax() + (x > y).sum(1),
    "casts": lambda tw, x, y, w, v, i, j: x.to(tw.int32) * i.unsqueeze(1) + (y > 0) + x.to(tw.float64).sum(0),
    "drawn": lambda tw, x, y, w, v, i, j: tw.nn.functional.dropout(x, 0.4) + tw.rand_like(y) * tw.randn_like(x),
    "permuted": lambda tw, x, y, w, v, i, j: x[tw.randperm(x.shape[0])] + tw.bernoulli(tw.sigmoid(y)),
    "branch": lambda tw, x, y, w, v, i, j: tw.cond(x.sum() > 0, lambda a: a.sin() @ w, lambda a: (a * 2) @ w, x),
    "counted": lambda tw, x, y, w, v, i, j: tw.fori_loop(0, 3, lambda _, s: (s[1].tanh() * v, s[0] + y), (x, y))[0],
    "until": lambda tw, x, y, w, v, i, j: _until(tw, x, y, v),
    "scanned": lambda tw, x, y, w, v, i, j: tw.scan(lambda c, r: (tw.tanh(c * r + v), c @ w), y.sum(0), x)[1],
    "mapped": lambda tw, x, y, w, v, i, j: tw.map(lambda r: tw.softmax(r * v, -1) @ w, x),
    "columns by themselves": lambda tw, x, y, w, v, i, j: tw.stack([x[:, 0] * y[:, -1], x[:, -1] - y[:, 0]], 1).sin(),
    "sums of windows": lambda tw, x, y, w, v, i, j: x[1:, 1:].sum(1) * y[:-1, :-1].sum(1) - x[1:, :-1].exp().sum(1),
    "neighbours": lambda tw, x, y, w, v, i, j: x[1:, 1:] * x[:-1, :-1] + y[1:, :-1] * y[:-1, 1:] + x[1:, :-1],
    "nothing": lambda tw, x, y, w, v, i, j: v[:0].reshape(4, 0).transpose(0, 1) + 1,
    "written": lambda tw, x, y, w, v, i, j: _written(tw, x, y, i, j),
}  # fmt: skip

RANDOM = {"drawn", "permuted"}


def _until(tw: Any, x: Any, y: Any, v: Any) -> Any:
    return tw.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * v + y), (0, x))[1]


def _written(tw: Any, x: Any, y: Any, i: Any, j: Any) -> Any:
    z = x * 1
    z[1:] = y[1:] * 2
    z[:, -1] *= 3
    z[j] = y.tanh()
    z[j, i] += 0.5
    return z


def draw_parts(random: random.Random) -> tuple[Callable[[Any], Callable[..., Any]], str]:
    """Some parts side by side, each with its gradients or without."""
    names = random.sample(sorted(PARTS), random.randint(1, 3))
    differentiated = random.random() < 0.6

    def of(tw: Any) -> Callable[..., Any]:
        def values(*arrays: Any) -> tuple[Any, ...]:
            return tuple(PARTS[name](tw, *arrays) for name in names)

        def loss(*arrays: Any) -> Any:
            found = [y for y in values(*arrays) if y.dtype.kind == "f"]
            return sum((y * (y.detach() * 3 + 0.3).cos()).sum().to(tw.float64) for y in found) + arrays[0].sum()

        if not differentiated:
            return values
        return tw.grad(loss, (0, 1, 2, 3))

    return of, " + ".join(names) + (", gradients" if differentiated else "")


def draw_arrays(random: random.Random, rng: np.random.Generator, dtype: str, least: int = 1) -> list[np.ndarray]:
    """Arrays for the parts of a program."""
    n, m, k = (max(random.choice(SIZES), least) for _ in range(3))
    if random.random() < 0.25:
        n, m, k = random.choice([(random.choice(LONG), m % 9 + 2, k % 9 + 2), (n % 9 + 2, random.choice(LONG), 3)])
    shapes = [(n, m), (n, m), (m, k), (m,)]
    return [*(rng.normal(size=s).astype(dtype) for s in shapes), rng.integers(0, m, n), rng.permutation(n)]


def as_arrays(results: Any) -> list[np.ndarray]:
    """Results of either engine."""
    results = results if isinstance(results, (tuple, list)) else (results,)
    return [np.asarray(x.detach() if hasattr(x, "detach") else x) for x in results]


class Ways:
    """One program, called in all ways on a row of arguments.

    Parameters
    ----------
    of : from an engine to the program in it.
    """

    def __init__(self, of: Callable[[Any], Callable[..., Any]], choose: random.Random) -> None:
        self.of, self.choose = of, choose

    def _new(self, **options: Any) -> CompiledFunction:
        return CompiledFunction(self.of(static), **options)

    def check(self, calls: Sequence[list[np.ndarray]]) -> None:
        """Compare them all with the eager engine."""
        ways = {"compiled": self._new(), "kernel by kernel": self._new(fuse=False), "threads": self._new()}
        eager = dynamic.function(self.of(dynamic))
        for arrays in calls:
            given = [x.copy() for x in arrays]
            expected = self._seeded(lambda: eager(*map(dynamic.tensor, given)))  # noqa: B023
            for name, f in ways.items():
                dynamic.set_num_threads(self.choose.choice([2, 3]) if name == "threads" else 1)
                for turn in range(2):  # the first call plans, the second is one native call
                    self._same(f"{name}, call {turn}", expected, lambda: f(*given))  # noqa: B023
            dynamic.set_num_threads(1)
            assert_all_same_bits(given, arrays, "arguments")
        self._same("from the disk", expected, lambda: self._new()(*given))
        into = ways["compiled"].into(tuple(np.empty(x.shape, x.dtype) for x in expected))
        for turn in range(2):
            self._same(f"into, call {turn}", expected, lambda: into(*given))
        donated = self._new(donate_argnums=(0, 1))
        for turn in range(2):
            copies = [x.copy() for x in arrays]
            self._same(f"donated, call {turn}", expected, lambda: donated(*copies))  # noqa: B023

    def _seeded(self, f: Callable[[], Any]) -> list[np.ndarray]:
        dynamic.manual_seed(11)
        return as_arrays(f())

    def _same(self, what: str, expected: list[np.ndarray], f: Callable[[], Any]) -> None:
        actual = self._seeded(f)
        assert_all_same_bits(actual, expected, what)


def parts(random: random.Random, rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """Public functions of many kinds, with gradients."""
    of, text = draw_parts(random)
    dtype = random.choice(["float32", "float32", "float64"])
    calls = [draw_arrays(random, rng, dtype) for _ in range(random.randint(1, 3))]
    note(f"{text}: {[x.shape for x in calls[0]]}, {dtype}")
    Ways(of, random).check(calls)


def steps(random: random.Random, rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """Random steps that follow from each other."""
    program = draw_program(random.randrange, random.randint(4, 24), 3)
    calls = []
    for _ in range(2):
        a, b = (random.choice(SIZES[3:]) for _ in range(2))
        c = random.choice(SIZES[3:10])
        if random.random() < 0.2:
            a, b = random.choice([(random.choice(LONG), 5), (4, random.choice(LONG))])
        shapes = [(a, b), (b,), (a, 1)]
        arrays: list[np.ndarray] = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
        arrays += [rng.integers(-5, 9, (a, b)).astype(np.int32), rng.normal(size=(a, b, c))]
        calls.append([*arrays, np.array(0.5, np.float32)])
    note(f"{[x.shape for x in calls[0]]}")
    functions = {"fused": CompiledFunction(program), "unfused": CompiledFunction(program, fuse=False)}
    oracle = CompiledFunction(program, interpret=True)
    for arrays in calls:
        expected = as_arrays(oracle(*arrays))
        note(f"{program.steps}")
        for name, f in functions.items():
            for threads in (1, 3):
                dynamic.set_num_threads(threads)
                for _ in range(2):
                    actual = as_arrays(f(*arrays))
                    assert_all_same_bits(actual, expected, f"{name}, {threads} threads")
            dynamic.set_num_threads(1)
    again = CompiledFunction(program)
    again(*calls[0])  # what is drawn depends on the sizes that are traced
    assert_all_same_bits(as_arrays(again(*arrays)), expected, "from the disk")


def writes(random: random.Random, rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """Writes to state, and in loops."""
    seed, carried = random.randrange(1 << 30), random.random() < 0.5
    tasks = draw_writes(seed)
    rows, columns = random.choice(SIZES[5:]), 5
    note(f"seed {seed}, in a loop: {carried}, {rows} rows: {tasks}")
    start = [rng.normal(size=(rows, columns)).astype(np.float32) for _ in range(2)]
    x, i = rng.normal(size=columns).astype(np.float32), rng.integers(0, rows, 3)
    found = []
    for tw, threads in ((dynamic, 1), (static, 1), (static, 3), (static, 1)):
        tw.set_num_threads(threads)
        cells = [tw.nn.Parameter(tw.tensor(a.copy()), requires_grad=False) for a in start]

        def step(x: Any, i: Any, tw: Any = tw, cells: Any = cells) -> Any:
            def body(_: Any, carried: Any) -> Any:
                arrays = [tw.clone(y) for y in carried]
                run_writes(tw, tasks, arrays, x, i)
                return tuple(arrays)

            with tw.no_grad():
                if carried:
                    return tw.fori_loop(0, 3, body, tuple(c * 1 for c in cells))
                return run_writes(tw, tasks, cells, x, i)

        f = tw.function(step)
        results = []
        for _ in range(3):
            results += as_arrays(f(*map(tw.tensor, (x, i))) if tw is dynamic else f(x, i))
        found.append([*results, *as_arrays(cells)])
    static.set_num_threads(1)
    for other in found[1:]:
        assert_all_same_bits(other, found[0], "results and state")


def training(random: random.Random, rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """Steps of an optimiser, plain, with a budget of memory, from the disk, and with gradients to the outside."""
    sizes = [random.choice(SIZES) for _ in range(random.randint(2, 4))] + [random.choice(SIZES[1:8])]
    rows, how = random.choice(SIZES), random.choice(["SGD", "Adam", "RMSprop", "Adagrad", "AdamW"])
    layer = random.choice(["Tanh", "GELU", "LayerNorm", "Dropout"])
    note(f"{sizes}, {rows} rows, {how}, {layer}")
    batches = [
        (rng.normal(size=(n, sizes[0])).astype(np.float32), rng.integers(0, sizes[-1], n))
        for n in (rows, rows + 3, rows)
    ]

    def run(tw: Any, make: Callable[..., Any]) -> list[np.ndarray]:
        tw.manual_seed(3)
        layers: list[Any] = []
        for a, b in pairwise(sizes):
            layers += [
                tw.nn.Linear(a, b),
                *([getattr(tw.nn, layer)(*([b] if layer == "LayerNorm" else []))] if b != sizes[-1] else []),
            ]
        model = tw.nn.Sequential(*layers)
        optimizer = getattr(tw.optim, how)(model.parameters(), lr=0.01)

        def step(x: Any, t: Any) -> Any:
            optimizer.zero_grad()
            loss = tw.nn.functional.cross_entropy(model(x), t)
            loss.backward()
            optimizer.step()
            return loss

        compiled = make(step)
        results = []
        for x, t in batches:
            results += as_arrays(compiled(tw.tensor(x), tw.tensor(t)) if tw is dynamic else compiled(x, t))
        return [*results, *as_arrays(list(model.parameters()))]

    expected = run(dynamic, dynamic.function)
    makers: dict[str, Callable[..., Any]] = {
        "compiled": CompiledFunction,
        "from the disk": CompiledFunction,
        "unfused": lambda f: CompiledFunction(f, fuse=False),
        "budget": lambda f: CompiledFunction(f, memory_budget=1 << 24),
    }
    for what, make in makers.items():
        assert_all_same_bits(run(static, make), expected, what)
    static.set_num_threads(2)
    assert_all_same_bits(run(static, CompiledFunction), expected, "threads")
    static.set_num_threads(1)
    assert_all_same_bits(run(dynamic, lambda f: f), run(dynamic, lambda f: f), "op by op")


def sessions(random: random.Random, rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """A graph of open sizes that is built first, with a variable that it writes, and run in parts."""
    names = random.sample(sorted(PARTS.keys() - RANDOM), 2)
    calls = [draw_arrays(random, rng, "float32") for _ in range(2)]
    note(f"{names}: {[x.shape for x in calls[0]]}")
    with static.Graph().as_default():
        held = [static.placeholder(x.dtype, [None] * x.ndim) for x in calls[0]]
        total = static.Variable(np.zeros((), np.float64))
        results = [PARTS[name](static, *held) for name in names]
        adds = [total.assign_add(y.sum().to(static.float64)) for y in results]
        session = static.Session()
    session.run(total.initializer)
    sums = np.zeros((), np.float64)
    for arrays in calls * 2:
        given = [dynamic.tensor(x) for x in arrays]
        expected = [PARTS[name](dynamic, *given) for name in names]
        for threads, wanted in ((1, [0, 1]), (3, [1])):
            static.set_num_threads(threads)
            fetches = [[results[i] for i in wanted], [adds[i] for i in wanted]]
            try:
                actual, totals = session.run(fetches, dict(zip(held, arrays)))
            except ShapeError as error:  # a turn by 1 was built for more than one row: nothing has run
                if "the graph was built for sizes" not in str(error):
                    raise
                continue
            assert_all_same_bits(actual, as_arrays([expected[i] for i in wanted]), "fetched")
            for i, x in zip(wanted, totals):
                sums = sums + as_arrays(expected[i].sum().to(dynamic.float64))[0]
                assert_all_same_bits([x], [sums], "written")
        static.set_num_threads(1)


def functions(random: random.Random, rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """Random calls of public functions, see `tests.helpers.fuzz`."""
    name = random.choice(fuzz.names())
    seed = random.randrange(1 << 30)
    call = next(fuzz.calls(seed, name))
    note(f"--seed {seed} --only {name} --from 0 --calls 1: {call}")
    wrong = fuzz.complaint(call)
    assert wrong is None, wrong


KINDS = {f.__name__: f for f in (parts, steps, writes, training, sessions, functions)}
OFTEN = ("parts", "steps", "functions", "parts", "writes", "functions", "training", "sessions")


def main(arguments: list[str] | None = None) -> int:
    """Run programs and print what is wrong; the status is the number of failures, at most 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--side", choices=guarded.SIDES, default="end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=None, help="default without --seconds: 50")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--only", choices=[*KINDS, ""], default="", help="kind of programs")
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first program")
    parser.add_argument("--trace-file", default=None, help="where the running program is written to")
    options = parser.parse_args(arguments)
    guarded.guard(options.side)
    work.SMALL_ELEMENTS, sharing.PART_NS, sharing.SAVED_NS = 0, 1e-9, -(10**9)  # type: ignore[assignment]
    cut_loops.UNIT.update(c=3, c0=5)
    count = options.programs or (50 if options.seconds == math.inf else sys.maxsize)
    stop, done, failures = time.perf_counter() + options.seconds, 0, 0
    for number in range(options.first, options.first + count):
        if time.perf_counter() > stop:
            break
        kind = options.only or OFTEN[number % len(OFTEN)]
        name = f"--side {options.side} --seed {options.seed} --only {kind} --from {number} --programs 1"
        told = [name]

        def note(text: str, name: str = name, told: list[str] = told) -> None:
            told[0] = f"{name}\n  {text}"
            if options.trace_file:
                Path(options.trace_file).write_text(told[0], encoding="utf-8")

        done += 1
        choose = random.Random(f"{options.seed} {kind} {number}")
        try:
            KINDS[kind](choose, np.random.default_rng(choose.randrange(1 << 30)), note)
            guarded.check()
        except Exception:
            failures += 1
            print(told[0], "\n", traceback.format_exc()[-3000:], flush=True)
            dynamic.set_num_threads(1)
    print(f"{done} programs, {failures} failures")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
