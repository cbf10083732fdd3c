"""`vmap` as one program: values that stand for one example of a batch, and a rule per kind of op."""
