"""Parameters and state that a program replaces: every step, compiled or not, takes those that are there."""

import collections
import copy
import pickle

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_same_bits

MAKE = {
    "Adam": lambda tw, given: tw.optim.Adam(given, lr=0.1, amsgrad=True),
    "SGD": lambda tw, given: tw.optim.SGD(given, lr=0.1, momentum=0.9),
    "plain SGD": lambda tw, given: tw.optim.SGD(given, lr=0.1),
    "RMSprop": lambda tw, given: tw.optim.RMSprop(given, lr=0.01, centered=True),
}


def grow(tw, optimizer):
    """Longer parameters in place of others, with their state: as programs that add points or neurons do."""
    for group in optimizer.param_groups:
        old = group["params"][0]
        state = optimizer.state.get(old, {})
        del optimizer.state[old]
        group["params"][0] = tw.nn.Parameter(tw.cat((old.detach(), tw.ones(2))))
        optimizer.state[group["params"][0]] = {
            name: tw.cat((x, tw.zeros(2))) if x.ndim else x for name, x in state.items()
        }


def assign(tw, optimizer):
    optimizer.param_groups[0]["params"] = [tw.nn.Parameter(p.detach() * 2) for p in optimizer.param_groups[0]["params"]]


def append(tw, optimizer):
    optimizer.param_groups[-1]["params"].append(tw.nn.Parameter(tw.full((4,), 0.5)))


def reset(tw, optimizer):
    optimizer.state = collections.defaultdict(dict)


def clear(tw, optimizer):
    optimizer.state.clear()


def replace_entries(tw, optimizer):
    for state in optimizer.state.values():
        for name, x in list(state.items()):
            state[name] = tw.ones_like(x)


def drop(tw, optimizer):
    optimizer.param_groups[0]["params"].pop()


CHANGES = [grow, assign, append, reset, clear, replace_entries, drop]


def run(tw, make, change, wrap):
    tw.manual_seed(1)
    given = [{"params": [tw.nn.Parameter(tw.randn(3))]}, {"params": [tw.nn.Parameter(tw.randn(5))], "lr": 0.05}]
    optimizer = make(tw, given)

    @wrap
    def step():
        optimizer.zero_grad()
        terms = [((p - i) ** 2).sum() for i, g in enumerate(optimizer.param_groups) for p in g["params"]]
        sum(terms).backward()
        optimizer.step()
        return sum(terms)

    losses = [step() for _ in range(3)]
    change(tw, optimizer)
    losses += [step() for _ in range(3)]
    return [*losses, *(p for g in optimizer.param_groups for p in g["params"])]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", MAKE)
def test_steps_take_the_members_that_are_there(kind, change):
    wanted = run(dynamic, MAKE[kind], change, lambda f: f)
    for tw in (dynamic, static):
        for x, y in zip(wanted, run(tw, MAKE[kind], change, tw.function), strict=True):
            assert_same_bits(x.detach(), y.detach(), f"{kind}, {change.__name__}")


@pytest.mark.parametrize("tw", [dynamic, static], ids=lambda e: e.__name__)
def test_state_that_has_gone_begins_anew(tw):
    p, q = (tw.nn.Parameter(tw.ones(3)) for _ in range(2))
    one, two = tw.optim.Adam([p], lr=0.1), tw.optim.Adam([q], lr=0.1)
    (p * p).sum().backward()
    one.step()
    one.state = collections.defaultdict(dict)
    q.data = p.detach().clone()
    for x, optimizer in ((p, one), (q, two)):
        x.grad = tw.ones(3)
        optimizer.step()
    assert_same_bits(p.detach(), q.detach(), "one step of an optimiser that has forgotten")
    assert float(one.state[p]["step"]) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_copies_take_their_own_members(copied):
    optimizer = dynamic.optim.Adam([dynamic.nn.Parameter(dynamic.ones(3))], lr=0.1)
    optimizer.param_groups[0]["params"][0].grad = dynamic.ones(3)
    optimizer.step()
    twin = copied(optimizer)
    twin.param_groups[0]["params"].append(dynamic.nn.Parameter(dynamic.ones(2)))
    for p in twin.param_groups[0]["params"]:
        p.grad = dynamic.ones_like(p)
    twin.step()
    assert [float(twin.state[p]["step"]) for p in twin.param_groups[0]["params"]] == [2, 1]
    assert len(optimizer.state) == len(optimizer.param_groups[0]["params"]) == 1
    assert float(next(iter(optimizer.state.values()))["step"]) == 1


def test_what_is_no_tensor_is_refused():
    optimizer = dynamic.optim.SGD([dynamic.nn.Parameter(dynamic.ones(3))], lr=0.1)
    optimizer.param_groups[0]["params"].append(np.ones(2))
    with pytest.raises(TypeError, match="can only optimize Tensors, but one of the params is ndarray"):
        optimizer.step()


def test_traced_functions_do_not_change_groups():
    optimizer = static.optim.SGD([static.nn.Parameter(static.ones(3))], lr=0.1)

    @static.function
    def f(x):
        optimizer.param_groups[0]["params"] = []
        return x

    with pytest.raises(ValueError, match="set it outside of traced functions"):
        f(np.ones(2))
