"""Training by several processes: gradients of micro-batches are added in one tree, on any number of ranks."""
