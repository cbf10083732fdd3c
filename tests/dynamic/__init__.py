"""The eager engine: the semantics of PyTorch."""
