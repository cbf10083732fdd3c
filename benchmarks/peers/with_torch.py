"""PyTorch's versions of the workloads, eager and compiled."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import torch
import torch.nn.functional as F

from benchmarks.lessons import Lesson
from benchmarks.measure import threads
from benchmarks.peers import Built
from benchmarks.peers.torch_blocks import (
    CharacterModel,
    Recurrent,
    Residual,
    Unrolled,
    block_and_gradients,
    classifier,
    mlp,
)
from benchmarks.workload import Array, Workload
from benchmarks.workloads import adam_classifiers, chain, gpt, layer_norm, lenet, newton, resnet

torch.set_num_threads(threads())
Loss = Callable[[Any, Any], Any]


def build(peer: str, workload: Workload, initial: dict[str, Array]) -> Built | None:
    """Return the workload in PyTorch; `peer` is "torch" or "torch.compile"."""
    inputs = [tuple(torch.from_numpy(array) for array in arrays) for arrays in workload.inputs()]
    wrap = torch.compile if peer == "torch.compile" else lambda function: function
    if workload.name in PULLBACKS:
        return pullback(wrap(PULLBACKS[workload.name])), inputs
    if workload.name in TRAININGS:
        make_model, loss, make_optimizer = TRAININGS[workload.name]
        model = make_model()
        model.load_state_dict({name: torch.tensor(value) for name, value in initial.items()}, strict=False)
        return training(wrap, model, loss, make_optimizer(model.parameters())), inputs
    if isinstance(workload, Lesson):
        return lesson(wrap, workload, initial), inputs
    if workload.name == "newton":
        return wrap(roots_and_gradients), inputs
    if workload.name == "i-transformer":
        return block_and_gradients(wrap, initial), inputs
    return (wrap(cross_entropy_and_gradient), inputs) if workload.name == "b-cross-entropy" else None


def pullback(function: Any) -> Any:
    """Return the call (x, w, b, cotangent) -> (y, gx, gw, gb)."""

    def call(x: Any, w: Any, b: Any, cotangent: Any) -> Any:
        leaves = [t.detach().requires_grad_() for t in (x, w, b)]
        y = function(*leaves)
        return (y.detach(), *torch.autograd.grad(y, leaves, cotangent))

    return call


def training(wrap: Any, model: Any, loss: Loss, optimizer: Any) -> Any:
    """Return one training step; under torch.compile both the loss and the optimizer's step are compiled."""
    loss_of = wrap(lambda x, target: loss(model(x), target))
    update = wrap(optimizer.step)

    def step(x: Any, target: Any) -> Any:
        optimizer.zero_grad()
        value = loss_of(x, target)
        value.backward()
        update()
        return value.detach()

    return step


def lesson(wrap: Any, workload: Lesson, initial: dict[str, Array]) -> Any:
    """Return the step of a lesson whose networks are made of PyTorch's layers; under torch.compile all of it."""
    program = workload.make(cast(ModuleType, SimpleNamespace(**{**vars(torch), "function": wrap})))
    with torch.no_grad():
        for name, parameter in program.named_parameters:
            parameter.copy_(torch.tensor(initial[name]))
    return program.call


def roots_and_gradients(a: Any, b: Any) -> Any:
    """Return the roots of Newton's iteration and their gradient; Python decides when to stop."""
    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
    x, error = b + 1, torch.ones(())
    while error > newton.TOLERANCE:
        step = (x * x * x + a * x - b) / (3 * x * x + a)
        error = (step / (x + 1)).detach().abs().amax()
        x = x - step
    return (x.detach(), *torch.autograd.grad(x.sum(), (a, b)))


def cross_entropy_and_gradient(logits: Any, classes: Any) -> Any:
    """Return the mean cross-entropy and its gradient."""
    leaf = logits.detach().requires_grad_()
    loss = F.cross_entropy(leaf, classes)
    return (loss.detach(), *torch.autograd.grad(loss, [leaf]))


def mixed(x: Any, w: Any, b: Any) -> Any:
    """Return the mixed chain, as the workload defines it for any framework."""
    return chain.mixed(x, w, b, torch)


PULLBACKS: dict[str, Any] = {
    "a-float32": lambda x, w, b: torch.tanh(x * w + b) * x + torch.exp(-x * x),
    "a-float64": lambda x, w, b: torch.tanh(x * w + b) * x + torch.exp(-x * x),
    "c-layer-norm": lambda x, w, b: F.layer_norm(x, (layer_norm.WIDTH,), w, b),
    "chain": lambda x, w, b: chain.mul_add(x, w, b, torch),
    "mixed-chain": mixed,
}
TRAININGS: dict[str, tuple[Any, Loss, Any]] = {
    "digits": (lambda: mlp(64, 128, 10), F.cross_entropy, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    "f-mlp": (lambda: mlp(64, 128, 10), F.cross_entropy, lambda p: torch.optim.SGD(p, lr=0.1)),
    "e-tiny-mlp": (lambda: mlp(2, 16, 1), F.mse_loss, lambda p: torch.optim.SGD(p, lr=0.05)),
    "d-mlp-adam": (
        lambda: classifier(adam_classifiers.WIDTHS),
        F.cross_entropy,
        lambda p: torch.optim.Adam(p, lr=0.001),
    ),
    "g-mlp-adam": (lambda: classifier(adam_classifiers.WIDE), F.cross_entropy, lambda p: torch.optim.Adam(p, lr=0.001)),
    "h-lstm-cell": (Unrolled, F.cross_entropy, lambda p: torch.optim.SGD(p, lr=0.1)),
    "deep": (Residual, F.mse_loss, lambda p: torch.optim.Adam(p, lr=0.001)),
    "charlm": (CharacterModel, F.cross_entropy, lambda p: torch.optim.Adam(p, lr=0.003)),
    "lstm": (Recurrent, F.cross_entropy, lambda p: torch.optim.Adam(p, lr=0.003)),
    "lenet": (lambda: lenet.network(torch), F.cross_entropy, lambda p: torch.optim.Adam(p, lr=0.002)),
    "resnet": (
        lambda: resnet.network(torch),
        F.cross_entropy,
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=5e-4),
    ),
    "gpt": (lambda: gpt.network(torch), gpt.loss_of(torch), lambda p: torch.optim.AdamW(p, lr=0.003)),
}
