"""Convolutions, pooling and other functions of images: (batch, channels, ...) with one to three dimensions."""
