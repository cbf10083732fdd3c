"""Marks that libraries of PyTorch carry; there are no symbolic traces."""

from common.api.machine.symbolic import *  # noqa: F403
from common.api.machine.symbolic import __all__ as __all__
from common.api.places import publish

publish(__name__)
