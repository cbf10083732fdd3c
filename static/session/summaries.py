"""Logs of a run for TensorBoard: `static.summary`, as TensorFlow 1's `tf.summary`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.errors import ArgumentError
from common.core.int_arguments import integer
from common.core.tree import Node, register
from common.tools.files.event_records import array
from static.session.building import GraphKeys
from static.session.defaults import get_default_graph
from static.session.graph_tensor import GraphTensor
from static.session.placeholders import identity
from static.session.session_graph import Graph
from static.utils.tensorboard import SummaryWriter


class LoggedValue(NamedTuple):
    """The log of one value.

    Attributes
    ----------
    kind : "scalar", "histogram" or "image".
    tag : the name that TensorBoard shows.
    most : how many pictures are shown at most.
    """

    kind: str
    tag: str
    most: int = 0


class Summary:
    """Values to be logged, each with its tag. A run that fetches it returns one that holds arrays.

    Attributes
    ----------
    entries : what becomes of each value.
    values : tensors of a graph; arrays, once it has been fetched.
    """

    def __init__(self, entries: tuple[LoggedValue, ...], values: tuple[Any, ...]) -> None:
        self.entries, self.values = entries, values

    def __repr__(self) -> str:
        return f"<Summary of {', '.join(repr(entry.tag) for entry in self.entries) or 'nothing'}>"


register(Summary, Node(lambda summary: (summary.values, summary.entries), lambda entries, xs: Summary(entries, (*xs,))))


def scalar(name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Summary:
    """Log a number: a point of a curve.

    Parameters
    ----------
    name : of the curve; the scope of the graph comes before it.
    tensor : of one element.
    collections : names of the collections that get the summary; that of `merge_all` by default.
    family : a group of curves, which comes before the name.

    Raises
    ------
    ArgumentError : more or less than one element.

    Examples
    --------
    >>> import tempfile, static as tw
    >>> with tw.Graph().as_default() as graph, tw.Session() as session, tempfile.TemporaryDirectory() as folder:
    ...     x = tw.placeholder(tw.float32, [None])
    ...     tw.summary.scalar("mean", x.mean())
    ...     tw.summary.histogram("x", x)
    ...     merged = tw.summary.merge_all()
    ...     with tw.summary.FileWriter(folder, graph) as writer:
    ...         for step in range(3):
    ...             writer.add_summary(session.run(merged, {x: [1.0, 2.0 + step]}), step)
    <Summary of 'mean'>
    <Summary of 'x'>
    """
    made = _entry("scalar", name, tensor, collections, family)
    sizes = [n for n in made.values[0].shape if isinstance(n, int)]
    if any(n != 1 for n in sizes):
        raise ArgumentError(
            f"summary.scalar(): {name!r} must be one number, not of shape {tuple(made.values[0].shape)}"
        )
    return made


def histogram(name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Summary:
    """Log the distribution of many numbers; parameters as those of `scalar`, `values` of any shape."""
    return _entry("histogram", name, values, collections, family)


def image(
    name: str, tensor: Any, max_outputs: int = 3, collections: Sequence[str] | None = None, family: str | None = None
) -> Summary:
    """Log pictures.

    Parameters
    ----------
    name, collections, family : as those of `scalar`.
    tensor : (N, height, width, channels) with 1, 3 or 4 channels, uint8 or floats. Floats of a picture are scaled so
        that the largest is white; if one is negative, 0 is grey and the largest by its amount black or white.
    max_outputs : how many of the N pictures are logged at most.

    Raises
    ------
    ArgumentError : other dimensions.
    """
    most = integer(max_outputs, "summary.image", "max_outputs")
    made = _entry("image", name, tensor, collections, family, most)
    if len(made.values[0].shape) != 4:
        raise ArgumentError(
            f"summary.image(): {name!r} must be (N, height, width, channels), not of shape {made.values[0].shape}"
        )
    return made


def merge(inputs: Sequence[Summary], collections: Sequence[str] | None = None, name: str | None = None) -> Summary:
    """All that `inputs` log, as one summary.

    Parameters
    ----------
    name : accepted.

    Raises
    ------
    ArgumentError : something that is no summary, or two with one tag.
    """
    for x in inputs:
        if not isinstance(x, Summary):
            raise ArgumentError(f"summary.merge() takes summaries, not {x!r}")
    entries = tuple(entry for x in inputs for entry in x.entries)
    tags = [entry.tag for entry in entries]
    twice = next((tag for tag in tags if tags.count(tag) > 1), None)
    if twice is not None:
        raise ArgumentError(f"summary.merge(): two of the summaries have the tag {twice!r}")
    made = Summary(entries, tuple(value for x in inputs for value in x.values))
    for key in collections or ():
        get_default_graph().add_to_collection(key, made)
    return made


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Summary | None:
    """All that the default graph logs, as one summary; None if that is nothing.

    Parameters
    ----------
    key : of a collection.
    scope : how the tags begin; all if None.
    name : accepted.
    """
    found = [x for x in get_default_graph().get_collection(key) if scope is None or x.entries[0].tag.startswith(scope)]
    return merge(found) if found else None


class FileWriter:
    """Writes summaries and graphs to a folder that TensorBoard shows.

    Parameters
    ----------
    logdir : the folder.
    graph : written at once, if given.
    max_queue, flush_secs, filename_suffix : as those of `static.utils.tensorboard.SummaryWriter`.

    Raises
    ------
    StateError : the package `tensorboard` is missing.
    """

    def __init__(
        self,
        logdir: Any,
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str | None = None,
    ) -> None:
        self._writer = SummaryWriter(
            logdir, max_queue=max_queue, flush_secs=flush_secs, filename_suffix=filename_suffix or ""
        )
        if graph is not None:
            self.add_graph(graph)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def add_summary(self, summary: Summary, global_step: int | None = None) -> None:
        """Write what a run has returned for a summary.

        Parameters
        ----------
        global_step : where on the axis.

        Raises
        ------
        ArgumentError : no summary, or one that no run has fetched.
        """
        if not isinstance(summary, Summary):
            raise ArgumentError(f"add_summary() takes what a run returns for a summary, not {summary!r}")
        if any(isinstance(value, GraphTensor) for value in summary.values):
            raise ArgumentError(f"add_summary(): {summary!r} has no values yet: fetch it, session.run(summary)")
        step = None if global_step is None else integer(global_step, "add_summary", "global_step")
        for entry, value in zip(summary.entries, map(array, summary.values), strict=True):
            if entry.kind == "scalar":
                self._writer.add_scalar(entry.tag, value, step)
            elif entry.kind == "histogram":
                self._writer.add_histogram(entry.tag, value, step)
            else:
                for i, picture in enumerate(value[: entry.most]):
                    tag = f"{entry.tag}/image" if entry.most == 1 else f"{entry.tag}/image/{i}"
                    self._writer.add_image(tag, _pixels(picture), step, dataformats="HWC")

    def add_graph(self, graph: Graph) -> None:
        """Write a graph."""
        if not isinstance(graph, Graph):
            raise ArgumentError(f"add_graph() takes a Graph, not {type(graph).__name__}: session.graph")
        self._writer.add_graph(graph.picture)

    def get_logdir(self) -> str:
        """The folder."""
        return self._writer.get_logdir()

    def flush(self) -> None:
        """Write everything to the file."""
        self._writer.flush()

    def close(self) -> None:
        """Write everything and close the file."""
        self._writer.close()


def _entry(
    kind: str, name: str, tensor: Any, collections: Sequence[str] | None, family: str | None, most: int = 0
) -> Summary:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"summary.{kind}(): argument 'name' must be a text, not {name!r}")
    graph = tensor.graph if isinstance(tensor, GraphTensor) else get_default_graph()
    with graph.name_scope(name if family is None else f"{family}/{name}") as scope:
        value = tensor if isinstance(tensor, GraphTensor) else identity(tensor)
    made = Summary((LoggedValue(kind, scope.removesuffix("/"), most),), (value,))
    for key in (GraphKeys.SUMMARIES,) if collections is None else collections:
        graph.add_to_collection(key, made)
    return made


def _pixels(picture: np.ndarray) -> np.ndarray:
    """A picture's elements from 0 to 1, or as they are if they are bytes."""
    if picture.dtype == np.uint8:
        return picture
    picture = picture.astype(np.float64)
    largest = np.max(np.abs(picture), initial=0.0)
    scaled = picture / (largest or 1.0)
    return scaled if np.min(picture, initial=0.0) >= 0 else (scaled * 127 + 127) / 255


__all__ = ["FileWriter", "Summary", "histogram", "image", "merge", "merge_all", "scalar"]
