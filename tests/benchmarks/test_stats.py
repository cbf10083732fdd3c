import json
import math

import numpy as np
import pytest

from benchmarks import stats


def noisy(centre, n=60, seed=0):
    return centre * np.random.default_rng(seed).normal(1, 0.02, n)


def test_ratio_is_taken_round_by_round():
    disturbance = np.random.default_rng(1).uniform(1, 10, 50)  # hits both programs of a round alike
    found = stats.ratio(2 * disturbance, 4 * disturbance)
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)


def test_interval_holds_the_truth_and_shrinks():
    few, many = (stats.median(noisy(3.0, n)) for n in (20, 2000))
    assert few.low <= 3.0 <= few.high
    assert many.high - many.low < few.high - few.low


def test_interval_covers_as_often_as_it_says():
    hits = 0
    for seed in range(200):
        found = stats.median(noisy(1.0, 41, seed))
        hits += found.low <= 1.0 <= found.high
    assert 180 <= hits <= 200  # 95 % nominal


def test_break_even_is_cost_over_saving():
    eager, compiled = np.full(9, 100e-6), np.full(9, 50e-6)
    found = stats.break_even(eager, compiled, np.array([0.1]), np.array([0.6]))
    assert found.value == found.low == found.high == 10_000


def test_break_even_rounds_up():
    found = stats.break_even(np.full(3, 4.0), np.full(3, 1.0), np.array([0.0]), np.array([10.0]))
    assert found.value == 4


def test_break_even_of_a_slower_program_is_never():
    found = stats.break_even(noisy(1.0), noisy(2.0), np.array([0.1]), np.array([0.6]))
    assert (found.value, found.low, found.high) == (math.inf, math.inf, math.inf)


def test_break_even_without_extra_cost_is_at_once():
    found = stats.break_even(noisy(2.0), noisy(1.0), np.array([0.6]), np.array([0.1]))
    assert found.value == found.high == 0


def test_break_even_of_equal_programs_is_open_upwards():
    found = stats.break_even(noisy(1.0, seed=1), noisy(1.0, seed=2), np.array([0.1]), np.array([0.6]))
    assert found.high == math.inf
    assert found.low < math.inf


def test_spread_of_one_off_costs_is_in_the_interval():
    eager, compiled = np.full(9, 2.0), np.full(9, 1.0)
    found = stats.break_even(eager, compiled, np.array([0.0]), np.array([10.0, 20.0, 30.0]))
    assert (found.value, found.low, found.high) == (20, 10, 30)


def test_same_measurements_give_the_same_interval():
    assert stats.median(noisy(1.0)) == stats.median(noisy(1.0))


@pytest.mark.parametrize("value", [math.inf, 1.5])
def test_estimates_are_valid_json(value):
    text = json.dumps(stats.Estimate(value, 1.0, value).as_json(), allow_nan=False)
    assert json.loads(text) == {"value": None if value == math.inf else 1.5, "low": 1.0,
                                "high": None if value == math.inf else 1.5}  # fmt: skip
