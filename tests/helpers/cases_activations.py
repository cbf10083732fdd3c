"""Calls of the activations with their parameters."""

import common.ops.functional as F
from tests.helpers.cases import P, X, case

case("softplus", F.softplus, X("n", 3))
case("softplus", lambda x: F.softplus(x, 2), X("n", 3))
case("softplus", lambda x: F.softplus(x, beta=1.5, threshold=0.1), X("n", 3))
case("softplus", lambda x, beta: F.softplus(x, beta, 1), X("n", 3), P(3))
case("elu", F.elu, X("n", 3))
case("elu", lambda x: F.elu(x, 0.7), X("n", 3))
case("elu", F.elu, X("n", 3), P(3))
case("celu", F.celu, X("n", 3))
case("celu", lambda x: F.celu(x, 2), X("n", 3))
case("selu", F.selu, X("n", 3))
case("leaky_relu", F.leaky_relu, X("n", 3))
case("leaky_relu", lambda x: F.leaky_relu(x, negative_slope=-0.3), X("n", 3))
case("hardtanh", F.hardtanh, X("n", 3))
case("hardtanh", lambda x: F.hardtanh(x, -0.5, 0.7), X("n", 3))
case("relu6", F.relu6, X("n", 3))
