"""Tensors as one vector and back, and errors of threads; the same functions in both engines."""

from common.api.places import publish
from common.nn.parallel import ExceptionWrapper, _get_device_index
from common.nn.utils import flatten_dense_tensors, take_tensors, unflatten_dense_tensors

__getattr__ = publish(
    __name__,
    {
        "ExceptionWrapper": ExceptionWrapper,
        "_get_device_index": _get_device_index,
        "_flatten_dense_tensors": flatten_dense_tensors,
        "_take_tensors": take_tensors,
        "_unflatten_dense_tensors": unflatten_dense_tensors,
    },
)
