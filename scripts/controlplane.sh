#!/usr/bin/env bash
# Builds the programs of a Kubernetes control plane for the tests, once for each state of
# tests/lab/controlplane/go.mod and each Go: etcd, kube-apiserver, kube-controller-manager,
# kube-scheduler and kubectl. Prints their folder as the last line.
# The first build takes about 8 minutes on 2 cores and 3 GB of Go's caches; a folder that
# is there is used as it is. KUBEBUILDER_ASSETS names a folder to use instead.
# Usage: scripts/controlplane.sh
set -euo pipefail
cd "$(dirname "$0")/../tests/lab/controlplane"
programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl)

fail() {
  echo "error: $1" >&2
  exit 1
}

complete() {
  local program
  for program in "${programs[@]}"; do
    if [ ! -x "$1/$program" ]; then return 1; fi
  done
}

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  complete "$KUBEBUILDER_ASSETS" ||
    fail "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks one of: ${programs[*]}"
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi
command -v go >/dev/null || fail "Go 1.26+ is not installed: https://go.dev/dl"

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
key=$({ go env GOVERSION; cat go.mod go.sum ../../../scripts/controlplane.sh; } | sha256sum | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/moorings/controlplane/$key
if complete "$folder"; then
  echo "$folder"
  exit 0
fi

mkdir -p "$folder"
scratch=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
IFS=. read -r major minor _ <<<"${version#v}"
base=k8s.io/component-base/version
# Without these the API server calls itself v0.0.0 and serves nothing emulated.
flags="-s -w -X $base.gitVersion=$version -X $base.gitMajor=$major -X $base.gitMinor=$minor"
for program in "${programs[@]}"; do
  if [ -x "$folder/$program" ]; then continue; fi
  package=k8s.io/kubernetes/cmd/$program
  if [ "$program" = etcd ]; then package=go.etcd.io/etcd/server/v3; fi
  started=$SECONDS
  echo "controlplane: building $program $version (once; then cached) ..." >&2
  go build -trimpath -ldflags "$flags" -o "$scratch/$program" "$package" ||
    fail "$program could not be built (see above)"
  mv "$scratch/$program" "$folder/$program"
  echo "controlplane: $program after $((SECONDS - started)) s" >&2
done
echo "$folder"
