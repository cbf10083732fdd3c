"""From a graph to kernels: legalise, group, order, build loops; `static.program` ties the steps together."""
