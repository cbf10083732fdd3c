"""Training by several processes: a batch is divided among ranks, and the bits do not depend on how many there are."""

from typing import TYPE_CHECKING

from common.core import absent
from common.parallel.cost_model import Link, Payoff, measured_link, payoff
from common.parallel.global_batch import GlobalBatch
from common.parallel.ranks import Alone, MPIRanks, Ranks, world
from common.tensor import boundary

__all__ = ["Alone", "GlobalBatch", "Link", "MPIRanks", "Payoff", "Ranks", "measured_link", "payoff", "world"]

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
