"""Dimensions folded or scanned: sums, extremes, norms, statistics, softmax, normalisations."""
