"""A variational autoencoder of the handwritten digits."""

from types import ModuleType
from typing import Any

from benchmarks.lessons import Noisy
from benchmarks.workload import Array, Program
from benchmarks.workloads.digits import HELD_OUT, load

PIXELS, HIDDEN, LATENT = 64, 128, 8


def network(tw: ModuleType) -> Any:
    """Return encoder and decoder of images (n, 64), made of the layers of `tw`: an engine, or torch.

    References
    ----------
    Kingma, Welling, Auto-encoding variational Bayes, 2013.
    """
    nn = tw.nn

    class Autoencoder(nn.Module):  # type: ignore[misc, name-defined]
        """Logits of the pixels, and mean and logarithm of the variance of the code, for given normal noise."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * LATENT))
            self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, PIXELS))

        def forward(self, x: Any, noise: Any) -> Any:
            mean, log_variance = self.encoder(x).chunk(2, 1)
            return self.decoder(mean + noise * (0.5 * log_variance).exp()), mean, log_variance

    return Autoencoder()


def loss_of(tw: ModuleType, model: Any, x: Any, noise: Any) -> Any:
    """Return the negative evidence lower bound of an image in nats, a mean over the batch."""
    logits, mean, log_variance = model(x, noise)
    pixels = tw.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean * mean - log_variance.exp()).sum()
    return (pixels + divergence) / x.shape[0]


def explained(x: Array, y: Array) -> float:
    """Return the part of the variance of x (n, 64) that y (n, 64) explains."""
    return float(1 - ((x - y) ** 2).sum() / ((x - x.mean(0)) ** 2).sum())


class Vae(Noisy):
    """variational autoencoder 64-128-8-128-64 of digits, batch 64, Adam step"""

    name = "vae"
    measure = "part of the variance of 360 held-out digits that their reconstructions explain"
    steps, goal = 880, 0.55
    latent, seed = LATENT, 11

    def build(self, tw: ModuleType) -> tuple[Any, Program]:
        """Build autoencoder and training step."""
        tw.manual_seed(0)
        model = network(tw)
        optimizer = tw.optim.Adam(model.parameters(), lr=0.003)

        @tw.function  # type: ignore[untyped-decorator]
        def step(x: Any, noise: Any) -> Any:
            optimizer.zero_grad()
            loss = loss_of(tw, model, x, noise)
            loss.backward()
            optimizer.step()
            return loss

        return model, Program(step, list(model.named_parameters()), optimizer)

    def score(self, tw: ModuleType, model: Any) -> float:
        """Return how much the reconstructions explain, without noise."""
        images = load()[0][-HELD_OUT:]
        with tw.no_grad():
            logits, *_ = model(tw.tensor(images), tw.zeros(len(images), LATENT))
            return explained(images, logits.sigmoid().numpy())


WORKLOADS = [Vae()]
