"""Optimisers: written with ops of the registry, so that both engines run them and a compiler can fuse them."""

from common.optim.adagrad import Adagrad
from common.optim.adam import Adam, AdamW
from common.optim.optimizer import Optimizer
from common.optim.rmsprop import RMSprop
from common.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop"]
