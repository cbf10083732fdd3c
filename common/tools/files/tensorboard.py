"""Event files for TensorBoard: graphs, scalars, histograms and texts; `event_images` and `event_tables` have the rest.

Needs the package `tensorboard` (``pip install twingrad[tensorboard]``), and not TensorFlow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError
from common.core.int_arguments import integer
from common.core.tree import flatten, unflatten
from common.tensor.base import TensorBase
from common.tools.files.event_records import array
from common.tools.files.event_tables import Tables
from common.tools.pictures.diagram import PictureItem
from common.tools.pictures.picture import Picture
from common.tools.pictures.recorded_picture import make_dot, module_scopes

__all__ = ["SummaryWriter", "graph_def"]

_DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10,
}  # fmt: skip  # tensorboard.compat.proto.types_pb2.DataType


class SummaryWriter(Tables):
    """Writes what TensorBoard shows; the methods are those of `torch.utils.tensorboard`, without video and sound.

    Parameters
    ----------
    log_dir : folder of the event file; by default ``runs/<time>_<host>``.
    comment : end of the default folder's name.
    purge_step : from this step on, earlier records of a crashed run are hidden.
    max_queue : records that are kept before they are written.
    flush_secs : seconds after which they are written in any case.
    filename_suffix : end of the file's name.

    Raises
    ------
    StateError : the package `tensorboard` is missing.

    Examples
    --------
    >>> import tempfile
    >>> import dynamic as tw
    >>> from dynamic.utils.tensorboard import SummaryWriter
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     model = tw.nn.Linear(2, 1)
    ...     writer.add_graph(model, tw.zeros(4, 2))
    ...     for step in range(3):
    ...         writer.add_scalar("loss/train", 1 / (step + 1), step)
    ...     writer.add_histogram("weight", model.weight, 0)
    """

    #: ``_draw(model, inputs) -> Picture``: how an engine looks at a model.
    _draw: Callable[[Any, tuple[Any, ...]], Picture]

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Add a point to a curve.

        Parameters
        ----------
        tag : name of the curve; up to its last "/" that of a group.
        scalar_value : a number, or an array or tensor of one element.
        global_step : where on the axis.
        walltime : seconds since 1970; now by default.
        new_style : write the record that newer versions of TensorBoard write.
        double_precision : keep all digits; such a record is always of the new style.

        Raises
        ------
        ArgumentError : more or less than one element.
        """
        value = array(scalar_value)
        if value.size != 1:
            raise ArgumentError(f"add_scalar() takes one number, got {value.size} elements for {tag!r}")
        if not (new_style or double_precision):
            self._add(global_step, walltime, tag=tag, simple_value=float(value.item()))
            return
        from tensorboard.plugins.scalar import metadata

        number = self._numbers(np.array(value.item(), np.float64 if double_precision else np.float32))
        about = metadata.create_summary_metadata(display_name="", description="")
        self._add(global_step, walltime, tag=tag, tensor=number, metadata=about)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add a point to each of several curves, which are shown in one picture; each is a run in a folder below.

        Parameters
        ----------
        main_tag : name of the picture.
        tag_scalar_dict : name of a curve -> number.
        global_step, walltime : see `add_scalar`.

        Raises
        ------
        ArgumentError : no dictionary, or more or less than one element.
        """
        if not isinstance(tag_scalar_dict, dict):
            raise ArgumentError(
                f"add_scalars(): argument 'tag_scalar_dict' must be dict, not {type(tag_scalar_dict).__name__}"
            )
        for tag, x in tag_scalar_dict.items():
            value = array(x)
            if value.size != 1:
                raise ArgumentError(f"add_scalars() takes one number each, got {value.size} elements for {tag!r}")
            run = self._run_below(f"{main_tag.replace('/', '_')}_{tag}")
            run._add(global_step, walltime, tag=main_tag, simple_value=float(value.item()))

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Add the distribution of many numbers; those that are not finite are left out.

        Parameters
        ----------
        tag : name of the histogram.
        values : (...) tensor or array.
        global_step, walltime : see `add_scalar`.
        bins : "tensorflow", which are narrow around 0 and a tenth wider each; or what `numpy.histogram` takes.
        max_bins : how many at most; neighbours are taken together.

        Raises
        ------
        ArgumentError : no finite values.
        """
        numbers = array(values).astype(np.float64).ravel()
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            raise ArgumentError(f"add_histogram(): {tag!r} has no finite values")
        counts, edges = np.histogram(
            numbers, _edges(numbers) if isinstance(bins, str) and bins == "tensorflow" else bins
        )
        if max_bins is not None and len(counts) > max_bins:
            starts = np.arange(0, len(counts), -(-len(counts) // integer(max_bins, "add_histogram", "max_bins")))
            counts, edges = np.add.reduceat(counts, starts), np.append(edges[starts], edges[-1])
        used = np.flatnonzero(counts)
        first, last = used[0], used[-1] + 1
        histogram = self._summary.HistogramProto(
            min=np.min(numbers), max=np.max(numbers), num=numbers.size, sum=numbers.sum(),
            sum_squares=np.square(numbers).sum(), bucket_limit=[edges[first], *edges[first + 1 : last + 1]],
            bucket=[0, *counts[first:last]],
        )  # fmt: skip
        self._add(global_step, walltime, tag=tag, histo=histogram)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add a distribution from counts.

        Parameters
        ----------
        tag : name of the histogram.
        min, max, num, sum, sum_squares : of the numbers.
        bucket_limits, bucket_counts : (bins,) the right ends of the bins, and how many numbers lie in each.
        global_step, walltime : see `add_scalar`.

        Raises
        ------
        ArgumentError : another number of limits than of counts.
        """
        limits, counts = (array(x).astype(np.float64).ravel().tolist() for x in (bucket_limits, bucket_counts))
        if len(limits) != len(counts):
            raise ArgumentError(
                "add_histogram_raw(): len(bucket_limits) != len(bucket_counts), "
                f"{len(limits)} limits for {len(counts)} bins"
            )
        histogram = self._summary.HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares,
                                                 bucket_limit=limits, bucket=counts)  # fmt: skip
        self._add(global_step, walltime, tag=tag, histo=histogram)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add a text, which is shown as Markdown.

        Parameters
        ----------
        tag : its name.
        text_string : the text.
        global_step, walltime : see `add_scalar`.
        """
        tensor = self._tensor.TensorProto(dtype=7, string_val=[text_string.encode()])  # DT_STRING
        tensor.tensor_shape.dim.add().size = 1
        metadata = self._text.create_summary_metadata(display_name="", description="")
        self._add(global_step, walltime, tag=f"{tag}/text_summary", tensor=tensor, metadata=metadata)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Add the graph of a model, whose scopes are its modules, with shapes on the edges.

        Parameters
        ----------
        model : a module or function; or a `Picture`, such as that of a compiled training step.
        input_to_model : a tensor, or a tuple of arguments, with which the model is run once.
        verbose : also print the graph as text.
        use_strict_trace : accepted.

        Raises
        ------
        ArgumentError : no input for a model, or a result that has no graph.
        """
        if not isinstance(model, Picture):
            if input_to_model is None:
                raise ArgumentError("add_graph() runs the model once: give input_to_model")
            inputs = input_to_model if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
            model = type(self)._draw(model, tuple(inputs))
        if verbose:
            print(model)
        graph = graph_def(model, self._graph.GraphDef)
        self._write(self._event.Event(graph_def=graph.SerializeToString()), None, None)


def recorded(model: Callable[..., Any], inputs: tuple[Any, ...]) -> Picture:
    """The picture of what a model records on the tape; its inputs count as leaves.

    Raises
    ------
    ArgumentError : nothing is recorded.
    """
    leaves, structure = flatten(inputs)
    names: dict[str, Any] = {}
    for i, x in enumerate(leaves):
        if isinstance(x, TensorBase) and x.dtype.kind == "f":
            leaves[i] = names[f"input {len(names)}" if len(leaves) > 1 else "input"] = x.detach().requires_grad_()
    with mode.enable_grad(), module_scopes() as scopes:
        results, _ = flatten(model(*unflatten(structure, leaves)))
    roots = [x for x in results if isinstance(x, TensorBase) and x.requires_grad]
    if not roots:
        raise ArgumentError("add_graph(): no result of the model has a graph: nothing in it requires grad")
    return make_dot(roots, names, show_attrs=True, scopes=scopes)


def graph_def(picture: Picture, make: Callable[[], Any]) -> Any:
    """A picture as a GraphDef: an item's name is its scope and its label, unique by a number behind it.

    Parameters
    ----------
    make : the class GraphDef.
    """
    graph = make()
    graph.versions.producer = 22
    names: list[str] = []
    taken: dict[str, int] = {}
    for item in picture.items:
        name = _name(item)
        count = taken[name] = taken.get(name, 0) + 1
        names.append(f"{name}_{count - 1}" if count > 1 else name)
        node = graph.node.add(name=names[-1], op=item.label if item.kind == "op" else item.kind)
        for port in item.operands:
            if port is not None:
                node.input.append(f"{names[port[0]]}:{port[1]}" if port[1] else names[port[0]])
        for result in item.results:
            _shape(node.attr["_output_shapes"].list.shape.add(), result)
        for key, text in (("attributes", item.detail), ("line", item.line)):
            if text:
                node.attr[key].s = text.encode()
        if dtype := _DTYPES.get(item.results[0].partition("[")[0] if item.results else ""):
            node.attr["dtype"].type = dtype
    return graph


def _name(item: PictureItem) -> str:
    """A name that TensorBoard takes apart at "/" only."""
    label = item.label.rpartition(".")[2] if item.kind == "parameter" else item.label.removesuffix("Backward0")
    return "/".join(re.sub(r"[^\w.\-\[\]]", "_", part) for part in (*item.scope, label))


def _shape(proto: Any, result: str) -> None:
    sizes = result.partition("[")[2].rstrip("]")
    if not result:
        proto.unknown_rank = True
    for size in filter(None, sizes.split(", ")):
        proto.dim.add().size = int(size) if size.isdigit() else -1


def _edges(numbers: np.ndarray) -> np.ndarray:
    """Borders of bins: 0, and from 1e-12 on each a tenth larger, on both sides as far as there are numbers."""
    largest = max(float(np.abs(numbers).max()), 1e-12)
    count = int(np.ceil(np.log(largest / 1e-12) / np.log(1.1))) + 2
    positive = 1e-12 * 1.1 ** np.arange(count)
    return np.concatenate([-positive[::-1], [0.0], positive])
