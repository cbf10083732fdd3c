"""Tensors of both engines: payload, node of the tape, the record of each op, and who may write to the memory."""
