"""The larger models of the workloads in PyTorch, under the names of their parameters there."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.workloads import charlm, deep, lstm, lstm_cell, transformer_block


class CharacterModel(nn.Module):  # type: ignore[misc]
    """The same layers under the same names."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(charlm.VOCABULARY, charlm.WIDTH)
        self.hidden = nn.Linear(charlm.CONTEXT * charlm.WIDTH, charlm.HIDDEN)
        self.output = nn.Linear(charlm.HIDDEN, charlm.VOCABULARY)

    def forward(self, codes: Any) -> Any:
        """Return logits (n, 96) of contexts (n, 16)."""
        return self.output(torch.tanh(self.hidden(torch.flatten(self.embedding(codes), 1))))


class Residual(nn.Module):  # type: ignore[misc]
    """The same layers under the same names."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(deep.WIDTH, deep.WIDTH) for _ in range(deep.LAYERS)))

    def forward(self, x: Any) -> Any:
        """Return x (n, 64) after all layers."""
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


class Recurrent(nn.Module):  # type: ignore[misc]
    """The LSTM, step by step in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(charlm.VOCABULARY, lstm.WIDTH)
        self.cell = nn.Linear(lstm.WIDTH + lstm.HIDDEN, 4 * lstm.HIDDEN)
        self.output = nn.Linear(lstm.HIDDEN, charlm.VOCABULARY)

    def forward(self, codes: Any) -> Any:
        """Return logits (steps * batch, 96)."""
        h = c = torch.zeros(lstm.BATCH, lstm.HIDDEN)
        states = []
        for x in self.embedding(codes):
            i, f, o, u = self.cell(torch.cat([x, h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * u.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        return self.output(torch.stack(states).reshape(-1, lstm.HIDDEN))


class Unrolled(nn.Module):  # type: ignore[misc]
    """PyTorch's own LSTM cell, called in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(lstm_cell.WIDTH, lstm_cell.HIDDEN)
        self.output = nn.Linear(lstm_cell.HIDDEN, lstm_cell.CLASSES)

    def forward(self, sequence: Any) -> Any:
        """Return logits (batch, 10) of sequences (steps, batch, 64)."""
        h = c = torch.zeros(lstm_cell.BATCH, lstm_cell.HIDDEN)
        for x in sequence:
            h, c = self.cell(x, (h, c))
        return self.output(h)


class TransformerBlock(nn.Module):  # type: ignore[misc]
    """The transformer block, with PyTorch's own attention."""

    def __init__(self) -> None:
        super().__init__()
        width = transformer_block.WIDTH
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """Return x (batch, tokens, width) after the block."""
        batch, tokens, width = x.shape
        apart = self.qkv(self.norm_1(x)).view(
            batch, tokens, 3, transformer_block.HEADS, width // transformer_block.HEADS
        )
        heads = F.scaled_dot_product_attention(*apart.permute(2, 0, 3, 1, 4).unbind(), is_causal=True)
        x = x + self.projection(heads.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.narrow(F.gelu(self.wide(self.norm_2(x))))


def block_and_gradients(wrap: Any, initial: dict[str, Any]) -> Any:
    """Return the call (x, cotangent) -> (y, gx, gradients of the parameters in the order of `initial`)."""
    model = TransformerBlock()
    model.load_state_dict({name: torch.tensor(value) for name, value in initial.items()})
    parameters = [model.get_parameter(name) for name in initial]
    forward = wrap(model)

    def call(x: Any, cotangent: Any) -> Any:
        leaf = x.detach().requires_grad_()
        y = forward(leaf)
        return (y.detach(), *torch.autograd.grad(y, [leaf, *parameters], cotangent))

    return call


def classifier(widths: tuple[int, ...]) -> Any:
    """Return a Sequential of three layers with relu between."""
    a, b, c, d = widths
    return nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c), nn.ReLU(), nn.Linear(c, d))


def mlp(*widths: int) -> Any:
    """Return a Sequential of two layers with a tanh between."""
    first, hidden, last = widths
    return nn.Sequential(nn.Linear(first, hidden), nn.Tanh(), nn.Linear(hidden, last))
