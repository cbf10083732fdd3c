"""Programs from the disk: the same program, errors and explanation; another key wherever the frame may differ."""

from __future__ import annotations

import re

import numpy as np
import pytest

import static
from common.compiler import disk_cache
from common.compiler import environment_stamp as stamp_module
from common.core.errors import ArgumentError, DivisionByZeroError, IndexRangeError, TwingradCacheWarning
from static.lowering import lowered_program
from static.running import program_store
from static.tracing import optimised
from tests.bits import assert_all_same_bits
from tests.compiler.test_processes import finish, start
from tests.conftest import ROOT
from tests.static.stored import assert_keys_differ, called, network, programs

F32 = np.float32


@pytest.mark.quick
def test_the_second_process_optimises_and_lowers_nothing(disk, monkeypatch):
    x, labels = np.random.default_rng(0).standard_normal((5, 6)).astype(F32), np.array([0, 1, 2, 1, 0])
    results = []
    for warm in (False, True):
        if warm:
            monkeypatch.setattr(optimised, "run_passes", None)
            monkeypatch.setattr(lowered_program, "LoweredProgram", None)
        step, model = network()
        compiled = static.function(step)
        losses = [compiled(x, labels), compiled(x[:3], labels[:3]), compiled(x, labels)]
        results.append([*losses, *(p.numpy().copy() for p in model.parameters())])
        assert ("disk" in compiled.newest.seconds) is warm
        assert len(compiled.traces) == 1
    assert_all_same_bits(*results, "losses and parameters")
    assert len(programs(disk)) == 1


def test_a_program_from_the_disk_explains_itself(disk, tmp_path):
    texts = []
    for i in range(2):
        f, _ = called(lambda x, w: (static.tanh(x @ w) * 2).sum(0), np.ones((4, 3), F32), np.ones((3, 2), F32))
        facts = f.explain()
        lines = [(k.name, k.ops, k.reads, k.flops, k.refused) for k in facts.kernels]
        texts.append((lines, facts.arena_bytes, [p._replace(seconds=0) for p in facts.passes], f.source))
        assert "calls" in str(f.dump(tmp_path / str(i)))
    assert "disk" in f.newest.seconds
    assert texts[0] == texts[1]


def test_errors_name_the_line_of_this_process(disk):
    def first(x, i):
        return x.gather(0, i) * 2

    def second(x, i):
        # the same program, some lines further on
        return x.gather(0, i) * 2

    x, i = np.ones(3, F32), np.array([7])
    for f in (first, second):
        line = f.__code__.co_firstlineno + (1 if f is first else 2)
        with pytest.raises(IndexRangeError, match=rf"gather\(\): .*\n  in .*test_store.py:{line}$"):
            static.function(f)(x, i)
    assert len(programs(disk)) == 1


def test_errors_are_of_the_same_class(disk):
    cases = [
        (lambda p: static.bernoulli(p), np.full(3, 2, F32), ArgumentError, "probab|0 <= p"),
        (lambda n: n // (n - n), np.array([1, 2]), DivisionByZeroError, "division"),
        (lambda n: n.gather(0, n), np.array([1, 9]), IndexRangeError, "out of range"),
    ]
    for f, x, kind, text in cases:
        for warm in (False, True):
            compiled = static.function(f)
            with pytest.raises(kind, match=text) as told:
                compiled(x)
            assert type(told.value) is kind
            assert ("disk" in compiled.newest.seconds) is warm
    assert len(programs(disk)) == len(cases)


def test_what_calls_python_calls_the_function_of_this_process(disk):
    def of(python, form=(3,)):
        def f(x):
            y = static.pure_callback(python, static.ShapeDtypeStruct(form, F32), x)
            z = static.pure_callback(np.cos, static.ShapeDtypeStruct(form, F32), y)
            return static.cond(z.sum() > 5, lambda a: a, lambda a: static.pure_callback(python, z, a) + z, y)

        return f

    x = np.arange(3, dtype=F32)
    for python in (np.square, np.negative, np.cos, lambda x: x + np.float32(0.5)):
        compiled, (y,) = called(of(python), x)
        z = np.cos(python(x))
        assert y.tolist() == (python(x) if z.sum() > 5 else python(python(x)) + z).tolist()
        assert ("disk" in compiled.newest.seconds) is (python is not np.square)
    assert len(programs(disk)) == 1
    different = [
        of(lambda x: np.array([1, 2], F32), (2,)),
        lambda x: of(np.square)(x * 2),
    ]
    for count, f in enumerate(different, 2):
        compiled, results = called(f, x)
        assert "lower" in compiled.newest.seconds
        assert len(programs(disk)) == count
        assert_all_same_bits(results, called(f, x, interpret=True)[1], "callbacks")


def joined(x, y):
    return x * 2 + (y if x.shape[0] == y.shape[0] else 1.0)


VARIANTS = {
    "numbers": [lambda x, y, n=n: x * n for n in (2.5, 7.5, 2, True, 0.0, -0.0, np.inf)],
    "attributes": [lambda x, y, d=d: x.reshape(2, 2).sum(d) for d in (0, 1, (0, 1))],
    "operands": [lambda x, y: x - y, lambda x, y: y - x, lambda x, y: x - x],
    "outputs": [lambda x, y: (x * 2, y * 2), lambda x, y: (y * 2, x * 2), lambda x, y: x * 2 + 0 * y],
    "dtypes": [lambda x, y, t=t: x.to(t) for t in ("float64", "int32", "int64")],
}


@pytest.mark.parametrize("what", VARIANTS)
def test_what_differs_has_another_key(disk, what):
    x, y = np.arange(4, dtype=F32), np.arange(4, dtype=F32)[::-1].copy()
    assert_keys_differ(disk, VARIANTS[what], x, y)


def test_shapes_sizes_and_options_are_part_of_the_key(disk):
    calls = [
        ((np.ones(4, F32), np.ones(4, F32)), {}),
        ((np.ones(4, F32), np.ones(3, F32)), {}),  # the sizes are not one
        ((np.ones(1, F32), np.ones(4, F32)), {}),
        ((np.ones(4), np.ones(4, F32)), {}),
        ((np.ones(5, F32), np.ones(5, F32)), {}),  # hints decide what is kept and what is computed again
        ((np.ones(4, F32), np.ones(4, F32)), {"fuse": False}),
    ]
    for count, (args, options) in enumerate(calls, 1):
        called(joined, *args, **options)
        assert len(programs(disk)) == count


def test_sizes_that_one_trace_knows_to_be_equal_may_differ_in_another(disk):
    """The graphs are the same; the first program has one size for both arrays."""

    def equal(x, y):
        return (x * 2, y * 3) if x.shape[0] == y.shape[0] else None

    def free(x, y):
        return x * 2, y * 3

    for f in (equal, free):
        called(f, np.ones(4, F32), np.ones(4, F32))
    assert len(programs(disk)) == 2
    again, _ = called(free, np.ones(4, F32), np.ones(4, F32))
    assert "disk" in again.newest.seconds
    assert [y.tolist() for y in again(np.ones(2, F32), np.ones(5, F32))] == [[2.0] * 2, [3.0] * 5]


def test_the_key_covers_all_files_that_make_programs_of_graphs():
    """Rooms below import none above (`pyproject.toml`), so only what the compiler of `static` imports is to be seen."""
    covered = {name for name, _, _ in stamp_module.package_files()}
    assert len(covered) > 500
    above = {f"{package}.{room}" for package, rooms in stamp_module.APART.items() for room in rooms}
    imported: dict[str, set[str]] = {}
    for room in ("graph", "passes", "lowering", "running"):
        for path in (ROOT / "static" / room).rglob("*.py"):
            assert str(path) in covered
            found = re.findall(r"^ *(?:from|import) ([\w.]+)", path.read_text(), re.MULTILINE)
            for name in {".".join(module.split(".")[:2]) for module in found} & above:
                imported.setdefault(name, set()).add(path.name)
    assert imported == {"common.tools": {"serialize.py"}}  # reads files of programs, which are graphs


def test_the_key_follows_the_package(disk, monkeypatch, tmp_path):
    keys = []
    for text in ("x = 1", "x = 2"):
        program_store._package.cache_clear()
        (tmp_path / "module.py").write_text(text)
        monkeypatch.setattr(program_store, "package_files", lambda: [stamp_module._mark(tmp_path / "module.py")])
        keys.append(program_store._package())
        assert program_store._package() == keys[-1]
    program_store._package.cache_clear()
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("f", "options"),
    [
        (lambda x: x * 2, {"passes": static.passes.PIPELINE}),
        (lambda x: x * 2, {"interpret": True}),
    ],
    ids=["passes", "interpreted"],
)
def test_what_is_not_stored(disk, f, options):
    compiled, _ = called(f, np.ones(3, F32), **options)
    assert not programs(disk)
    assert "disk" not in compiled.newest.seconds


