"""Users' additions to optimisers: their own steps, hooks, and gradients through steps."""

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import ArgumentError


def test_how_pytorch_carries_out_a_step_changes_nothing():
    def run(**how):
        p = tw.nn.Parameter([1.0, -2.0])
        optimizer = tw.optim.Adam([p], lr=0.1, **how)
        for _ in range(3):
            p.grad = p.detach() * 2
            optimizer.step()
        assert {name: optimizer.param_groups[0][name] for name in how} == how
        return p.tolist()

    assert run() == run(foreach=True) == run(fused=True) == run(foreach=False, capturable=True)


OPTIMISERS = [
    ("SGD", {"momentum": 0.5}), ("SGD", {"momentum": 0.5, "nesterov": True, "weight_decay": 0.1}), ("Adam", {}),
    ("Adam", {"amsgrad": True}), ("AdamW", {"amsgrad": True}), ("NAdam", {}), ("RAdam", {}), ("Adamax", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}), ("Adagrad", {}), ("Adadelta", {}), ("ASGD", {}), ("Rprop", {}),
]  # fmt: skip


@pytest.mark.parametrize("engine", [tw, static])
@pytest.mark.parametrize(("name", "options"), OPTIMISERS)
def test_gradients_go_through_differentiable_steps(engine, name, options):
    """The derivative of the parameters after two steps with respect to where these began."""
    start = engine.tensor([1.0, -2.0], dtype=engine.float64, requires_grad=True)

    def after(start):
        p = start.clone()
        optimizer = getattr(engine.optim, name)([p], lr=0.1, differentiable=True, **options)
        for _ in range(2):
            p.grad = p.clone() ** 3
            optimizer.step()
        return p

    (slope,) = engine.autograd.grad(after(start).sum(), start)
    h = 1e-6
    step = engine.tensor([h, h], dtype=engine.float64)
    wanted = (after(start.detach() + step) - after(start.detach() - step)) / (2 * h)
    assert np.allclose(slope.numpy(), wanted.numpy(), rtol=1e-6)


class SignDescent(tw.optim.Optimizer):
    def __init__(self, params, lr=0.5):
        super().__init__(params, {"lr": lr})

    @tw.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state.setdefault("momentum", tw.zeros_like(p)).mul_(0.5).add_(p.grad.sign())
                state["count"] = state.get("count", 0) + 1
                p.sub_(group["lr"] * state["momentum"])


def test_users_write_optimisers():
    p = tw.nn.Parameter([1.0, -2.0])
    optimizer = SignDescent([p])
    scheduler = tw.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    p.grad = tw.tensor([1.0, -1.0])
    optimizer.step()
    scheduler.step()
    saved = optimizer.state_dict()
    assert saved["state"][0]["count"] == 1
    q = tw.nn.Parameter(p.detach().clone())
    other = SignDescent([q])
    other.load_state_dict(saved)
    for x, o in ((p, optimizer), (q, other)):
        x.grad = tw.tensor([1.0, 1.0])
        o.step()
    assert p.tolist() == q.tolist() == [0.125, -1.625]
    with pytest.raises(NotImplementedError, match="does not define step"):
        tw.optim.Optimizer([p], {"lr": 0.1}).step()


