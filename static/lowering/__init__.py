"""From a graph to kernels: legalise, group, order, build loops; `static.compile` ties the steps together."""
