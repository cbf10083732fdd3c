"""Datasets, samplers and loaders; the same classes in both engines."""

from common.api.places import publish
from common.data import *  # noqa: F403
from common.data import __all__ as _names
from static.utils.data import dataloader, dataset, sampler

__all__ = list(_names)

publish(__name__)
