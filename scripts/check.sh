#!/usr/bin/env bash
# The one command behind `make lint` and `make test`, here and in CI. The first step that
# fails ends it.
# Usage: scripts/check.sh lint|all
set -euo pipefail
bin=.venv/bin
name=start

lanes=()
beside=""

finish() {
  local status=$?
  trap "" INT TERM
  for lane in "${lanes[@]}"; do kill -INT -- "-$lane" 2>/dev/null || true; done
  for lane in "${lanes[@]}"; do wait "$lane" || true; done # they stop their servers
  if [ -n "$beside" ]; then cat "$beside"; fi
  rm -f "$beside"
  if [ "$status" -eq 0 ]; then
    echo "== all passed after $SECONDS s"
  else
    echo "== failed: $name, after $SECONDS s" >&2
  fi
}
trap finish EXIT
trap "exit 130" INT TERM

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
  kubernetes=yes
else
  echo "== control plane: needs Go 1.26+ or KUBEBUILDER_ASSETS; its tests are skipped"
fi
step "unit and property tests" "$bin/pytest" -q -n 2 --dist loadfile tests/unit tests/property

# The tests that run servers mostly wait: on four processors or more they run in two lanes
# side by side, each with servers of its own. What the second prints is shown at the end.
emulated() {
  MOORINGS_EMULATED=$1 step "Kubernetes $1, emulated" \
    "$bin/pytest" -q -m every_release tests/integration tests/e2e
}
integration_lane() {
  step "integration tests" "$bin/pytest" -q tests/integration
  if [ -n "$kubernetes" ]; then emulated 1.34; fi
}
end_to_end_lane() {
  step "end-to-end tests" "$bin/pytest" -q tests/e2e
  if [ -n "$kubernetes" ]; then
    emulated 1.35
    emulated 1.36
  fi
}
if [ "$(getconf _NPROCESSORS_ONLN)" -lt 4 ]; then
  integration_lane
  end_to_end_lane
  exit 0
fi
set -m # each lane is a process group of its own, which Ctrl-C ends
beside=$(mktemp)
integration_lane </dev/null &
lanes=($!)
end_to_end_lane </dev/null >"$beside" 2>&1 &
lanes+=($!)
name="integration or end-to-end tests"
failed=0
for lane in "${lanes[@]}"; do wait "$lane" || failed=1; done
lanes=()
exit "$failed"
