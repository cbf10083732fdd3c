"""Logs of a graph's run for TensorBoard, with the names of TensorFlow 1's `tf.summary`."""

from common.api.places import publish
from static.session.summaries import FileWriter, Summary, histogram, image, merge, merge_all, scalar

__all__ = ["FileWriter", "Summary", "histogram", "image", "merge", "merge_all", "scalar"]

publish(__name__)
