"""Optimisers: written with ops of the registry, so that both engines run them and a compiler can fuse them."""

from common.optim.adam import Adam
from common.optim.optimizer import Optimizer
from common.optim.sgd import SGD

__all__ = ["SGD", "Adam", "Optimizer"]
