"""Parameters have the batch's shape, and families of a user's expand as PyTorch documents it; numpy says the values."""

import numpy as np
import pytest

import dynamic
import static

engines = pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])
FORMS = {
    "covariance_matrix": MATRIX, "precision_matrix": np.linalg.inv(MATRIX), "scale_tril": np.linalg.cholesky(MATRIX)
}  # fmt: skip


@engines
@pytest.mark.parametrize("given", FORMS)
@pytest.mark.parametrize("lead", [(), (1,)])
def test_matrices_of_a_batch_of_gaussians(tw, given, lead):
    matrix = tw.tensor(np.broadcast_to(FORMS[given], (*lead, 2, 2)).copy())
    for made, batch in [
        (tw.distributions.MultivariateNormal(tw.zeros(3, 2), **{given: matrix}), (3,)),
        (tw.distributions.Wishart(tw.tensor([3.0, 4.0, 5.0]), **{given: matrix}), (3,)),
    ]:
        for each, shape in [(made, batch), (made.expand((4, *batch)), (4, *batch))]:
            for name, wanted in FORMS.items():
                found = getattr(each, name)
                assert found.shape == (*shape, 2, 2)
                np.testing.assert_allclose(found.numpy(), np.broadcast_to(wanted, found.shape), rtol=1e-12)


@engines
def test_a_family_of_a_users_expands_its_own_attributes(tw):
    td = tw.distributions

    class Shifted(td.Normal):
        def __init__(self, shift, validate_args=None):
            self.shift = shift
            super().__init__(shift, tw.ones_like(shift), validate_args=validate_args)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Shifted, _instance)
            new.shift = self.shift.expand(batch_shape)
            return super().expand(batch_shape, _instance=new)

    class Further(Shifted):
        def __init__(self, shift):
            super().__init__(shift)

    wide = Shifted(tw.tensor([1.0, 2.0])).expand((3, 2))
    assert type(wide) is Shifted
    assert wide.shift.shape == wide.loc.shape == wide.batch_shape == (3, 2)
    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand\(\) method"):
        Further(tw.ones(2)).expand((3, 2))

    class Changed(td.TransformedDistribution):
        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Changed, _instance)
            new.note = tuple(batch_shape)
            return super().expand(batch_shape, _instance=new)

    made = Changed(td.Normal(tw.zeros(2), 1.0), [td.ExpTransform()])
    made.note = ()
    assert made.expand((3, 2)).note == (3, 2)
