"""Optimisers and learning rate schedulers, with PyTorch's names and arguments."""

from common.optim.adadelta import Adadelta
from common.optim.adagrad import Adagrad
from common.optim.adam import Adam, AdamW
from common.optim.adam_relatives import Adamax, NAdam, RAdam
from common.optim.optimizer import Optimizer
from common.optim.rmsprop import RMSprop
from common.optim.sgd import SGD

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop"]
