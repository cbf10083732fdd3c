"""The version of the distribution, read by the build backend and written into every report; and of what it is like."""

__version__ = "0.1.0"

#: The version of an engine: that of PyTorch whose names and meanings it has, by which programs decide how to
#: call something, and after the plus sign, where a build says what it is (PEP 440), our own.
like_pytorch = f"2.13.0+twingrad.{__version__}"
