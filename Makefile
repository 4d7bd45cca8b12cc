PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# For the tests of device arrays, if there is such a build: others bring 5 GB of CUDA along.
TORCH ?= torch==2.13.0+cpu
# uv installs faster than pip, where it is on the PATH.
UV := $(shell command -v uv 2>/dev/null)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
INSTALL := $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(PIP))
# What is installed: by itself each of these is made once, and again when pyproject.toml changes.
FOR_EXPERIMENTS := $(VENV)/.for-experiments
FOR_TESTS := $(VENV)/.for-tests
FOR_BROWSER := $(VENV)/.for-browser
FOR_DOCS := $(VENV)/.for-docs
FOR_RELEASE := $(VENV)/.for-release
LINT := $(VENV)-lint
OLDEST := .venv-oldest
AUDIT := .venv-audit

.PHONY: audit bench clean docs lint pictures pins release-check reproduce setup study test test-browser \
	test-core test-cpus test-newest test-oldest test-slow
.DEFAULT_GOAL := test

setup: $(FOR_TESTS)

$(FOR_EXPERIMENTS): pyproject.toml
	@echo 'Installing what the experiments need into $(VENV): once, about a minute.'
	@echo 'All of the experiments then take about five minutes on two cores.'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable '.[experiments]'
	@touch $@

$(FOR_TESTS): pyproject.toml
	@echo 'Installing what the tests need into $(VENV): once, one to three minutes.'
	@echo 'All checks then take about five minutes on two cores.'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable '.[all,test]'
	@$(PIP) '$(TORCH)' 2>/dev/null || echo 'no $(TORCH) at hand: its tests are skipped'
	@touch $(FOR_EXPERIMENTS) $@

$(FOR_DOCS): pyproject.toml
	@echo 'Installing what the site needs into $(VENV): once, about a minute.'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable '.[docs]'
	@touch $@

$(FOR_RELEASE): pyproject.toml
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable '.[release]'
	@touch $@

reproduce: $(FOR_EXPERIMENTS)
	$(BIN)/iclda reproduce --out results

# The questions that the paper leaves open: about five minutes on two cores.
study: $(FOR_EXPERIMENTS)
	$(BIN)/python -m research --out answers

# Style and types, with the versions of tools/linters.txt in an environment of their own: a new release
# of a linter, or of a package whose types mypy reads, finds nothing wrong that was right yesterday.
lint: $(LINT)/.for-lint
	$(LINT)/bin/ruff check .
	$(LINT)/bin/ruff format --check .
	$(LINT)/bin/mypy
	$(LINT)/bin/mypy --strict src/iclda/_core src/iclda/_rows
	$(LINT)/bin/lint-imports
	$(LINT)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(LINT)/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

$(LINT)/.for-lint: pyproject.toml tools/linters.txt
	@echo 'Installing the linters into $(LINT): once, less than a minute.'
	@test -x $(LINT)/bin/pip || $(PYTHON) -m venv $(LINT)
	@$(subst $(VENV)/,$(LINT)/,$(INSTALL)) --constraint tools/linters.txt --editable '.[lint]'
	@touch $@

# The newest versions of the linters. Whether they find something new is for `make lint` to say.
pins: $(FOR_TESTS)
	$(BIN)/python -m tools.newest_versions lint > tools/linters.txt.new
	mv tools/linters.txt.new tools/linters.txt

# One BLAS thread a worker: small problems on many threads are slower, and workers share the cores.
# scikit-learn skips its array API checks unless SciPy is told about it before it is imported.
test test-browser test-core test-cpus test-oldest test-slow: export OMP_NUM_THREADS = 1
test test-browser test-core test-cpus test-oldest test-slow: export OPENBLAS_NUM_THREADS = 1
test test-browser test-core test-cpus test-oldest test-slow: export SCIPY_ARRAY_API = 1

