"""A module on several devices, of which there is one."""

from common.api.places import publish
from common.nn.parallel import DataParallel, DistributedDataParallel, data_parallel
from common.nn.parallel import gather as gather
from common.nn.parallel import parallel_apply as parallel_apply
from common.nn.parallel import replicate as replicate
from common.nn.parallel import scatter as scatter

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

publish(__name__)
