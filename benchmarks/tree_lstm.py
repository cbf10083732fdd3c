"""A network whose structure is data: child-sum tree-LSTM over the syntax trees of Python functions.

``python -m benchmarks.tree_lstm [epochs]`` trains it on functions of the standard library, in this engine and, where it
is installed, in PyTorch with the same code and the same initial weights: first losses are compared, then times. The
question that it learns to answer: does a function contain a loop? All statements with a body look the same to it, so a
loop has to be told by what is in it. Every tree is another graph; nothing is padded or batched.

Reference: K. S. Tai, R. Socher, C. D. Manning: Improved semantic representations from tree-structured long short-term
memory networks. ACL 2015.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SOURCES = ("argparse", "bisect", "calendar", "configparser", "csv", "difflib", "fractions", "heapq", "shlex",
           "statistics", "string", "textwrap")  # fmt: skip
LOOPS = (ast.For, ast.While, ast.AsyncFor)
#: Statements with a body share one number, so that a loop has to be told by what is in it.
BLOCKS = (*LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try)
KINDS = {kind: i for i, kind in enumerate(sorted(k for k, x in vars(ast).items() if isinstance(x, type)))}
MASKED = len(KINDS)
SMALLEST, LARGEST = 12, 150


class Tree(NamedTuple):
    """A syntax tree in post-order: children come before their parent, the root is last.

    Attributes
    ----------
    kinds : (n,) int64, the kind of each node.
    children : positions of each node's children.
    has_loop : what is to be told.
    """

    kinds: np.ndarray
    children: list[list[int]]
    has_loop: bool


def tree_of(root: ast.AST) -> Tree:
    """The tree of a function; iterative, so depth does not matter."""
    kinds: list[int] = []
    children: list[list[int]] = []
    waiting: list[tuple[ast.AST, int]] = [(root, -1)]
    done: list[int] = []  # by position: one object, such as an operator, can stand in several places of a tree
    while waiting:
        node, count = waiting.pop()
        if count < 0:
            # contexts such as Load are one object that many nodes share, and tell nothing
            inner = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
            waiting.append((node, len(inner)))
            waiting += [(child, -1) for child in reversed(inner)]
            continue
        kinds.append(MASKED if isinstance(node, BLOCKS) else KINDS[type(node).__name__])
        children.append(done[len(done) - count :])
        del done[len(done) - count :]
        done.append(len(kinds) - 1)
    loop = any(isinstance(node, LOOPS) for node in ast.walk(root))
    return Tree(np.array(kinds), children, loop)


def trees(count: int) -> list[Tree]:
    """Functions of the standard library that are neither tiny nor huge, in an order that mixes files."""
    found = []
    for name in SOURCES:
        file = importlib.util.find_spec(name).origin  # type: ignore[union-attr]
        module = ast.parse(Path(str(file)).read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
        for function in functions:
            tree = tree_of(function)
            if SMALLEST <= len(tree.kinds) <= LARGEST:
                found.append(tree)
    order = np.random.default_rng(0).permutation(len(found))
    return [found[i] for i in order[:count]]


def build(tw: Any, width: int = 32) -> Any:
    """The model, written for PyTorch's API.

    Parameters
    ----------
    tw : `dynamic` or `torch`.
    width : of the states.
    """

    class TreeLSTM(tw.nn.Module):  # type: ignore[misc]
        """Reads a tree from its leaves to its root, and tells two classes."""

        def __init__(self) -> None:
            super().__init__()
            self.kinds = tw.nn.Embedding(MASKED + 1, 4 * width)
            self.gates = tw.nn.Linear(width, 3 * width)
            self.forget = tw.nn.Linear(width, width)
            self.classes = tw.nn.Linear(width, 2)

        def forward(self, kinds: Any, children: list[list[int]]) -> Any:
            """Scores of a tree's classes, (1, 2)."""
            rows = self.kinds(kinds).split(1)
            states: list[Any] = []
            for row, below in zip(rows, children, strict=True):
                gates = row[:, : 3 * width]
                if below:
                    hs = tw.cat([states[i][0] for i in below])
                    cs = tw.cat([states[i][1] for i in below])
                    gates = gates + self.gates(hs.sum(0, keepdim=True))
                    kept = (tw.sigmoid(self.forget(hs) + row[:, 3 * width :]) * cs).sum(0, keepdim=True)
                i, o, u = gates.split(width, 1)
                c = tw.sigmoid(i) * tw.tanh(u)
                if below:
                    c = c + kept
                states.append((tw.sigmoid(o) * tw.tanh(c), c))
            return self.classes(states[-1][0])

    return TreeLSTM()


