"""Learning rates that change with the epoch: PyTorch's names and formulas.

A scheduler computes in Python, outside programs, and writes ``group["lr"]``, which is state: a compiled step reads the
new rate at its next call and is not traced again. Every schedule but `MultiplicativeLR` is a
function of the epoch, so rates do not drift.
"""

from common.optim.lr_scheduler.annealing import CosineAnnealingLR, CosineAnnealingWarmRestarts
from common.optim.lr_scheduler.cyclic import CyclicLR
from common.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from common.optim.lr_scheduler.one_cycle import OneCycleLR
from common.optim.lr_scheduler.plateau import ReduceLROnPlateau
from common.optim.lr_scheduler.scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler
from common.optim.lr_scheduler.sequential import ChainedScheduler, SequentialLR

__all__ = [
    "EPOCH_DEPRECATION_WARNING", "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
    "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
