"""Row i: a transformer block with causal attention."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload

BATCH, TOKENS, WIDTH, HEADS = 8, 64, 128, 4
LAYERS = ("norm_1", "qkv", "projection", "norm_2", "wide", "narrow")


class TransformerTraining(Workload):
    """transformer block (4 causal heads, gelu) of 8 x 64 tokens of width 128, forward and all gradients, float32"""

    name = "i-transformer"
    outputs = ("y", "gx", *(f"grad({layer}.{kind})" for layer in LAYERS for kind in ("weight", "bias")))

    def inputs(self) -> list[Inputs]:
        """Return two sets of x and a cotangent, both (8, 64, 128) float32."""
        rng = np.random.default_rng(8)
        values = rng.standard_normal((2, 2, BATCH, TOKENS, WIDTH)).astype(np.float32)
        return [(x.copy(), cotangent.copy()) for x, cotangent in values]

    def make(self, tw: ModuleType) -> Program:
        """Build the block, and the gradients of its input and parameters for a given cotangent."""
        tw.manual_seed(0)
        nn = tw.nn

        class TransformerBlock(nn.Module):  # type: ignore[misc, name-defined]
            """Layer norm first, then attention; layer norm first, then two layers; each added to what went in."""

            def __init__(self) -> None:
                super().__init__()
                self.norm_1 = nn.LayerNorm(WIDTH)
                self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
                self.projection = nn.Linear(WIDTH, WIDTH)
                self.norm_2 = nn.LayerNorm(WIDTH)
                self.wide = nn.Linear(WIDTH, 4 * WIDTH)
                self.narrow = nn.Linear(4 * WIDTH, WIDTH)

            def attention(self, x: Any) -> Any:
                apart = self.qkv(x).reshape(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
                heads = nn.functional.scaled_dot_product_attention(apart[0], apart[1], apart[2], is_causal=True)
                return self.projection(heads.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH))

            def forward(self, x: Any) -> Any:
                x = x + self.attention(self.norm_1(x))
                return x + self.narrow(nn.functional.gelu(self.wide(self.norm_2(x))))

        model = TransformerBlock()

        @tw.function  # type: ignore[untyped-decorator]
        def call(x: Any, cotangent: Any) -> Any:
            leaf = x.detach().requires_grad_()
            y = model(leaf)
            return (y.detach(), *tw.autograd.grad(y, [leaf, *model.parameters()], cotangent))

        return Program(call, list(model.named_parameters()))


WORKLOADS = [TransformerTraining()]