class Training:
    """A model, its optimiser, and the steps of training.

    Parameters
    ----------
    tw : `dynamic` or `torch`.
    """

    def __init__(self, tw: Any, width: int = 32, lr: float = 0.005) -> None:
        self.tw, self.model = tw, build(tw, width)
        rng = np.random.default_rng(1)
        with tw.no_grad():
            for parameter in self.model.parameters():  # the same in every framework
                values = rng.uniform(-0.15, 0.15, tuple(parameter.shape)).astype(np.float32)
                parameter.copy_(tw.from_numpy(values))
        self.optimizer = tw.optim.Adam(self.model.parameters(), lr=lr)

    def loss(self, tree: Tree) -> Any:
        """Cross-entropy of one tree."""
        scores = self.model(self.tw.from_numpy(tree.kinds), tree.children)
        return self.tw.nn.functional.cross_entropy(scores, self.tw.tensor([int(tree.has_loop)]))

    def step(self, tree: Tree) -> float:
        """Learn from one tree; return the loss before."""
        self.optimizer.zero_grad()
        loss = self.loss(tree)
        loss.backward()
        self.optimizer.step()
        return float(loss.item())

    def epoch(self, examples: list[Tree]) -> float:
        """Learn from all trees; return the mean loss."""
        return sum(map(self.step, examples)) / len(examples)

    def accuracy(self, examples: list[Tree]) -> float:
        """The share of trees that are told rightly."""
        with self.tw.no_grad():
            scores = (self.model(self.tw.from_numpy(t.kinds), t.children).tolist()[0] for t in examples)
            return sum((b > a) == t.has_loop for (a, b), t in zip(scores, examples, strict=True)) / len(examples)


def frameworks() -> Iterator[Any]:
    """`dynamic`, and PyTorch if it is installed."""
    yield importlib.import_module("dynamic")
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return
    torch.set_num_threads(1)
    yield torch


def main(epochs: int) -> None:
    """Train everywhere and print losses, accuracy and times."""
    examples = trees(400)
    learnt, held = examples[:320], examples[320:]
    nodes = sum(len(t.kinds) for t in learnt)
    common = np.mean([t.has_loop for t in held])
    print(f"{len(learnt)} functions of {nodes} nodes to learn from, {len(held)} to be told: always the more frequent "
          f"answer is right for {max(common, 1 - common):.0%}")  # fmt: skip
    runs = [Training(tw) for tw in frameworks()]
    for run in runs[1:]:  # the same program, before anything is timed
        other, ours = ([r.step(t) for t in learnt[:20]] for r in (run, runs[0]))
        np.testing.assert_allclose(ours, other, rtol=2e-4)
        print("20 steps: losses agree to", f"{np.max(np.abs(np.divide(ours, other) - 1)):.0e}")
    seconds: list[list[float]] = [[] for _ in runs]
    for epoch in range(epochs):
        losses = []
        for run, taken in zip(runs, seconds, strict=True):
            start = time.process_time()  # of the processor: other programs may run
            losses.append(run.epoch(learnt))
            taken.append(time.process_time() - start)
        print(f"epoch {epoch + 1}: loss", *(f"{loss:.4f}" for loss in losses))
    for run, taken in zip(runs, seconds, strict=True):
        print(f"{run.tw.__name__}: {np.median(taken) / nodes * 1e6:.0f} us per node forward, backward and update; "
              f"right for {run.accuracy(held):.0%} of the held functions")  # fmt: skip
    if len(runs) > 1:
        print(f"time: {np.median(np.divide(seconds[0], seconds[1])):.2f} of PyTorch's")


if __name__ == "__main__":
    from benchmarks.measure import single_core

    single_core()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
