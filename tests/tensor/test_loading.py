"""Values of another dtype, loaded into parameters, buffers, optimisers and variables: they fit or are refused."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import DTypeError, StateError
from common.tensor.fitting import converted

FITS = [
    (np.array([1.5, -0.0, np.inf, np.nan]), "float32"), (np.array([0.1]), "float32"), (np.array([1.0, -3.0]), "int8"),
    (np.array([0, 1]), "bool"), (np.array([True]), "float64"), (np.array([2**24]), "float32"),
    (np.array([-(2.0**63)]), "int64"), (np.array([255]), "uint8"), (np.zeros(0), "int32"),
]  # fmt: skip
MISFITS = [
    (np.array([1.0, 1e300]), "float32"), (np.array([0.5]), "int64"), (np.array([np.nan]), "int64"),
    (np.array([2.0**63]), "int64"), (np.array([2]), "bool"), (np.array([0.5]), "bool"), (np.array([256]), "uint8"),
    (np.array([-1]), "uint8"), (np.array([2**53 + 1]), "float64"), (np.array([2**63 - 1]), "float64"),
    (np.array([2**24 + 1]), "float32"), (np.array(["1"]), "float32"), (np.array([1j]), "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("array", "dtype"), FITS)
def test_what_fits_is_converted(array, dtype):
    found = converted(array, np.dtype(dtype))
    assert found.dtype == dtype
    assert np.asarray(found).tobytes() == array.astype(dtype).tobytes()


@pytest.mark.parametrize(("array", "dtype"), MISFITS)
def test_what_does_not_fit_is_refused_and_nothing_changes(array, dtype):
    assert converted(array, np.dtype(dtype)) is None
    module = dynamic.nn.Module()
    module.register_buffer("other", np.zeros(2, np.float32))
    module.register_buffer("x", np.zeros(array.shape, dtype))
    with pytest.raises(StateError, match="dtype mismatch for x: "):
        module.load_state_dict({"other": np.ones(2), "x": array})
    assert module.other.tolist() == [0, 0]


def test_a_saver_refuses_what_does_not_fit(tmp_path):
    static.reset_default_graph()
    v = static.Variable(np.zeros(2, np.float32), name="v")
    with static.Session() as session:
        session.run(static.global_variables_initializer())
        dynamic.save_file({"v": np.array([1.0, 1e300])}, tmp_path / "m.safetensors")
        with pytest.raises(DTypeError, match="float64 1e\\+300 at index \\[1\\] does not fit into float32"):
            static.Saver().restore(session, tmp_path / "m")
        assert session.run(v).tolist() == [0, 0]
        dynamic.save_file({"v": np.array([1.0, 0.1])}, tmp_path / "m.safetensors")
        with pytest.raises(DTypeError, match=r"float64 0.1 at index \[1\] does not fit into float32 exactly"):
            static.Saver().restore(session, tmp_path / "m")
        dynamic.save_file({"v": np.array([1.0, 0.5])}, tmp_path / "m.safetensors")
        static.Saver().restore(session, tmp_path / "m")
        assert session.run(v).tolist() == [1.0, 0.5]


def test_an_optimiser_refuses_what_does_not_fit():
    def made():
        return dynamic.optim.Adam([dynamic.nn.Parameter(np.ones(2, np.float32))], lr=0.1)

    optimizer = made()
    state = optimizer.state_dict()
    state["state"][0] = {"exp_avg": np.array([1.0, 1e300]), "exp_avg_sq": np.ones(2), "step": 1}
    with pytest.raises(StateError, match="dtype mismatch for exp_avg"):
        optimizer.load_state_dict(state)
    assert all(not np.any(x.numpy()) for x in optimizer.state[optimizer.param_groups[0].params[0]].values())
