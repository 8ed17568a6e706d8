"""Stage one: the accelerated Riemannian gradient flow in continuous time, on exact finite models of the manifolds."""
