"""`control_flow="convert"`: Python's `if`, `while` and `for` on tensors, rewritten from source to control flow."""
