"""Training by several processes: a batch is divided among ranks, and the bits do not depend on how many there are."""

from common.api.places import publish
from common.parallel.cost_model import Link, Payoff, measured_link, payoff
from common.parallel.global_batch import GlobalBatch
from common.parallel.ranks import Alone, MPIRanks, Ranks, world

__all__ = ["Alone", "GlobalBatch", "Link", "MPIRanks", "Payoff", "Ranks", "measured_link", "payoff", "world"]

publish(__name__)
