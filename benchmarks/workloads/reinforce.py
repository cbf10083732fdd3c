"""REINFORCE on a cart with a pole: the policy learns from whole episodes that it has played."""

import math
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.lessons import Lesson
from benchmarks.workload import Array, Inputs, Program

HIDDEN, LONGEST, DISCOUNT = 64, 200, 0.99


class CartPole:
    """A pole on a cart that is pushed left or right; an episode ends when it falls, or after 200 steps.

    The state (4,) is the cart's place in m and speed, the pole's angle in rad and angular speed.

    References
    ----------
    Barto, Sutton, Anderson, Neuronlike adaptive elements that can solve difficult learning control problems, 1983.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def reset(self) -> Array:
        """Return a state near to the upright one."""
        self.state, self.steps = self.rng.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32)

    def step(self, action: int) -> tuple[Array, bool]:
        """Push for 0.02 s, to the right if `action` is 1; return the state and whether the episode ends."""
        _, speed, angle, turning = self.state
        cart, pole, half, gravity, force = 1.0, 0.1, 0.5, 9.8, 10.0 if action else -10.0
        push = (force + pole * half * turning**2 * math.sin(angle)) / (cart + pole)
        bend = gravity * math.sin(angle) - push * math.cos(angle)
        turn = bend / (half * (4 / 3 - pole * math.cos(angle) ** 2 / (cart + pole)))
        slide = push - pole * half * turn * math.cos(angle) / (cart + pole)
        self.state = self.state + 0.02 * np.array([speed, slide, turning, turn])
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)
        return self.state.astype(np.float32), fallen or self.steps == LONGEST


def episode(world: CartPole, chance: Any) -> tuple[Array, Array]:
    """Play with the probability `chance(state)` of a push to the right; return states (n, 4) and actions (n,)."""
    state, ended, states, actions = world.reset(), False, [], []
    while not ended:
        states.append(state)
        actions.append(int(world.rng.random() < chance(state)))
        state, ended = world.step(actions[-1])
    return np.array(states), np.array(actions)


def returns(length: int) -> Array:
    """Return the discounted rewards still to come in an episode, (length,) float32: one per step, normalised."""
    sums = (1 - DISCOUNT ** np.arange(length, 0, -1)) / (1 - DISCOUNT)
    return ((sums - sums.mean()) / (sums.std() + 1e-8)).astype(np.float32)


class Reinforce(Lesson):
    """REINFORCE on a cart pole, policy 4-64-2, an episode of 20 steps, Adam step"""

    name = "reinforce"
    measure = "part of 200 steps that the pole stays up, mean of 20 new episodes"
    steps, goal = 300, 0.9

    def inputs(self) -> list[Inputs]:
        """Return four episodes by chance, the first 20 steps of those that last so long."""
        sets: list[Inputs] = []
        world = CartPole(14)
        while len(sets) < 4:
            states, actions = episode(world, lambda state: 0.5)
            if len(actions) >= 20:
                sets.append((states[:20].copy(), actions[:20].copy(), returns(20)))
        return sets

    def build(self, tw: ModuleType) -> tuple[Any, Program]:
        """Build policy and training step."""
        tw.manual_seed(0)
        nn = tw.nn
        policy = nn.Sequential(nn.Linear(4, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2))
        optimizer = tw.optim.Adam(policy.parameters(), lr=0.01)

        @tw.function  # type: ignore[untyped-decorator]
        def step(states: Any, actions: Any, rewards: Any) -> Any:
            optimizer.zero_grad()
            chances = tw.log_softmax(policy(states), 1)
            loss = -(chances.gather(1, actions.unsqueeze(1)).squeeze(1) * rewards).sum()
            loss.backward()
            optimizer.step()
            return loss

        return policy, Program(step, list(policy.named_parameters()), optimizer)

    def train(self, tw: ModuleType) -> float:
        """Play an episode with the policy, learn from it, and so on."""
        policy, program = self.build(tw)
        world = CartPole(15)
        for _ in range(self.steps):
            states, actions = episode(world, chance(tw, policy))
            program.call(states, actions, returns(len(actions)))
        return self.score(tw, policy)

    def score(self, tw: ModuleType, model: Any) -> float:
        """Return how long the pole stays up."""
        world = CartPole(16)
        return float(np.mean([len(episode(world, chance(tw, model))[1]) / LONGEST for _ in range(20)]))


def chance(tw: ModuleType, policy: Any) -> Any:
    """Return the policy's probability of a push to the right as a function of a state (4,)."""

    def right(state: Array) -> float:
        with tw.no_grad():
            return float(policy(tw.tensor(state)).softmax(-1)[1])

    return right


WORKLOADS = [Reinforce()]
