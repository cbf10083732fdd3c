"""What eager and traced tensors have in common."""
