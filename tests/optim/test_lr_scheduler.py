"""Schedulers against their formulas, and against rates that PyTorch 2.13 gives for the same arguments."""

import math
import operator
from typing import Any

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import ArgumentError, TraceError
from common.optim import lr_scheduler as ls


def optimizer(lr=1.0, kind=tw.optim.SGD, **options):
    return kind([tw.nn.Parameter([1.0])], lr=lr, **options)


def rates(make, steps=8, read=lambda group: group["lr"], **options):
    opt = optimizer(**options)
    scheduler = make(opt)
    seen = []
    for _ in range(steps):
        seen.append(read(opt.param_groups[0]))
        assert scheduler.get_last_lr() == [opt.param_groups[0]["lr"]]
        opt.step()
        scheduler.step()
    return seen


class Halving(tw.optim.lr_scheduler._LRScheduler):
    def get_lr(self):
        return [base * 0.5**self.last_epoch for base in self.base_lrs]


# From PyTorch: torch.optim.SGD([p], lr=1.0, momentum=0.9), rates before each of 8 steps, to 6 digits.
PYTORCH: dict[str, Any] = {
    "LambdaLR": (lambda o: ls.LambdaLR(o, lambda t: 0.5**t), [0.5**t for t in range(8)]),
    "StepLR": (lambda o: ls.StepLR(o, 3), [1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01]),
    "MultiStepLR": (lambda o: ls.MultiStepLR(o, [2, 5, 5], 0.5), [1, 1, 0.5, 0.5, 0.5, 0.125, 0.125, 0.125]),
    "ExponentialLR": (lambda o: ls.ExponentialLR(o, 0.9), [0.9**t for t in range(8)]),
    "ConstantLR": (lambda o: ls.ConstantLR(o, 0.5, 3), [0.5, 0.5, 0.5, 1, 1, 1, 1, 1]),
    "LinearLR": (lambda o: ls.LinearLR(o, 0.5, 1.0, 4), [0.5, 0.625, 0.75, 0.875, 1, 1, 1, 1]),
    "PolynomialLR": (lambda o: ls.PolynomialLR(o, 4, 2.0), [1, 0.5625, 0.25, 0.0625, 0, 0, 0, 0]),
    "CosineAnnealingLR": (
        lambda o: ls.CosineAnnealingLR(o, 5, 0.1), [1, 0.914058, 0.689058, 0.410942, 0.185942, 0.1, 0.185942, 0.410942]
    ),
    "MultiplicativeLR": (lambda o: ls.MultiplicativeLR(o, lambda t: 0.5), [0.5**t for t in range(8)]),
    "a user's": (lambda o: Halving(o), [0.5**t for t in range(8)]),
    "chain": (
        lambda o: ls.ChainedScheduler([ls.ConstantLR(o, 0.1, 3), ls.ExponentialLR(o, 0.5)], optimizer=o),
        [0.1, 0.05, 0.025, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125],
    ),
    "CyclicLR": (
        lambda o: ls.CyclicLR(o, 0.1, 1.1, 2, 4, cycle_momentum=False), [0.1, 0.6, 1.1, 0.85, 0.6, 0.35, 0.1, 0.6]
    ),
    "halved cycles": (
        lambda o: ls.CyclicLR(o, 0.1, 1.1, 2, mode="triangular2", cycle_momentum=False),
        [0.1, 0.6, 1.1, 0.6, 0.1, 0.35, 0.6, 0.35],
    ),
    "shrinking cycles": (
        lambda o: ls.CyclicLR(o, 0.0, 1.0, 2, mode="exp_range", gamma=0.5, cycle_momentum=False),
        [0, 0.25, 0.25, 0.0625, 0, 0.015625, 0.015625, 0.00390625],
    ),
    "warm restarts": (
        lambda o: ls.CosineAnnealingWarmRestarts(o, 2, 2), [1, 0.5, 1, 0.853553, 0.5, 0.146447, 1, 0.96194]
    ),
    "sequence": (
        lambda o: ls.SequentialLR(o, [ls.LinearLR(o, 0.5, total_iters=2), ls.ExponentialLR(o, 0.5)], [3]),
        [0.5, 0.75, 1, 1, 0.5, 0.25, 0.125, 0.0625],
    ),
    "OneCycleLR": (
        lambda o: ls.OneCycleLR(o, 2.0, total_steps=10),
        [0.08, 1.04, 2, 1.900969, 1.623491, 1.222524, 0.777484, 0.376517],
    ),
    "three phases": (
        lambda o: ls.OneCycleLR(o, 2.0, epochs=2, steps_per_epoch=5, pct_start=0.3, anneal_strategy="linear",
                                three_phase=True), [0.08, 1.04, 2, 1.04, 0.08, 0.064002, 0.048003, 0.032005]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PYTORCH)
def test_rates(name):
    make, expected = PYTORCH[name]
    assert rates(make, momentum=0.9) == pytest.approx(expected, abs=1e-6)


def test_momentum_goes_the_other_way_in_one_cycle():
    make = PYTORCH["OneCycleLR"][0]
    expected = [0.95, 0.9, 0.85, 0.854952, 0.868826, 0.888874, 0.911126, 0.931174]
    assert rates(make, read=lambda g: g["momentum"], momentum=0.9) == pytest.approx(expected, abs=1e-6)
    betas = rates(make, read=lambda g: g["betas"], kind=tw.optim.Adam)
    assert [b for b, _ in betas] == pytest.approx(expected, abs=1e-6)
    assert {b for _, b in betas} == {0.999}
    with pytest.raises(ArgumentError, match="must support momentum"):
        make(tw.optim.Adagrad([tw.nn.Parameter(tw.ones(1))]))


def test_plateau():
    opt = optimizer()
    scheduler = ls.ReduceLROnPlateau(opt, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    seen = []
    for loss in [5, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3]:
        scheduler.step(tw.tensor(float(loss)))
        seen.append(opt.param_groups[0]["lr"])
    assert seen == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25]
    for mode, threshold_mode, better in (("min", "rel", 8.9), ("min", "abs", 9.8), ("max", "rel", 11.1),
                                         ("max", "abs", 10.2)):  # fmt: skip
        scheduler = ls.ReduceLROnPlateau(opt, mode, threshold=0.1, threshold_mode=threshold_mode)
        assert scheduler.is_better(better, 10.0)
        assert not scheduler.is_better(10 + 0.9 * (better - 10), 10.0) or threshold_mode == "abs"
        assert scheduler.is_better(1.0, scheduler.best)


def test_schedulers_of_one_optimiser_multiply():
    opt = optimizer()
    warm, decay = ls.LinearLR(opt, 0.5, total_iters=2), ls.ExponentialLR(opt, 0.9)
    seen = []
    for _ in range(4):
        opt.step()
        warm.step()
        decay.step()
        seen.append(opt.param_groups[0]["lr"])
    # from PyTorch as well
    assert seen == pytest.approx([0.75 * 0.9, 0.81, 0.729, 0.6561])


def test_every_group_has_its_rate():
    a, b = tw.nn.Parameter([1.0]), tw.nn.Parameter([1.0])
    opt = tw.optim.SGD([{"params": a}, {"params": b, "lr": 0.5}], lr=1.0)
    scheduler = ls.LambdaLR(opt, [lambda t: 1 / (1 + t), lambda t: 2.0**-t])
    opt.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.5, 0.25]
    with pytest.raises(ArgumentError, match="Expected 2 lr_lambdas, but got 1"):
        ls.LambdaLR(opt, [lambda t: 1.0])


