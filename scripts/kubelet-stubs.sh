#!/usr/bin/env bash
# Generates the messages of kubelet's gRPC interfaces from its own .proto files, at the
# Kubernetes version of tests/lab/controlplane/go.mod. All of them are called api.proto
# there; here each is named after its interface and version.
# Usage: [PYTHON=.venv/bin/python] scripts/kubelet-stubs.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
folder=${1:-nodeagent/kubelet/stubs}
command -v go >/dev/null || { echo "error: Go 1.26+ is not installed: https://go.dev/dl" >&2; exit 1; }
apis=$(cd tests/lab/controlplane && go mod download k8s.io/kubelet && go list -m -f '{{.Dir}}' k8s.io/kubelet)/pkg/apis
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for interface in dra/v1 dra/v1beta1 dra-health/v1 dra-health/v1alpha1 pluginregistration/v1 podresources/v1; do
  name=$(tr -- '-/' '__' <<<"$interface")
  cp "$apis/$interface/api.proto" "$scratch/$name.proto"
done
"$python" -m grpc_tools.protoc -I"$scratch" --python_out="$folder" --pyi_out="$folder" "$scratch"/*.proto
