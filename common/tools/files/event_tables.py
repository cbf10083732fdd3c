"""TensorBoard's tables: hyperparameters of runs, curves of precision and recall, points of an embedding."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.core.int_arguments import integer
from common.tools.files.event_images import Images, in_rows, png
from common.tools.files.event_records import array


class Tables(Images):
    """Methods that add what is compared."""

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Add the hyperparameters of a run, and what came of them, as a run in a folder below.

        Parameters
        ----------
        hparam_dict : name -> bool, text or number.
        metric_dict : name -> number; the names are those of curves, and should be no others.
        hparam_domain_discrete : name -> all values that a hyperparameter can have.
        run_name : of the folder; the time by default.
        global_step : see `add_scalar`.

        Raises
        ------
        ArgumentError : no dictionaries, or a value of another type.
        """
        from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise ArgumentError("add_hparams(): hparam_dict and metric_dict should be dictionary")
        domains = hparam_domain_discrete or {}
        if not isinstance(domains, dict):
            raise ArgumentError("add_hparams(): hparam_domain_discrete should be a dictionary of lists")
        if unknown := [name for name in domains if name not in hparam_dict]:
            raise ArgumentError(f"add_hparams(): hparam_domain_discrete names {unknown[0]!r}, hparam_dict does not")
        known = {name: x for name, x in hparam_dict.items() if x is not None}
        infos, started = [], plugin_data_pb2.SessionStartInfo()
        for name, x in known.items():
            kind, field, value = _setting(name, x)
            setattr(started.hparams[name], field, value)
            info = api_pb2.HParamInfo(name=name, type=kind)
            for other in domains.get(name, ()):
                setattr(info.domain_discrete.values.add(), *_setting(name, other)[1:])
            infos.append(info)
        metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metric_dict]
        numbers = {tag: float(array(x).item()) for tag, x in metric_dict.items()}
        experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
        ended = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
        run = self._run_below(run_name or str(time.time()))
        for tag, field, content in (
            (metadata.EXPERIMENT_TAG, "experiment", experiment),
            (metadata.SESSION_START_INFO_TAG, "session_start_info", started),
            (metadata.SESSION_END_INFO_TAG, "session_end_info", ended),
        ):
            about = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(**{field: content}))
            run._add(global_step, None, tag=tag, metadata=about, tensor=metadata.NULL_TENSOR)
        for tag, number in numbers.items():
            run._add(global_step, None, tag=tag, simple_value=number)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add precision against recall, for thresholds from 0 to 1.

        Parameters
        ----------
        tag : name of the curve.
        labels : (...) truth values.
        predictions : (...) probabilities.
        global_step, walltime : see `add_scalar`.
        num_thresholds : how many; at most 127 are shown.
        weights : (...) how much each prediction counts; 1 by default.

        Raises
        ------
        ArgumentError : sizes that differ, predictions outside [0, 1], or fewer than two thresholds.
        """
        count = integer(num_thresholds, "add_pr_curve", "num_thresholds")
        truth, p = array(labels).ravel() != 0, array(predictions).ravel().astype(np.float64)
        w = np.ones(p.size) if weights is None else np.broadcast_to(array(weights), array(predictions).shape).ravel()
        if truth.size != p.size:
            raise ArgumentError(f"add_pr_curve(): {truth.size} labels for {p.size} predictions")
        if count < 2 or not ((p >= 0) & (p <= 1)).all():
            raise ArgumentError("add_pr_curve(): it takes probabilities from 0 to 1, and two thresholds or more")
        bucket = np.floor(p * (count - 1)).astype(np.int64)
        above = [np.bincount(bucket, w * chosen, count)[::-1].cumsum()[::-1] for chosen in (truth, ~truth)]
        tp, fp = above
        fn, tn = tp[0] - tp, fp[0] - fp
        precision, recall = (tp / np.maximum(whole, 1e-7) for whole in (tp + fp, tp + fn))
        self.add_pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, global_step, count, None, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add precision against recall, from counts.

        Parameters
        ----------
        tag : name of the curve.
        true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall :
            (num_thresholds,) each, for ascending thresholds.
        global_step, num_thresholds, walltime : see `add_pr_curve`.
        weights : accepted; counts hold them already.

        Raises
        ------
        ArgumentError : another number of counts than of thresholds.
        """
        from tensorboard.plugins.pr_curve import metadata

        given = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision,
                 recall)  # fmt: skip
        rows = [array(row).ravel().astype(np.float32) for row in given]
        if any(row.size != num_thresholds for row in rows):
            raise ArgumentError(f"add_pr_curve_raw(): each of the six has one number per threshold, {num_thresholds}")
        about = metadata.create_summary_metadata(display_name="", description="", num_thresholds=num_thresholds)
        self._add(global_step, walltime, tag=tag, metadata=about, tensor=self._numbers(np.stack(rows)))

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Add points of many dimensions, which TensorBoard's projector shows in three.

        Parameters
        ----------
        mat : (points, dimensions)
        metadata : a label per point; with `metadata_header` several.
        label_img : (points, channels, height, width) a picture per point.
        global_step, tag : of the set of points.
        metadata_header : names of the labels.

        Raises
        ------
        ArgumentError : no matrix, or another number of labels or pictures than of points.
        """
        from google.protobuf import text_format
        from tensorboard.plugins.projector import projector_config_pb2

        points = array(mat)
        if points.ndim != 2:
            raise ArgumentError(f"add_embedding(): mat should be 2D, (points, dimensions), not of shape {points.shape}")
        for name, given in (("metadata", metadata), ("label_img", label_img)):
            if given is not None and len(given) != len(points):
                raise ArgumentError(f"add_embedding(): {len(given)} {name} for {len(points)} points")
        place = f"{int(global_step or 0):05d}/{tag}"
        folder = Path(self.log_dir) / place
        folder.mkdir(parents=True, exist_ok=True)
        config = Path(self.log_dir) / "projector_config.pbtxt"
        listed = projector_config_pb2.ProjectorConfig()
        if config.exists():
            text_format.Parse(config.read_text(encoding="utf-8"), listed)
        name = f"{tag}:{int(global_step or 0):05d}"
        entry = next((e for e in listed.embeddings if e.tensor_name == name), None) or listed.embeddings.add()
        entry.Clear()
        entry.tensor_name, entry.tensor_path = name, f"{place}/tensors.tsv"
        (folder / "tensors.tsv").write_text(_lines(points.tolist()), encoding="utf-8")
        if metadata is not None:
            rows = [metadata_header, *metadata] if metadata_header else [[label] for label in metadata]
            (folder / "metadata.tsv").write_text(_lines(rows), encoding="utf-8")
            entry.metadata_path = f"{place}/metadata.tsv"
        if label_img is not None:
            pictures = array(label_img)
            columns = int(np.ceil(np.sqrt(len(points))))
            (folder / "sprite.png").write_bytes(png(in_rows(pictures, "NCHW", "add_embedding", columns)))
            entry.sprite.image_path = f"{place}/sprite.png"
            entry.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
        config.write_text(text_format.MessageToString(listed), encoding="utf-8")


def _setting(name: str, x: Any) -> tuple[int, str, Any]:
    """The type of a hyperparameter, the field of its record, and the value there.

    Raises
    ------
    ArgumentError : it is neither a truth value, a text nor a number.
    """
    if isinstance(x, (bool, np.bool_)):
        return 2, "bool_value", bool(x)  # tensorboard.plugins.hparams.api_pb2.DataType
    if isinstance(x, str):
        return 1, "string_value", x
    if not isinstance(x, Mapping) and array(x).size == 1 and array(x).dtype.kind in "biuf":
        return 3, "number_value", float(array(x).item())
    raise ArgumentError(f"add_hparams(): {name!r} should be one of int, float, str, bool, or a tensor of one element")


def _lines(rows: Sequence[Sequence[Any]]) -> str:
    """Values apart by tabs, a line per row."""
    return "".join("\t".join(" ".join(str(x).split()) for x in row) + "\n" for row in rows)