def test_hooks_run_around_steps_saving_and_loading():
    optimizer, seen = SignDescent([tw.nn.Parameter([1.0])]), []
    optimizer.param_groups[0]["params"][0].grad = tw.tensor([1.0])
    modules = tw.optim.optimizer
    handles = [
        modules.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("all before")),
        modules.register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("all after")),
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after")),
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("saving")),
        optimizer.register_state_dict_post_hook(lambda o, d: {**d, "more": 1}),
        optimizer.register_state_dict_post_hook(lambda o, d: seen.append("first"), prepend=True),
        optimizer.register_load_state_dict_pre_hook(lambda o, d: seen.append("loading")),
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded")),
    ]
    optimizer.step()
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    assert saved["more"] == 1
    assert seen == ["all before", "before", "after", "all after", "saving", "first", "loading", "loaded"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 8


@pytest.mark.parametrize("engine", [tw, static])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adadelta", "NAdam", "ASGD", "Rprop", "LBFGS", "Adagrad"])
def test_parameters_that_no_step_has_updated_have_no_state_to_save(engine, name):
    """Positions are those that PyTorch 2.13 saves; its Adagrad alone has state from the start."""

    def made():
        members = [engine.nn.Parameter([1.0, -2.0]), engine.nn.Parameter([3.0])]
        options = {"momentum": 0.5} if name == "SGD" else {}
        return members, getattr(engine.optim, name)(members, lr=0.125, **options)

    def step(members, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = (members[0] * members[0]).sum()
            loss.backward()
            return loss

        optimizer.step(closure)

    members, optimizer = made()
    first = optimizer.state_dict()
    assert list(first["state"]) == ([0, 1] if name == "Adagrad" else [])
    step(members, optimizer)
    assert list(optimizer.state_dict()["state"]) == ([0, 1] if name == "Adagrad" else [0])
    others, other = made()
    step(others, other)
    other.load_state_dict(first)  # what is not saved is as before the first step
    with engine.no_grad():
        others[0].copy_(engine.tensor([1.0, -2.0]))
    if name != "LBFGS":
        step(others, other)
        assert others[0].tolist() == members[0].tolist()


class Slow(tw.optim.Optimizer):
    """Plain descent every `k` steps, as optimisers around others are written."""

    def __init__(self, params, lr=0.5, k=2, betas=(1, 0.5)):
        super().__init__(params, {"lr": lr, "k": k, "betas": betas, "name": "slow"})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                if state["step"] % group["k"] == 0:
                    for _ in range(group["k"]):
                        p.data.add_(p.grad.data, alpha=-group["lr"])


def test_whole_numbers_among_the_options_stay_whole():
    p = tw.nn.Parameter(tw.ones(2))
    optimizer = Slow([p])
    for _ in range(2):
        optimizer.zero_grad()
        p.sum().backward()
        optimizer.step()
    assert p.tolist() == [0.0, 0.0]
    (group,) = optimizer.param_groups
    assert [type(group["k"]), *map(type, group["betas"]), type(group["lr"])] == [int, int, float, float]
    saved = optimizer.state_dict()["param_groups"][0]
    assert [saved["k"], saved["betas"], saved["name"]] == [2, (1, 0.5), "slow"]
    group["k"] = 3
    assert (group["k"], type(group["k"])) == (3, int)
    group["k"] *= 0.5
    assert group["k"] == 1.5
    group["lr"] = 1
    assert (group["lr"], type(group["lr"])) == (1, int)
    optimizer.load_state_dict(optimizer.state_dict())
    assert type(optimizer.param_groups[0]["lr"]) is int


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("engine", [tw, static])
def test_options_that_were_0_come_in_with_their_state(engine, compiled):
    """SGD gets momentum, and then weight decay, after a first step without; the rule by hand beside it."""
    p = engine.nn.Parameter(np.array([1.0, -2.0]))
    optimizer = engine.optim.SGD([p], lr=0.1)

    def step():
        optimizer.zero_grad()
        loss = (p**4).sum()
        loss.backward()
        optimizer.step()
        return loss

    run = engine.function(step) if compiled else step
    want, velocity, momentum, decay = np.array([1.0, -2.0]), np.zeros(2), 0.0, 0.0
    for number in range(7):
        if number == 1:
            optimizer.param_groups[0]["momentum"] = momentum = 0.5
        if number == 4:
            optimizer.param_groups[0]["weight_decay"] = decay = 0.25
        if number == 6:
            optimizer.param_groups[0]["momentum"] = momentum = 0.0
        run()
        g = 4 * want**3 + decay * want
        velocity = momentum * velocity + g if number else np.zeros(2)
        want = want - 0.1 * (velocity if number else g)
        np.testing.assert_allclose(p.detach().numpy(), want, rtol=1e-12)
    assert optimizer.state_dict()["param_groups"][0]["weight_decay"] == 0.25
    assert list(optimizer.state[p]) == ["momentum_buffer"]


@pytest.mark.parametrize("engine", [tw, static])
def test_a_cycle_of_momentum_begins_at_none(engine):
    p = engine.nn.Parameter(engine.ones(2))
    optimizer = engine.optim.SGD([p], lr=1.0)
    schedule = engine.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
    seen = []
    for _ in range(4):
        seen.append(round(optimizer.param_groups[0]["momentum"], 6))
        p.grad = engine.ones(2)
        optimizer.step()
        if len(seen) < 4:
            schedule.step()
    assert seen[0] == 0.95
    assert min(seen) == pytest.approx(0.85, abs=0.02)


def test_groups_can_be_added():
    a, b = tw.nn.Parameter([1.0]), tw.nn.Parameter([1.0])
    optimizer = tw.optim.AdamW([("a", a)], lr=0.1)
    optimizer.add_param_group({"params": [("b", b)], "weight_decay": 0, "lr": 0.5})
    assert [g["param_names"] for g in optimizer.state_dict()["param_groups"]] == [["a"], ["b"]]
    a.grad = b.grad = tw.tensor([1.0])
    optimizer.step()
    assert a.tolist() == pytest.approx([0.899])
    assert b.tolist() == pytest.approx([0.5])
    assert [dict(g)["lr"] for g in optimizer.param_groups] == [0.1, 0.5]
    with pytest.raises(ArgumentError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [("again", a)]})
    c = tw.nn.Parameter([1.0])
    with pytest.raises(ArgumentError, match="cannot add param group with names to the optimizer"):
        tw.optim.SGD([c]).add_param_group({"params": [a], "param_names": ["a"]})
    with pytest.raises(ArgumentError, match="cannot add param group without names to the optimizer"):
        optimizer.add_param_group({"params": [tw.nn.Parameter([1.0])]})
    assert len(optimizer.param_groups) == 2
    optimizer.load_state_dict(optimizer.state_dict())


class Sharp(tw.optim.Optimizer):
    """An optimiser around another one, made with the groups of the first."""

    def __init__(self, params, base, rho, **options):
        super().__init__(params, {"rho": rho, **options})
        self.base = base(self.param_groups, **options)
        self.param_groups = self.base.param_groups

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = p.grad * group["rho"]
        self.base.step()


class Around(tw.optim.Optimizer):
    """An optimiser that shares all that another one has, and does not call ``super().__init__()``."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.param_groups, self.state = optimizer.param_groups, {}
        for group in self.param_groups:
            group["counter"] = 0

    def step(self, closure=None):
        self.optimizer.step(closure)
        for group in self.param_groups:
            group["counter"] += 1


def test_optimisers_are_made_with_the_groups_of_others():
    p = tw.nn.Parameter(tw.ones(2))
    optimizer = Sharp([{"params": [p], "lr": 0.5}], tw.optim.SGD, rho=2.0, lr=1.0)
    schedule = tw.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
    p.grad = tw.ones(2)
    optimizer.step()
    assert p.tolist() == [0.0, 0.0]
    schedule.step()
    assert optimizer.base.param_groups[0]["lr"] == pytest.approx(0.05)
    around = Around(optimizer.base)
    around.step()
    assert around.param_groups[0]["counter"] == 1


def test_a_users_optimiser_may_have_no_rate():
    class Free(tw.optim.Optimizer):
        def __init__(self, params, lr=None):
            super().__init__(params, {"lr": lr})

    optimizer = Free([tw.nn.Parameter(tw.ones(2))])
    assert optimizer.param_groups[0]["lr"] is None
    with pytest.raises(ValueError, match="'lr' must be a number"):
        tw.optim.SGD([tw.nn.Parameter(tw.ones(2))], lr=None)


@pytest.mark.parametrize("engine", [tw, static])
def test_a_parameter_given_twice_is_updated_twice(engine):
    p, q = engine.nn.Parameter(engine.ones(2)), engine.nn.Parameter(engine.ones(1))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = engine.optim.SGD([p, q, p], lr=0.25)

    @engine.function
    def step():
        optimizer.zero_grad()
        ((p * p).sum() * q).sum().backward()
        optimizer.step()

    step()
    assert p.tolist() == [0.0, 0.0]
    assert q.tolist() == [0.5]
    assert len(optimizer.state_dict()["param_groups"][0]["params"]) == 3


@pytest.mark.parametrize("engine", [tw, static])
def test_a_parameter_of_two_groups_has_one_number_in_what_is_saved(engine):
    a, b = (engine.nn.Parameter(engine.ones(2)) for _ in range(2))
    optimizer = engine.optim.Adam([a, b])
    optimizer.param_groups.extend(optimizer.param_groups)
    assert [group["params"] for group in optimizer.state_dict()["param_groups"]] == [[0, 1], [0, 1]]
