"""`static.function`: which trace and which plan serve a call, compiled gradients on the caller's tape, modules."""
