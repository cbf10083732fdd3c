"""Functions to functions: grad, vjp, jvp, jacobians, vmap, checkpoint, and the check against finite differences."""
