# The commands of the project. `make demo` and `make test` each work first on a machine
# that has only Python 3.11+ and make: whatever is missing they set up, once.
# `make PYTHON=python3.13 ...` chooses the Python of a new environment.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: help setup demo test lint controlplane bench bench-full soak clean

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP) ## Create .venv with everything the project needs

$(STAMP): pyproject.toml constraints.txt scripts/setup.sh
	@bash scripts/setup.sh "$(VENV)"

demo: $(STAMP) ## Run the main job on this machine; ends by itself
	@$(BIN)/moorings demo

test: $(STAMP) ## Everything that must hold: lint, then all tests
	@bash scripts/check.sh all

lint: $(STAMP) ## Format, lint, import rules, types
	@bash scripts/check.sh lint

controlplane: ## Build Kubernetes' own programs for the tests: Go 1.26+, once, about 8 minutes
	@bash scripts/controlplane.sh

bench: $(STAMP) ## Benchmarks, small sizes
	@bash scripts/bench.sh small

bench-full: $(STAMP) ## Benchmarks, all sizes
	@bash scripts/bench.sh full

soak: $(STAMP) ## The long forms of the tests: hundreds of kills, thousands of cases
	@MOORINGS_SOAK=1 $(BIN)/pytest -q tests/property tests/integration tests/e2e/test_cluster_kills.py \
	  tests/e2e/test_cluster_disturbed.py

clean: ## Remove what was built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .import_linter_cache
