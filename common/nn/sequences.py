"""Sequences of several lengths: padded to one array, or packed step by step without padding.

A packed sequence holds the first step of all sequences, longest first, then the second of those that have one, and so
on. Which row stands where follows from the lengths, which are numbers. So packing and padding are gathers with constant
indices, which a trace holds and which have gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.errors import ArgumentError, DTypeError, ShapeError, TraceError
from common.core.int_arguments import number
from common.nn import functions as F
from common.tensor.arrays import refuse_copied_rows
from common.tensor.base import TensorBase, wrap
from common.tensor.create import lift


class _Fields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None


class PackedSequence(_Fields):
    """Sequences step by step, made by `pack_padded_sequence` or `pack_sequence`.

    Attributes
    ----------
    data : (steps, ...) the rows of all sequences: first those of step 0, then of step 1, ...
    batch_sizes : (time,) int64, how many sequences have each step.
    sorted_indices, unsorted_indices : (batch,) int64, which sequence of the batch each is, and the inverse; None where
        they were given longest first.
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        """Fill in the indices that follow from others."""
        if batch_sizes is None and isinstance(data, (tuple, list)) and len(data) == 2:
            data, batch_sizes = data
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with ``data.to(...)``."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def double(self) -> PackedSequence:
        """The same in float64."""
        return self.to(np.float64)

    def float(self) -> PackedSequence:
        """The same in float32."""
        return self.to(np.float32)

    def long(self) -> PackedSequence:
        """The same in int64."""
        return self.to(np.int64)

    def short(self) -> PackedSequence:
        """The same in int16."""
        return self.to(np.int16)

    def char(self) -> PackedSequence:
        """The same in int8."""
        return self.to(np.int8)

    def byte(self) -> PackedSequence:
        """The same in uint8."""
        return self.to(np.uint8)

    def int(self) -> PackedSequence:
        """The same in int32."""
        return self.to(np.int32)

    def cpu(self) -> PackedSequence:
        """The same: there is no other device."""
        return self

    def pin_memory(self) -> PackedSequence:
        """The same: there is no other memory."""
        return self

    def is_pinned(self) -> bool:
        """False."""
        return False

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """Rows in another order along a dimension.

    Parameters
    ----------
    tensor : (..., n, ...)
    permutation : (n,) int64
    """
    return F.index_select(tensor, dim, permutation)


def invert_permutation(permutation: Any) -> Any:
    """The order that undoes another one.

    Parameters
    ----------
    permutation : (n,) int64, or None, which stays.
    """
    return None if permutation is None else wrap(np.argsort(numbers(permutation, "permutation"), kind="stable"))


def numbers(given: Any, name: str) -> np.ndarray:
    """(n,) int64 array of lengths or indices, which have to be known when the program is traced.

    Raises
    ------
    TraceError : traced values.
    ArgumentError, DTypeError : no ints, or another number of dimensions.
    """
    if isinstance(given, TensorBase):
        if not isinstance(given.payload, np.ndarray):
            raise TraceError(f"{name} decide on shapes and are traced values here; give a list of ints, or an array "
                             "that is not an argument of the traced function")  # fmt: skip
        given = given.payload
    elif isinstance(given, (list, tuple)):
        given = [int(number(x)) for x in given]
    found = np.asarray(given, None if len(given) else np.int64)
    if found.ndim != 1:
        raise ArgumentError(f"expected {name} of one dimension, got {found.ndim}")
    if found.dtype.kind not in "iu":
        raise DTypeError(f"expected {name} to be ints, got dtype {found.dtype}")
    return found.astype(np.int64)


