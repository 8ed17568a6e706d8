"""Strict numerics for every test: double precision, no silent broadcasting, and array shapes checked as annotated."""

import gc
import os
import shutil
import tempfile
from collections import Counter

# Two simulated devices, for the tests that split a batch; the older emitters of loops, which compile twice as fast.
# Must precede the import of JAX.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2 --xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("MPLBACKEND", "Agg")
# What tests compile is nothing for the cache of whoever runs them, and tests of the cache have their own.
os.environ["ANGD_CACHE"] = "off"
# What one test has compiled no other need compile, in whichever worker: XLA takes most of the time.
if "ANGD_TESTS_COMPILED" not in os.environ:
    os.environ["ANGD_TESTS_COMPILED"] = tempfile.mkdtemp(prefix="angd-tests-")
# A core for each worker, or their threads get in each other's way.
if (worker := os.environ.get("PYTEST_XDIST_WORKER")) and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})

import jax
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
# Nearly all the time goes into compiling small programs that run once.
jax.config.update("jax_disable_most_optimizations", True)
jax.config.update("jax_compilation_cache_dir", os.environ["ANGD_TESTS_COMPILED"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

install_import_hook("angd", "typecheck.typechecker")


# Files whose tests share nothing that was compiled: their tests may go to any worker, all others stay together.
FREE = ("test_exam.py", "test_docs.py", "test_kfac.py", "test_controllers.py", "test_step.py", "test_taps.py")


def pytest_sessionfinish():
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["ANGD_TESTS_COMPILED"], ignore_errors=True)


def pytest_xdist_make_scheduler(config, log):
    """Tests of a file stay on one worker, which compiles what they share once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.split("::", 1)[0]
            return nodeid if path.endswith(FREE) else path

    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Three of four cases of a matrix are slow."""
    seen = Counter()
    for item in items:
        if item.get_closest_marker("matrix"):
            if seen[item.function] % 4:
                item.add_marker(pytest.mark.slow)
            seen[item.function] += 1


# After some 500 tests in one process XLA aborted while compiling, probably out of memory maps; forgetting cured it.
KEEP = 60
_since_forgotten = Counter()


@pytest.fixture(autouse=True)
def _forget_in_long_modules():
    yield
    _since_forgotten["tests"] += 1
    if _since_forgotten["tests"] >= KEEP:
        _forget()


@pytest.fixture(autouse=True, scope="module")
def _forget_after_a_module():
    yield
    _forget()


def _forget():
    """Millions of live objects make every collection of garbage, and so every trace, slow."""
    _since_forgotten.clear()
    jax.clear_caches()
    gc.collect()
    gc.freeze()
