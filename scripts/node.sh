#!/usr/bin/env bash
# Builds the programs of a node for the tests, once for each state of tests/lab/node and
# each Go: kubelet, and unless only `kubelet` is asked for containerd,
# containerd-shim-runc-v2 and ctr. Prints their folder as the last line.
# The first build takes about 6 minutes on 2 cores (kubelet alone 2, less after that of the
# control plane); a folder that is there is used as it is. NODE_ASSETS names a folder to
# use instead. The rest is the distribution's:
# apt-get install runc busybox-static containernetworking-plugins
# Usage: scripts/node.sh [kubelet]
set -euo pipefail
cd "$(dirname "$0")/../tests/lab/node"
programs=(kubelet)
if [ "${1:-all}" != kubelet ]; then programs+=(containerd containerd-shim-runc-v2 ctr); fi

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

if [ -n "${NODE_ASSETS:-}" ]; then
  complete "$NODE_ASSETS" || fail "NODE_ASSETS=$NODE_ASSETS lacks one of: ${programs[*]}"
  echo "$NODE_ASSETS"
  exit 0
fi
command -v go >/dev/null || fail "Go 1.26+ is not installed: https://go.dev/dl"

key=$({ go env GOVERSION; cat ./*/go.mod ./*/go.sum ../../../scripts/node.sh; } | sha256sum | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/moorings/node/$key
if complete "$folder"; then
  echo "$folder"
  exit 0
fi

mkdir -p "$folder"
scratch=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# As scripts/controlplane.sh builds, so that what both need is compiled once.
build_kubelet() {
  local version major minor base=k8s.io/component-base/version
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  go build -trimpath -ldflags "-s -w -X $base.gitVersion=$version -X $base.gitMajor=$major \
    -X $base.gitMinor=$minor" -o "$scratch/kubelet" k8s.io/kubernetes/cmd/kubelet
}

build_containerd() { # PROGRAM
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$scratch/$1" \
    -tags "no_btrfs no_devmapper no_zfs no_aufs netgo osusergo" \
    "github.com/containerd/containerd/v2/cmd/$1"
}

for program in "${programs[@]}"; do
  if [ -x "$folder/$program" ]; then continue; fi
  started=$SECONDS
  echo "node: building $program (once; then cached) ..." >&2
  case $program in
  kubelet) (cd kubelet && build_kubelet) ;;
  *) (cd containerd && build_containerd "$program") ;;
  esac || fail "$program could not be built (see above)"
  mv "$scratch/$program" "$folder/$program"
  echo "node: $program after $((SECONDS - started)) s" >&2
done
echo "$folder"
