"""Datasets."""

from common.data.datasets import *  # noqa: F403
from common.data.datasets import __all__ as __all__
