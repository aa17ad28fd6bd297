#!/usr/bin/env bash
# The one command behind `make lint` and `make test`, here and in CI.
# Usage: scripts/check.sh lint|all
set -euo pipefail
bin=.venv/bin
begun=$SECONDS

step() {
  local started=$SECONDS name=$1
  shift
  echo "== $name"
  "$@"
  echo "   $((SECONDS - started)) s"
}

step format "$bin/ruff" format --check --quiet .
step lint "$bin/ruff" check --quiet .
step imports "$bin/lint-imports" --no-cache
step types "$bin/mypy"
[ "$1" = lint ] && exit 0
step "unit and property tests" "$bin/pytest" -q -n 2 tests/unit tests/property
step "integration tests" "$bin/pytest" -q tests/integration
step "end-to-end tests" "$bin/pytest" -q tests/e2e
echo "== all passed after $((SECONDS - begun)) s"