# The numerical tests a second time, with the kernels of an old processor. Linters come last: what
# they say of style and types is no reason not to learn whether the program works.
test: $(FOR_TESTS)
	$(BIN)/python -m tools.kernels
	$(BIN)/pytest -n auto
	@$(MAKE) --no-print-directory lint

test-slow: $(FOR_TESTS)
	$(BIN)/pytest -n auto --dist loadgroup -m slow --timeout 0 --hypothesis-seed 0

# The playground and the reports in a Chromium, which is not installed here: it says how.
test-browser: $(FOR_BROWSER)
	@$(BIN)/python -m tests.helpers.browser
	$(BIN)/pytest -m browser tests/browser

$(FOR_BROWSER): $(FOR_TESTS)
	@$(INSTALL) --editable '.[browser]'
	@touch $@

# The numerical tests with every kernel that this processor can execute.
test-cpus: $(FOR_TESTS)
	$(BIN)/python -m tools.kernels --all

# Half of the tests in less than half of the time: the mathematics, the classifiers as scikit-learn
# wants them, and studies with their files and processes.
test-core: $(FOR_TESTS)
	$(BIN)/pytest -n auto tests/core tests/estimators tests/studies

# These tests and the linters once more, with the newest Python of this machine.
test-newest:
	@newest=$$($(PYTHON) -m tools.newest_python) || exit 1; \
	if [ "$$newest" ]; then $(MAKE) --no-print-directory PYTHON=$$newest VENV=.venv-$$(basename $$newest) test-core lint; \
	else echo 'No Python here is newer than $(PYTHON) and named in pyproject.toml: no second time.'; fi

# All tests with the lowest versions that pyproject.toml allows. What these import is newer, and
# deprecates some of the ways in which it is called.
test-oldest: $(OLDEST)/.for-tests
	$(OLDEST)/bin/pytest -n auto -W ignore::DeprecationWarning

$(OLDEST)/.for-tests: pyproject.toml
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) -m tools.lower_bounds > $(OLDEST)/constraints.txt
	$(subst $(VENV)/,$(OLDEST)/,$(INSTALL)) --constraint $(OLDEST)/constraints.txt --editable '.[all,test]'
	touch $@

# Known vulnerabilities of the newest versions that `pip install 'iclda[all]'` would bring. Needs
# the network: --strict fails for a package that could not be looked up.
audit: $(AUDIT)/.for-audit
	$(AUDIT)/bin/python -m tools.newest_versions all > $(AUDIT)/audited.txt
	$(AUDIT)/bin/pip-audit --requirement $(AUDIT)/audited.txt --no-deps --disable-pip --strict

$(AUDIT)/.for-audit: pyproject.toml
	$(PYTHON) -m venv $(AUDIT)
	$(subst $(VENV)/,$(AUDIT)/,$(PIP)) --upgrade pip
	$(subst $(VENV)/,$(AUDIT)/,$(INSTALL)) --editable '.[audit]'
	touch $@

# Under ten minutes on two cores.
bench: $(FOR_TESTS)
	$(BIN)/python benchmarks/run.py

# The site in docs/_build/html, every warning an error: runs the examples, checks links. About two
# minutes on two cores. `make test` runs the code of pages and docstrings.
docs pictures: export OMP_NUM_THREADS = 1
docs pictures: export OPENBLAS_NUM_THREADS = 1
docs: $(FOR_DOCS)
	$(BIN)/python -m sphinx -W --keep-going -q -j auto docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

# Reproducible files in dist/, installed in empty environments, where the README must hold.
release-check: $(FOR_RELEASE)
	$(BIN)/python -m tools.release_check

# The pictures of the README, its output of `iclda compare`, and the pictures of the architecture.
pictures: $(FOR_TESTS)
	PATH=$(BIN):$$PATH $(BIN)/python docs/readme/draw.py
	$(BIN)/python docs/draw_architecture.py

clean:
	rm -rf dist docs/_build docs/gallery docs/images docs/reference docs/reference.rst $(VENV) $(LINT) $(OLDEST) $(AUDIT) .venv-python* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
