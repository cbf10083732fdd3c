"""Probability distributions: densities, entropies and draws as programs of ops, so in traces and with gradients too."""