@pytest.mark.parametrize("name", [*PYTORCH, "plateau"])
def test_state_can_be_saved_and_restored(name):
    make = PYTORCH[name][0] if name in PYTORCH else lambda o: ls.ReduceLROnPlateau(o, patience=1)
    given = () if name in PYTORCH else (1.0,)
    opt = optimizer(momentum=0.9)
    scheduler = make(opt)
    for _ in range(4):
        opt.step()
        scheduler.step(*given)
    other = optimizer(momentum=0.9)
    continued = make(other)
    continued.load_state_dict(scheduler.state_dict())
    other.load_state_dict(opt.state_dict())
    for _ in range(4):
        scheduler.step(*given)
        continued.step(*given)
        assert continued.get_last_lr() == scheduler.get_last_lr()
        assert other.param_groups[0]["lr"] == opt.param_groups[0]["lr"]


def test_training_can_go_on_from_an_epoch():
    opt = optimizer()
    with pytest.raises(ArgumentError, match="'initial_lr' is not specified"):
        ls.StepLR(opt, 2, last_epoch=3)
    opt.param_groups[0]["initial_lr"] = 1.0
    assert ls.StepLR(opt, 2, 0.5, last_epoch=3).get_last_lr() == [0.5]  # as in PyTorch: half of the present rate


