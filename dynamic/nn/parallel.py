"""A module on several devices, of which there is one."""

from typing import TYPE_CHECKING

from common.core import absent
from common.nn.parallel import DataParallel, DistributedDataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
