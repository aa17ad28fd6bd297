#!/usr/bin/env bash
# Builds Kueue's manager for the tests, once for each state of tests/lab/kueue/go.mod and
# each Go, and keeps its manifests beside it. Prints their folder as the last line.
# The first build takes about 5 minutes on 2 cores; a folder that is there is used as it
# is; KUEUE_ASSETS names one to use instead. With --cached nothing is built, and nothing
# printed where there is none.
# Usage: scripts/kueue.sh [--cached]
set -euo pipefail
cd "$(dirname "$0")/../tests/lab/kueue"

fail() {
  echo "error: $1" >&2
  exit 1
}

complete() { [ -x "$1/kueue" ] && [ -e "$1/config/default/kustomization.yaml" ]; }

if [ -n "${KUEUE_ASSETS:-}" ]; then
  complete "$KUEUE_ASSETS" || fail "KUEUE_ASSETS=$KUEUE_ASSETS lacks kueue or its config"
  echo "$KUEUE_ASSETS"
  exit 0
fi
command -v go >/dev/null || fail "Go 1.26+ is not installed: https://go.dev/dl"

key=$({ go env GOVERSION; cat go.mod go.sum ../../../scripts/kueue.sh; } | sha256sum | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/moorings/kueue/$key
if complete "$folder"; then
  echo "$folder"
  exit 0
fi
if [ "${1:-}" = --cached ]; then exit 0; fi

mkdir -p "$folder"
scratch=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
started=$SECONDS
version=$(go list -m -f '{{.Version}}' sigs.k8s.io/kueue)
echo "kueue: building $version (once; then cached) ..." >&2
go build -trimpath -ldflags "-s -w" -o "$scratch/kueue" sigs.k8s.io/kueue/cmd/kueue ||
  fail "Kueue could not be built (see above)"
cp -r "$(go list -m -f '{{.Dir}}' sigs.k8s.io/kueue)/config" "$scratch/config"
chmod -R u+w "$scratch/config" # files of the module cache cannot be written
rm -rf "$folder/config"
mv "$scratch/config" "$folder/config"
mv "$scratch/kueue" "$folder/kueue"
echo "kueue: after $((SECONDS - started)) s" >&2
echo "$folder"
