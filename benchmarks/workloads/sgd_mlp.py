"""Row f: a small classifier's plain SGD step."""

from types import ModuleType

from benchmarks.workload import Inputs, Program, Workload, training
from benchmarks.workloads.digits import batches


class ClassifierSGD(Workload):
    """MLP 64-128-10, tanh, cross-entropy, batch 64, SGD step without momentum"""

    name = "f-mlp"

    def inputs(self) -> list[Inputs]:
        """Return two batches of digits."""
        return batches()[:2]

    def make(self, tw: ModuleType) -> Program:
        """Build the classifier."""
        tw.manual_seed(0)
        model = tw.nn.Sequential(tw.nn.Linear(64, 128), tw.nn.Tanh(), tw.nn.Linear(128, 10))
        optimizer = tw.optim.SGD(model.parameters(), lr=0.1)
        return training(tw, model, optimizer, tw.nn.functional.cross_entropy)


WORKLOADS = [ClassifierSGD()]
