"""Copies and pickles of what programs are made of: a table of objects, and of ways; also in another process."""

import concurrent.futures
import copy
import functools
import io
import multiprocessing
import pickle
import subprocess
import sys
import types

import pytest

import dynamic
import static
from common.core import errors
from common.tensor.hook_handles import RemovableHandle
from tests.bits import assert_all_same_bits
from tests.helpers.copied import (
    ENGINES,
    OBJECTS,
    WAYS,
    Net,
    X,
    array,
    drop_first,
    flat,
    halve,
    hooked,
    loss,
    named_dynamic,
    named_static,
    net,
    pickled,
    scaled,
    scheduled,
)  # fmt: skip


@pytest.mark.parametrize("name", OBJECTS)
def test_another_one_computes_the_same_bits(name):
    make, use = OBJECTS[name]
    wanted = use(make())
    for way, other in WAYS.items():
        assert_all_same_bits(use(other(make())), wanted, f"{name}, {way}")


@pytest.mark.parametrize("name", ["dynamic function", "static function", "static grad", "compiled module", "options"])
def test_another_one_of_what_has_run_computes_the_same_bits(name):
    make, use = OBJECTS.get(name) or OBJECTS[f"static {name}"]
    used = make()
    use(used)
    wanted = use(copy.deepcopy(used))
    for way in ("deepcopy", "pickle 4"):
        assert_all_same_bits(use(WAYS[way](used)), wanted, f"{name}, {way}")


def test_options_go_with_a_pickle():
    f = static.function(scaled, fuse=False, max_traces=7, control_flow="guard", donate_argnums=0)
    g = pickle.loads(pickle.dumps(f))
    for option in ("options", "interpret", "passes", "max_traces", "control_flow", "donate_argnums"):
        assert getattr(g, option) == getattr(f, option), option
    passes = [static.passes.remove_dead, drop_first]
    assert pickle.loads(pickle.dumps(static.function(scaled, passes=passes))).passes == tuple(passes)


def test_a_deep_copy_is_independent_and_what_is_a_function_is_its_own_copy():
    module = net()
    other = copy.deepcopy(module)
    assert other.step is not module.step
    with dynamic.no_grad():
        module.norm.bias.fill_(100.0)
    assert array(other.step(X)).max() < 50 < array(module.step(X)).max()
    compiled = static.compile(module)
    assert copy.deepcopy(compiled).a is not compiled.a
    assert copy.copy(compiled).a is compiled.a
    for f in (named_static, named_dynamic, static.grad(loss), dynamic.function(loss), dynamic.tanh, static.scan):
        assert copy.copy(f) is f
        assert copy.deepcopy(f) is f
    for f in (named_static, named_dynamic, Net.compiled, dynamic.tanh, static.scan, static.func.hessian, static.grad):
        assert pickle.loads(pickle.dumps(f)) is f


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("space", ["", "func", "nn.functional", "random", "autograd", "optim"])
def test_every_public_function_and_class_is_pickled_by_name(engine, space):
    module = functools.reduce(getattr, filter(None, space.split(".")), engine)
    for name in module.__all__:
        x = getattr(module, name)
        if callable(x) and not isinstance(x, types.ModuleType):
            assert pickle.loads(pickle.dumps(x)) is x, name


def test_hooks_that_come_after_a_pickle_have_ids_of_their_own():
    data = pickle.dumps(hooked())
    RemovableHandle._ids = iter(range(10**9))  # as in a process that has just begun
    module = pickle.loads(data)
    before = array(module(dynamic.tensor(X)))
    module = pickle.loads(data)
    module.register_forward_hook(halve)
    assert_all_same_bits([array(module(dynamic.tensor(X)))], [before * 0.5], "one more hook")


# ------------------------------------------------------------------ what cannot be pickled


def closures():
    offset = 2.0

    def local(x):
        return x + offset

    graph = static.Graph()
    with graph.as_default():
        y = static.placeholder(static.float32, [2], name="x") * 2
    module = net()
    module.register_forward_hook(lambda *args: None)
    schedule = scheduled("LambdaLR", lambda epoch: 1.0)[-1]
    yield "static.function", static.function(lambda x: x), "a lambda has no name.*Define it with `def`"
    yield "dynamic.function", dynamic.function(local), "defined inside another function"
    yield "dynamic.func.hessian", dynamic.func.hessian(local), "defined inside another function"
    yield "static.grad", static.grad(local), "defined inside another function"
    yield "static.compile", static.compile(net(), passes=[lambda g: g]), "a lambda"
    yield "static.function", static.function(functools.partial(local)), "defined inside another function"
    yield "static.function", static.function(named_dynamic.__wrapped__), "has something else under that name"
    yield "ModuleHooks", module, "a lambda"
    yield "LambdaLR", schedule, "a lambda"
    yield "Graph", graph, "build it again"
    yield "GraphTensor", y, "build the graph again"
    yield "Operation", y.op, "build the graph again"
    yield "Session", static.Session(graph), "Saver"


