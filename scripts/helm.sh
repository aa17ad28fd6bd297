#!/usr/bin/env bash
# Builds helm for the tests of k8s/chart, once for each state of tests/lab/helm/go.mod and
# each Go. Prints the program as the last line. The first build takes about 4 minutes on 2
# cores; HELM names a program to use instead. With --cached nothing is built, and nothing
# printed where there is none.
# Usage: scripts/helm.sh [--cached]
set -euo pipefail
cd "$(dirname "$0")/../tests/lab/helm"

if [ -n "${HELM:-}" ]; then
  echo "$HELM"
  exit 0
fi
if ! command -v go >/dev/null; then
  if [ "${1:-}" = --cached ]; then exit 0; fi
  echo "error: Go 1.26+ is not installed: https://go.dev/dl" >&2
  exit 1
fi
key=$({ go env GOVERSION; cat go.mod go.sum ../../../scripts/helm.sh; } | sha256sum | cut -c1-16)
program=${XDG_CACHE_HOME:-$HOME/.cache}/moorings/helm/$key/helm
if [ ! -x "$program" ]; then
  if [ "${1:-}" = --cached ]; then exit 0; fi
  echo "helm: building it (once; then cached) ..." >&2
  mkdir -p "$(dirname "$program")"
  go build -trimpath -ldflags "-s -w" -o "$program.$$" helm.sh/helm/v3/cmd/helm
  mv "$program.$$" "$program"
fi
echo "$program"
