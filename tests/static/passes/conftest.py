import pytest

from common.core.dtypes import number_spec
from common.core.sizes import hint, same
from static.graph import Graph, Value
from static.graph.verify import verify


@pytest.fixture(autouse=True)
def specs_are_those_of_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each pass, every result has the shape and dtype that its op gives of its operands."""

    def verify_specs(graph: Graph, stage: str) -> None:
        verify(graph, stage)
        for node in graph.all_nodes():
            if node.op is None or node.op.kind in ("control", "act"):
                continue
            operands = [x.spec if type(x) is Value else number_spec(hint(x)) for x in node.operands]
            found = node.op.spec(*operands, **node.attrs)
            for spec, value in zip(found if type(found) is tuple else (found,), node.outputs, strict=True):
                shapes = len(spec.shape) == len(value.shape) and all(map(same, spec.shape, value.shape))
                assert shapes, f"after {stage}: {node} has the shape of {spec}"
                assert spec.dtype == value.dtype, f"after {stage}: {node} has the dtype of {spec}"

    monkeypatch.setattr("static.passes.verify", verify_specs)
