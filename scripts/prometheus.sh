#!/usr/bin/env bash
# Prints the folder that has Debian's `prometheus` and `promtool`: what is on PATH, else a
# copy in the cache, unpacked from the package without installing it, so that no daemon
# starts. Needs apt-get and a package list (apt-get update).
# Usage: scripts/prometheus.sh [find]   (find: nothing is downloaded)
set -euo pipefail

fail() {
  echo "error: $1" >&2
  exit 1
}

if found=$(command -v promtool); then
  dirname "$found"
  exit 0
fi
folder=${XDG_CACHE_HOME:-$HOME/.cache}/moorings/prometheus
if [ -x "$folder/usr/bin/promtool" ]; then
  echo "$folder/usr/bin"
  exit 0
fi
[ "${1:-}" != find ] || fail "no promtool: bash scripts/prometheus.sh"
command -v apt-get >/dev/null || fail "promtool is not installed: https://prometheus.io/download"
mkdir -p "$folder"
scratch=$(mktemp -d "$folder/unpack.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && apt-get download -qq -o APT::Sandbox::User=root prometheus >&2) ||
  fail "no package prometheus by apt-get"
dpkg-deb --extract "$scratch"/prometheus_*.deb "$scratch/unpacked"
cp -r "$scratch/unpacked/usr" "$folder/"
echo "$folder/usr/bin"
