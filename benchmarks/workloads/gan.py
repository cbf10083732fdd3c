"""A generative adversarial network that draws handwritten digits."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.lessons import Noisy
from benchmarks.workload import Array, Program
from benchmarks.workloads.digits import HELD_OUT, load

PIXELS, HIDDEN, LATENT = 64, 128, 16
NEIGHBOURS = 5


def networks(tw: ModuleType) -> Any:
    """Return a generator of images (n, 64) and a critic with a logit (n, 1), made of the layers of `tw`.

    References
    ----------
    Goodfellow and others, Generative adversarial networks, 2014.
    """
    nn = tw.nn
    generator = nn.Sequential(
        nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, PIXELS),
        nn.Sigmoid(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Linear(PIXELS, HIDDEN), nn.LeakyReLU(0.2), nn.Linear(HIDDEN, HIDDEN), nn.LeakyReLU(0.2),
        nn.Linear(HIDDEN, 1),
    )  # fmt: skip
    return nn.ModuleDict({"generator": generator, "critic": critic})


def coverage(real: Array, drawn: Array) -> float:
    """Return the part of `real` (n, 64) with one of `drawn` (m, 64) as near as its fifth neighbour in `real`.

    References
    ----------
    Naeem and others, Reliable fidelity and diversity metrics for generative models, 2020.
    """
    far = np.sort(((real[:, None] - real) ** 2).sum(-1), axis=1)[:, NEIGHBOURS]
    return float((((real[:, None] - drawn) ** 2).sum(-1).min(1) <= far).mean())


class Gan(Noisy):
    """generative adversarial network of digits, 16-128-128-64 and 64-128-128-1, batch 64, two Adam steps"""

    name = "gan"
    outputs = ("critic_loss", "generator_loss")
    measure = "part of 360 held-out digits with a drawn one of 360 in their neighbourhood"
    steps, goal = 3300, 0.8
    latent, seed = LATENT, 12

    def build(self, tw: ModuleType) -> tuple[Any, Program]:
        """Build both networks and a step of each."""
        tw.manual_seed(0)
        model = networks(tw)
        generator, critic = model["generator"], model["critic"]
        draws, judges = (tw.optim.Adam(m.parameters(), lr=0.002, betas=(0.5, 0.999)) for m in (generator, critic))
        loss = tw.nn.functional.binary_cross_entropy_with_logits

        @tw.function  # type: ignore[untyped-decorator]
        def step(x: Any, noise: Any) -> Any:
            drawn = generator(noise)
            judges.zero_grad()
            right, wrong = tw.ones(x.shape[0], 1), tw.zeros(x.shape[0], 1)
            critic_loss = loss(critic(x), right) + loss(critic(drawn.detach()), wrong)
            critic_loss.backward()
            judges.step()
            draws.zero_grad()
            generator_loss = loss(critic(drawn), right)
            generator_loss.backward()
            draws.step()
            return critic_loss, generator_loss

        return model, Program(step, list(model.named_parameters()))

    def score(self, tw: ModuleType, model: Any) -> float:
        """Return how many of the held-out digits are covered."""
        noise = np.random.default_rng(13).standard_normal((HELD_OUT, LATENT)).astype(np.float32)
        with tw.no_grad():
            return coverage(load()[0][-HELD_OUT:], model["generator"](tw.tensor(noise)).numpy())


WORKLOADS = [Gan()]
