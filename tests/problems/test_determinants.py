"""Determinants in batches against numpy's, one after the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from angd.problems.vmc.determinants import LARGEST, inverse_slogdet, slogdet


def matrices(n, seed=0):
    """Some whose first pivots are zero, so that nothing works without exchanging rows."""
    A = np.random.default_rng(seed).normal(size=(5, 3, n, n))
    A[0, :, 0, 0] = float(n == 1)
    A[1] = np.eye(n)[np.random.default_rng(1).permutation(n)]
    return A


@pytest.mark.parametrize("n", [1, 4, 9, LARGEST + 1])
def test_determinants_and_inverses_are_numpy_s(n):
    A = matrices(n)
    sign, log = np.linalg.slogdet(A)
    for f in (slogdet, jax.vmap(slogdet), jax.vmap(jax.vmap(slogdet)), jax.vmap(slogdet, in_axes=1, out_axes=1)):
        found = f(jnp.asarray(A))
        assert np.array_equal(found[0], sign)
        assert np.allclose(found[1], log, atol=1e-11)
    inverse, *rest = jax.vmap(inverse_slogdet)(jnp.asarray(A))
    assert np.allclose(inverse, np.linalg.inv(A), atol=1e-8)
    assert np.array_equal(rest[0], sign)


def test_derivatives_are_those_of_the_determinant():
    """∂ log|det A|/∂A = A⁻ᵀ; the second ones against those of the determinant written out."""
    A = jnp.asarray(matrices(3)[2, 0])

    def log(A):
        minors = [A[0, i] * (A[1, i - 2] * A[2, i - 1] - A[1, i - 1] * A[2, i - 2]) for i in range(3)]
        return jnp.log(jnp.abs(sum(minors)))

    assert np.allclose(jax.grad(lambda A: slogdet(A)[1])(A), np.linalg.inv(A).T, atol=1e-12)
    assert np.allclose(jax.hessian(lambda A: slogdet(A)[1])(A), jax.hessian(log)(A), atol=1e-9)


def test_singular_matrices_have_no_logarithm():
    singular = jnp.array([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
    sign, log = slogdet(singular)
    assert np.array_equal(sign, [0, 0])
    assert np.array_equal(log, [-np.inf, -np.inf])
    assert np.isnan(slogdet(jnp.full((3, 3), jnp.nan))[1])
