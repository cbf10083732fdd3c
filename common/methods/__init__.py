"""PyTorch's tensor methods, made of the public functions: reading, writing in place, `x[key] = value`."""
