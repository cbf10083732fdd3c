"""A profiler in the shape of `torch.profiler`."""
