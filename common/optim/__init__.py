"""Optimisers and learning rate schedulers, with PyTorch's names and arguments."""

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

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop",
]  # fmt: skip
