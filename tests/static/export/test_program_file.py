"""Programs in files run without their source: same bits, gradients, state and sizes; what is damaged is refused."""

import functools
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import dynamic
import static
from common.core.errors import ArgumentError, GradientError, PickleError, StateError, TwingradError
from common.core.numerics import NUMERICS_VERSION
from static.export import program_file
from tests.helpers.programs import Program, inputs, programs
from tests.static.export.test_held_graph import W, X, agree, assert_same_bits, mixed

F32 = np.float32
few = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])


def saved(f, **options):
    file = io.BytesIO()
    static.save(f, file, **options)
    return file.getvalue()


def loaded(data):
    return static.load(io.BytesIO(data))


def called(f, *args):
    compiled = static.function(f)
    compiled(*args)
    return compiled


@functools.cache
def small():
    return saved(called(mixed, X, W))


@functools.cache
def looped():
    """The slope of a scan, which has sums."""
    weight = static.nn.Parameter(static.tensor(W[0]))

    def slope(x, w):
        last, rows = static.scan(lambda c, row: (((c * weight).sin() + row) * w[0], c), x[0] * 1, x)
        (g,) = static.autograd.grad(last.sum() + rows.sum(), [weight], create_graph=True)
        return g.square().sum()

    return saved(called(slope, X, W))


def test_a_loaded_function_has_the_bits_and_gradients_of_the_saved_one_at_new_sizes():
    again = loaded(small())
    for n in (3, 7, 2):
        agree(static.function(mixed), again, np.resize(X, (n, 4)) * 0.5, W)


def test_one_of_several_results_is_differentiated_and_gradients_are_too():
    again, compiled = loaded(small()), static.function(mixed)

    def both(f):
        x = static.tensor(X, requires_grad=True)
        loss = f(x, W)[1]
        (g,) = static.autograd.grad(loss, x, create_graph=True)
        (g**2).sum().backward()
        return g.detach(), x.grad

    for a, b in zip(both(compiled), both(again), strict=True):
        assert_same_bits(a, b)


def training():
    static.manual_seed(3)
    model = static.nn.Sequential(
        static.nn.Linear(4, 8), static.nn.Tanh(), static.nn.Dropout(0.25), static.nn.Linear(8, 2)
    )
    optimizer = static.optim.Adam(model.parameters(), lr=0.05)

    @static.function
    def step(x, y):
        optimizer.zero_grad()
        loss = static.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def test_training_goes_on_in_the_file_with_the_same_bits():
    y = np.array([0, 1, 1])
    model, step = training()
    step(X, y)
    again = loaded(saved(step))
    assert set(again.state_dict()) > {"0.weight", "3.bias"}
    state = static.get_rng_state()
    first = [step(X, y).detach() for _ in range(3)]
    static.set_rng_state(state)
    second = [again(X, y).detach() for _ in range(3)]
    for a, b in zip(first, second, strict=True):
        assert_same_bits(a, b)
    for name, p in model.named_parameters():
        assert_same_bits(p.detach(), again.state_dict()[name])


def test_an_exported_module_is_trained_on():
    model = static.nn.Sequential(static.nn.Linear(4, 3), static.nn.ReLU(), static.nn.Linear(3, 1))
    program = loaded(saved(static.export(model, X)))
    assert [name for name, _ in program.named_parameters()] == [name for name, _ in model.named_parameters()]
    other = static.optim.SGD(program.parameters(), lr=0.1)
    own = static.optim.SGD(model.parameters(), lr=0.1)
    for n in (3, 5):
        x = np.resize(X, (n, 4))
        for f, optimizer in ((model, own), (program, other)):
            optimizer.zero_grad()
            (f(x) ** 2).mean().backward()
            optimizer.step()
    for p, q in zip(model.parameters(), program.parameters(), strict=True):
        assert_same_bits(p.detach(), q.detach())


def test_structures_numbers_and_static_arguments_are_part_of_it():
    def f(x, how, scale, axis=0):
        return {"sum": x["a"].sum(axis) * scale, "how": how, "both": [x["a"], (x["b"], None)]}

    f = called(f, {"a": X, "b": W}, "fast", 2.5)
    again = loaded(saved(f))
    given = {"a": X * 2, "b": W}
    found, wanted = again(given, "fast", 0.5), f(given, "fast", 0.5)
    assert found["how"] == "fast"
    assert found["both"][1][1] is None
    assert_same_bits(found["sum"], wanted["sum"])
    with pytest.raises(ArgumentError, match=r"'slow'.*made for 'fast'"):
        again(given, "slow", 0.5)
    with pytest.raises(ArgumentError, match="nested"):
        again(X)


