"""Named tuples of results: names and fields as in PyTorch's `return_types`, copies, results of compiled functions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import static
from tests.helpers.copied import ENGINES

X = np.array([[1.0, 3.0], [2.0, 0.0]], np.float32)
RESULTS = {
    "max": lambda m, x: m.max(x, 1), "min": lambda m, x: x.min(0), "sort": lambda m, x: m.sort(x),
    "topk": lambda m, x: m.topk(x, 1), "kthvalue": lambda m, x: x.kthvalue(1), "median": lambda m, x: m.median(x, 0),
    "mode": lambda m, x: m.mode(x, 1), "cummax": lambda m, x: m.cummax(x, 0), "aminmax": lambda m, x: m.aminmax(x),
    "linalg_slogdet": lambda m, x: m.linalg.slogdet(x), "linalg_svd": lambda m, x: m.linalg.svd(x),
    "linalg_qr": lambda m, x: m.linalg.qr(x), "frexp": lambda m, x: m.frexp(x),
}  # fmt: skip


@pytest.mark.parametrize("m", ENGINES)
@pytest.mark.parametrize("name", RESULTS)
def test_they_have_their_names(m, name):
    found = RESULTS[name](m, m.tensor(X))
    assert type(found).__name__ == name
    fields = [f"{field}={part!r}" for field, part in zip(found._fields, found, strict=True)]
    assert repr(found) == f"torch.return_types.{name}(\n" + ",\n".join(fields) + ")"
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert type(other) is type(found)
        assert repr(other) == repr(found)


@pytest.mark.parametrize("m", ENGINES)
def test_they_have_a_module(m):
    for name in dir(m.return_types):
        assert getattr(m.return_types, name).__name__ == name
    for name, call in RESULTS.items():
        assert isinstance(call(m, m.tensor(X)), getattr(m.return_types, name))
    with pytest.raises(AttributeError, match="no attribute 'maximum_of'"):
        m.return_types.maximum_of  # noqa: B018


@pytest.mark.parametrize("name", RESULTS)
def test_compiled_functions_return_them(name):
    found = static.function(lambda x: RESULTS[name](static, x))(X)
    assert type(found).__name__ == name


def test_as_text():
    import dynamic

    text = "torch.return_types.max(\nvalues=tensor([3., 2.]),\nindices=tensor([1, 0]))"
    assert repr(dynamic.max(dynamic.tensor(X), 1)) == text