def layout(batch_sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the steps of a padded array stand in a packed one, (time, batch), 0 where there is no step; and which are.

    Raises
    ------
    ArgumentError : batch sizes that grow, or of which one is not positive.
    """
    if not len(batch_sizes) or batch_sizes[-1] < 1 or (np.diff(batch_sizes) > 0).any():
        raise ArgumentError(f"batch_sizes must be positive and must not grow, got {batch_sizes.tolist()}")
    columns = np.arange(batch_sizes[0])
    valid = columns < batch_sizes[:, None]
    places = np.where(valid, (np.cumsum(batch_sizes) - batch_sizes)[:, None] + columns, 0)
    return places, valid


def _gathered(x: Any, places: np.ndarray) -> Any:
    """Rows of `x` at places (...): (..., *row)."""
    return F.reshape(F.index_select(x, 0, lift(places.reshape(-1))), (*places.shape, *x.shape[1:]))


def padded(data: Any, batch_sizes: np.ndarray) -> tuple[Any, np.ndarray]:
    """Packed rows as (time, batch, ...), with any rows where a sequence has ended; and where it has not."""
    places, valid = layout(batch_sizes)
    if data.ndim < 1 or data.shape[0] != int(batch_sizes.sum()):
        raise ShapeError(f"a packed sequence of {int(batch_sizes.sum())} steps has data of shape {tuple(data.shape)}")
    return _gathered(data, places), valid


def packed(x: Any, batch_sizes: np.ndarray) -> Any:
    """Rows of (time, batch, ...) step by step, without what is behind the ends of sequences."""
    time, batch = len(batch_sizes), int(batch_sizes[0])
    rows = np.concatenate([t * batch + np.arange(n) for t, n in enumerate(batch_sizes)])
    return F.index_select(F.reshape(x, (time * batch, *x.shape[2:])), 0, lift(rows))


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences that are padded to one length.

    Parameters
    ----------
    input : (time, batch, ...), or (batch, time, ...) if `batch_first`.
    lengths : (batch,) ints, known outside a trace: a list, an array or a tensor that is not traced.
    batch_first : see `input`.
    enforce_sorted : whether the sequences have to come longest first; otherwise they are sorted.

    Raises
    ------
    ArgumentError : lengths that are not positive or not sorted, or not one per sequence.
    ShapeError : less than two dimensions, or a length beyond `input`.
    TraceError : traced lengths.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([[1, 2, 3], [4, 5, 0]])
    >>> pack_padded_sequence(x, [3, 2], batch_first=True).data
    tensor([1, 4, 2, 5, 3])
    """
    if isinstance(lengths, TensorBase) and isinstance(lengths.payload, np.ndarray):
        lengths = lengths.payload.astype(np.int64)  # PyTorch cuts floats, too
    x, many = lift(input), numbers(lengths, "lengths")
    if x.ndim < 2:
        raise ShapeError(f"pack_padded_sequence(): expected input of at least 2 dimensions, got {x.ndim}")
    order = None
    if not enforce_sorted:
        order = np.argsort(-many, kind="stable")
        many = many[order]
    x = x.transpose(0, 1) if batch_first else x
    if len(many) != x.shape[1]:
        raise ArgumentError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(many)} (batch_size={x.shape[1]})"
        )
    if not len(many):
        raise ArgumentError("Cannot pack empty tensors.")
    if (many <= 0).any():
        raise ArgumentError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (np.diff(many) > 0).any():
        raise ArgumentError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if x.shape[0] < int(many[0]):
        raise ShapeError(f"pack_padded_sequence(): a length of {many[0]} is beyond input of {x.shape[0]} steps")
    x = x if order is None else F.index_select(x, 1, lift(order))
    sizes = (many > np.arange(many[0])[:, None]).sum(1)
    indices = (None, None) if order is None else (wrap(order), wrap(np.argsort(order, kind="stable")))
    return PackedSequence(packed(x[: int(many[0])], sizes), wrap(sizes), *indices)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """Pad packed sequences to one length: the inverse of `pack_padded_sequence`.

    Parameters
    ----------
    sequence : as `pack_padded_sequence` gives it.
    batch_first : whether the result is (batch, time, ...) instead of (time, batch, ...).
    padding_value : what stands behind the ends.
    total_length : the time, by default the largest length.

    Returns
    -------
    padded : (time, batch, ...)
    lengths : (batch,) int64

    Raises
    ------
    ArgumentError : a `total_length` below the largest length; no packed sequence.
    TraceError : traced lengths.
    """
    if not isinstance(sequence, PackedSequence):
        raise ArgumentError(f"pad_packed_sequence(): expected a PackedSequence, got {type(sequence).__name__}")
    sizes = numbers(sequence.batch_sizes, "batch_sizes")
    data = lift(sequence.data)
    x, valid = padded(data, sizes)
    lengths = valid.sum(0)
    if total_length is not None and total_length < len(sizes):
        raise ArgumentError(
            "Expected total_length to be at least the length of the longest sequence in input, but got total_length="
            f"{total_length} and max sequence length being {len(sizes)}"
        )
    mask = lift(valid.reshape(*valid.shape, *(1,) * (data.ndim - 1)))
    x = F.where(mask, x, F.full_like(x[:1, :1], padding_value))
    if total_length is not None and total_length > len(sizes):
        rest = (*(0, 0) * (x.ndim - 1), 0, total_length - len(sizes))
        x = F.pad(x, rest, value=padding_value)
    if sequence.unsorted_indices is not None:
        order = numbers(sequence.unsorted_indices, "unsorted_indices")
        x, lengths = F.index_select(x, 1, lift(order)), lengths[order]
    return x.transpose(0, 1) if batch_first else x, wrap(lengths)


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Sequences of several lengths as one tensor.

    Parameters
    ----------
    sequences : tensors (length, ...), which agree behind the first dimension.
    batch_first : whether the result is (batch, time, ...) instead of (time, batch, ...).
    padding_value : what fills the shorter ones.
    padding_side : "right", behind them, or "left".

    Raises
    ------
    ArgumentError : no sequences, or another side.
    ShapeError : a sequence without dimensions, or sizes that differ.

    Examples
    --------
    >>> import dynamic as tw
    >>> pad_sequence([tw.tensor([1, 2, 3]), tw.tensor([4])], batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise ArgumentError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences).__name__}"
        )
    given = _with_steps("pad_sequence", sequences)
    if not given:
        raise ArgumentError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"padding_side must be 'left' or 'right', got {padding_side!r}")
    longest = given[0].shape[0]
    for x in given[1:]:
        longest = x.shape[0] if x.shape[0] > longest else longest

    def filled(x: Any) -> Any:
        missing = longest - x.shape[0]
        ends = (0, missing) if padding_side == "right" else (missing, 0)
        return F.pad(x, ((0, 0) * (x.ndim - 1) + ends), value=padding_value)

    return F.stack([filled(x) for x in given], 0 if batch_first else 1)


