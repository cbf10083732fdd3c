"""Tables of rows that are looked up by index."""

from __future__ import annotations

from typing import Any

from common.core.devices import on_cpu
from common.core.errors import ArgumentError, CheckError, ShapeError
from common.nn import functions as F
from common.nn import init
from common.nn.module import Module
from common.nn.reset import reset_parameters
from common.tensor.base import TensorBase
from common.tensor.leaf import Parameter


class Embedding(Module):
    """Rows of a table, looked up by index.

    Parameters
    ----------
    num_embeddings, embedding_dim : rows and columns of the table.
    padding_idx : a row that begins as zeros and gets no gradient; a negative one counts from the end.
    max_norm : rows that are looked up and whose norm is larger are first scaled to it, in place.
    norm_type : p of that norm.
    scale_grad_by_freq : whether the gradient of a row is divided by how often it is looked up.
    sparse : accepted; gradients are dense.
    _weight : the table, in place of a drawn one.
    _freeze : whether the table takes no gradient.
    device : the CPU.
    dtype : of the table, float32 by default.

    Attributes
    ----------
    weight : (num_embeddings, embedding_dim), drawn from N(0, 1).

    Raises
    ------
    CheckError : `padding_idx` is no row.
    ShapeError : a weight that is given has other sizes.
    """

    reset_parameters = reset_parameters

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise CheckError(f"padding_idx must be within num_embeddings: {padding_idx} of {num_embeddings}")
            padding_idx %= num_embeddings
        on_cpu(device, "Embedding")
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.sparse = max_norm, norm_type, sparse
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            self.weight = init.normal((num_embeddings, embedding_dim), dtype)
            if padding_idx is not None:
                self.weight.payload[padding_idx] = 0
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise ShapeError(
                    f"Shape of weight does not match num_embeddings and embedding_dim: {tuple(_weight.shape)}"
                )
            self.weight = Parameter(_weight, not _freeze)
        if _freeze:
            self.weight.requires_grad_(False)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Any:
        """A module over a table.

        Parameters
        ----------
        embeddings : (rows, columns) tensor, whose memory the module shares.
        freeze : whether the table gets no gradient.
        padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse : as of the class.

        Raises
        ------
        ShapeError : the table is not 2-D.
        ArgumentError : it is no tensor.
        """
        if not isinstance(embeddings, TensorBase):
            kind = type(embeddings).__name__
            raise ArgumentError(f"from_pretrained(): argument 'embeddings' must be Tensor, not {kind}")
        if embeddings.ndim != 2:
            raise ShapeError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        return cls(rows, columns, *options, _weight=embeddings.detach(), _freeze=freeze)

    def forward(self, input: Any) -> Any:
        """Map index (...), int64 or int32, to (..., embedding_dim).

        Raises
        ------
        IndexRangeError : an index outside [0, num_embeddings).
        DTypeError : another dtype.
        """
        if self.padding_idx is None and self.max_norm is None and not self.scale_grad_by_freq:
            return F.embedding(input, self.weight)
        options = self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        return F.embedding(input, self.weight, *options)

    def extra_repr(self) -> str:
        """The arguments."""
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "sparse": False}
        return shown + "".join(f", {k}={getattr(self, k)}" for k, v in usual.items() if getattr(self, k) != v)


class EmbeddingBag(Module):
    """Rows of a table, combined bag by bag, see `embedding_bag`.

    Parameters
    ----------
    num_embeddings, embedding_dim : rows and columns of the table.
    max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx : see `embedding_bag`.
    _weight : the table, in place of a drawn one.
    device : None or the CPU.
    dtype : of the table, float32 by default.

    Attributes
    ----------
    weight : (num_embeddings, embedding_dim), drawn from N(0, 1), 0 at `padding_idx`.

    Raises
    ------
    CheckError : `padding_idx` is no row.
    """

    reset_parameters = reset_parameters

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        on_cpu(device, "EmbeddingBag")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise CheckError(f"padding_idx must be within num_embeddings: {padding_idx} of {num_embeddings}")
        if padding_idx is not None and padding_idx < 0:
            padding_idx += num_embeddings
        self.num_embeddings, self.embedding_dim, self.max_norm = num_embeddings, embedding_dim, max_norm
        self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse = norm_type, scale_grad_by_freq, mode, sparse
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        if _weight is None:
            self.weight = init.normal((num_embeddings, embedding_dim), dtype)
            if padding_idx is not None:
                self.weight.payload[padding_idx] = 0
        else:
            self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> EmbeddingBag:
        """Bags over a given table (entries, width), which is trained only if not `freeze`."""
        if len(embeddings.shape) != 2:
            raise ShapeError("Embeddings parameter is expected to be 2-dimensional")
        entries, width = map(int, embeddings.shape)
        made = cls(entries, width, _weight=embeddings, **options)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Combine the rows of input (bags, n), or (n,) with offsets (bags,): (bags, embedding_dim)."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
