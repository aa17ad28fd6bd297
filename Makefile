# The commands of the project. `make demo` and `make test` each work first on a machine
# that has only Python 3.11+ and make: whatever is missing they set up, once.
# `make PYTHON=python3.13 ...` chooses the Python of a new environment.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev

.PHONY: help setup setup-dev demo test lint controlplane bench bench-full soak clean

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## Create .venv with what a user needs; `make demo` does it too

setup-dev: $(READY_DEV) ## Add what tests and lint need; `make test` does it too

$(READY): pyproject.toml constraints.txt scripts/setup.sh
	@bash scripts/setup.sh "$(VENV)"
	@touch $@

$(READY_DEV): $(READY) constraints-dev.txt
	@bash scripts/setup.sh "$(VENV)" dev
	@touch $@

demo: $(READY) ## Run the main job on this machine; ends by itself
	@$(BIN)/moorings demo

test: $(READY_DEV) ## Everything that must hold: lint, then all tests
	@bash scripts/check.sh all

lint: $(READY_DEV) ## Format, lint, import rules, types
	@bash scripts/check.sh lint

controlplane: ## Build Kubernetes' own programs for the tests: Go 1.26+, once, about 8 minutes
	@bash scripts/controlplane.sh

bench: $(READY_DEV) ## Benchmarks, small sizes
	@bash scripts/bench.sh small

bench-full: $(READY_DEV) ## Benchmarks, all sizes
	@bash scripts/bench.sh full

soak: $(READY_DEV) ## The long forms of the tests: hundreds of kills, thousands of cases; hours
	@bash scripts/check.sh soak

clean: ## Remove what was built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .import_linter_cache
