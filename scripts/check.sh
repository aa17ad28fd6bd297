#!/usr/bin/env bash
# The one command behind `make lint` and `make test`, here and in CI. The first step that
# fails ends it.
# Usage: scripts/check.sh lint|all
set -euo pipefail
bin=.venv/bin
name=start

finish() {
  local status=$?
  if [ "$status" -eq 0 ]; then
    echo "== all passed after $SECONDS s"
  else
    echo "== failed: $name, after $SECONDS s" >&2
  fi
}
trap finish EXIT

step() {
  local started=$SECONDS
  name=$1
  shift
  echo "== $name"
  "$@"
  echo "   $((SECONDS - started)) s"
}

no_conflicts() { # Python and YAML fail by themselves
  ! grep -rnE '^(<<<<<<<|>>>>>>>) ' --include='*.md' --include='*.sh' ./*.md docs k8s scripts
}

step "no conflict markers" no_conflicts
step "format" "$bin/ruff" format --check --quiet .
step "lint" "$bin/ruff" check --quiet .
step "imports" "$bin/lint-imports" --no-cache --no-logo
step "types" "$bin/mypy"
if [ "$1" = lint ]; then exit 0; fi
kubernetes=""
if command -v go >/dev/null || [ -n "${KUBEBUILDER_ASSETS:-}${MOORINGS_REQUIRE_GO:-}" ]; then
  # Before the tests, so that its minutes are its own; they are spent once.
  step "control plane" bash scripts/controlplane.sh
  step "node" bash scripts/node.sh
  kubernetes="1.34 1.35 1.36"
else
  echo "== control plane: needs Go 1.26+ or KUBEBUILDER_ASSETS; its tests are skipped"
fi
step "unit and property tests" "$bin/pytest" -q -n 2 --dist loadfile tests/unit tests/property
step "integration tests" "$bin/pytest" -q tests/integration
step "end-to-end tests" "$bin/pytest" -q tests/e2e
for release in $kubernetes; do
  MOORINGS_EMULATED=$release step "Kubernetes $release, emulated" \
    "$bin/pytest" -q -m every_release tests/integration tests/e2e
done