def test_a_damaged_program_is_made_again(disk):
    called(lambda x: x * 3, np.ones(3, F32))
    for path in disk.glob("*.kernel"):
        if disk_cache.unpack(path.stem, path.read_bytes()).symbol == "program":
            path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(TwingradCacheWarning, match="damaged"):
        compiled, (y,) = called(lambda x: x * 3, np.ones(3, F32))
    assert y.tolist() == [3, 3, 3]
    assert "lower" in compiled.newest.seconds
    assert len(programs(disk)) == 1


def test_a_program_without_its_kernels_compiles_them(disk, monkeypatch):
    from common.compiler import compile as compile_module

    called(lambda x: x * 11 - 4, np.ones(3, F32))
    for path in disk.glob("*.kernel"):
        if disk_cache.unpack(path.stem, path.read_bytes()).symbol != "program":
            path.unlink()
    monkeypatch.setattr(compile_module, "_addresses", {})
    compiled, (y,) = called(lambda x: x * 11 - 4, np.ones(3, F32))
    assert "disk" in compiled.newest.seconds
    assert y.tolist() == [7, 7, 7]


STEP = """
import numpy as np, static
from tests.static.stored import network
step, model = network()
f = static.function(step)
x = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
for _ in range(3):
    loss = f(x, np.array([0, 1, 2, 1, 0]))
print(loss.numpy().tobytes().hex(), [p.numpy().tobytes().hex() for p in model.parameters()])
"""


def test_processes_share_programs(tmp_path):
    """Several fill one folder at once; a later one finds all of it, and imports no compiler and no graph library."""
    together = [finish(process) for process in [start(STEP, tmp_path) for _ in range(3)]]
    report = "import sys; print('disk' in f.newest.seconds, {'numba', 'llvmlite', 'networkx'} & set(sys.modules))"
    late = finish(start(STEP + report, tmp_path))
    assert late == together[0] + "True set()\n"
    assert len({*together}) == len(programs(tmp_path)) == 1


def shared(x, w):
    """Loops over elements, rows, columns and whole arrays, products side by side, and a region."""
    h = static.tanh(x @ w) * static.layer_norm(x, (x.shape[1],))
    h = static.fori_loop(0, 2, lambda i, c: c * 0.5 + static.tanh(c @ w), h)
    return h, h.sum(), h.sum(0), static.softmax(h, 1), static.grad(lambda w: ((x @ w).tanh() @ w).exp().mean())(w)


def test_the_form_for_threads_is_stored(disk, monkeypatch):
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((1024, 96)).astype(F32), rng.standard_normal((96, 96)).astype(F32) / 10
    _, expected = called(shared, x, w)
    _, smaller = called(shared, x[:700], w)
    static.set_num_threads(2)
    try:
        for warm in (False, True):
            if warm:
                monkeypatch.setattr(optimised, "run_passes", None)
                monkeypatch.setattr(lowered_program, "LoweredProgram", None)
            compiled, results = called(shared, x, w)
            calls = compiled.newest.executable.for_threads.frame.calls
            assert "disk" in compiled.newest.seconds  # from the process with one thread
            assert sum(bool(call.cut) for call in calls) > 3
            assert any(call.beside for call in calls)
            assert_all_same_bits(results, expected, "two threads")
            assert_all_same_bits(compiled(x[:700], w), smaller, "two threads, another size")
    finally:
        static.set_num_threads(1)
    assert len(programs(disk)) == 3  # one for each size when traced, one for threads


def test_memory_for_accumulators_is_stored_whole(disk):
    """Deviations from a mean keep the means beside the sums, which takes one level more."""
    kinds = []
    for _ in range(2):
        f, _ = called(lambda x: x.var(0), np.ones((40, 9), F32))
        frame = f.newest.executable.frame
        kinds.append([(t.columns.itemsize, t.columns.tile, t.columns.more) for t in frame.temporaries if t.columns])
    assert "disk" in f.newest.seconds
    assert kinds[0] == kinds[1]
    assert max(more for *_, more in kinds[0]) == 1
