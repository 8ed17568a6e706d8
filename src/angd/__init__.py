"""angd: accelerated natural gradient descent on parametric manifolds."""
