"""From a graph to kernels: legalise, group, order, build loops; `static.lowering.program` ties the steps together."""
