"""Exact finite models of the manifolds, one family per file."""
