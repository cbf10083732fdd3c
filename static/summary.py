"""What a run of a graph logs for TensorBoard, with the names of TensorFlow 1's `tf.summary`."""

from common.tensor import boundary
from static.session.summaries import FileWriter, Summary, histogram, image, merge, merge_all, scalar

__all__ = ["FileWriter", "Summary", "histogram", "image", "merge", "merge_all", "scalar"]

boundary.close(__name__)
