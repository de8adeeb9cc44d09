# The tasks of the project. `make demo` and `make test` set up what they need in .venv.

PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo test soak lint setup faas-cli clean

help: ## Show the tasks
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | column -t -s "$$(printf '\t')"

demo: .venv/installed ## Profile, plan, deploy and compare the FINRA workflow; leaves nothing running
	@$(BIN)/python -m installation strace
	@$(BIN)/chiron evaluate latency benchmarks/finra --slo 100ms --mechanisms fork --quick --local --output out/demo

test: .venv/developing ## Run all tests
	@$(BIN)/pytest

soak: .venv/developing ## Run the tests that take minutes: load, faults, fuzzing
	@$(BIN)/pytest -m soak --timeout 1800

lint: .venv/developing ## Check style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@cd templates/python3-wrap && $(CURDIR)/$(BIN)/mypy --strict -p wrap
	@$(BIN)/lint-imports

setup: .venv/developing ## Set up .venv for development

faas-cli: .venv/installed ## Build the real faas-cli into .venv (needs Go)
	@installation/faas-cli/install.sh $(CURDIR)/.venv

.venv/installed: pyproject.toml
	@installation/venv.sh $(PYTHON) .venv
	@echo "installing chiron into .venv"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/developing: .venv/installed
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[benchmarks,dev,docker,evaluation,fast]'
	@touch $@

clean: ## Remove .venv and everything that was generated
	rm -rf .venv out build *.egg-info
