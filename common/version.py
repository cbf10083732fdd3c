"""The version of the distribution, read by the build backend and written into every report."""

__version__ = "0.1.0"
