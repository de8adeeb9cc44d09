# The tasks of the project. `make demo` and `make test` set up what they need in .venv.

PYTHON ?= python3
BIN := .venv/bin
# LOCKED=1 installs what chiron runs with as requirements.lock pins it, each file by its hash.
LOCKED ?=
TOOLS := build/tools
MINIO := v0.0.0-20260212201848-7aac2a2c5b7c

.DEFAULT_GOAL := help
# Python is started so often that it has to keep what it compiles, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=
PIP_INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
# Tests wait more than they compute.
PYTEST = $(BIN)/pytest --numprocesses $$((3 * $$(nproc))) --dist worksteal
# What nobody needs who deploys a workflow.
EVALUATION := tests/benchmarks tests/evaluation

.PHONY: help demo test test-all test-evaluation test-slow test-alone soak lint setup lock audit faas-cli minio clean

help: ## Show the tasks
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | column -t -s "$$(printf '\t')"

demo: .venv/installed ## What the FINRA workflow takes as it is, and as chiron deploys it; leaves nothing running
	@$(BIN)/python -m chiron.installation strace
	@$(BIN)/chiron evaluate gain benchmarks/finra --slo 100ms --local --output out/demo

test: .venv/collected ## Run the tests: all that matters once (5 to 15 minutes on two cores)
	@$(PYTEST) $(addprefix --ignore ,$(EVALUATION))

test-all: test test-evaluation test-slow test-alone ## Run the other tests too: real commands, containers, measurements

test-evaluation: .venv/collected ## Run the tests of the benchmarks and of the evaluation
	@$(PYTEST) $(EVALUATION)

test-slow: .venv/collected
	@$(PYTEST) --numprocesses $$((2 * $$(nproc))) -m 'slow and not quiet and not soak'

test-alone: .venv/developing
	@$(BIN)/pytest -m quiet

soak: .venv/developing ## Run the tests that take minutes: load, faults (CHIRON_SOAK_SECONDS=1800), fuzzing, every combination
	@$(BIN)/pytest -m soak --timeout 1800 --hypothesis-profile new

lint: .venv/developing ## Check style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@cd templates/python3-wrap && $(CURDIR)/$(BIN)/mypy --strict --cache-dir $(CURDIR)/.mypy_cache/wrap -p wrap
	@$(BIN)/lint-imports
	@cd templates/python3-wrap && $(CURDIR)/$(BIN)/lint-imports --no-cache --config ../importlinter.toml

setup: .venv/developing ## Set up .venv for development (LOCKED=1: what chiron runs with is pinned)

lock: $(TOOLS)/pip-tools ## Renew requirements.lock after a change of the dependencies
	@CUSTOM_COMPILE_COMMAND="make lock" $(TOOLS)/bin/pip-compile --quiet --upgrade --generate-hashes \
		--extra dashboard --all-build-deps --allow-unsafe --strip-extras --no-emit-find-links --no-emit-index-url \
		--output-file requirements.lock pyproject.toml

audit: $(TOOLS)/pip-audit ## Look for known faults of what requirements.lock pins (needs pypi.org)
	@$(TOOLS)/bin/pip-audit --disable-pip --strict --require-hashes --requirement requirements.lock

faas-cli: .venv/installed ## Build the real faas-cli into .venv (needs Go)
	@installation/faas-cli/install.sh $(CURDIR)/.venv

minio: .venv/installed ## Build MinIO into .venv, for its tests and measurements (needs Go, and ten minutes)
	@GOBIN=$(CURDIR)/$(BIN) nice go install github.com/minio/minio@$(MINIO)

.venv/installed: pyproject.toml
	@installation/venv.sh $(PYTHON) .venv
	@echo "installing chiron into .venv"
ifneq ($(LOCKED),)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
else
	@$(PIP_INSTALL) numba pydantic pyyaml 'setuptools>=69' # for the compiler, beside pip's unpacking of the rest
	@PYTHONPATH=src $(BIN)/python -c 'from chiron.predictor.compiling import kernel; kernel()' & \
		$(PIP_INSTALL) --no-build-isolation --editable . && wait
endif
	@touch $@

.venv/developing: .venv/installed
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[benchmarks,dashboard,dev,docker,evaluation]'
	@touch $@

# Workers begin together: each would compile the tests, and what these import.
.venv/collected: .venv/developing
	@$(BIN)/pytest --collect-only --quiet >/dev/null || true
	@touch $@

$(TOOLS)/%:
	@installation/venv.sh $(PYTHON) $(TOOLS)
	@$(TOOLS)/bin/pip install --quiet --disable-pip-version-check $*
	@touch $@

clean: ## Remove .venv and everything that was generated
	rm -rf .venv out build *.egg-info
