PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# For the tests of device arrays, if there is such a build: others bring 5 GB of CUDA along.
TORCH ?= torch==2.13.0+cpu

.PHONY: pictures setup reproduce test test-slow lint bench clean
.DEFAULT_GOAL := test

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m pip install --quiet '$(TORCH)' 2>/dev/null || echo 'no $(TORCH) at hand: its tests are skipped'
	touch $(STAMP)

# ICLDA_DATA names a folder with the benchmark sets; without it only what is at hand is run.
reproduce: $(STAMP)
	$(BIN)/iclda reproduce --out results

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict src/iclda/_core src/iclda/_rows
	$(BIN)/lint-imports

# One BLAS thread a worker: small problems on many threads are slower, and workers share the cores.
# scikit-learn skips its array API checks unless SciPy is told about it before it is imported.
test test-slow: export OMP_NUM_THREADS = 1
test test-slow: export OPENBLAS_NUM_THREADS = 1
test test-slow: export SCIPY_ARRAY_API = 1

test: lint
	$(BIN)/pytest -n auto

test-slow: $(STAMP)
	$(BIN)/pytest -n auto -m slow --timeout 0

# Under ten minutes on two cores; with ICLDA_DATA also the benchmark sets.
bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

pictures: $(STAMP)
	$(BIN)/python docs/images/draw.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
