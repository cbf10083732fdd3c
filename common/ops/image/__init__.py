"""Convolutions, pooling, and what else is done with images: (batch, channels, ...) with one to three dimensions."""
