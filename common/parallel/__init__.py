"""Training by several processes: gradients of micro-batches, added in one tree, whatever rank has computed them."""
