"""Programs that nobody thought of: both engines, fused and not, new sizes, and finite differences."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.helpers.differences import check_gradient
from tests.helpers.programs import Program, inputs, programs
from tests.helpers.proofs import examples, first
from tests.parity.engines import Derivatives

#: Repeatable, as a red run must be. No shrinking: it would compile hundreds of programs to make one shorter.
few = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])


@pytest.mark.parametrize("part", first(1, range(5), core=1))
def test_both_engines_agree_at_every_size(part):
    @seed(part)
    @settings(few, max_examples=10)
    @given(programs(), st.sampled_from(["float32", "float64", "mixed"]))
    def agree(program: Program, dtype: str):
        rng = np.random.default_rng(50)
        both = Derivatives(program.run)
        for n, m in ((5, 33), (4, 3), (34, 2)):
            both.check(inputs(rng, n, m, dtype), rng, f"{program}", interpreter=n == 4)
        assert len(both.compiled.traces) == 1, "a new size compiles nothing"

    agree()


@seed(0)
@settings(few, max_examples=examples(20))
@given(programs(), st.sampled_from([(1, 3), (4, 1), (1, 1), (3, 3), (2, 3), (2, 1)]))
def test_sizes_of_one_and_squares(program: Program, sizes: tuple[int, int]):
    rng = np.random.default_rng(51)
    Derivatives(program.run, order=1).check(inputs(rng, *sizes, "float32"), rng, f"{program}")


@seed(0)
@settings(few, max_examples=examples(60))
@given(programs(smooth=True))
def test_gradients_are_derivatives(program: Program):
    program = program._replace(frozen=())  # differences see what detach() hides
    check_gradient(program.run, inputs(np.random.default_rng(52), 4, 3, "float64"), f"{program}")


@seed(0)
@settings(few, max_examples=examples(40))
@given(programs(smooth=True, most=5, control=True))
def test_second_derivatives_through_control_flow(program: Program):
    """Loops in branches in loops, one after the other: differences of gradients."""
    program = program._replace(frozen=())
    check_gradient(program.run, inputs(np.random.default_rng(53), 3, 2, "float64"), f"{program}", order=2)


@seed(0)
@settings(few, max_examples=examples(8))
@given(programs(most=5, control=True), st.sampled_from(["float32", "mixed"]))
def test_both_engines_agree_on_nested_control_flow(program: Program, dtype: str):
    rng = np.random.default_rng(54)
    both = Derivatives(program.run)
    for n, m in ((9, 11), (12, 10)):
        both.check(inputs(rng, n, m, dtype), rng, f"{program}", interpreter=n == 9)
    assert len(both.compiled.traces) == 1, "a new size compiles nothing"
    both.check(inputs(rng, 5, 3, dtype), rng, f"{program}")  # states of a loop that are written out
