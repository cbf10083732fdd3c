"""Scalar definitions and kernels that both engines share: one source, one meaning, the same bits."""
