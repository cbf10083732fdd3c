"""Tensors as one vector and back, as programs of several processes use them; the same functions in both engines."""

from common.api.places import publish
from common.nn.utils import flatten_dense_tensors, take_tensors, unflatten_dense_tensors

__getattr__ = publish(
    __name__,
    {
        "_flatten_dense_tensors": flatten_dense_tensors,
        "_take_tensors": take_tensors,
        "_unflatten_dense_tensors": unflatten_dense_tensors,
    },
)
