#!/usr/bin/env bash
# Builds the programs of the next release's control plane for the tests that `make soak`
# runs on it (tests/lab/controlplane/go138.mod), as scripts/controlplane.sh builds those
# of the release; etcd is the same. Prints their folder as the last line.
# The first build takes about 25 minutes on 2 cores, and fetches the Go that it needs.
# One module of the pre-release cannot be had: k8s.io/apiextensions-api has what was in
# k8s.io/apiextensions-apiserver a release before, and is made from that.
# Usage: scripts/controlplane-next.sh
set -euo pipefail
cd "$(dirname "$0")/.."
programs=(kube-apiserver kube-controller-manager kube-scheduler kubectl)
before=v0.37.1 # of k8s.io/apiextensions-apiserver, when it had those types

fail() {
  echo "error: $1" >&2
  exit 1
}

complete() {
  local program
  for program in etcd "${programs[@]}"; do
    if [ ! -x "$1/$program" ]; then return 1; fi
  done
}

command -v go >/dev/null || fail "Go 1.26+ is not installed: https://go.dev/dl"
module=$PWD/tests/lab/controlplane
key=$(cat "$module"/go138.{mod,sum} scripts/controlplane-next.sh | sha256sum | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/moorings/controlplane-next/$key
if complete "$folder"; then
  echo "$folder"
  exit 0
fi

mkdir -p "$folder"
scratch=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
release=$(bash scripts/controlplane.sh)
export GOTOOLCHAIN=go1.27.3
cp "$release/etcd" "$scratch/etcd"
mv "$scratch/etcd" "$folder/etcd"

# The types, their clients and informers, without what converts to types of the server's.
rebuild_api() {
  local source old=k8s.io/apiextensions-apiserver new=k8s.io/apiextensions-api version
  source=$(go mod download -json "$old@$before" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  mkdir -p "$1/pkg/apis/apiextensions"
  cp -r "$source/pkg/client" "$1/pkg/client"
  for version in v1 v1beta1; do
    cp -r "$source/pkg/apis/apiextensions/$version" "$1/pkg/apis/apiextensions/"
  done
  chmod -R u+w "$1"
  find "$1" \( -name '*_test.go' -o -name conversion.go -o -name zz_generated.conversion.go \) -delete
  for version in v1 v1beta1; do # was in conversion.go
    printf 'package %s\n\nvar nullLiteral = []byte("null")\n' "$version" \
      >"$1/pkg/apis/apiextensions/$version/null.go"
  done
  grep -rlE "$old|structured-merge-diff/v6" "$1" | xargs sed -i \
    -e "s#$old/#$new/#g" -e 's#structured-merge-diff/v6#structured-merge-diff/v7#g'
  {
    printf 'module %s\n\ngo 1.27.0\n\nrequire (\n' "$new"
    grep -E '^	(k8s.io/(api|apimachinery|client-go|kube-openapi|utils)|sigs.k8s.io/structured-merge-diff/v7) v' \
      "$scratch/go.mod" | sed 's# // indirect##'
    echo ')'
  } >"$1/go.mod"
}

cp "$module/go138.mod" "$scratch/go.mod"
cp "$module/go138.sum" "$scratch/go.sum"
cd "$scratch"
rebuild_api "$scratch/apiextensions-api"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
base=k8s.io/component-base/version
flags="-s -w -X $base.gitVersion=$version -X $base.gitMajor=$major -X $base.gitMinor=$minor"
for program in "${programs[@]}"; do
  if [ -x "$folder/$program" ]; then continue; fi
  started=$SECONDS
  echo "controlplane: building $program $version (once; then cached) ..." >&2
  go build -p 1 -trimpath -ldflags "$flags" -o "$scratch/$program" "k8s.io/kubernetes/cmd/$program" ||
    fail "$program could not be built (see above)"
  mv "$scratch/$program" "$folder/$program"
  echo "controlplane: $program after $((SECONDS - started)) s" >&2
done
echo "$folder"