def test_what_no_pickle_holds_says_what_to_do():
    for what, x, words in closures():
        for protocol in range(2, 6):
            with pytest.raises(errors.PickleError, match=f"cannot (copy or )?pickle (a )?{what}.*{words}") as caught:
                pickle.dumps([x], protocol)
        assert isinstance(caught.value, (pickle.PicklingError, TypeError))
        if isinstance(x, (static.Graph, static.Session, static.Operation)) or what == "GraphTensor":
            for other in (copy.copy, copy.deepcopy):
                with pytest.raises(errors.PickleError, match="cannot copy or pickle"):
                    other(x)
        else:
            copy.copy(x), copy.deepcopy(x)


class ByValue(pickle.Pickler):
    """A pickler that takes functions as their code, as cloudpickle does."""

    def dump(self, x):
        super().dump(x)

    def reducer_override(self, x):
        if isinstance(x, types.FunctionType) and "<" in x.__qualname__:
            cells = tuple(cell.cell_contents for cell in x.__closure__ or ())
            return by_value, (x.__code__.co_code, cells)
        return NotImplemented


ByValue.__module__ = "another.pickler"
KNOWN: dict[bytes, types.FunctionType] = {}


def by_value(code, cells):
    return KNOWN[code]


def test_a_pickler_that_takes_functions_by_value_gets_them():
    def local(x):
        return x * 2

    KNOWN[local.__code__.co_code] = local
    for make in (static.function, dynamic.function, static.vmap):
        buffer = io.BytesIO()
        ByValue(buffer).dump(make(local))
        assert_all_same_bits(flat(pickle.loads(buffer.getvalue())(X)), [X * 2], "by value")


def test_every_error_goes_through_a_pickle():
    for name in dir(errors):
        kind = getattr(errors, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            error = kind("what, and what to do")
            error.add_note("a note")
            for other in (copy.copy, copy.deepcopy, pickled(2), pickled(5)):
                again = other(error)
                assert (type(again), str(again), again.__notes__) == (kind, str(error), ["a note"])
    for call in (lambda: X @ X, lambda tw=dynamic: tw.ones(2) @ tw.ones(3, 2), lambda tw=static: tw.ones(2)[5]):
        with pytest.raises((ValueError, IndexError)) as caught:
            call()
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# ------------------------------------------------------------------ other processes


def used(name, data):
    """Runs over there."""
    return OBJECTS[name][1](pickle.loads(data))


def refused(n):
    return dynamic.ones(2) @ dynamic.ones(n)


@pytest.mark.filterwarnings("ignore:This process .*is multi-threaded:DeprecationWarning")  # what fork says from 3.12
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_another_process_computes_the_same_bits(start):
    """Executors pickle what they send; the other side compiles from the cache."""
    if start not in multiprocessing.get_all_start_methods():
        return
    context = multiprocessing.get_context(start)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        sent = {name: pool.submit(used, name, pickle.dumps(make())) for name, (make, _) in OBJECTS.items()}
        results = list(pool.map(static.grad(loss), [X, X * 2]))
        failed = pool.submit(refused, 3).exception()
        for name, future in sent.items():
            make, use = OBJECTS[name]
            assert_all_same_bits(future.result(), use(make()), f"{name}, {start}")
    assert_all_same_bits(flat(results), flat([static.grad(loss)(X), static.grad(loss)(X * 2)]), "map")
    assert isinstance(failed, errors.ShapeError)


def test_a_pickle_needs_no_import_before_it():
    data = pickle.dumps((dynamic.tensor(X), dynamic.nn.Linear(3, 2), dynamic.optim.SGD([dynamic.nn.Parameter(X)], 0.1)))
    script = (
        "import pickle, sys; x, module, optimizer = pickle.loads(sys.stdin.buffer.read()); y = module(x);"
        "y.sum().backward(); optimizer.step(); print(tuple(y.shape), module.weight.grad is not None)"
    )
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=True)
    assert done.stdout.decode().split("\n")[0] == "(4, 2) True", done.stderr
