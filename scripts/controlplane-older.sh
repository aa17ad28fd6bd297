#!/usr/bin/env bash
# Builds the programs of an older release's control plane, 1.30 to 1.33, for the tests
# that `make soak` runs on it (tests/lab/controlplane/go130.mod and so on), as
# scripts/controlplane.sh builds those of the release; etcd and kubectl are the same.
# Prints their folder as the last line. The first build takes some 5 minutes a release.
# Staging modules that cannot be had in the patch release are those of its .0.
# Usage: scripts/controlplane-older.sh 1.31
set -euo pipefail
cd "$(dirname "$0")/.."
programs=(kube-apiserver kube-controller-manager kube-scheduler)
release=${1:?which release: 1.30, 1.31, 1.32 or 1.33}
module=$PWD/tests/lab/controlplane
mod=$module/go${release/./}.mod

fail() {
  echo "error: $1" >&2
  exit 1
}

complete() {
  local program
  for program in etcd kubectl "${programs[@]}"; do
    if [ ! -x "$1/$program" ]; then return 1; fi
  done
}

command -v go >/dev/null || fail "Go 1.26+ is not installed: https://go.dev/dl"
[ -f "$mod" ] || fail "$release is none of the releases that are built: 1.30 to 1.33"
key=$(cat "$mod" "${mod%.mod}.sum" scripts/controlplane-older.sh | sha256sum | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/moorings/controlplane-$release/$key
if complete "$folder"; then
  echo "$folder"
  exit 0
fi

mkdir -p "$folder"
scratch=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
newest=$(bash scripts/controlplane.sh)
cp "$newest/etcd" "$newest/kubectl" "$folder/"
cp "$mod" "$scratch/go.mod"
cp "${mod%.mod}.sum" "$scratch/go.sum"
cd "$scratch"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
base=k8s.io/component-base/version
flags="-s -w -X $base.gitVersion=$version -X $base.gitMajor=1 -X $base.gitMinor=${release#1.}"
for program in "${programs[@]}"; do
  if [ -x "$folder/$program" ]; then continue; fi
  started=$SECONDS
  echo "controlplane: building $program $version (once; then cached) ..." >&2
  go build -trimpath -ldflags "$flags" -o "$scratch/$program" "k8s.io/kubernetes/cmd/$program" ||
    fail "$program could not be built (see above)"
  mv "$scratch/$program" "$folder/$program"
  echo "controlplane: $program after $((SECONDS - started)) s" >&2
done
echo "$folder"
