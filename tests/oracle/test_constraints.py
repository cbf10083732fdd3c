"""Constraints on parameters and values, transforms to what they allow, and what families say of themselves."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, ShapeError
from tests.bits import assert_same_bits

d = dynamic.distributions
C = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])


def test_constraints_have_transforms():
    c = d.constraints
    for constraint, shape in (
        (c.positive, (3,)), (c.unit_interval, (3,)), (c.interval(-2.0, 5.0), (3,)), (c.less_than(1.0), (3,)),
        (c.simplex, (3,)), (c.lower_cholesky, (3, 3)), (c.corr_cholesky, (6,)), (c.positive_definite, (3, 3)),
        (c.greater_than(2.0), (3,)), (c.real_vector, (3,)), (c.half_open_interval(0.0, 2.0), (3,)),
    ):  # fmt: skip
        x = dynamic.randn(*shape)
        assert bool(constraint.check(d.transform_to(constraint)(x)).all()), constraint
        if constraint in (
            c.lower_cholesky,
            c.positive_definite,
        ):  # as in PyTorch: not one to one
            with pytest.raises(NotImplementedError, match="Cannot transform"):
                d.biject_to(constraint)
        else:
            assert bool(constraint.check(d.biject_to(constraint)(x)).all()), constraint
    for constraint, good, bad in (
        (c.boolean, 1.0, 2.0), (c.nonnegative_integer, 3.0, 0.5), (c.positive_integer, 1.0, 0.0),
        (c.one_hot, [0.0, 1.0], [1.0, 1.0]), (c.square, np.eye(2), np.ones((1, 2))), (c.symmetric, C, np.tril(C)),
        (c.positive_semidefinite, np.ones((2, 2)), -np.eye(2)), (c.lower_triangular, np.tril(C), C),
        (c.stack([c.positive, c.less_than(0.0)]), [1.0, -1.0], [1.0, 1.0]), (c.multinomial(3), [1.0, 2.0], [2.0, 2.0]),
    ):  # fmt: skip
        assert bool(constraint.check(dynamic.tensor(good)).all()), constraint
        assert not bool(constraint.check(dynamic.tensor(bad)).all()), constraint
    for constraint in (c.boolean, c.one_hot, c.symmetric, c.square, c.nonnegative_integer, c.lower_triangular):
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            d.transform_to(constraint)
    for constraint in (c.symmetric, c.positive_definite, c.positive_semidefinite):
        assert constraint.check(dynamic.ones(4, 1, 2)).tolist() == [False] * 4
    for given in (3.0, int, dynamic.ones(2)):
        with pytest.raises(ArgumentError, match="Expected constraint"):
            d.transform_to.register(given, lambda constraint: None)
    registry = d.ConstraintRegistry()
    for constraint in (c.boolean, c.nonnegative_integer, c.square):  # each is of a class of its own
        registry.register(constraint, lambda constraint: repr(constraint))
    assert [registry(x) for x in (c.boolean, c.positive_integer)] == ["Boolean()", "IntegerGreaterThan(lower_bound=1)"]
    with pytest.raises(NotImplementedError, match="Cannot transform _Symmetric constraints"):
        registry(c.symmetric)


def test_classes_of_constraints_have_pytorchs_names():
    c = d.constraints
    assert isinstance(c.positive_integer, c._IntegerGreaterThan)
    assert c.positive_integer.lower_bound == 1
    assert [x.__name__ for x in type(c.positive_definite).__mro__[:2]] == ["_PositiveDefinite", "_Symmetric"]
    assert [c.interval, c.cat, c.stack, c.independent] == [c._Interval, c._Cat, c._Stack, c._IndependentConstraint]
    assert repr(c.integer_interval(0, 3)) == "IntegerInterval(lower_bound=0, upper_bound=3)"
    of_each = c.MixtureSameFamilyConstraint(c.interval(dynamic.tensor([0.0, 1.0]), dynamic.tensor([2.0, 3.0])))
    assert of_each.check(dynamic.tensor([0.5, 1.5, 2.5])).tolist() == [False, True, False]
    assert repr(d.MixtureSameFamily(d.Categorical(dynamic.ones(2)), d.Poisson(dynamic.ones(2))).support) == (
        "MixtureSameFamilyConstraint(IntegerGreaterThan(lower_bound=0))"
    )


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_triangles_of_matrices_are_vectors(tw):
    utils = tw.distributions.utils
    for n in (1, 2, 4):
        for diag in range(-n, n):
            x = np.tril(np.random.default_rng(n).standard_normal((3, n, n)), diag)
            vector = utils.tril_matrix_to_vec(tw.tensor(x), diag)
            assert np.array_equal(vector.numpy(), np.stack([m[np.tril_indices(n, diag)] for m in x]))
            assert_same_bits(utils.vec_to_tril_matrix(vector, diag).numpy(), x, "matrix")
    twice = tw.function(tw.grad(lambda v: (utils.vec_to_tril_matrix(v) ** 2).sum()))
    assert twice(tw.tensor([1.0, 2.0, 3.0])).tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(ArgumentError, match="size of last dimension is 4 which cannot be expressed as the lower tri"):
        utils.vec_to_tril_matrix(tw.ones(4))
    with pytest.raises(ArgumentError, match=r"diag \(2\) provided is outside \[-2, 1\]"):
        utils.tril_matrix_to_vec(tw.ones(2, 2), 2)


def test_what_a_family_does_not_say_is_not_checked():
    class Delta(d.Distribution):
        def sample(self, sample_shape=()):
            return dynamic.zeros(sample_shape)

        def log_prob(self, value):
            return self._validate_sample(value) * 0

    with pytest.warns(UserWarning, match=r"Delta'> does not define `arg_constraints`\. Please set"):
        delta = Delta()
    with pytest.warns(UserWarning, match="Delta'> does not define `support` to enable sample validation"):
        delta.log_prob(delta.sample((2,)))
    assert Delta(validate_args=False).log_prob(dynamic.ones(2)).tolist() == [0.0, 0.0]
    for name in ("arg_constraints", "support"):
        with pytest.raises(NotImplementedError, match=f"Delta has no {name}"):
            getattr(delta, name)


def test_transforms_say_whether_they_are_one_to_one():
    for name in ("Exp", "Sigmoid", "Softplus", "Tanh", "StickBreaking", "CorrCholesky"):
        assert getattr(d, f"{name}Transform").bijective is True
    for name in ("Abs", "Softmax", "LowerCholesky", "PositiveDefinite", ""):  # the latter two leave out a triangle
        assert getattr(d, f"{name}Transform").bijective is False
    for made in (d.PowerTransform(2.0), d.AffineTransform(0.0, 2.0), d.ReshapeTransform((2,), (1, 2))):
        assert made.bijective


def test_numbers_where_values_are_checked():
    """As in PyTorch: densities of some families take them, others and all functions below a value do not."""
    assert d.Gamma(2.0, 1.0).log_prob(0.5).ndim == 0
    for refused in (d.HalfCauchy(1.0).log_prob, d.HalfCauchy(1.0).cdf, d.Gamma(2.0, 1.0).cdf):
        with pytest.raises(ArgumentError, match="must be a Tensor"):
            refused(0.5)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_sizes_of_a_reshaping_are_a_list_of_ints(engine):
    transform = engine.distributions.ReshapeTransform
    assert transform([np.int64(2), 3], (6,)).in_shape == (2, 3)
    many = np.broadcast_to(np.ones(()), (2**30,))  # would be gone through one by one
    for sizes in (many, (2.5,), "ab", np.ones((2, 2))):
        with pytest.raises(ArgumentError, match="in_shape"):
            transform(sizes, (6,))
    with pytest.raises(ShapeError, match="negative dimension -2"):
        transform((-2, 3), (-6,))