def _with_steps(name: str, sequences: Iterable[Any]) -> list[Any]:
    """The sequences as tensors; the first that is none ends it, however many follow."""
    refuse_copied_rows(name, sequences)
    given = list[Any]()
    for sequence in sequences:
        x = lift(sequence)
        if not isinstance(x, TensorBase):
            raise ArgumentError(f"{name}(): expected Tensor as element {len(given)}, but got {type(sequence).__name__}")
        if x.ndim < 1:
            raise ShapeError(f"{name}(): sequences need at least 1 dimension, of their steps")
        given.append(x)
    return given


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of a padded tensor, each with its own length.

    Parameters
    ----------
    padded_sequences : (time, batch, ...), or (batch, time, ...) if `batch_first`.
    lengths : (batch,) ints, known outside a trace.
    batch_first : see `padded_sequences`.

    Raises
    ------
    ArgumentError : not one length per sequence.
    TraceError : traced lengths.
    """
    x, many = lift(padded_sequences), numbers(lengths, "lengths")
    if x.ndim < 2:
        raise ShapeError(f"unpad_sequence(): expected at least 2 dimensions, got {x.ndim}")
    x = x if batch_first else x.transpose(0, 1)
    if len(many) != x.shape[0]:
        raise ArgumentError(f"unpad_sequence(): {len(many)} lengths for {x.shape[0]} sequences")
    return [x[i, : int(n)] for i, n in enumerate(many)]


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of several lengths.

    Parameters
    ----------
    sequences : tensors (length, ...), which agree behind the first dimension.
    enforce_sorted : whether they have to come longest first; otherwise they are sorted.

    Raises
    ------
    ArgumentError, ShapeError : see `pad_sequence` and `pack_padded_sequence`.

    Examples
    --------
    >>> import dynamic as tw
    >>> pack_sequence([tw.tensor([1, 2, 3]), tw.tensor([4, 5])]).batch_sizes
    tensor([2, 2, 1])
    """
    given = _with_steps("pack_sequence", sequences)
    return pack_padded_sequence(pad_sequence(given), [int(x.shape[0]) for x in given], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences that a packed one holds, in the order in which they were given."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip
