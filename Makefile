# Every command a newcomer needs. `make setup` is implied by the others.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One thread pool per test worker keeps two cores busy instead of contended.
WORKERS ?= 2
# What each method gets in the demo.
DEMO ?= 75 cpu-seconds

.DEFAULT_GOAL := help
.PHONY: help setup docs-setup demo test test-slow mutants bench check docs tutorials figures gallery numbers measure lock clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.setup: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "angd needs Python 3.11 or newer: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

setup: $(VENV)/.setup  ## Make the private environment from the pinned requirements

demo: setup  ## Run the main job, with a summary and figures in runs/demo
	rm -rf runs/demo
	$(BIN)/angd compare burgers energy-fast,angd-l2,ngd-l2,adam,sgd --budget "$(DEMO)" --out runs/demo
	@$(BIN)/python tools/draw_hero.py runs/demo && echo "picture: runs/demo/hero.png"

test: check  ## Run ruff, pyright and all quick tests
	$(BIN)/python -m pytest -m "not slow" -n $(WORKERS) --dist loadscope

test-slow: docs-setup  ## Run the long experiments, notebooks and the site's tests as well
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope

mutants: setup  ## Change formulas one by one, and see that a test notices (half an hour)
	$(BIN)/python tools/mutants.py

check: setup  ## Lint, formatting, types, import directions, numbers in the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest tests/test_imports.py tests/test_numbers.py

bench: setup  ## Run the benchmarks side by side with what one would use instead (hours), and fill their pages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-scimba.txt
	$(BIN)/python benchmarks/flow.py
	$(BIN)/python benchmarks/jacobian.py
	$(BIN)/python benchmarks/step.py
	$(BIN)/python benchmarks/loop.py
	$(BIN)/python benchmarks/pinn.py
	$(BIN)/python benchmarks/vmc.py
	$(BIN)/python benchmarks/sr_grid.py --record
	$(BIN)/python benchmarks/rivals_pinn.py
	$(BIN)/python benchmarks/roofline.py --record
	$(BIN)/python benchmarks/growth.py --record
	$(BIN)/python benchmarks/plan.py --record
	$(BIN)/python benchmarks/scaling.py --record
	$(BIN)/python tools/draw_bench.py
	$(BIN)/python tools/fill_numbers.py --write

docs-setup: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.txt

docs: docs-setup  ## Build the documentation into site/, and see that its search answers
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m pytest tests/test_site.py -m "slow or not slow"
	@echo "open site/index.html"

tutorials: docs-setup  ## Run the tutorials, and write their pages and notebooks
	$(BIN)/python docs/tutorials.py

figures: setup  ## Redraw the figures that the docs show
	$(BIN)/python docs/figures.py
	$(BIN)/python tools/draw_results.py
	$(BIN)/python tools/draw_bench.py

gallery: setup  ## Run what the gallery shows, and draw it (ten minutes of CPU)
	$(BIN)/python docs/figures.py gallery
	$(BIN)/python tools/draw_examples.py

numbers: setup  ## Measure results/*.json again and write the numbers into README and docs
	$(BIN)/python tools/measure_flow.py
	$(BIN)/python tools/fill_numbers.py --write

measure: setup  ## Run the long experiments behind results/*.json (many hours)
	$(BIN)/python tools/tune_rivals.py
	$(BIN)/python tools/measure_pinn.py
	$(BIN)/python tools/measure_comparison.py
	$(BIN)/python tools/measure_momentum.py
	$(BIN)/python tools/measure_vmc.py
	$(BIN)/python tools/measure_beryllium.py
	$(BIN)/python tools/measure_gap.py
	$(BIN)/python tools/measure_lattice.py
	$(BIN)/python tools/fill_numbers.py --write

lock:  ## Renew the pinned requirements (needs uv)
	uv pip compile -q --universal --fork-strategy fewest --no-emit-index-url --no-annotate --no-header --no-strip-extras --generate-hashes --python-version 3.11 --extra dev pyproject.toml -o requirements.txt
	uv pip compile -q --universal --fork-strategy fewest --no-emit-index-url --no-annotate --no-header --no-strip-extras --generate-hashes --python-version 3.11 --extra bench -c requirements.txt pyproject.toml -o requirements-bench.txt
	uv pip compile -q --universal --fork-strategy fewest --no-emit-index-url --no-annotate --no-header --no-strip-extras --generate-hashes --python-version 3.11 --extra docs -c requirements.txt pyproject.toml -o requirements-docs.txt

clean:  ## Remove the environment and everything that was built
	rm -rf $(VENV) site runs dist .pytest_cache .ruff_cache
