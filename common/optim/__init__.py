"""Optimisers and learning rate schedulers, with PyTorch's names and arguments."""

from typing import TYPE_CHECKING, Any

from common.core.lazy import Late

if TYPE_CHECKING:
    from common.optim.adadelta import Adadelta
    from common.optim.adagrad import Adagrad
    from common.optim.adam import Adam, AdamW
    from common.optim.adam_relatives import Adamax, NAdam, RAdam
    from common.optim.averaged_and_resilient import ASGD, Rprop
    from common.optim.lbfgs import LBFGS
    from common.optim.of_matrices import Adafactor, Muon
    from common.optim.optimizer import Optimizer
    from common.optim.rmsprop import RMSprop
    from common.optim.sgd import SGD

CLASSES = Late(
    {
        "common.optim.adadelta": "Adadelta",
        "common.optim.adagrad": "Adagrad",
        "common.optim.adam": "Adam AdamW",
        "common.optim.adam_relatives": "Adamax NAdam RAdam",
        "common.optim.averaged_and_resilient": "ASGD Rprop",
        "common.optim.lbfgs": "LBFGS",
        "common.optim.of_matrices": "Adafactor Muon",
        "common.optim.optimizer": "Optimizer",
        "common.optim.rmsprop": "RMSprop",
        "common.optim.sgd": "SGD",
    }
)  # fmt: skip
"""What the imports above say, for programs: each file is loaded when one of its classes is first asked for."""

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop",
]  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in CLASSES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return CLASSES[name]
