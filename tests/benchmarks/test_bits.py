import numpy as np
import pytest

from benchmarks import bits
from tests.benchmarks.fakes import FakeWorkload, engine


def nan_with_payload(payload):
    return np.array([0x7FF8000000000000 + payload], dtype=np.uint64).view(np.float64)


def test_equal_arrays():
    for dtype in ("f4", "f8", "i8", "u1", "?"):
        array = np.array([0, 1, 1], dtype=dtype)
        assert bits.difference(array, array.copy()) is None
    assert bits.difference(np.empty((0, 3)), np.empty((0, 3))) is None
    assert bits.difference(np.array(2.5), np.array(2.5)) is None


def test_layout_is_not_a_difference():
    array = np.arange(12.0).reshape(3, 4)
    assert bits.difference(array, np.asfortranarray(array)) is None


def test_all_nans_are_one_value():
    assert bits.difference(nan_with_payload(0), -nan_with_payload(5)) is None
    assert bits.difference(nan_with_payload(0), np.array([np.inf])) is not None


def test_zeros_have_signs():
    assert "(0x8000000000000000)" in bits.difference(np.array([0.0, -0.0]), np.array([0.0, 0.0]))


def test_one_ulp_is_a_difference_and_is_located():
    ours = np.ones((2, 3), dtype=np.float32)
    theirs = ours.copy()
    theirs[1, 2] = np.nextafter(np.float32(1), np.float32(2))
    found = bits.difference(ours, theirs)
    assert found.startswith("1 of 6 elements, first at (1, 2): ")
    assert "0x3f800000" in found
    assert "0x3f800001" in found


@pytest.mark.parametrize("other", [np.ones(3, dtype=np.float32), np.ones((3, 1))])
def test_dtype_and_shape_count(other):
    assert "against" in bits.difference(np.ones(3), other)


def test_equal_engines_have_no_mismatch():
    assert list(bits.mismatches(FakeWorkload(), engine(), engine())) == []


def test_first_differing_step_is_named():
    (line,) = bits.mismatches(FakeWorkload(), engine(), engine(error=1e-15))
    assert line.startswith("step 3: loss: ")


def test_a_result_of_one_engine_only_is_named():
    lines = list(bits.unequal("step 1", {"a": np.ones(1)}, {"b": np.ones(1)}))
    assert [line.split(": ")[1] for line in lines] == [
        "a exists in one engine only",
        "b exists in one engine only",
    ]
