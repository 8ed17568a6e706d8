"""Strict numerics for every test: double precision, no silent broadcasting, and array shapes checked as annotated."""

import os

# Two simulated devices, for the tests that split a batch; must precede the import of JAX.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
os.environ.setdefault("MPLBACKEND", "Agg")

import jax
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
# Nearly all the time goes into compiling small programs that run once.
jax.config.update("jax_disable_most_optimizations", True)

install_import_hook("angd", "typecheck.typechecker")
