"""Workloads as formulas of any library with numpy's names: HIPS autograd's numpy, PyTensor's tensors."""

from collections.abc import Callable
from typing import Any

Loss = Callable[..., Any]


def wave(np: Any) -> Callable[..., Any]:
    """Return the elementwise workload of x, w and b."""
    return lambda x, w, b: np.tanh(x * w + b) * x + np.exp(-x * x)


def trainings(np: Any, cross_entropy: Loss) -> dict[str, tuple[Loss, float, float]]:
    """Return the loss of parameters, x and target, the learning rate and the momentum of each training."""

    def mlp(params: Any, x: Any) -> Any:
        hidden = np.tanh(np.dot(x, params["0.weight"].T) + params["0.bias"])
        return np.dot(hidden, params["2.weight"].T) + params["2.bias"]

    def classify(params: Any, x: Any, target: Any) -> Any:
        return cross_entropy(mlp(params, x), target)

    def regress(params: Any, x: Any, target: Any) -> Any:
        return np.mean((mlp(params, x) - target) ** 2)

    return {"digits": (classify, 0.1, 0.9), "f-mlp": (classify, 0.1, 0.0), "e-tiny-mlp": (regress, 0.05, 0.0)}
