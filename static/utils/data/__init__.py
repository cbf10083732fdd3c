"""Datasets, samplers and loaders; the same classes in both engines."""

from typing import TYPE_CHECKING

from common.api.places import open_places
from common.core import absent
from common.data import *  # noqa: F403
from common.data import __all__ as _names
from common.tensor import boundary
from static.utils.data import dataloader, dataset, sampler

open_places(__name__)

__all__ = list(_names)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
