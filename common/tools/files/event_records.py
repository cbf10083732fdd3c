"""A file of records for TensorBoard, and how a record gets into it."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, StateError
from common.core.int_arguments import integer
from common.tensor.base import TensorBase

_KINDS = {"f": ("float_val", 1), "d": ("double_val", 2)}  # tensorboard.compat.proto.types_pb2.DataType


def protos() -> Any:
    """TensorBoard's records and file writer.

    Raises
    ------
    StateError : the package is missing.
    """
    try:
        import tensorboard.plugins.text.metadata as text
        from tensorboard.compat import proto
        from tensorboard.compat.proto import event_pb2, graph_pb2, summary_pb2, tensor_pb2
        from tensorboard.summary.writer import event_file_writer
    except ImportError as error:
        raise StateError(f"SummaryWriter needs TensorBoard: pip install tensorboard ({error})") from error
    assert proto
    return event_pb2, graph_pb2, summary_pb2, tensor_pb2, text, event_file_writer


class EventRecords:
    """A folder with a file of records; parameters as those of `common.tools.files.tensorboard.SummaryWriter`.

    Raises
    ------
    StateError : the package `tensorboard` is missing.
    """

    def __init__(
        self,
        log_dir: str | Path | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        for name, text in (("comment", comment), ("filename_suffix", filename_suffix)):
            if not isinstance(text, str):
                raise ArgumentError(f"SummaryWriter(): argument '{name}' must be str, not {type(text).__name__}")
        if not (log_dir is None or isinstance(log_dir, (str, os.PathLike))):
            raise ArgumentError(f"SummaryWriter(): argument 'log_dir' must be str, not {type(log_dir).__name__}")
        max_queue, seconds = integer(max_queue, "SummaryWriter", "max_queue"), float(flush_secs)
        if not 0 <= seconds <= threading.TIMEOUT_MAX:
            raise ArgumentError(f"SummaryWriter(): argument 'flush_secs' must be a time in seconds, not {seconds}")
        self._event, self._graph, self._summary, self._tensor, self._text, writer = protos()
        folder = Path("runs") / f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}"
        self.log_dir = str(folder if log_dir is None else log_dir)
        self._options = max_queue, seconds, filename_suffix
        self._file = writer.EventFileWriter(self.log_dir, *self._options)
        self._below: dict[str, EventRecords] = {}
        if purge_step is not None:
            started = self._event.SessionLog(status=self._event.SessionLog.START)
            self._write(self._event.Event(session_log=started), purge_step, None)

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self.log_dir

    def flush(self) -> None:
        """Write all records to the file."""
        for writer in (*self._below.values(), self):
            writer._file.flush()

    def close(self) -> None:
        """Write all records and close the file."""
        for writer in (*self._below.values(), self):
            writer._file.close()

    def _run_below(self, name: str) -> EventRecords:
        """The file of a run of its own, in a folder below."""
        if name not in self._below:
            folder = os.path.join(self.log_dir, name)  # noqa: PTH118  of texts
            queue, seconds, suffix = self._options
            self._below[name] = EventRecords(folder, "", None, queue, seconds, suffix)
        return self._below[name]

    def _write(self, event: Any, step: int | None, walltime: float | None) -> None:
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self._file.add_event(event)

    def _add(self, step: int | None, walltime: float | None, **value: Any) -> None:
        summary = self._summary.Summary(value=[self._summary.Summary.Value(**value)])
        self._write(self._event.Event(summary=summary), step, walltime)

    def _numbers(self, array: np.ndarray) -> Any:
        """An array of floats as a record."""
        field, dtype = _KINDS[array.dtype.char]
        tensor = self._tensor.TensorProto(dtype=dtype, **{field: array.ravel().tolist()})
        for size in array.shape:
            tensor.tensor_shape.dim.add().size = size
        return tensor


def array(x: Any) -> np.ndarray:
    """The elements of a tensor, or of what numpy takes."""
    return np.asarray(x.detach().numpy() if isinstance(x, TensorBase) else x)
