"""Several threads: separate graphs are exact, shared leaves lose nothing."""

import sys
import threading

import numpy as np
import pytest

import dynamic as tw
from common.evaluate import specialise
from dynamic.eager import views, writes

THREADS, ROUNDS = 8, 40


@pytest.fixture(autouse=True)
def contention():
    """Threads take turns after a few instructions instead of 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_in_threads(target, count=THREADS):
    """Run ``target(number)`` in threads that begin together; the first error is raised here."""
    start, errors = threading.Barrier(count), []

    def body(number):
        try:
            start.wait()
            target(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def program(seed, hooks=False):
    """A small training step's results, as bytes; seeds give different shapes, so recipes are made meanwhile."""
    rng = np.random.default_rng(seed)
    x = tw.tensor(rng.standard_normal((3, 2 + seed % 4)).astype(np.float32), requires_grad=True)
    w = tw.tensor(rng.standard_normal((2 + seed % 4, 3)).astype(np.float32), requires_grad=True)
    h = tw.tanh(x @ w)
    if hooks:
        h.register_hook(lambda g: g * 2)
    h = h * h + h.sum(1, keepdim=True)
    h[0] = h[1] * 2
    (g,) = tw.autograd.grad((h * h).sum(), w, create_graph=True)
    (g * g).sum().backward()
    return w.grad.numpy().tobytes() + x.grad.numpy().tobytes() + g.detach().numpy().tobytes()


@pytest.mark.parametrize("hooks", [False, True])
def test_separate_graphs_are_exact(hooks):
    alone = [program(seed, hooks) for seed in range(THREADS)]

    def body(number):
        for _ in range(ROUNDS // 4):
            assert program(number, hooks) == alone[number]

    run_in_threads(body)


@pytest.mark.parametrize("hooks", [False, True])
def test_shared_leaves_lose_no_contribution(hooks):
    w = tw.tensor(np.zeros(5, np.float64), requires_grad=True)
    seen = []
    if hooks:
        w.register_hook(lambda g: seen.append(1))

    def body(number):
        for _ in range(ROUNDS):
            ((w + number) * 1.0).sum().backward()

    run_in_threads(body)
    assert w.grad.tolist() == [float(THREADS * ROUNDS)] * 5  # whole numbers: exact in any order
    assert len(seen) == THREADS * ROUNDS * hooks


def test_shared_parameters_of_a_module_lose_no_contribution():
    layer = tw.nn.Linear(3, 2)
    x = tw.ones(4, 3)

    def body(number):
        for _ in range(ROUNDS):
            layer(x).sum().backward()

    run_in_threads(body)
    assert layer.bias.grad.tolist() == [4.0 * THREADS * ROUNDS] * 2
    assert layer.weight.grad.tolist() == [[4.0 * THREADS * ROUNDS] * 3] * 2


def test_one_graph_differentiated_by_several_threads():
    x = tw.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x * x).sum()

    def body(number):
        for _ in range(ROUNDS):
            (g,) = tw.autograd.grad(y, x, retain_graph=True)
            assert g.tolist() == [3.0, 12.0]

    run_in_threads(body)


def test_modes_are_per_thread():
    def body(number):
        x = tw.tensor([1.0], requires_grad=True)
        for _ in range(ROUNDS):
            if number % 3 == 0:
                with tw.no_grad():
                    assert not (x * 2).requires_grad
            elif number % 3 == 1:
                with tw.inference_mode():
                    assert (x * 2).is_inference()
            assert (x * 2).requires_grad
            assert not (x * 2).is_inference()

    run_in_threads(body)


def test_modes_of_threads_do_not_leave_the_general_path_on():
    from common.core import mode

    before = len(mode.tracing)

    def body(number):
        for _ in range(200):
            with tw.inference_mode(), tw.autograd.detect_anomaly():
                pass

    run_in_threads(body)
    assert len(mode.tracing) == before


def test_node_numbers_are_given_once():
    found = []

    def body(number):
        x = tw.tensor([1.0], requires_grad=True)
        found.append([(x * 2).grad_fn.number for _ in range(500)])

    run_in_threads(body)
    numbers = [n for part in found for n in part]
    assert len(set(numbers)) == len(numbers)


def test_registering_hooks_while_others_run():
    x = tw.tensor([1.0], requires_grad=True)

    def body(number):
        for _ in range(ROUNDS):
            with x.register_hook(lambda g: None):
                (x * 2).backward()

    run_in_threads(body)
    assert x.grad.tolist() == [2.0 * THREADS * ROUNDS]


def test_recipes_are_seen_whole(monkeypatch):
    """No other thread finds a recipe while it is still being prepared: native code would read what is not there."""
    specialise.forget()
    rules, others = specialise._PREPARE["rules for any shape"], []

    def interrupted(recipe, dtypes):
        others.extend(w for w in specialise._wider.values() if w is recipe)
        rules(recipe, dtypes)

    monkeypatch.setitem(specialise._PREPARE, "rules for any shape", interrupted)
    x = tw.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(40):
        (x * x + x).sum().backward()
    assert specialise._wider
    assert not others


class Forgetful(dict[object, object]):
    """Forgets at once, as a table does that another thread empties."""

    def __setitem__(self, key, value):
        pass


def test_views_do_without_what_another_thread_has_forgotten(monkeypatch):
    monkeypatch.setattr(views.parts, "recent", Forgetful())
    monkeypatch.setattr(views.parts, "_known", Forgetful())
    monkeypatch.setattr(writes, "recent_parts", views.parts.recent)
    x = tw.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    y = x.clone()
    y[0:1, 1:3] = 7.0
    (y[:, 0:2] * 2).sum().backward()
    assert x.grad.tolist() == [[2.0, 0.0, 0.0], [2.0, 2.0, 0.0]]