def test_guards_are_kept():
    def f(x):
        return x * 2 if x.shape[0] > 2 else x * 3

    again = loaded(saved(called(f, X)))
    assert_same_bits(again(np.resize(X, (9, 4))), np.resize(X, (9, 4)) * 2)
    with pytest.raises(ArgumentError, match=r"2 is less than arg0\.shape"):
        again(X[:2])
    one = called(f, X[:1])
    with pytest.raises(ArgumentError, match="size 0 of argument 0"):
        loaded(saved(one))(X)
    one(X)
    assert_same_bits(loaded(saved(one))(X), X * 2)


@seed(2)
@settings(few, max_examples=6)
@given(programs(most=5, control=True))
def test_random_programs_survive_in_a_file(program: Program):
    arrays = inputs(np.random.default_rng(62), 4, 3, "float32")
    compiled = called(program.run, *arrays)
    agree(compiled, loaded(saved(compiled)), *inputs(np.random.default_rng(63), 5, 3, "float32"))


def test_another_process_runs_it_without_the_source(tmp_path):
    path = tmp_path / "program.tw"
    path.write_bytes(small())
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "w.npy", W)
    code = (
        "import sys, numpy as np, static; f = static.load(sys.argv[1] + '/program.tw');"
        "x = static.tensor(np.load(sys.argv[1] + '/x.npy')).requires_grad_();"
        "y, z = f(x, np.load(sys.argv[1] + '/w.npy')); (y.sum() + z).backward();"
        "assert not {'networkx', 'tests'} & set(sys.modules);"
        "print(y.detach().numpy().tobytes().hex(), x.grad.numpy().tobytes().hex())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    x = static.tensor(X).requires_grad_()
    y, z = static.function(mixed)(x, W)
    (y.sum() + z).backward()
    assert done.stdout.split() == [y.detach().numpy().tobytes().hex(), x.grad.numpy().tobytes().hex()]


# ------------------------------------------------------------------ what is no valid file


def test_every_altered_byte_and_every_cut_is_noticed():
    data = small()
    rng = np.random.default_rng(0)
    for at in (*range(0, 64, 7), *rng.integers(0, len(data), 100)):
        broken = bytearray(data)
        broken[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(StateError):
            program_file.of_bytes(bytes(broken))
    for end in (*range(0, 60, 5), *rng.integers(0, len(data), 60)):
        with pytest.raises(StateError):
            program_file.of_bytes(data[:end])


def edited(change, data=None):
    """The file with another program, and a checksum that says so."""
    with zipfile.ZipFile(io.BytesIO(data or small())) as archive:
        about = json.loads(archive.read(program_file.PROGRAM))
        weights = archive.read(program_file.WEIGHTS)
    change(about)
    return program_file._zipped({program_file.PROGRAM: json.dumps(about).encode(), program_file.WEIGHTS: weights})


def test_versions_are_checked():
    with pytest.raises(StateError, match="format 99"):
        program_file.of_bytes(edited(lambda about: about.update(format=99)))
    with pytest.raises(StateError, match=f"numerics version 0, and this is {NUMERICS_VERSION}"):
        program_file.of_bytes(edited(lambda about: about.update(numerics=0)))


def test_a_part_or_a_name_that_stands_twice_is_refused():
    with zipfile.ZipFile(io.BytesIO(small())) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    twice = parts[program_file.PROGRAM].replace(b"{", b'{"format": 99, ', 1)
    with pytest.raises(StateError, match=r"damaged.*'format' stands twice"):
        program_file.of_bytes(program_file._zipped({**parts, program_file.PROGRAM: twice}))
    other = program_file.WEIGHTS[:-1] + "!"
    data = program_file._zipped({**parts, other: parts[program_file.WEIGHTS]})
    body = data[:-64].replace(other.encode(), program_file.WEIGHTS.encode())
    with pytest.raises(StateError, match="two of its parts have one name"):
        program_file.of_bytes(body + hashlib.sha256(body).hexdigest().encode())


def paths(data, path=()):
    """Every place in JSON."""
    yield path
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, x in pairs:
        yield from paths(x, (*path, key))


HOSTILE: tuple[Any, ...] = (None, -1, 10**30, 0, True, "x", "__import__('os')", [], {}, [[]], {"dtype": "O"},
           {"float": "zz"}, {"graph": {}}, {"dim": [[[[["in", 99, 0]], 1]], 3]},
           {"dim": [[[[["//", [], []]], 1]], 3]})  # fmt: skip


@pytest.mark.parametrize("program", [small, looped])
def test_a_hostile_program_gives_an_error_or_is_a_program(program):
    with zipfile.ZipFile(io.BytesIO(program())) as archive:
        places = list(paths(json.loads(archive.read(program_file.PROGRAM))))[1:]
    rng = np.random.default_rng(1)
    sums = [x for x in places if "sums" in x]
    assert bool(sums) is (program is looped)
    refused = 0
    for k in range(60):
        some = sums if sums and k % 4 == 0 else places
        path, value = some[rng.integers(len(some))], HOSTILE[rng.integers(len(HOSTILE))]

        def change(about, path=path, value=value):
            for key in path[:-1]:
                about = about[key]
            about[path[-1]] = value

        try:
            program_file.of_bytes(edited(change, program()))(static.tensor(X, requires_grad=True), W)
        except TwingradError:
            refused += 1
    assert refused > 30


def test_other_files_are_told_apart(tmp_path):
    path = tmp_path / "file"
    static.save({"a": static.ones(2)}, path)
    assert static.load(path)["a"].tolist() == [1, 1]
    path.write_bytes(small())
    with pytest.raises(StateError, match=r"static\.load"):
        dynamic.load(path)
    with pytest.raises(ArgumentError, match="call it once"):
        static.save(static.function(mixed), path)
    with pytest.raises(FileNotFoundError):
        static.load(tmp_path / "missing")


class Tripled(static.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


def test_what_no_file_can_hold_is_refused():
    with pytest.raises(ArgumentError, match="Tripled"):
        saved(called(lambda x: Tripled.apply(x).sum(), X))
    held = static.from_networkx(static.trace(lambda x: Tripled.apply(x).sum(), X))
    assert_same_bits(held(X), static.function(lambda x: (x * 2).sum())(X))
    with pytest.raises(GradientError, match="Tripled"):
        held(static.tensor(X, requires_grad=True))
    called_back = called(lambda x: static.pure_callback(np.sin, static.ShapeDtypeStruct((3, 4), F32), x), X)
    with pytest.raises(ArgumentError, match="plain data"):
        saved(called_back)


# ------------------------------------------------------------------ machine code, pickles


def test_machine_code_in_the_file_needs_no_compiler(tmp_path):
    path = tmp_path / "program.tw"
    static.save(called(lambda x: (x.tanh() * 3).sum(0), X), path, native=True)
    np.save(tmp_path / "x.npy", X)
    code = (
        "import sys, numpy as np, static; f = static.load(sys.argv[1] + '/program.tw', native=True);"
        "y = f(np.load(sys.argv[1] + '/x.npy')); assert not {'llvmlite', 'numba'} & set(sys.modules);"
        "print(y.numpy().tobytes().hex())"
    )
    environment = {**os.environ, "TWINGRAD_CACHE": str(tmp_path / "empty")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == static.function(lambda x: (x.tanh() * 3).sum(0))(X).numpy().tobytes().hex()
    data = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in parts if name.startswith(program_file.NATIVE))
    parts[name] = parts[name][:-1] + b"?"
    altered = program_file._zipped(parts)
    with pytest.raises(StateError, match="machine code"):
        program_file.of_bytes(altered, native=True)
    assert_same_bits(program_file.of_bytes(altered)(X), static.function(lambda x: (x.tanh() * 3).sum(0))(X))


def apply(f, x):
    return np.asarray(f(x).detach())


def test_a_lambda_is_pickled_as_its_program_once_it_was_called():
    scale = static.nn.Parameter(np.full(4, 2, F32))
    f = static.function(lambda x: (x * scale).tanh())
    with pytest.raises(PickleError, match="lambda"):
        pickle.dumps(f)
    f(X)
    agree(f, pickle.loads(pickle.dumps(f)), X)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        (found,) = pool.map(functools.partial(apply, f), [X])
    assert_same_bits(found, f(X).detach())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pickle asks every module that is loaded
def test_a_function_of_no_module_is_pickled_as_its_program():
    """Code that `exec` runs in a plain dict has no module: pickle would look for its functions in `__main__`."""
    space = {"static": static}
    exec("f = static.function(lambda x: x.tanh() * 2)\ndef g(x): return x.tanh() * 2", space)
    f, g = space["f"], static.function(space["g"])
    assert space["g"].__module__ is None
    for made, why in ((f, "lambda"), (g, "no module has it")):
        with pytest.raises(PickleError, match=why):
            pickle.dumps(made)
        made(X)
        agree(made, pickle.loads(pickle.dumps(made)), X)
    module = ModuleType("made_by_hand")
    exec("def g(x): return x.tanh() * 2", module.__dict__)
    module.g.__module__ = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        assert pickle.loads(pickle.dumps(static.function(module.g))).__wrapped__ is module.g  # found, as pickle finds


def test_the_digest_is_that_of_all_other_bytes():
    data = small()
    assert data[-64:].decode() == hashlib.sha256(data[:-64]).hexdigest()