@pytest.mark.parametrize("make", [
    lambda o, last: ls.MultiplicativeLR(o, lambda t: 1 / (1 + t), last), lambda o, last: ls.ExponentialLR(o, 0.8, last),
    lambda o, last: ls.LinearLR(o, 0.2, 0.9, 6, last), lambda o, last: ls.PolynomialLR(o, 7, 2.0, last),
    lambda o, last: ls.CosineAnnealingLR(o, 5, 0.1, last),
])  # fmt: skip
def test_a_schedule_that_goes_on_has_the_rates_of_one_that_was_not_interrupted(make):
    whole, parted = optimizer(), optimizer()
    first, second = make(whole, -1), make(parted, -1)
    for epoch in range(8):
        if epoch == 3:
            second = make(parted, epoch - 1)
        assert second.get_last_lr() == pytest.approx(first.get_last_lr())
        for opt, scheduler in ((whole, first), (parted, second)):
            opt.step()
            scheduler.step()


def test_what_others_make_of_a_rate_is_kept_above_the_least():
    opt = optimizer()
    scheduler, seen = ls.CosineAnnealingLR(opt, 3, 0.1), []
    for epoch in range(7):
        seen.append(opt.param_groups[0]["lr"])
        opt.step()
        if epoch == 1:
            opt.param_groups[0]["lr"] *= 0.5
        scheduler.step()
    assert seen == pytest.approx([1, 0.775, 0.195833, 0.1, 0.325, 0.775, 1], abs=1e-6)  # from PyTorch


def test_a_factor_at_epoch_0_counts_when_the_epoch_is_given():
    opt = optimizer()
    scheduler = ls.MultiplicativeLR(opt, lambda t: 0.5)
    opt.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(0)
    assert scheduler.get_last_lr() == [0.5]


def test_fractions_of_an_epoch():
    opt = optimizer()
    scheduler = ls.CosineAnnealingWarmRestarts(opt, 4)
    scheduler.step(5.5)
    assert opt.param_groups[0]["lr"] == pytest.approx((1 + math.cos(math.pi * 1.5 / 4)) / 2)


def test_a_cycle_has_an_end():
    opt = optimizer(momentum=0.9)
    cycle = ls.OneCycleLR(opt, 1.0, total_steps=2)
    opt.step()
    cycle.step()
    cycle.step()
    with pytest.raises(ArgumentError, match="Tried to step 3 times"):
        cycle.step()


def test_a_compiled_step_reads_the_rate_and_is_traced_once():
    def run(engine):
        p = engine.nn.Parameter(np.float32([1, 2]))
        opt = engine.optim.SGD([p], lr=0.5)
        scheduler = engine.optim.lr_scheduler.ExponentialLR(opt, 0.7)

        def step(x):
            opt.zero_grad()
            loss = ((p - x) ** 2).sum()
            loss.backward()
            opt.step()
            return loss

        program = engine.function(step)
        for _ in range(6):
            program(np.float32([3, -1]))
            scheduler.step()
        return p.payload.tobytes(), len(getattr(program, "traces", [0]))

    assert run(static) == run(tw)
    assert run(static)[1] == 1


