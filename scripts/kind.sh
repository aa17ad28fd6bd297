#!/usr/bin/env bash
# Makes a kind cluster that has the image, for k8s/overlays/try, with docker or podman.
# Needs kind, kubectl and docker or podman. Not run by CI, which has neither.
# Usage: scripts/kind.sh [NAME]
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-moorings}
for program in kind kubectl; do
  command -v "$program" >/dev/null || { echo "error: $program is not installed" >&2; exit 1; }
done
builder=$(command -v docker || command -v podman) ||
  { echo "error: needs docker or podman" >&2; exit 1; }
"$builder" build -t docker.io/library/moorings:0.1.0 .
archive=$(mktemp)
trap 'rm -f "$archive"' EXIT
"$builder" save -o "$archive" docker.io/library/moorings:0.1.0
kind get clusters | grep -qx "$name" || kind create cluster --name "$name"
kind load image-archive "$archive" --name "$name"
kubectl apply --server-side -k k8s/overlays/try
kubectl -n moorings-system rollout status --timeout=5m \
  statefulset/nats deployment/authcallout deployment/solver deployment/publisher
