#!/usr/bin/env bash
# The one command behind `make lint`, `make test` and `make soak`, here and in CI. The
# first step that fails ends it.
# Usage: [MOORINGS_KUBERNETES=1.35] scripts/check.sh lint|all|soak
set -euo pipefail
bin=.venv/bin
name=start
declare -A running said # what runs beside the steps: its process, and the file of its words

finish() {
  local status=$? each
  trap "" INT TERM
  for each in "${running[@]}"; do kill "$each" 2>/dev/null || true; done
  rm -f "${said[@]}"
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

beside() { # Starts a step that others need not wait for; it gives way to them.
  local what=$1
  shift
  said[$what]=$(mktemp)
  nice -n 5 "$@" >"${said[$what]}" 2>&1 &
  running[$what]=$!
}

joined() {
  local status=0
  wait "${running[$1]}" || status=$?
  unset "running[$1]"
  cat "${said[$1]}"
  return "$status"
}

# Tests that run servers mostly wait, so four lanes share even two processors; each has a
# control plane of its own (tests/lab/lanes.py). The others compute, in what those leave.
waiting=(-q -n 4)
computing=(-q -n 2)

# One older release a run, the same for a commit; all of them in `make soak`.
releases=(1.34 1.35 1.36)
drawn=${MOORINGS_KUBERNETES:-}
if [ -z "$drawn" ]; then
  commit=$(git rev-parse --short=7 HEAD 2>/dev/null || date +%j)
  drawn=${releases[$((16#$commit % ${#releases[@]}))]}
fi
unset MOORINGS_KUBERNETES
emulated() { # Others are not even imported.
  local marked
  mapfile -t marked < <(grep -rl --include='test_*.py' every_release tests/integration tests/e2e)
  MOORINGS_KUBERNETES=$1 step "Kubernetes $1, emulated" \
    "$bin/pytest" -q -n 2 -m every_release "${marked[@]}"
}

next() { # A pre-release; nothing but this runs on it.
  step "Kubernetes 1.38: control plane" bash scripts/controlplane-next.sh
  MOORINGS_KUBERNETES=1.38 step "Kubernetes 1.38: end-to-end tests" "$bin/pytest" -q tests/e2e
  MOORINGS_KUBERNETES=1.38 step "Kubernetes 1.38: integration tests" \
    "$bin/pytest" -q tests/integration/test_kubernetes_*.py
}

older() { # Releases from before v1, of their own programs.
  local release
  for release in 1.33 1.32; do
    step "Kubernetes $release: control plane" bash scripts/controlplane-older.sh "$release"
    MOORINGS_KUBERNETES=$release step "Kubernetes $release: end-to-end tests" \
      "$bin/pytest" -q -m every_release tests/e2e
  done
}

programs() { # Before the tests, so that its minutes are its own; they are spent once.
  if command -v go >/dev/null || [ -n "${KUBEBUILDER_ASSETS:-}${MOORINGS_REQUIRE_GO:-}" ]; then
    step "control plane" bash scripts/controlplane.sh
    step "node" bash scripts/node.sh
    kubernetes=yes
  else
    echo "== control plane: needs Go 1.26+ or KUBEBUILDER_ASSETS; its tests are skipped"
    kubernetes=""
  fi
}

if [ "$1" = soak ]; then
  export MOORINGS_SOAK=1
  programs
  if command -v go >/dev/null; then
    step "kueue" bash scripts/kueue.sh
    step "helm" bash scripts/helm.sh
    for release in 1.30 1.31; do # for classic DRA
      step "Kubernetes $release: control plane" bash scripts/controlplane-older.sh "$release"
    done
  fi
  step "unit and property tests" "$bin/pytest" "${computing[@]}" tests/unit tests/property
  step "integration tests" "$bin/pytest" -q tests/integration # kills, one after the other
  step "end-to-end tests" "$bin/pytest" -q tests/e2e
  if [ -n "$kubernetes" ]; then
    for release in "${releases[@]}"; do emulated "$release"; done
    next
    older
  fi
  exit 0
fi

step "no conflict markers" no_conflicts
step "format" "$bin/ruff" format --check --quiet .
step "lint" "$bin/ruff" check --quiet .
step "imports" "$bin/lint-imports" --no-cache --no-logo
if [ "$1" = lint ]; then
  step "types" "$bin/mypy"
  exit 0
fi
beside "types" "$bin/mypy" # one processor's work for minutes
MOORINGS_FIRST_LANE=4 beside "units" "$bin/pytest" "${computing[@]}" tests/unit tests/property
programs
step "integration and end-to-end tests" "$bin/pytest" "${waiting[@]}" tests/integration tests/e2e
step "types" joined "types"
if [ -n "$kubernetes" ]; then emulated "$drawn"; fi
step "unit and property tests" joined "units"