def test_a_scheduler_inside_a_traced_function_is_refused():
    opt = optimizer()
    scheduler = ls.StepLR(opt, 2)
    for call in (scheduler.step, lambda: ls.ReduceLROnPlateau(opt).step(1.0)):
        with pytest.raises(TraceError, match="would run once per trace"):
            static.function(lambda x, call=call: (call(), x)[1])(np.zeros(2, np.float32))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda o: ls.StepLR(o.param_groups, 1), "list is not an Optimizer"),
        (lambda o: ls.LinearLR(o, 0), "Starting multiplicative factor"),
        (lambda o: ls.LinearLR(o, 0.5, 2), "Ending multiplicative factor"),
        (lambda o: ls.ConstantLR(o, 2), "Constant multiplicative factor"),
        (lambda o: ls.CosineAnnealingWarmRestarts(o, 0), "Expected positive integer T_0"),
        (lambda o: ls.CosineAnnealingWarmRestarts(o, 2, 0), "Expected integer >= 1 T_mult"),
        (lambda o: ls.OneCycleLR(o, 1.0), "either total_steps OR"),
        (lambda o: ls.OneCycleLR(o, 1.0, total_steps=0), "positive integer total_steps"),
        (lambda o: ls.OneCycleLR(o, 1.0, total_steps=5, pct_start=2), "between 0 and 1 pct_start"),
        (lambda o: ls.OneCycleLR(o, 1.0, total_steps=5, anneal_strategy="x"), "'cos' or 'linear'"),
        (lambda o: ls.ReduceLROnPlateau(o, factor=1.0), "Factor should be < 1.0"),
        (lambda o: ls.ReduceLROnPlateau(o, "middle"), "mode middle is unknown"),
        (lambda o: ls.ReduceLROnPlateau(o, threshold_mode="x"), "threshold mode x is unknown"),
        (lambda o: ls.SequentialLR(o, [ls.StepLR(o, 1)], [1]), "one more than the number of milestone"),
        (lambda o: ls.SequentialLR(o, [ls.StepLR(optimizer(), 1)], []), "same optimizer"),
    ],
)
def test_mistakes(make, text):
    with pytest.raises(ArgumentError, match=text):
        make(optimizer(momentum=0.9))


def test_an_epoch_that_is_given_is_warned_of():
    opt = tw.optim.SGD([tw.nn.Parameter([1.0])], lr=1.0)
    scheduler = ls.ExponentialLR(opt, 0.5)
    opt.step()
    with pytest.warns(UserWarning, match="epoch parameter in `scheduler.step") as warned:
        scheduler.step(3)
    assert str(warned[0].message) == ls.EPOCH_DEPRECATION_WARNING
    assert opt.param_groups[0]["lr"] == 0.125
    with pytest.raises(ValueError, match="swa_lr must have the same length"):
        tw.optim.swa_utils.SWALR(opt, [1.0, 0.1])


@pytest.mark.parametrize("make", [PYTORCH["StepLR"][0], PYTORCH["chain"][0], PYTORCH["sequence"][0]])
def test_a_rate_that_changes_before_the_first_update_is_warned_of(make):
    opt = optimizer(momentum=0.9)
    scheduler = make(opt)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    scheduler.step()  # said once


def test_a_replaced_update_is_warned_of():
    opt = optimizer()
    scheduler = ls.StepLR(opt, 1)
    own = opt.step
    opt.step = lambda: own()
    opt.step()
    with pytest.warns(UserWarning, match=r"`optimizer.step\(\)` has been overridden"):
        scheduler.step()


@pytest.mark.parametrize("engine", [tw, static])
def test_updates_of_programs_that_were_traced_before_count(engine):
    p = engine.nn.Parameter(engine.ones(2))
    opt = engine.optim.SGD([p], lr=1.0)

    @engine.function
    def step():
        opt.zero_grad()
        (p * p).sum().backward()
        opt.step()

    step()
    scheduler = engine.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.5]


class Falling:
    def __init__(self, by):
        self.by = by

    def __call__(self, epoch):
        return self.by**epoch


@pytest.mark.parametrize("kind", [ls.LambdaLR, ls.MultiplicativeLR])
def test_objects_that_give_factors_have_state(kind):
    scheduler = kind(optimizer(), Falling(0.5))
    state = scheduler.state_dict()
    assert state["lr_lambdas"] == [{"by": 0.5}]
    for stateless in (lambda t: 1.0, float, operator.attrgetter("real")):
        assert kind(optimizer(), stateless).state_dict()["lr_lambdas"] == [None]
    other = kind(optimizer(), Falling(0.9))
    other.load_state_dict(state)
    assert other.lr_lambdas[0].by == 0.5
