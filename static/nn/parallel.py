"""A module on several devices, of which there is one."""

from common.api.places import publish
from common.nn.parallel import DataParallel, DistributedDataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

publish(__name__)
