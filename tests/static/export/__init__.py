"""Tests of `static.export`: files, C libraries, numba modules and ONNX models."""
