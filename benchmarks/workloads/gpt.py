"""A GPT of two layers on English text, and the text that it writes."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.lessons import Lesson
from benchmarks.workload import Inputs, Program, training
from benchmarks.workloads.charlm import VOCABULARY, corpus

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 64, 4, 2, 16
HELD_OUT = 20_000  # characters at the end of the text, which no step reads


def network(tw: ModuleType) -> Any:
    """Return a decoder for codes (n, tokens), tokens <= 64, made of the layers of `tw`: an engine, or torch.

    References
    ----------
    Radford and others, Language models are unsupervised multitask learners, 2019.
    """
    nn, functional = tw.nn, tw.nn.functional

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        """Attention to what came before, then two layers; each reads a layer norm and is added to what went in."""

        def __init__(self) -> None:
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def attention(self, x: Any) -> Any:
            n, tokens, _ = x.shape
            q, k, v = (y.view(n, tokens, HEADS, -1).transpose(1, 2) for y in self.qkv(x).split(WIDTH, 2))
            heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.projection(heads.transpose(1, 2).reshape(n, tokens, WIDTH))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm_1(x))
            return x + self.narrow(functional.gelu(self.wide(self.norm_2(x))))

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]
        """Logits (n, tokens, 96) of each next character."""

        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
            self.norm, self.output = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, codes: Any) -> Any:
            x = self.token(codes) + self.place(tw.arange(codes.shape[1]))
            return self.output(self.norm(self.layers(x)))

    return Decoder()


def loss_of(tw: ModuleType) -> Any:
    """Return the mean cross-entropy of logits (n, tokens, 96) and characters (n, tokens)."""
    return lambda logits, codes: tw.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), codes.reshape(-1))


def batches(count: int) -> Iterator[Inputs]:
    """Yield `count` batches of characters (16, 64) and of those that follow them, (16, 64), int64."""
    text = corpus()
    rng = np.random.default_rng(98)
    for _ in range(count):
        at = rng.integers(0, len(text) - HELD_OUT - CONTEXT, size=BATCH)[:, None] + np.arange(CONTEXT)
        yield text[at], text[at + 1]


def write(tw: ModuleType, model: Any, start: str, length: int, temperature: float = 0.5) -> str:
    """Return `start` and `length` characters after it, each drawn from what `model` expects there."""
    codes = tw.tensor([[ord(character) - 32 for character in start]])
    with tw.no_grad():
        for _ in range(length):
            logits = model(codes[:, -CONTEXT:])[:, -1] / temperature
            codes = tw.cat([codes, tw.multinomial(logits.softmax(-1), 1)], 1)
    return "".join(chr(32 + code) if code < VOCABULARY - 1 else "\n" for code in codes[0].tolist())


class Gpt(Lesson):
    """GPT of 2 layers, 4 heads, width 64, on 16 texts of 64 characters, cross-entropy, AdamW step"""

    name = "gpt"
    measure = "part of 20,000 held-out characters that are expected most of all"
    steps, goal = 600, 0.5

    def inputs(self) -> list[Inputs]:
        """Return eight batches of text."""
        return list(batches(8))

    def material(self) -> Iterator[Inputs]:
        """Return new batches for every step."""
        return batches(self.steps)

    def build(self, tw: ModuleType) -> tuple[Any, Program]:
        """Build decoder and training step."""
        tw.manual_seed(0)
        model = network(tw)
        optimizer = tw.optim.AdamW(model.parameters(), lr=0.003)
        return model, training(tw, model, optimizer, loss_of(tw))

    def score(self, tw: ModuleType, model: Any) -> float:
        """Return how often the most expected next character is the one that follows."""
        text = corpus()[-HELD_OUT:]
        rows = (len(text) - 1) // CONTEXT
        codes, after = (text[i : i + rows * CONTEXT].reshape(rows, CONTEXT) for i in (0, 1))
        with tw.no_grad():
            return float((model(tw.tensor(codes)).argmax(-1).numpy() == after).mean())


WORKLOADS = [Gpt()]
